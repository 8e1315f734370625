"""Which tests of an unpatched tree are known to hang after the first run."""

from collections.abc import Sequence

import pytest

from localagent.domain.outcome import Failure, Outcome, TestResult
from localagent.domain.paths import RepoPath
from localagent.runner.failures import WALL_TIME_IS_UP
from localagent.verify.baseline import baseline as baseline_module
from localagent.verify.baseline.baseline import first_run
from localagent.verify.worker.suite_run import SuiteRun, SuiteWorker
from localagent.verify.worker.worker_client import RunRequest
from localagent.verify.worker.worker_messages import Item

PATH = RepoPath("tests/test_a.py")
LATE = Failure(exception="TimeLimit", message="did not finish in its CPU time", frames=())


class SlowSuite(SuiteWorker):
    """Every test runs out of its first time; a second chance is had by so many, of which none finishes."""

    def __init__(self, chances: int, late: Failure = LATE) -> None:
        self._chances, self._failure = chances, late
        self.walls: list[float] = []
        self.budgets: list[float] = []

    def run(self, items: Sequence[Item], request: RunRequest) -> SuiteRun:
        """The tests as a busy machine has them."""
        self.walls.append(round(request.wall_seconds, 1))
        self.budgets.append(round(request.budget_seconds, 1))
        ran = items if request.inline else items[: self._chances]
        results = {
            i.id: TestResult(id=i.id, outcome=Outcome.TIMED_OUT, seconds=1.0, path=PATH, failure=self._failure)
            for i in ran
        }
        return SuiteRun(results=results, missed=tuple(i.id for i in items if i.id not in results))


def _items(names: Sequence[str]) -> list[Item]:
    return [Item(index=k, id=f"{PATH}::{name}", path=PATH, line=k + 1) for k, name in enumerate(names)]


def test_a_slow_test_without_its_second_chance_is_not_run_rather_than_failed() -> None:
    items = _items(["test_a[1]", "test_a[2]", "test_b", "test_c[1]", "test_c[2]"])
    results, missed = first_run(SlowSuite(chances=1), items, budget_seconds=5.0, second_chance=2.0)
    # test_a was asked again, test_b was begun when the time was used up; of test_c nothing is known
    assert sorted(results) == [f"{PATH}::{name}" for name in ("test_a[1]", "test_a[2]", "test_b")]
    assert missed == 2


def test_on_a_busy_machine_a_test_may_wait_for_longer_within_what_all_have(monkeypatch: pytest.MonkeyPatch) -> None:
    suite = SlowSuite(chances=9)
    for slowed, budget, expected in (
        (1.0, 500.0, [12.0, 40.0]),
        (3.0, 500.0, [36.0, 120.0]),
        (3.0, 40.0, [20.0, 40.0]),
    ):
        monkeypatch.setattr(baseline_module, "slowdown", lambda most, slowed=slowed: min(most, slowed))
        suite.walls.clear()
        first_run(suite, _items(["test_a"]), budget_seconds=budget, second_chance=2.0)
        assert suite.walls == expected
    monkeypatch.setattr(baseline_module, "slowdown", lambda most: min(most, 5.0))
    first_run(suite, _items(["test_a"]), budget_seconds=50.0, second_chance=2.0)
    assert suite.budgets[-1] == 30.0  # three times the processor time that it is given, as this machine has it


def test_what_the_clock_of_a_busy_machine_says_of_a_test_is_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    suite = SlowSuite(chances=9, late=Failure(exception="TimeLimit", message=WALL_TIME_IS_UP, frames=()))
    for slowed, known in ((1.0, 1), (3.0, 0)):
        monkeypatch.setattr(baseline_module, "slowdown", lambda most, slowed=slowed: min(most, slowed))
        results, missed = first_run(suite, _items(["test_a"]), budget_seconds=5.0, second_chance=2.0)
        assert (len(results), missed) == (known, 1 - known)


def test_a_test_that_hangs_in_its_second_chance_too_has_failed() -> None:
    results, missed = first_run(SlowSuite(chances=9), _items(["test_a"]), budget_seconds=5.0, second_chance=2.0)
    assert [r.outcome for r in results.values()] == [Outcome.TIMED_OUT]
    assert missed == 0
