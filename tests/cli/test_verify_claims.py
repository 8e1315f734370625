"""`localagent verify --claim`: a grade is one of evidence for a claim, and the first line says what was shown."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from support.fix_builder import home
from support.schema_checker import checker
from support.verify_builder import CALC, FIXED, REPO, Said, patch, verify

SCHEMA = json.loads((Path(__file__).resolve().parents[2] / "docs" / "verify.schema.json").read_text())
PUSH = {
    "m.py": "def push(xs: list[int], x: int) -> list[int]:\n    return xs + [x]\n",
    "test_m.py": (
        "from m import push\n\n\ndef test_push():\n    assert push([], 3) == [3]\n    assert push([], 4) == [4]\n"
    ),
}
LOST = patch(PUSH, {"m.py": PUSH["m.py"].replace("xs + [x]", "[x]")})


def fits(told: Mapping[str, Any]) -> None:
    checker(SCHEMA).validate(told)


def first_line(said: Said) -> str:
    return said.out.splitlines()[0]


@pytest.mark.long
def test_a_change_that_turns_nothing_is_not_verified_by_tests() -> None:
    """The tests watch the line well, and what it was changed for nobody knows."""
    with home(PUSH) as h:
        said = verify(h, LOST)
        assert (said.code, said.verdict, said.told["claim"]) == (1, "needs-person", "unknown"), said
        assert "verified by tests" not in said.out
        line = first_line(said)
        near = said.told["differential"]
        many = len(near["differences"]) + near["differences_left_out"]
        assert f"tests pass as before; {many} of {near['inputs']} inputs answer otherwise: what it is for" in line
        assert said.told["mutants"]["killed"] == said.told["mutants"]["tried"]
        assert said.told["strength"]["grade"] == "D"
        assert (near["explained"], near["unexplained"]) == (0, {"answer": many})
        assert near["function_changes"] == [
            {"path": "m.py", "function": "push", "effect": "lost-parameter", "parameter": "xs"}
        ]
        assert said.told["claim_inferred"] is True
        fits(said.told)


@pytest.mark.slow
def test_a_refactoring_with_one_difference_is_refuted_by_the_input_that_shows_it() -> None:
    with home(PUSH) as h:
        said = verify(h, LOST, "--claim", "preserves")
        assert (said.code, said.verdict) == (1, "refuted"), said
        assert first_line(said).startswith("Patch refuted: ")
        smallest = said.told["differential"]["differences"][0]
        assert f"the smallest: {smallest['call']}: {smallest['old']} -> {smallest['new']}" in said.reason
        assert said.told["strength"]["grade"] == "E"
        fits(said.told)
        said = verify(h, LOST, "--claim", "fixes")
        assert (said.code, said.verdict) == (1, "unproven"), said
        assert "no test that failed before passes with it" in said.reason


@pytest.mark.slow
def test_a_refactoring_that_keeps_every_answer_says_so() -> None:
    files = {**REPO, "calc.py": FIXED}
    with home(files) as h:
        text = patch(files, {"calc.py": FIXED.replace("return value\n", "inside = value\n    return inside\n")})
        for args in ((), ("--claim", "preserves")):
            said = verify(h, text, *args)
            assert (said.code, said.verdict, said.told["claim"]) == (0, "verified", "preserves"), said
            assert first_line(said).startswith("Patch keeps what it touches as it was: tests pass as before")
            assert said.told["strength"]["limits"] == []
            fits(said.told)


@pytest.mark.slow
def test_a_fix_with_one_more_edit_is_c_at_most_and_the_edit_is_named() -> None:
    """No test watches the step of the range: everything passes with it and without it."""
    before = (
        "def spans(text: str, width: int, step: int = 1) -> list[str]:\n    if width < 0:\n        return []\n"
        "    return [text[n : n + width + 1] for n in range(0, len(text), step)]\n"
    )
    tests = (
        "from m import spans\n\n\ndef test_spans():\n    assert spans('abc', 1) == ['a', 'b', 'c']\n\n\n"
        "def test_none():\n    assert spans('', 1) == []\n    assert spans('a', -1) == []\n"
    )
    files = {"m.py": before, "test_m.py": tests}
    right = before.replace("width + 1", "width")
    wrong = right.replace("width < 0", "width < 1")
    with home(files) as h:
        said = verify(h, patch(files, {"m.py": right}))
        assert (said.code, said.verdict, said.told["claim"]) == (0, "verified", "fixes"), said
        assert first_line(said).startswith("Patch verified by tests: 1 fail-to-pass")
        assert said.told["necessity"]["unneeded"] == []
        assert said.told["strength"]["limits"] == [], said.told["strength"]
        said = verify(h, patch(files, {"m.py": wrong}), "--min-strength", "B")
        assert (said.code, said.verdict) == (1, "too-weak"), said
        assert [(p["line"], p["text"]) for p in said.told["necessity"]["unneeded"]] == [(2, "0 -> 1")]
        assert said.told["necessity"]["differences"] > 0
        assert "every test passes without a part of it: m.py:2 (0 -> 1)" in said.reason
        assert "of strength C" in said.reason
        fits(said.told)


@pytest.mark.long
def test_what_stands_inside_brackets_that_came_is_a_part_of_its_own() -> None:
    """Neither the call nor what changed inside it is needed, and a test that asks for 0 tells little."""
    before = "def wait(a, b):\n    return a & b\n"
    tests = "from m import wait\n\n\ndef test_none():\n    assert wait(5, 5) == 0\n"
    files = {"m.py": before, "test_m.py": tests}
    with home(files) as h:
        said = verify(h, patch(files, {"m.py": before.replace("a & b", "abs(a - b * 1)")}))
        assert said.told["necessity"]["asked"] > 0, said
        assert "nothing -> * 1" in [part["text"] for part in said.told["necessity"]["unneeded"]]
        limits = " ".join(said.told["strength"]["limits"])
        assert "all tests pass also where it returns the same whatever it is given" in limits
        assert said.told["strength"]["grade"] not in ("A", "B")


@pytest.mark.slow
def test_what_adds_is_asked_for_by_the_tests_it_brings() -> None:
    new = {
        "calc.py": CALC + "\n\ndef double(value: int) -> int:\n    return value * 2\n",
        "test_double.py": (
            "from calc import double\n\n\ndef test_double():\n    assert double(4) == 8\n    assert double(0) == 0\n"
        ),
    }
    files = {"calc.py": FIXED, "test_calc.py": REPO["test_calc.py"]}
    new["calc.py"] = new["calc.py"].replace(CALC, FIXED)
    with home(files) as h:
        said = verify(h, patch(files, new))
        assert (said.code, said.verdict, said.told["claim"]) == (0, "verified", "adds"), said
        assert first_line(said).startswith("Patch verified by tests that ask for what it adds: ")
        alone = {"calc.py": new["calc.py"]}
        said = verify(h, patch(files, alone), "--claim", "adds")
        assert (said.code, said.verdict) == (1, "unproven"), said
        fits(said.told)


@pytest.mark.slow
def test_a_check_alone_is_no_test() -> None:
    files = {
        "m.py": "def add(a, b):\n    return a - b\n",
        "smoke.py": "from m import add\n\nassert add(2, 3) == 5\n",
    }
    with home(files) as h:
        said = verify(
            h, patch(files, {"m.py": files["m.py"].replace("a - b", "a * b - 1")}), "--check", "python smoke.py"
        )
        assert (said.code, said.told["claim"]) == (0, "fixes"), said
        assert first_line(said).startswith("Patch verified by its check, not by tests: ")
        assert "tests" not in said.told["rests_on"]
        assert "checks" in said.told["rests_on"]
        assert said.told["strength"]["grade"] not in ("A", "B")
        assert "verified by tests" not in said.out
        fits(said.told)


@pytest.mark.long
def test_a_refactoring_leaves_a_red_test_red_and_red_in_the_same_way() -> None:
    """`test_high` fails before and after and runs what changes; a refactoring is not asked to mend it."""
    with home(REPO) as h:
        kept = verify(h, patch(REPO, {"calc.py": CALC.replace("value < low", "low > value")}), "--claim", "preserves")
        assert (kept.code, kept.verdict) == (0, "verified"), kept
        assert kept.told["comparison"]["left_alone"] == ["test_calc.py::test_high"]
        assert "1 that failed before run it and still fail" in kept.reason
        other = CALC.replace("value > high:\n        return low", "value > high:\n        raise ValueError(value)")
        moved = verify(h, patch(REPO, {"calc.py": other}), "--claim", "preserves")
        assert (moved.code, moved.verdict) == (1, "refused"), moved
        assert "fail with another exception: test_calc.py::test_high" in moved.reason
