"""Says what was wrong: symptom, suspected cause, smallest fix found, what it may affect."""

from collections.abc import Sequence

from localagent.domain.edit import Candidate
from localagent.domain.outcome import Baseline, Failure
from localagent.domain.task import Diagnosis, Suspicion


def diagnose(
    baseline: Baseline,
    failures: Sequence[Failure],
    kind: str,
    suspicions: Sequence[Suspicion],
    chosen: Candidate | None,
) -> Diagnosis | None:
    """What was wrong, by the baseline's failures and their kind; None when nothing failed."""
    if not baseline.failing:
        return None
    first = failures[0] if failures else Failure(exception="", message="failed without a message")
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
