"""The first run of an unpatched tree's tests: with a small limit, and a second chance for those that only were slow."""

import time
from collections.abc import Mapping, Sequence

from localagent.domain.outcome import Outcome, TestResult
from localagent.verify.worker.suite_run import SuiteWorker, base_of
from localagent.verify.worker.worker_client import RunRequest
from localagent.verify.worker.worker_messages import Item

FIRST_CPU_SECONDS = 1.0
FIRST_WALL_SECONDS = 12.0
CPU_AFTER_HANG_SECONDS = 0.15
SMALL_SUITE = 30  # in a larger one every test that ran out of its time gets a second chance
SECOND_CHANCE_CPU_SECONDS = 8.0
SECOND_CHANCE_SHARE = 0.04  # of the task's time, per test: a short task cannot wait for slow tests
SLOW_SHARE = (
    0.1  # a file whose finished tests take more than this share of the limit may hold slow tests, not hung ones
)


def second_chance_of(max_seconds: float) -> float:
    """Processor seconds of a slow test in a task that may take so long."""
    return max(2 * FIRST_CPU_SECONDS, min(SECOND_CHANCE_CPU_SECONDS, SECOND_CHANCE_SHARE * max_seconds))


def first_run(
    suite: SuiteWorker, items: Sequence[Item], *, budget_seconds: float, second_chance: float
) -> tuple[dict[str, TestResult], int]:
    """What the tests say, and how many were not run in the time. `second_chance`: processor seconds of slow ones."""
    begin = time.monotonic()
    run = suite.run(
        items,
        RunRequest(
            items=(),
            inline=True,
            cpu_seconds=FIRST_CPU_SECONDS,
            cpu_after_hang_seconds=CPU_AFTER_HANG_SECONDS,
            wall_seconds=FIRST_WALL_SECONDS,
            budget_seconds=budget_seconds,
        ),
    )
    results = run.results
    slow = _maybe_slow(results)
    if slow:
        left = budget_seconds - (time.monotonic() - begin)
        again = suite.run(
            [item for item in items if item.id in slow],
            RunRequest(
                items=(),
                cpu_seconds=second_chance,
                wall_seconds=40.0,
                budget_seconds=max(1.0, min(left, 3 * second_chance)),
            ),
        )
        results.update(again.results)
        _more_of_slow(suite, items, results, begin + budget_seconds, second_chance)
    return results, len(run.missed)


def _maybe_slow(results: Mapping[str, TestResult]) -> set[str]:
    """One timed-out test of each function whose neighbours do not prove that it hangs."""
    found: dict[str, str] = {}
    for result in results.values():
        if result.outcome is not Outcome.TIMED_OUT:
            continue
        neighbours = [
            r.seconds for r in results.values() if r.path == result.path and r.outcome is not Outcome.TIMED_OUT
        ]
        if len(results) > SMALL_SUITE or not neighbours or max(neighbours) > SLOW_SHARE * FIRST_CPU_SECONDS:
            found.setdefault(base_of(result.id), result.id)
    return set(found.values())


def _more_of_slow(
    suite: SuiteWorker, items: Sequence[Item], results: dict[str, TestResult], until: float, second_chance: float
) -> None:
    """Siblings of tests that only were slow get the same chance."""
    finished = {base_of(r.id) for r in results.values() if r.outcome is not Outcome.TIMED_OUT}
    again = [
        item
        for item in items
        if base_of(item.id) in finished
        and (known := results.get(item.id)) is not None
        and known.outcome is Outcome.TIMED_OUT
        and _has_slow_sibling(item.id, results)
    ]
    left = until - time.monotonic()
    if again and left > 1:
        request = RunRequest(items=(), cpu_seconds=second_chance, wall_seconds=40.0, budget_seconds=left)
        results.update(suite.run(again, request).results)


def _has_slow_sibling(test_id: str, results: Mapping[str, TestResult]) -> bool:
    base = base_of(test_id)
    return any(
        r.outcome is not Outcome.TIMED_OUT and r.seconds > SLOW_SHARE * FIRST_CPU_SECONDS
        for r in results.values()
        if base_of(r.id) == base
    )
