"""What is recorded of calls while tests run: not what no copy is like, and nothing once the time for watching is up."""

import math
import types
from collections.abc import Callable, Iterator

import pytest

from localagent.runner import differential_probe
from localagent.runner.differential_probe import Recorder, Watched, _recorded


class Barrel(list[int]):
    """Keeps its items in a list of lists; copying it adds them to what they are read from."""

    def __init__(self) -> None:
        super().__init__()
        self.lists: list[list[int]] = [[2, 1]]

    def __iter__(self) -> Iterator[int]:
        return iter(self.lists[0])

    def append(self, item: int) -> None:
        self.lists[0].append(item)

    def sort(self) -> None:  # type: ignore[override]
        self.lists[0].sort()


def double(number: int) -> int:
    return 2 * number


def recorded(function: Callable[..., object], tests: list[Callable[[], object]], until: float) -> Recorder:
    def run_test(item: int) -> None:
        tests[item]()

    assert isinstance(function, types.FunctionType)
    watched = Watched([function], [[function.__code__]], {}, ())
    return _recorded(watched, run_test, {"items": range(len(tests))}, until)


def test_a_list_that_keeps_its_items_elsewhere_is_not_copied() -> None:
    found = recorded(Barrel.sort, [lambda: Barrel().sort()], math.inf)
    assert not found.inputs
    assert "cannot be copied" in found.missed[0]
    assert found.called == {0}  # so that forks can be asked


def test_calls_are_watched_until_the_time_is_up_and_the_test_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, ran = [0.0], list[str]()
    monkeypatch.setattr(differential_probe, "_monotonic", lambda: clock[0])

    def test() -> None:
        double(1)
        clock[0] = 10.0
        for n in range(5000):
            abs(n)
        double(2)
        ran.append("whole")

    found = recorded(double, [test, lambda: ran.append("next")], 5.0)
    assert [one.args for one in found.inputs] == [(1,)]
    assert ran == ["whole"]
    every = recorded(double, [test], 20.0)
    assert [one.args for one in every.inputs] == [(1,), (2,)]
