"""What the parts of the loop share during one task: the parts, the clock, the state, the frontier, the baseline."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from localagent.domain.edit import Candidate, Edit, EditEffect
from localagent.domain.gate import Allow
from localagent.domain.outcome import Baseline, JailOutcome, Outcome, QuickResult
from localagent.domain.paths import RepoPath
from localagent.domain.task import Event, Stage, Suspicion, Task
from localagent.ports import Sources
from localagent.repair.ordering.cost import CostOrder
from localagent.repair.search.code_equivalence import scope_of
from localagent.repair.search.frontier import Frontier
from localagent.repair.search.search_node import Lineage, SearchStep
from localagent.repair.search.state import Parts, State
from localagent.report import repair_reasons

# Steps that are worth less than they were, since another one ran: they come later, once for each reason.
#
# A fault that can be mended in three ways leaves three kept candidates that stop at the next fault. The likeliest
# edits for that are the same on each of them, and would run three times before the next likeliest ones run once: what
# an edit did on one program it most likely does on another that fails alike. And where an edit took a failure
# further, the other edits of that line are wanted only if it was wrong. Not promised: that lines which read alike are
# one place.

REPEATED = 2.0  # nats; both set by hand on development cases
EXPLAINED = 1.5


class Rivals:
    """What ran on kept candidates' programs, and which edits were kept. One task's."""

    def __init__(self) -> None:
        self._ran: dict[object, set[int]] = {}  # by what was done: ids of the parents, which `_failing` keeps alive
        self._kept: dict[int, tuple[Lineage, list[Edit]]] = {}  # by id of the parent, which is kept alive with them
        self._told: dict[tuple[float, int, int], SearchStep] = {}  # by reason and ids, which the step keeps alive
        self._failing: dict[int, tuple[Lineage, object]] = {}

    def later(self, step: SearchStep, base: Sources) -> float:
        """How much later a step comes than it cost, nats; 0.0 where that was said already. `base`: the snapshot."""
        if step.joins or EditEffect.WRITTEN_BY_MODEL in step.edit.effects:
            return 0.0
        _, kept = self._kept.get(id(step.parent), (step.parent, []))
        why = [EXPLAINED] if any(_same_line(step.edit, edit) for edit in kept) else []
        if step.parent.edits and self._ran.get(self._what(step, base), set()) - {id(step.parent)}:
            why.append(REPEATED)
        fresh = [nats for nats in why if (nats, id(step.parent), id(step.edit)) not in self._told]
        self._told |= {(nats, id(step.parent), id(step.edit)): step for nats in fresh}
        return sum(why) if fresh else 0.0

    def runs(self, step: SearchStep, base: Sources) -> None:
        """Remember a step that is run."""
        if step.parent.edits:
            self._ran.setdefault(self._what(step, base), set()).add(id(step.parent))

    def remember(self, step: SearchStep) -> None:
        """Remember a step after which a failure came later."""
        self._kept.setdefault(id(step.parent), (step.parent, []))[1].append(step.edit)

    def _what(self, step: SearchStep, base: Sources) -> object:
        """How the program fails, the lines that are edited as they stand in it, and what is done to them."""
        edit = step.edit
        source = step.parent.sources(base)[edit.path]
        low = source.rfind(b"\n", 0, edit.splices[0].start) + 1 if edit.splices else 0
        high = source.find(b"\n", edit.splices[-1].end) if edit.splices else 0
        text = source[low : high if high >= 0 else len(source)]
        done = tuple((splice.start - low, splice.end - low, splice.text) for splice in edit.splices)
        return self._fails(step.parent), scope_of(edit), text, done

    def _fails(self, parent: Lineage) -> object:
        known = self._failing.get(id(parent))
        if known is None:
            told = tuple(sorted((f.exception, f.steady) for f in parent.failures))
            known = self._failing[id(parent)] = (parent, told)
        return known[1]


def _same_line(one: Edit, other: Edit) -> bool:
    return one.path == other.path and one.line <= other.end_line and other.line <= one.end_line


class RunContext:
    """One task in progress, of whose budget some seconds are `spent`.

    `baseline` and `suspicions` are empty until their stages are over.
    """

    def __init__(
        self, task: Task, parts: Parts, *, clock: Callable[[], float] = time.monotonic, spent: float = 0.0
    ) -> None:
        self.task, self.parts, self.clock = task, parts, clock
        self.start = clock() - spent
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
