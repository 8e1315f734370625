"""The loop of one task: baseline, localize, order, verify, feed back, choose.

One best-first search over sequences of edits. The root is the snapshot; a candidate that made progress without being
plausible joins the beam (at most three per round), its own edits enter the same queue, so faults at several places are
found. The model's scores arrive beside the search and reorder what is still open; without them the prior decides.

Not promised: equal wall times, nor the same order in two runs: the search goes on from the answers and scores that are
there, and when they come is a matter of time. What came when is told as events.
"""

import concurrent.futures as cf
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from localagent.domain.edit import Candidate
from localagent.domain.task import Ambiguity, Stage, Task, TaskResult, Verdict
from localagent.ports import QuickCheck
from localagent.repair.acceptance.acceptance import Accepted, ambiguity, rivals
from localagent.repair.acceptance.control_edits import only_flaky
from localagent.repair.acceptance.give_up import give_up_reason
from localagent.repair.acceptance.repair_result import task_result
from localagent.repair.acceptance.signals import Signals, hardened_signals
from localagent.repair.acceptance.test_trust import distrust
from localagent.repair.search.expansion import Expansion
from localagent.repair.search.partial_progress import baseline_failures
from localagent.repair.search.run_context import RunContext
from localagent.repair.search.search_loop import Loop
from localagent.repair.search.search_node import Lineage
from localagent.repair.search.state import Parts
from localagent.report import repair_reasons

TURN_SECONDS = 0.0005


@contextmanager
def _quick_turns() -> Iterator[None]:
    """A thread that has a worker's answer need not wait for long until the one that thinks lets it run."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(min(before, TURN_SECONDS))
    try:
        yield
    finally:
        sys.setswitchinterval(before)


class Repair:
    """Runs one task. `run` never raises for what the repository did; jail and usage faults propagate."""

    def __init__(self, task: Task, parts: Parts) -> None:
        self._run = RunContext(task, parts)
        self._expansion = Expansion(self._run)

    def run(self) -> TaskResult:
        """The whole task."""
        try:
            result = self._stages()
            return replace(result, seconds={k: round(v, 3) for k, v in self._run.state.seconds.items()})
        finally:
            self._expansion.close()

    def signals(self, candidate: Candidate) -> Signals:
        """What is known of a plausible candidate; of one that was made sturdier, with what the one before does."""
        found, choice = self._run.state.signals, self._run.state.choice
        before = found.get(candidate.parent) if candidate.parent is not None else None
        if candidate.number in found or choice is None or before is None:
            return found.get(candidate.number, {})
        return hardened_signals(candidate, before, choice)

    def rivals(self, chosen: Candidate) -> list[Accepted]:
        """Others that pass every check as well and are known to behave otherwise, best first, while there is time."""
        return rivals(self._run, chosen)

    def ambiguity(self, proposals: Sequence[Candidate]) -> Ambiguity | None:
        """An input on which they differ; None where none is known."""
        return ambiguity(self._run, proposals)

    def _stages(self) -> TaskResult:
        run = self._run
        with run.timed(Stage.BASELINE):
            baseline = run.baseline = run.parts.verifier.baseline()
        run.emit("baseline", failing=list(baseline.failing), flaky=list(baseline.flaky), passing=len(baseline.passing))
        if not baseline.failing and baseline.flaky:
            return task_result(run, Verdict.UNTRUSTED_TESTS, only_flaky(baseline.flaky), 1)
        if not baseline.failing:
            return task_result(run, Verdict.NOTHING_TO_FIX, repair_reasons.NOTHING_TO_FIX, 0)
        with run.timed(Stage.LOCALIZE):
            found = run.parts.localizer.localize(baseline, run.parts.sources)
            run.suspicions = tuple(s for s in found if run.editable(s.path, s.line))
        order = run.parts.ranker.name if run.parts.ranker is not None and run.parts.weights.learned else "hand"
        run.emit("localized", top=[f"{s.path}:{s.line}" for s in run.suspicions[:10]], order=order)
        if run.state.protected:
            run.emit("protected", places=list(run.state.protected.values())[:10])
        if not run.suspicions:
            return task_result(run, Verdict.GAVE_UP, repair_reasons.nowhere(run.state.protected.values()), 1)
        self._expansion.prepare()
        quick = run.parts.verifier.quick(baseline, jobs=run.task.budget.jobs)
        try:
            with run.timed(Stage.SEARCH):
                return self._search(quick)
        finally:
            quick.close()

    def _search(self, quick: QuickCheck) -> TaskResult:
        run = self._run
        root = Lineage(
            number=None,
            edits=(),
            changed={},
            identity=frozenset(),
            cost=0.0,
            round=0,
            failures=baseline_failures(run.baseline),
            lines={},
        )
        self._expansion.next_tranche(root)
        with _quick_turns(), cf.ThreadPoolExecutor(run.task.budget.jobs, thread_name_prefix="verify") as pool:
            doubt = distrust(run, quick, pool)
            if doubt:
                return task_result(run, Verdict.UNTRUSTED_TESTS, doubt, 1)
            self._expansion.hold()
            accepted = Loop(run, self._expansion, quick, pool).run(root)
        if accepted is None:
            progress = run.state.progress
            return task_result(run, *give_up_reason(run), 1, full=None if progress is None else progress[1])
        candidate, full = accepted
        return task_result(run, Verdict.ACCEPTED, repair_reasons.accepted(candidate), 0, chosen=candidate, full=full)
