"""The strength of a repair that the full check accepted, measured in a bounded share of the time that it took."""

import time

from localagent.domain.policy import LeastStrength, Policy
from localagent.domain.task import Event, Stage, TaskResult
from localagent.domain.verification import Assessment
from localagent.record.assessment import strength_event
from localagent.repair.identity import behaviour_key
from localagent.repair.state import Parts
from localagent.verify.assessing import AssessRequest, assess
from localagent.verify.verifier import JailVerifier

SHARE = 0.2  # of the time that the repair took
LEAST_SECONDS, MOST_SECONDS = 1.0, 15.0
DEMANDED_SECONDS = 60.0  # where the policy asks for a grade, it is worth measuring


def allowed_seconds(policy: Policy, took: float) -> float:
    """How long measuring may take after a repair that took so many seconds."""
    if policy.min_strength is not LeastStrength.NONE:
        return DEMANDED_SECONDS
    return max(LEAST_SECONDS, min(MOST_SECONDS, SHARE * took))


def assessed(
    result: TaskResult,
    verifier: JailVerifier,
    parts: Parts,
    *,
    seed: int,
    policy: Policy,
    took: float,
    beside: float,
) -> Assessment | None:
    """The evidence for an accepted repair, told to the sink; None where none was accepted.

    `took`: the seconds of the task so far, `beside` of them those of the guard, which buy no more of it.
    """
    if result.chosen is None or result.full is None or result.baseline is None:
        return None

    parts.sink.emit(Event(kind="stage", at_seconds=round(took, 3), data={"stage": Stage.STRENGTH.value}))
    begin = time.monotonic()
    found = assess(
        AssessRequest(
            rooms=verifier.rooms,
            request=verifier.request,
            candidate=result.chosen,
            baseline=result.baseline,
            full=result.full,
            sources=parts.sources,
            space=parts.space,
            key=behaviour_key,
            seed=seed,
            seconds=allowed_seconds(policy, took - beside),
            warm=verifier.warm() if policy.min_strength is LeastStrength.NONE else None,
            others=result.others,
        )
    )
    at = took + time.monotonic() - begin
    parts.sink.emit(Event(kind="strength", at_seconds=round(at, 3), data=strength_event(found)))
    return found


def too_weak(result: TaskResult, policy: Policy) -> str:
    """Why the evidence for an accepted repair does not do for the policy, "" where it does."""
    least = policy.min_strength.grade
    if least is None or result.chosen is None:
        return ""
    strength = result.assessment.strength if result.assessment is not None else None
    if strength is None:
        return f"the strength of its evidence is not known, and the policy {policy.name!r} asks for {least}"
    if strength.grade.reaches(least):
        return ""
    short = f" ({'; '.join(strength.short)})" if strength.short else ""
    return f"its evidence is of strength {strength.grade}, and the policy {policy.name!r} asks for {least}{short}"
