"""The table of changed behaviour is one: long for `verify`, short for a repair, of the same facts."""

from dataclasses import replace

import pytest

from localagent.domain.paths import RepoPath
from localagent.domain.verification import Difference, Differential, FunctionReach, Origin, PropertyBreak
from localagent.record.near_text import near_lines
from localagent.record.verify_report import differential_json

PATH = RepoPath("a.py")
CALL = "f([1, 2])"
NEAR = Differential(
    functions=(FunctionReach(path=PATH, function="f", compared=9, agreed=7, answered=9),),
    demanded=1,
    differences=(
        Difference(path=PATH, function="f", call=CALL, old="1", new="raises E", origin=Origin.NEAR, crash=True),
        Difference(path=PATH, function="f", call="f([])", old="x" * 90, new="2", origin=Origin.TESTED),
    ),
    differences_left_out=3,
    broken_properties=(
        PropertyBreak(path=PATH, function="f", name="length kept", held=8, call=CALL, old="1", new="2"),
        PropertyBreak(path=PATH, function="g", name="length kept", held=7, call=CALL, old="1", new="2"),
    ),
    notes=("functions of b.py could not be imported",),
)


def lines(near: Differential, *, most: int, whole: bool) -> list[str]:
    told = differential_json(near)
    assert told is not None
    return list(near_lines(told, most=most, whole=whole))


def test_the_long_table() -> None:
    assert lines(NEAR, most=2, whole=True) == [
        "old against new: functions of b.py could not be imported",
        "old against new: 9 inputs to 1 functions, 1 differ where turned tests want it, 5 others differ",
        f"  {CALL}: 1 -> raises E  [near]  [crash]",
        "  f([]): " + "x" * 20 + "…" + "x" * 39 + " -> 2  [tested]",
        "  and 3 more (--json, --html)",
        f"  f: length kept held on 8 inputs before, and not on {CALL}: 1 -> 2",
        f"  g: length kept held on 7 inputs before, and not on {CALL}: 1 -> 2",
    ]


def test_the_short_table() -> None:
    assert lines(NEAR, most=1, whole=False) == [
        "old against new: 9 inputs, 1 differ where turned tests want it, 5 others differ",
        f"  {CALL}: 1 -> raises E  [crash]",
        "  and 4 more",
        f"  f: length kept held on 8 inputs before, and not on {CALL}",
    ]


@pytest.mark.parametrize("whole", [True, False])
def test_without_functions_there_is_no_table(whole: bool) -> None:
    assert lines(replace(NEAR, functions=(), notes=()), most=5, whole=whole) == []
