"""The slice of real runs: programs are run under the tracer of the jail."""

from pathlib import Path

import pytest
from support.traced_program import PATH, traced

from localagent.debug.dynamic_slice import accesses, slice_of
from localagent.debug.suspicions import combined
from localagent.domain.task import Suspicion


def found(folder: Path, source: str) -> dict[int, int]:
    run = traced(folder, source)
    return {line: d for (_, line), d in slice_of(run, {PATH: accesses(source.encode())}).items()}


DATA = """unused = 5
wrong = 2
other = unused + 1
right = wrong * 2
assert right == 5
"""
CALLS = """def rate(percent):
    return percent / 10

def noise():
    return 1

def saved(total, percent):
    noise()
    part = rate(percent)
    return total * part

assert saved(20, 50) == 10
"""
CONTROL = """limit = 3
kind = "small"
if limit > 2:
    kind = "large"
seen = [kind]
assert seen == ["small"]
"""
OBJECTS = """class Cart:
    def __init__(self):
        self.items = []
        self.owner = "ann"

    def add(self, price):
        self.items.append(price * 2)

cart = Cart()
cart.add(3)
assert cart.items == [3]
"""


@pytest.mark.parametrize(
    ("source", "inside", "outside"),
    [
        (DATA, {5, 4, 2}, {1, 3}),
        (CALLS, {12, 10, 9, 2}, {5}),
        (CONTROL, {6, 5, 4, 3, 1}, {2}),
        (OBJECTS, {11, 7}, {4}),
    ],
)
def test_what_made_the_value_is_inside(tmp_path: Path, source: str, inside: set[int], outside: set[int]) -> None:
    lines = found(tmp_path, source)
    assert inside <= set(lines)
    assert not outside & set(lines)
    assert lines[max(inside)] == 0


def test_values_and_locals_are_kept(tmp_path: Path) -> None:
    run = traced(tmp_path, CALLS.replace("assert saved(20, 50) == 10", "saved(20, None)"))
    assert [(f.line, f.function) for f in run.frames] == [(12, "<module>"), (9, "saved"), (2, "rate")]
    assert run.frames[-1].values == (("percent", "None"),)
    kept = traced(tmp_path, DATA)
    assert [(v.line, v.name, v.value) for v in kept.values if v.name == "right"] == [(4, "right", "4")]


def test_a_run_that_passes_has_no_slice(tmp_path: Path) -> None:
    assert found(tmp_path, "x = 1\n") == {}


def test_what_wrote_the_value_stands_above_what_ran(tmp_path: Path) -> None:
    run = traced(tmp_path, DATA)
    tables = {PATH: accesses(DATA.encode())}
    alike = [Suspicion(path=PATH, line=n, end_line=n, score=0.5) for n in (1, 3, 2)]
    assert [s.line for s in combined(alike, slice_of(run, tables), tables)] == [2, 1, 3]
