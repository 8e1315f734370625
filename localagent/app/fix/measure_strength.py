"""The strength of a repair that the full check accepted, measured in bounded time."""

import time
from dataclasses import replace

from localagent.domain.policy import LeastStrength, Policy
from localagent.domain.task import Event, Stage, TaskResult
from localagent.domain.verification import Assessment
from localagent.repair.search.code_equivalence import behaviour_key
from localagent.repair.search.state import Parts
from localagent.report.strength_text import strength_event
from localagent.verify.evidence.test_strength import AssessRequest, assess
from localagent.verify.verifier import JailVerifier

MOST_SECONDS = 20.0  # most take one or two; what hangs on some inputs takes all
SHORTEST_SECONDS = 3.0  # where the time of the task is used up
CHECKS_SECONDS = 45.0  # at most, where a check is all there is and its mutants run one after the other
MOST_UNCOMPARED = 3  # plausible patches: one repair is often found in two or three spellings
LEAST_KILLED, LEAST_MUTANTS = 0.9, 3  # of mutants, where nothing but a check says what is right
DEMANDED_SECONDS = 60.0  # where the policy asks for a grade, it is worth measuring


def allowed_seconds(policy: Policy, *, left: float, by_checks: bool = False) -> float:
    """How long measuring may take; `by_checks`: nothing else speaks for the repair.

    No longer than what is `left` of the task's time, but for what a policy demands and for a least that says something.
    """
    if policy.min_strength is not LeastStrength.NONE:
        return DEMANDED_SECONDS
    return min(CHECKS_SECONDS if by_checks else MOST_SECONDS, max(SHORTEST_SECONDS, left))


def assessed(
    result: TaskResult,
    verifier: JailVerifier,
    parts: Parts,
    *,
    seed: int,
    policy: Policy,
    took: float,
    budget: float,
) -> Assessment | None:
    """The evidence for an accepted repair, told to the sink; None where none was accepted.

    `took`: the seconds so far of the task's `budget`.
    """
    if result.chosen is None or result.full is None or result.baseline is None:
        return None

    parts.sink.emit(Event(kind="stage", at_seconds=round(took, 3), data={"stage": Stage.STRENGTH.value}))
    begin = time.monotonic()
    by_checks = by_checks_alone(result)
    seconds = allowed_seconds(policy, left=budget - took, by_checks=by_checks)
    goal = replace(result.baseline, failing=result.full.fail_to_pass, causes=())
    jails = verifier.worker_pool
    jails.until = max(jails.until, begin + seconds)
    found = assess(
        AssessRequest(
            jails=jails,
            request=verifier.request,
            candidate=result.chosen,
            baseline=result.baseline,
            full=result.full,
            sources=parts.sources,
            space=parts.space,
            key=behaviour_key,
            seed=seed,
            seconds=seconds,
            warm=verifier.warm() if policy.min_strength is LeastStrength.NONE else None,
            others=result.others,
            quick=lambda: verifier.quick(goal, jobs=1),
        )
    )
    at = took + time.monotonic() - begin
    parts.sink.emit(Event(kind="strength", at_seconds=round(at, 3), data=strength_event(found)))
    return found


def by_checks_alone(result: TaskResult) -> bool:
    """Whether an accepted repair turns check commands and no test."""
    turned = () if result.full is None else result.full.fail_to_pass
    return bool(turned) and all(name.startswith("check:") for name in turned)


def shows_little(result: TaskResult) -> str:
    """Why a check that is all there is does not prove an accepted repair, "" where it does or where tests turned, too.

    A check is an exit status: that it can fail is known by then, and how much it notices by the mutants it kills. Where
    nothing could be compared, one of many other patches that pass it may be the right one as well.
    """
    if result.chosen is None or not by_checks_alone(result):
        return ""
    found = result.assessment
    strength = None if found is None else found.strength
    if found is None or strength is None:
        return "a check is all there is, and how much it notices could not be measured"
    if strength.lines is None or not strength.lines.part:
        return "a check is all there is, and nothing shows that it runs what the patch changes"
    mutants = found.mutants
    if mutants is None or mutants.tried < LEAST_MUTANTS:
        tried = 0 if mutants is None else mutants.tried
        return f"a check is all there is, and only {tried} mutants of what the patch changes could be tried on it"
    if mutants.killed < LEAST_KILLED * mutants.tried:
        alive = mutants.tried - mutants.killed
        return f"a check is all there is, and {alive} of {mutants.tried} mutants of what the patch changes pass it, too"
    compared = strength.functions is not None and bool(strength.functions.part)
    if result.plausible > MOST_UNCOMPARED and not compared:
        return f"a check is all there is, {result.plausible} patches pass it, and what they do could not be compared"
    return ""


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
