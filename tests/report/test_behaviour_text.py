"""The table of changed behaviour is one: long for `verify`, short for a repair, of the same facts."""

import re
from dataclasses import replace

import pytest

from localagent.cli.main import main
from localagent.domain.bisection import BisectEnd, BisectResult
from localagent.domain.claim import FunctionEffect
from localagent.domain.paths import RepoPath
from localagent.domain.verification import (
    Difference,
    Differential,
    FunctionChange,
    FunctionReach,
    InputOrigin,
    PropertyBreak,
)
from localagent.report.behaviour_text import near_lines
from localagent.report.bisect_report import bisect_text
from localagent.report.verify_report import differential_json

PATH = RepoPath("a.py")
CALL = "f([1, 2])"
NEAR = Differential(
    functions=(FunctionReach(path=PATH, function="f", compared=9, agreed=7, answered=9),),
    demanded=1,
    differences=(
        Difference(path=PATH, function="f", call=CALL, old="1", new="raises E", origin=InputOrigin.NEAR, crash=True),
        Difference(path=PATH, function="f", call="f([])", old="x" * 90, new="2", origin=InputOrigin.TESTED),
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
    return list(near_lines(told, most=most, whole=whole, all_by="--json, --html" if whole else ""))


def test_the_long_table() -> None:
    assert lines(NEAR, most=2, whole=True) == [
        "old against new: functions of b.py could not be imported",
        "old against new: 9 inputs to 1 function, 1 differ as the repaired tests require, 5 other differences",
        f"  {CALL}: 1 -> raises E  [near]  [crash]",
        "  f([]): " + "x" * 20 + "…" + "x" * 39 + " -> 2  [tested]",
        "  and 3 more (--json, --html)",
        f"  f: length kept held on 8 inputs before, and not on {CALL}: 1 -> 2",
        f"  g: length kept held on 7 inputs before, and not on {CALL}: 1 -> 2",
    ]


def test_what_a_bisection_leaves_out_is_shown_by_an_option_that_it_has(capsys: pytest.CaptureFixture[str]) -> None:
    text = bisect_text(BisectResult(end=BisectEnd.FOUND, reason="found", exit=0, behaviour=NEAR))
    options = re.search(r"^  and 3 more \((.*)\)$", text, re.MULTILINE)
    assert options is not None
    assert main(["bisect", "--help"]) == 0
    said = capsys.readouterr().out
    assert all(f"  {option} " in said for option in options[1].split(", "))


def test_the_short_table() -> None:
    assert lines(NEAR, most=1, whole=False) == [
        "old against new: 9 inputs, 1 differ as the repaired tests require, 5 other differences",
        f"  {CALL}: 1 -> raises E  [crash]",
        "  and 4 more",
        f"  f: length kept held on 8 inputs before, and not on {CALL}",
    ]


@pytest.mark.parametrize("whole", [True, False])
def test_without_functions_there_is_no_table(whole: bool) -> None:
    assert lines(replace(NEAR, functions=(), notes=()), most=5, whole=whole) == []


def shown(*differences: tuple[str, str, str], most: int = 5) -> list[str]:
    made = tuple(
        Difference(path=PATH, function="f", call=call, old=old, new=new, origin=InputOrigin.NEAR)
        for call, old, new in differences
    )
    return lines(replace(NEAR, differences=made, differences_left_out=0, broken_properties=()), most=most, whole=False)


def test_answers_that_differ_behind_the_ellipsis_show_what_differs() -> None:
    """Shortened, both would read alike: head and tail are equal, and what differs stands between them."""
    old, new = "[" + "7, " * 60 + "8, " + "9, " * 60 + "]", "[" + "7, " * 60 + "5, " + "9, " * 60 + "]"
    (line,) = shown((CALL, old, new))[1:]
    before, _, after = line.removeprefix(f"  {CALL}: ").partition(" -> ")
    assert before.startswith("…7, 7, 7, 7, 8, 9")
    assert after.startswith("…7, 7, 7, 7, 5, 9")
    assert len(line) < 160


def test_answers_whose_texts_are_equal_say_so_and_are_told_once() -> None:
    (line,) = shown(("f(<A>)", "A()", "A()"), ("f(<A>)", "A()", "A()"), ("f(<A>)", "A()", "A()"))[1:]
    assert line == "  f(<A>): A() -> A() (the difference is not visible in the text)  (and 2 alike)"


def test_those_that_read_alike_are_not_counted_as_left_out() -> None:
    found = shown(("f(1)", "1", "2"), ("f(1)", "1", "2"), ("f(2)", "1", "2"), ("f(3)", "1", "2"), most=2)
    assert found[1:] == ["  f(1): 1 -> 2  (and 1 alike)", "  f(2): 1 -> 2", "  and 1 more"]


def test_broken_properties_show_what_differs_and_are_told_once() -> None:
    call, old, new = f"f([{'7, ' * 60}])", *(f"[{'7, ' * 60}{n}, {'9, ' * 60}]" for n in (8, 5))
    one = PropertyBreak(path=PATH, function="f", name="length kept", held=8, call=call, old=old, new=new)
    other = replace(one, old=old.replace("8", "6"))
    near = replace(NEAR, differences=(), differences_left_out=0, broken_properties=(one, one, other))
    first, second = lines(near, most=5, whole=True)[-2:]
    assert "not on f([7, 7, " in first
    assert "…7, 7, 7, 7, 8, 9" in first
    assert " -> …7, 7, 7, 7, 5, 9" in first
    assert first.endswith("  (and 1 alike)")
    assert "…7, 7, 7, 7, 6, 9" in second
    assert lines(near, most=5, whole=False)[-1].endswith("  (and 2 alike)")


def test_reports_of_before_are_shown_too() -> None:
    told = differential_json(NEAR)
    assert told is not None
    old = {name: value for name, value in told.items() if name not in ("explained", "unexplained", "function_changes")}
    old["differences"] = [
        {name: value for name, value in d.items() if name not in ("effect", "explained")} for d in told["differences"]
    ]
    for whole in (True, False):
        by = "--json, --html" if whole else ""
        assert list(near_lines(old, most=3, whole=whole, all_by=by)) == lines(NEAR, most=3, whole=whole)


def test_what_is_explained_is_counted_and_what_became_of_functions_told() -> None:
    change = FunctionChange(path=PATH, function="f", effect=FunctionEffect.LOST_PARAMETER, parameter="style")
    constant = FunctionChange(path=PATH, function="g", effect=FunctionEffect.CONSTANT)
    found = lines(replace(NEAR, explained=2, function_changes=(change, constant)), most=1, whole=False)
    assert found[:3] == [
        "old against new: 9 inputs, 1 differ as the repaired tests require, 5 other differences (2 explained by these)",
        "  the argument 'style' of f no longer matters",
        "  g returns the same for every input",
    ]
