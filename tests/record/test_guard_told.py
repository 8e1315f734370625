"""The guard's line for a person, made of the report's JSON."""

import pytest

from localagent.domain.guard import GuardResult
from localagent.report.guard_text import guard_json, guard_line


@pytest.mark.parametrize(
    ("result", "line"),
    [
        (GuardResult(why="--guard none"), "guard: no test outside --test ran (--guard none)"),
        (
            GuardResult(found=950, ran=412, passed=412, not_run=538, seconds=118.2, why="the time is used up"),
            "guard: 412 of 950 tests outside --test ran in 118 s: none broken (the time is used up)",
        ),
        (
            GuardResult(found=9, ran=9, passed=6, broken=("a::b",), flaky=("c::d",), undecided=("e::f",), seconds=1.0),
            "guard: 9 of 9 tests outside --test ran in 1 s: 1 broken: a::b; 1 fail without the patch too; "
            "1 flaky: c::d",
        ),
        (
            GuardResult(found=9, broken=("collect:t.py",), not_run=9, seconds=2.0),
            "guard: 0 of 9 tests outside --test ran in 2 s: 1 broken: collect:t.py",
        ),
    ],
)
def test_the_line(result: GuardResult, line: str) -> None:
    told = guard_json(result)
    assert told is not None
    assert guard_line(told) == line


def test_hostile_names_and_reasons_stay_on_one_line() -> None:
    told = guard_json(GuardResult(found=1, ran=1, broken=("t.py::x[\x1b[2J\nfoo]",), why="a\nb\x1b" + "c" * 9000))
    assert told is not None
    line = guard_line(told)
    assert "\n" not in line
    assert "\x1b" not in line
    assert len(line) < 2000


def test_no_guard_is_null() -> None:
    assert guard_json(None) is None
