"""What the parts of the loop share during one task: the parts, the clock, the state, the frontier, the baseline."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from localagent.domain.edit import Candidate
from localagent.domain.gate import Allow
from localagent.domain.outcome import Baseline, JailOutcome, Outcome, QuickResult
from localagent.domain.paths import RepoPath
from localagent.domain.task import Event, Stage, Suspicion, Task
from localagent.repair.ordering.cost import CostOrder
from localagent.repair.search.frontier import Frontier
from localagent.repair.search.later_steps import Rivals
from localagent.repair.search.search_node import SearchStep
from localagent.repair.search.state import Parts, State
from localagent.report import repair_reasons


class RunContext:
    """One task in progress. `baseline` and `suspicions` are empty until their stages are over."""

    def __init__(self, task: Task, parts: Parts, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.task, self.parts, self.clock = task, parts, clock
        self.start = clock()
        self.state = State()
        self.frontier = Frontier()
        self.rivals = Rivals()
        self.order = CostOrder(parts.weights)
        self.baseline = Baseline(tests=(), failing=(), passing=())
        self.suspicions: tuple[Suspicion, ...] = ()

    def left(self) -> float:
        """Seconds of the budget that are left; negative when it is used up. The guard's are beside it."""
        return self.task.budget.max_seconds - (self.clock() - self.start - self.state.guard_seconds)

    def emit(self, kind: str, **data: object) -> None:
        """Tell the sink."""
        self.parts.sink.emit(Event(kind=kind, at_seconds=round(self.clock() - self.start, 4), data=data))

    def emit_checked(self, candidate: Candidate, result: QuickResult) -> None:
        """Tell the sink what the quick check of a candidate said."""
        self.emit(
            "checked",
            number=candidate.number,
            edit=[repair_reasons.tried(e) for e in candidate.edits],
            cost=round(candidate.cost, 3),
            route=result.route.value,
            plausible=result.plausible,
            turned=len(result.turned),
            broken=len(result.broken),
            late=sum(o is Outcome.TIMED_OUT for o in result.outcomes.values())
            + (result.ending in (JailOutcome.CPU, JailOutcome.WALL)),
        )

    @contextmanager
    def timed(self, stage: Stage) -> Iterator[None]:
        """Announce a stage and add the time of the block to it."""
        begin = self.clock()
        self.emit("stage", stage=stage.value)
        try:
            yield
        finally:
            seconds = self.state.seconds
            seconds[stage.value] = seconds.get(stage.value, 0.0) + self.clock() - begin

    def editable(self, path: RepoPath, line: int) -> bool:
        """Whether the gates let a repair touch a line of a file; why not is kept in `state.protected`."""
        finding = self.parts.gates.protection(path, line, self.baseline, self.parts.sources)
        if finding is not None:
            self.state.protected.setdefault(path, finding.message)
        return finding is None

    def build(self, step: SearchStep) -> Candidate | None:
        """The candidate of a step under a number of its own, None (booked) where a gate does not allow it."""
        self.state.numbers += 1
        candidate = Candidate(
            number=self.state.numbers,
            patch=step.patch(self.parts.sources),
            edits=(*step.parent.edits, step.edit),
            cost=step.cost,
            round=step.parent.round + 1,
            parent=step.parent.number,
            model_score=step.model_score,
        )
        self.state.rounds = max(self.state.rounds, candidate.round)
        refusal = self.refused(candidate)
        if refusal:
            self.state.denied[refusal] += 1
            return None
        return candidate

    def refused(self, candidate: Candidate) -> str:
        """The rule of the first gate that does not allow a candidate, or ""."""
        for decision in self.parts.gates.review(candidate, self.baseline, self.parts.sources):
            if decision.answer is not Allow.ALLOW:
                rule = decision.findings[0].rule if decision.findings else decision.gate
                self.emit("denied", number=candidate.number, rule=rule, edit=candidate.edits[-1].description)
                return rule
        return ""
