"""Why a search ended without an accepted patch."""

from localagent.domain.task import Stage, Verdict
from localagent.repair.ordering.cost import reaches
from localagent.repair.search.run_context import RunContext
from localagent.report import repair_reasons

SLOW_BASELINE_SHARE = 0.4  # of the time: that is worth saying


def give_up_reason(run: RunContext) -> tuple[Verdict, str]:
    """Verdict and reason of a search that ends without an accepted patch."""
    s = run.state
    if s.progress is not None:
        candidate, full = s.progress
        lines = {t.id: t.lines for t in run.baseline.tests}
        apart = [i for i in full.still_failing if lines.get(i) and not reaches(lines[i] or {}, candidate)]
        named = bool(run.task.tests or run.task.checks)
        return Verdict.PROGRESS, repair_reasons.progress(full, apart, named=named)
    if s.undecided:
        if s.doubts:
            return Verdict.NEEDS_PERSON, repair_reasons.doubtful(s.undecided, s.doubts)
        if s.crash is not None:
            return Verdict.NEEDS_PERSON, repair_reasons.crashing(s.undecided, s.crash)
        if len(s.undecided) == 1:
            return Verdict.NEEDS_PERSON, repair_reasons.unproven(s.undecided)
        if s.ambiguity is not None:
            return Verdict.AMBIGUOUS, repair_reasons.ambiguous(s.undecided, s.ambiguity)
        return Verdict.NEEDS_PERSON, repair_reasons.undecided(s.undecided, proposed=bool(s.proposals))
    if not s.verified and s.denied:
        return Verdict.ALL_DENIED, repair_reasons.ALL_DENIED
    late = s.ended_early or run.left() <= 0
    used_up = (
        "the budget of candidates"
        if s.verified >= run.task.budget.max_candidates
        else ("the time" if late else "the edit space")
    )
    baseline = s.seconds.get(Stage.BASELINE.value, 0.0)
    slow = late and baseline > SLOW_BASELINE_SHARE * run.task.budget.max_seconds
    unchecked = sum(full.late for full in s.rejected.values())
    said = repair_reasons.gave_up(
        used_up,
        s.verified,
        len(s.rejected) - unchecked,
        unchecked,
        failing=next(iter(run.baseline.failing), "TEST"),
        baseline_seconds=baseline if slow else 0.0,
    )
    return Verdict.GAVE_UP, said
