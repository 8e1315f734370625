"""Whether a warm worker can be believed: what failed and passed in the baseline must do so there, unpatched."""

from collections.abc import Mapping, Sequence

from localagent.domain.outcome import Outcome, TestResult
from localagent.verify.checks.quick_plan import MEMORY_BYTES, QuickPlan
from localagent.verify.checks.quick_run import run_command
from localagent.verify.worker.jail_pool import JailWorker
from localagent.verify.worker.worker_client import RunRequest
from localagent.verify.worker.worker_messages import Item

SELF_CHECK_PASSING = 30
SELF_CHECK_SECONDS = 1.0


def compare(plan: QuickPlan, room: JailWorker, items: Mapping[str, Item]) -> None:
    """Tests of the unpatched tree must end here as they did in the baseline; else the plan turns cold."""
    steady = [plan.by_id[i] for i in plan.targets.tests if plan.by_id[i].outcome is not Outcome.TIMED_OUT][:20]
    passing, left = list[TestResult](), SELF_CHECK_SECONDS
    for test in sorted((plan.by_id[i] for i in plan.baseline.passing), key=lambda t: t.seconds):
        left -= test.seconds
        if left < 0 or len(passing) >= SELF_CHECK_PASSING:
            break
        passing.append(test)
    expected = [*steady, *passing]
    if any(t.id not in items for t in expected):
        plan.go_cold("a warm worker collects other tests")
        return
    for test, said in _disagreements(room, items, steady):
        plan.go_cold(f"{test.id[:200]} is {test.outcome.value} when cold and {said} when warm")
        return
    for test, _ in _disagreements(room, items, passing):
        plan.unsteady.add(test.id)


def vouch(plan: QuickPlan, room: JailWorker, items: Mapping[str, Item], passing: Sequence[str]) -> bool:
    """Try passing tests on the unpatched tree, run together; True where some fail: unsteady from now on."""
    bad = {test.id for test, _ in _disagreements(room, items, [plan.by_id[i] for i in passing])}
    plan.unsteady |= bad
    plan.vouched |= set(passing) - bad
    return bool(bad)


def compare_checks(plan: QuickPlan, room: JailWorker) -> None:
    """The same for the commands that failed in the baseline."""
    for name in plan.targets.checks:
        known = plan.commands[name]
        got = run_command(plan, room, known.command, 60.0)
        if got.outcome != known.outcome or (got.failure and got.failure.exception) != (
            known.failure and known.failure.exception
        ):
            plan.go_cold(f"{name} answers differently where it cannot write")


def _disagreements(
    room: JailWorker, items: Mapping[str, Item], expected: Sequence[TestResult]
) -> list[tuple[TestResult, str]]:
    """Tests that answer otherwise here, run together in the order of collection, and what they said."""
    chosen = sorted((items[t.id] for t in expected), key=lambda i: i.index)
    if not chosen:
        return []
    limit = 2.0 + 4 * max((t.seconds for t in expected), default=0.0)
    ran = room.client.run(
        RunRequest(session="hot", items=chosen, cpu_seconds=limit, budget_seconds=30.0, memory_bytes=MEMORY_BYTES)
    )
    by_id = {r.id: r for r in ran.results.values()}
    found = []
    for test in expected:
        got = by_id.get(test.id)
        if got is None or got.outcome.good != test.outcome.good or _kind(got) != _kind(test):
            said = "nothing" if got is None else f"{got.outcome.value} {_kind(got)}".strip()
            found.append((test, said))
    return found


def _kind(result: TestResult) -> str:
    return result.failure.exception if result.failure is not None else ""
