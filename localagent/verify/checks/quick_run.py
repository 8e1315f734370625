"""One candidate in one worker: which tests run there in which order, and what they said."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from localagent.domain.outcome import CheckResult, Outcome
from localagent.verify.checks import check_commands as checks
from localagent.verify.checks.outcomes import CandidateOutcomes, file_outcomes
from localagent.verify.checks.quick_plan import MEMORY_BYTES, Ask, QuickPlan
from localagent.verify.checks.test_selection import COLLECT_PREFIX
from localagent.verify.worker.jail_pool import JailWorker
from localagent.verify.worker.worker_client import OpenRequest, RunRequest
from localagent.verify.worker.worker_messages import Collected, CollectionRefused, Item, RunEnd

GRACE_TESTS = 4  # after a bad one that ends a run: a number, for what fits into some time differs from run to run


class QuickRun:
    """The patched files must be in the worker before. `seen` is what was said so far."""

    def __init__(self, plan: QuickPlan, worker: JailWorker, ask: Ask, seen: CandidateOutcomes) -> None:
        self._plan, self._worker, self._ask, self.seen = plan, worker, ask, seen

    def swapped(self, known: Mapping[str, Item], orders: list[dict[str, object]]) -> RunEnd:
        """By swapping in the session of the snapshot, whose tests are `known`; how the last run ended."""
        targets, ask = self._plan.targets, self._ask
        for names, stop in ((targets.tests, ask.stop_early), (ask.passing, True)):
            items = [known[i] for i in names if i in known]
            if names is ask.passing:
                items.sort(key=lambda i: i.index)
            if not items:
                continue
            request = self._request(items, "hot", stop=stop, failing=names is targets.tests)
            ran = self._worker.client.run(replace(request, swap=orders))
            if ran.end is RunEnd.CANNOT_SWAP:
                return ran.end
            for result in ran.results.values():
                self.seen.add(result)
            if ran.end is RunEnd.SESSION_ENDED:
                return ran.end
            if names and not self.seen.any_good(names):
                break  # passing tests tell something once a failing one has turned
        return RunEnd.DONE

    def judge(
        self,
        answer: Collected | CollectionRefused,
        *,
        session: str = "fresh",
        orders: Sequence[dict[str, object]] = (),
    ) -> RunEnd:
        """Run what a session offers that is not the snapshot's own; how its last run ended."""
        targets, ask, seen = self._plan.targets, self._ask, self.seen
        if isinstance(answer, CollectionRefused):
            for test in targets.tests[:1]:
                seen.put(test, Outcome.ERROR, next(iter(answer.errors.values()), answer.failure))
            file_outcomes(targets.files, answer, seen)
            return RunEnd.DONE
        by_id = {item.id: item for item in answer.items}
        files = {name[len(COLLECT_PREFIX) :] for name in targets.files}
        whole = any(path not in {str(i.path) for i in answer.items} for path in files if path not in answer.errors)
        new = [i for i in answer.items if i.id not in self._plan.by_id and (whole or str(i.path) in files)]
        for name in targets.tests:
            if name not in by_id:
                path = str(self._plan.by_id[name].path)
                failure = answer.errors.get(path) or next(iter(answer.errors.values()), None)
                seen.put(name, Outcome.ERROR, failure)
        failing = [by_id[i] for i in targets.tests if i in by_id] + new
        passing = [by_id[i] for i in ask.passing if i in by_id]
        for name in ask.passing:
            if name not in by_id:
                seen.put(name, Outcome.ERROR, next(iter(answer.errors.values()), None))
        for items, is_failing in ((failing, True), (passing, False)):
            if not items or (ask.stop_early and seen.failures):
                continue
            stop = ask.stop_early and not new if is_failing else True
            request = self._request(items, session, stop=stop, failing=is_failing)
            ran = self._worker.client.run(replace(request, swap=orders))
            for result in ran.results.values():
                seen.add(result)
            if ran.end in (RunEnd.CANNOT_SWAP, RunEnd.SESSION_ENDED):
                return ran.end
            if is_failing and not seen.any_good([i.id for i in items]):
                break
        file_outcomes(targets.files, answer, seen)
        return RunEnd.DONE

    def _request(self, items: list[Item], session: str, *, stop: bool, failing: bool) -> RunRequest:
        cpu, known = self._ask.cpu_seconds, [0.0]
        if not failing:
            known += [self._plan.by_id[i.id].seconds for i in items if i.id in self._plan.by_id]
            cpu = max(cpu, 0.5 + 5 * max(known))
        return RunRequest(
            items=items,
            session=session,
            inline=self._plan.inline,
            stop_on_bad=stop,
            grace_tests=GRACE_TESTS,
            cpu_seconds=cpu,
            cpu_after_hang_seconds=max(0.05, cpu / 8),
            wall_seconds=max(2.0, 4 * cpu),
            budget_seconds=max(4.0, 8 * cpu, 4 * sum(known)),
            memory_bytes=MEMORY_BYTES,
        )

    def checks(self) -> None:
        """The commands that failed, once every test that was asked is good."""
        targets, ask, seen = self._plan.targets, self._ask, self.seen
        if not targets.checks or not seen.all_good((*targets.files, *targets.tests, *ask.passing)):
            return
        for name in targets.checks:
            known = self._plan.commands[name]
            limit = max(ask.cpu_seconds, 1.0 + 3 * (known.seconds if known.outcome is not Outcome.TIMED_OUT else 0.0))
            got = run_command(self._plan, self._worker, known.command, limit)
            seen.put(name, got.outcome, got.failure)
            if not got.outcome.good and ask.stop_early:
                return


def run_command(plan: QuickPlan, worker: JailWorker, command: str, cpu_seconds: float) -> CheckResult:
    """A command of the task in a worker, untraced."""
    place = plan.jails.place
    return checks.run_check(
        worker.client,
        command,
        repo=place.repo,
        python=place.executable,
        trace=False,
        cpu_seconds=cpu_seconds,
        wall_seconds=2 * cpu_seconds + 1,
        pythonpath=plan.request.pythonpath,
    )


def opened(worker: JailWorker, request: OpenRequest) -> Collected | CollectionRefused:
    """A session; without our own options where this pytest does not know them."""
    answer = worker.client.open(request)
    if isinstance(answer, CollectionRefused) and "unrecognized arguments" in answer.text:
        answer = worker.client.open(replace(request, options=()))
    return answer
