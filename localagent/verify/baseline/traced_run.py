"""The second run of an unpatched tree's tests, traced: lines, and whether a test says the same again."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from localagent.domain.outcome import Outcome, TestResult
from localagent.domain.paths import RepoPath
from localagent.verify.checks.test_selection import coarse
from localagent.verify.worker.suite_run import SuiteWorker, base_of
from localagent.verify.worker.worker_client import RunRequest
from localagent.verify.worker.worker_messages import Item

HUNG_TRACED_CPU_SECONDS = 0.3
HUNG_TRACED_PER_FUNCTION = 2
RUNS_OF_FAILING = 2  # further ones, of few and quick tests that failed twice
RUNS_OF_CHANGING = 8  # where the two failures were different ones
RUNS_OF_ODD = 4  # of tests that passed, then failed when traced: once for slow ones
QUICK_TEST_SECONDS = 0.2
LEAST_TRACE_SECONDS = 2.0  # without the lines of a failing test there is nowhere to search
MOST_DOUBTED = 20


class SecondRun:
    """`results` are those of the first run: lines and better failures are put there. Found: `failing` and `flaky`.

    `left`: seconds of the task; where there are none the failing tests are traced once, and no test is doubted.
    """

    def __init__(
        self,
        suite: SuiteWorker,
        items: Sequence[Item],
        results: dict[str, TestResult],
        *,
        left: Callable[[], float] = lambda: math.inf,
    ) -> None:
        self._suite, self._items, self._results, self._left = suite, items, results, left
        self.failing: list[str] = []
        self.flaky: list[str] = []

    def trace_failing(self) -> set[str]:
        """Run failing tests again; a different verdict is flaky. Those that passed at a later run."""
        bad = [r for r in self._results.values() if not r.outcome.good]
        plain, hung = self._kinds(bad)
        second = self._traced(bad, plain, hung)
        unsteady = unsteady_ones(self._suite, plain, self._results, second, left=self._left)
        for result in bad:
            other = second.get(result.id)
            if other is None:
                self.failing.append(result.id)
            elif other.outcome.good or result.id in unsteady:
                self.flaky.append(result.id)
            else:
                self.failing.append(result.id)
                ended = result.failure is not None and result.failure.exception == "InterpreterExit"
                better = other.failure if result.outcome is Outcome.TIMED_OUT or ended else result.failure
                self._results[result.id] = replace(result, lines=other.lines, failure=better or other.failure)
        return unsteady

    def _kinds(self, bad: Sequence[TestResult]) -> tuple[list[Item], list[Item]]:
        """The tests that failed, and of those that hung a few of each function."""
        by_id = {item.id: item for item in self._items}
        hung: dict[str, list[Item]] = {}
        plain: list[Item] = []
        for result in bad:
            item = by_id.get(result.id)
            if item is None:
                continue
            if result.outcome is Outcome.TIMED_OUT:
                hung.setdefault(base_of(item.id), []).append(item)
            else:
                plain.append(item)
        return plain, [item for items in hung.values() for item in items[:HUNG_TRACED_PER_FUNCTION]]

    def _traced(self, bad: Sequence[TestResult], plain: list[Item], hung: list[Item]) -> dict[str, TestResult]:
        slowest = max((r.seconds for r in bad if r.outcome is not Outcome.TIMED_OUT), default=0.0)
        budget = min(60.0, max(LEAST_TRACE_SECONDS, self._left()))
        of_plain = RunRequest(items=(), trace=True, cpu_seconds=5.0 + 10 * slowest, budget_seconds=budget)
        of_hung = RunRequest(
            items=(), trace=True, cpu_seconds=HUNG_TRACED_CPU_SECONDS, wall_seconds=3.0, budget_seconds=5.0
        )
        return self._suite.run(plain, of_plain).results | self._suite.run(hung, of_hung).results

    def trace_passing(self, *, budget_seconds: float) -> None:
        """Lines of passing tests, nearest to the failing ones first, while time is left."""
        results = self._results
        near = [r.path for r in results.values() if not r.outcome.good and r.path is not None]
        good = [
            item
            for item in self._items
            if (known := results.get(item.id)) is not None and known.outcome is Outcome.PASSED
        ]
        seconds: dict[RepoPath | None, float] = {}
        for item in good:
            seconds[item.path] = seconds.get(item.path, 0.0) + results[item.id].seconds
        # tests of one file keep their order: some depend on it
        good.sort(key=lambda item: (_distance(item.path, near), coarse(seconds[item.path]), item.path or ""))
        run = self._suite.run(
            good, RunRequest(items=(), trace=True, cpu_seconds=20.0, wall_seconds=40.0, budget_seconds=budget_seconds)
        )
        odd: list[Item] = []
        for item in good:
            other = run.results.get(item.id)
            if other is not None and other.outcome.good:
                results[item.id] = replace(results[item.id], lines=other.lines)
            elif other is not None and other.outcome is not Outcome.TIMED_OUT:
                odd.append(item)
        self._run_odd(odd)

    def _run_odd(self, odd: list[Item]) -> None:
        """Tests that passed and failed when traced: flaky where they fail once more."""
        results = self._results
        for at in range(RUNS_OF_ODD):
            if at and self._left() <= 0:
                return
            request = RunRequest(items=(), trace=at == 0, cpu_seconds=20.0, budget_seconds=30.0)
            third = self._suite.run(odd, request).results if odd else {}
            if at == 0:  # they may have failed for what ran before them, so once more in order and by themselves
                results.update({i: replace(results[i], lines=r.lines) for i, r in third.items() if r.outcome.good})
                continue
            self.flaky.extend(i for i, r in third.items() if not r.outcome.good)
            odd = [i for i in odd if i.id not in self.flaky and results[i.id].seconds < QUICK_TEST_SECONDS]


def unsteady_ones(
    suite: SuiteWorker,
    plain: Sequence[Item],
    results: Mapping[str, TestResult],
    second: Mapping[str, TestResult],
    *,
    left: Callable[[], float] = lambda: math.inf,
) -> set[str]:
    """Tests that failed twice and pass at a further run; more runs for those whose failure was another one."""
    doubted = [
        item
        for item in plain
        if (known := second.get(item.id)) is not None
        and not known.outcome.good
        and results[item.id].seconds < QUICK_TEST_SECONDS
    ]
    other = {i.id for i in doubted if _failure_text(results[i.id]) != _failure_text(second[i.id])}
    doubted = [i for i in doubted if i.id in other or len(doubted) <= MOST_DOUBTED][: 2 * MOST_DOUBTED]
    found: set[str] = set()
    for at in range(RUNS_OF_CHANGING):
        again = [i for i in doubted if i.id not in found and (i.id in other or at < RUNS_OF_FAILING)]
        if again and left() > 0:
            ran = suite.run(again, RunRequest(items=(), cpu_seconds=5.0, budget_seconds=10.0)).results
            found |= {name for name, result in ran.items() if result.outcome.good}
    return found


def _failure_text(result: TestResult) -> tuple[str, str]:
    """What a failure says, without addresses."""
    failure = result.failure
    return ("", "") if failure is None else (failure.exception, failure.steady)


def _distance(path: RepoPath | None, near: Sequence[RepoPath]) -> int:
    """Folders between a file and the nearest of some others."""
    if path is None or not near:
        return 1 << 10
    return min(_apart(path, other) for other in set(near))


def _apart(one: RepoPath, other: RepoPath) -> int:
    if one == other:
        return 0
    a, b = one.parts[:-1], other.parts[:-1]
    same = 0
    while same < min(len(a), len(b)) and a[same] == b[same]:
        same += 1
    return 1 + len(a) + len(b) - 2 * same
