"""Tests that failed twice are run again, longest where the two failures differ."""

from types import SimpleNamespace
from typing import Any

import pytest

from localagent.domain.outcome import Failure, Outcome, TestResult
from localagent.verify.baseline.traced_run import RUNS_OF_CHANGING, RUNS_OF_FAILING, unsteady_ones
from localagent.verify.worker.worker_messages import Item


class Coin:
    """A suite in which a test passes at its `nth` further run."""

    def __init__(self, nth: int) -> None:
        self.nth, self.runs = nth, 0

    def run(self, items: list[Item], _request: object) -> Any:
        self.runs += 1
        outcome = Outcome.PASSED if self.runs == self.nth else Outcome.FAILED
        return SimpleNamespace(results={i.id: TestResult(id=i.id, outcome=outcome, seconds=0.0) for i in items})


@pytest.mark.parametrize(
    ("messages", "nth", "found", "runs"),
    [
        (("1", "2"), RUNS_OF_CHANGING, {"t"}, RUNS_OF_CHANGING),
        (("1", "2"), RUNS_OF_CHANGING + 1, set(), RUNS_OF_CHANGING),
        (("at 0x1f", "at 0x2e"), 9, set(), RUNS_OF_FAILING),
        (("1", "1"), 1, {"t"}, 1),
    ],
)
def test_further_runs(messages: tuple[str, str], nth: int, found: set[str], runs: int) -> None:
    first, second = (
        {"t": TestResult(id="t", outcome=Outcome.FAILED, failure=Failure(exception="E", message=m), seconds=0.0)}
        for m in messages
    )
    suite: Any = Coin(nth)
    items = [Item(index=0, id="t", path=None, line=1)]
    assert unsteady_ones(suite, items, first, second) == found
    assert suite.runs == runs
