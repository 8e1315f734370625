"""Says in words what was wrong: symptom, suspected cause, smallest fix found, what it may affect."""

from collections.abc import Sequence

from localagent.domain.edit import Candidate
from localagent.domain.outcome import Baseline, Failure
from localagent.domain.task import Diagnosis, Suspicion
from localagent.repair.search.partial_progress import baseline_failures, stage_of

_KINDS = ("syntax", "runtime", "runtime", "logic")


def diagnose(baseline: Baseline, suspicions: Sequence[Suspicion], chosen: Candidate | None) -> Diagnosis | None:
    """None when nothing failed."""
    failures = baseline_failures(baseline)
    if not baseline.failing:
        return None
    first = failures[0] if failures else Failure(exception="", message="failed without a message")
    kind = _KINDS[min((stage_of(f) for f in failures), default=3)]
    where = tuple(f"{s.path}:{s.line}" for s in suspicions[:3])
    fix = cause = ""
    affects: tuple[str, ...] = ()
    if chosen is not None:
        where = tuple(f"{e.path}:{e.line}" for e in chosen.edits)
        fix = "; ".join(f"{e.operator}: {e.note}" if e.note else e.operator for e in chosen.edits)
        cause = "; ".join(
            f"{e.path}:{e.line} ({e.scope.qualname if e.scope else 'module level'})" for e in chosen.edits
        )
        affects = tuple(sorted({e.scope.qualname if e.scope else str(e.path) for e in chosen.edits}))
    elif suspicions:
        cause = f"most suspicious: {suspicions[0].path}:{suspicions[0].line} ({suspicions[0].why})"
    head = f"{len(baseline.failing)} failing: {baseline.failing[0]}"
    text = f"{first.exception}: {first.message}".strip(": ").splitlines()
    return Diagnosis(
        kind=kind,
        symptom=f"{head} - {text[0][:200] if text else 'no message'}",
        cause=cause,
        lines=where,
        fix=fix,
        may_affect=affects,
    )
