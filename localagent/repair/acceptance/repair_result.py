"""The result of a task, as its run has it."""

from localagent.domain.edit import Candidate
from localagent.domain.outcome import FullResult
from localagent.domain.task import TaskResult, Verdict
from localagent.repair.search.partial_progress import baseline_failures, stage_of
from localagent.repair.search.run_context import RunContext
from localagent.report.diagnosis import diagnose

_KINDS = ("syntax", "runtime", "runtime", "logic")  # by the stage that the failures come from


def task_result(
    run: RunContext,
    verdict: Verdict,
    reason: str,
    code: int,
    *,
    chosen: Candidate | None = None,
    full: FullResult | None = None,
) -> TaskResult:
    """What a task came to; what the loop counted is in it."""
    s, scorer = run.state, run.parts.scorer
    warnings = [*s.warnings, *([scorer.warning] if scorer is not None and scorer.warning else [])]
    failures = baseline_failures(run.baseline)
    kind = _KINDS[min((stage_of(f) for f in failures), default=3)]
    used = scorer is not None and not scorer.warning
    return TaskResult(
        verdict=verdict,
        reason=reason,
        exit=code,
        patch=chosen.patch if chosen else None,
        chosen=chosen,
        proposals=s.proposals,
        proposed=s.proposed,
        ambiguity=s.ambiguity,
        baseline=run.baseline,
        full=full,
        localization=run.suspicions[:10],
        diagnosis=diagnose(run.baseline, failures, kind, run.suspicions, chosen),
        enumerated=s.enumerated,
        written=s.written,
        denied=dict(s.denied),
        verified=s.verified,
        rank_of_first_plausible=s.rank_of_first,
        plausible=len(s.plausible),
        plausible_candidates=tuple(s.plausible),
        others=s.others if chosen is not None else 0,
        rounds=s.rounds if s.verified else 0,
        near_misses=tuple(m for _, m in s.misses),
        model_name=scorer.name if used and scorer else None,
        model_digest=scorer.digest if used and scorer else None,
        model_weights=scorer.weights if used and scorer else None,
        model_tokens=scorer.tokens_used if scorer else 0,
        limits_hit=dict(s.limits),
        checks=dict(full.checks) if full else {},
        warnings=tuple(w for w in warnings if w),
    )
