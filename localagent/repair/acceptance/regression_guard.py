"""The guard on a candidate that the full check accepted: what it breaks beside the goal's tests refuses it.

Its seconds are beside the search's budget, and bounded for one candidate and for the task. Limitations: a guard that
could not run, or not to its end, refuses nothing; its result says so.
"""

from dataclasses import replace

from localagent.domain.edit import Candidate
from localagent.domain.guard import GuardResult, GuardScope
from localagent.domain.outcome import FullResult
from localagent.domain.task import Stage
from localagent.repair.search.run_context import RunContext

LEAST_SECONDS = 1.0


def guarded(run: RunContext, candidate: Candidate, full: FullResult) -> FullResult:
    """The full check's answer with the guard's: not accepted any more where a test outside the goal is broken."""
    why = _nothing_to_run(run)
    asked = run.task.guard.scope is not GuardScope.NONE
    result = GuardResult(why=why, unknown=not asked) if why else _measured(run, candidate)
    refusal = result.refusal
    reasons = (*full.reasons, refusal) if refusal else full.reasons
    return replace(full, accepted=not reasons, reasons=reasons, guard=result)


def _nothing_to_run(run: RunContext) -> str:
    """The reason why no guard runs for this task, or "" where one is to run."""
    task = run.task
    if task.guard.scope is GuardScope.NONE:
        return "--guard none"
    if task.guard.scope is GuardScope.NAMED or task.tests:
        return ""
    if not run.baseline.tests:
        return "no tests found"
    return "all tests are among those to repair, and the full check ran them"


def _measured(run: RunContext, candidate: Candidate) -> GuardResult:
    guard, s = run.task.guard, run.state
    seconds = min(guard.seconds, guard.task_seconds - s.guard_seconds)
    if seconds < LEAST_SECONDS and s.guard_seconds > 0:
        why = f"earlier candidates used up the {guard.task_seconds:.0f} s of all guard checks"
        return GuardResult(why=why, unknown=True)

    def tell(ran: int, found: int) -> None:
        run.emit(
            "progress",
            verified=s.verified,
            open=len(run.frontier),
            plausible=len(s.plausible),
            guard_ran=ran,
            guard_found=found,
        )

    begin = run.clock()
    with run.timed(Stage.GUARD):
        result = run.parts.verifier.guard(candidate, run.baseline, seconds=seconds, tell=tell)
        run.emit(
            "guard",
            number=candidate.number,
            found=result.found,
            ran=result.ran,
            not_run=result.not_run,
            broken=list(result.broken),
            flaky=list(result.flaky),
            undecided=list(result.undecided),
            why=result.why,
        )
    s.guard_seconds += max(0.0, run.clock() - begin)
    return result
