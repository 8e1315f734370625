"""Runs many collected tests on one worker, whatever they do: a session that ends in the middle is opened again.

Not promised: the same session for all tests once one of them has ended it (session fixtures are made anew).
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from localagent.domain.outcome import Failure, Outcome, TestResult
from localagent.runner.failures import WALL_TIME_IS_UP
from localagent.verify.worker.worker_client import OpenRequest, RunRequest, WorkerClient
from localagent.verify.worker.worker_messages import Collected, CollectionRefused, Item, Ran, RunEnd

REOPEN_LIMIT = 12
TRACED_BATCH = 100


@dataclass(kw_only=True, slots=True)
class SuiteRun:
    """Results by id; `missed` are tests that were not run in the time given, or lost when sessions kept ending."""

    results: dict[str, TestResult] = field(default_factory=dict)
    missed: tuple[str, ...] = ()


class SuiteWorker:
    """One worker, one way to collect."""

    def __init__(self, client: WorkerClient, request: OpenRequest) -> None:
        self._client = client
        self._request = request
        self._collected: Collected | None = None

    def open(self) -> Collected | CollectionRefused:
        """Collect; options of ours that this pytest does not take are dropped."""
        answer = self._client.open(self._request)
        if isinstance(answer, CollectionRefused) and self._request.options and "unrecognized arguments" in answer.text:
            self._request = replace(self._request, options=())
            answer = self._client.open(self._request)
        self._collected = answer if isinstance(answer, Collected) else None
        return answer

    def run(self, items: Sequence[Item], request: RunRequest) -> SuiteRun:
        """Run `items` by id. `request` gives limits and ways; its `items` are ignored."""
        run = SuiteRun()
        give_up_at = time.monotonic() + request.budget_seconds
        pending = list(items)
        inline, hung, ended = request.inline, set[str](), 0
        while pending and ended < REOPEN_LIMIT and time.monotonic() < give_up_at and self._ensure_open():
            pending = self._settle(pending)
            unforkable = self._collected is not None and bool(self._collected.unforkable)
            batch = pending[:TRACED_BATCH] if request.trace else pending
            ran = self._client.run(
                replace(
                    request,
                    items=batch,
                    session=self._request.session,
                    inline=inline or unforkable,
                    budget_seconds=max(0.1, give_up_at - time.monotonic()),
                    hung=tuple(i.index for i in batch if base_of(i.id) in hung),
                )
            )
            self._note(ran, batch, run)
            hung |= {base_of(r.id) for r in run.results.values() if r.outcome is Outcome.TIMED_OUT}
            if ran.end is RunEnd.SESSION_ENDED:
                self._collected, inline, ended = None, False, ended + 1
            elif not ran.results:
                break
            pending = [item for item in pending if item.id not in run.results]
        run.missed = tuple(item.id for item in items if item.id not in run.results)
        return run

    def _ensure_open(self) -> bool:
        return self._collected is not None or isinstance(self.open(), Collected)

    def _settle(self, items: Sequence[Item]) -> list[Item]:
        """The same tests with their numbers in the session that is open now; ids that are gone are dropped."""
        now = {item.id: item for item in self._collected.items} if self._collected else {}
        return [now[item.id] for item in items if item.id in now]

    @staticmethod
    def _note(ran: Ran, batch: Sequence[Item], run: SuiteRun) -> None:
        """Take the results, and blame the test that was running when the session ended."""
        by_index = {item.index: item for item in batch}
        run.results.update({by_index[index].id: result for index, result in ran.results.items()})
        if ran.started is None or by_index[ran.started].id in run.results:
            return
        item = by_index[ran.started]
        late = ran.why == "hung"
        failure = Failure(
            exception="TimeLimit" if late else "InterpreterExit",
            message=WALL_TIME_IS_UP if late else "ended the interpreter",
        )
        outcome = Outcome.TIMED_OUT if late else Outcome.ERROR
        run.results[item.id] = TestResult(id=item.id, outcome=outcome, failure=failure, path=item.path, line=item.line)


def base_of(test_id: str) -> str:
    """The id without its parameters."""
    return test_id.split("[", 1)[0]
