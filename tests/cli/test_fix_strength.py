"""The strength of what `fix` accepts, in report, journal, evidence, `show`; a policy that asks for more. Real jails."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.fix_builder import Home, Ran, home
from support.schema_checker import checker
from support.verify_builder import REPO

SCHEMA = json.loads((Path(__file__).resolve().parents[2] / "docs" / "report.schema.json").read_text())
DEMANDING = {
    "greet.py": "def greet(name):\n    return nmae\n",
    "test_greet.py": "from greet import greet\n\n\ndef test_greet():\n    assert greet('x') == 'x'\n",
    "pyproject.toml": '[tool.localagent.verification]\nmin_strength = "A"\n',
}
WEAK = {
    "total.py": "def total(a, b):\n    return a - b\n",
    "test_total.py": "from total import total\n\n\ndef test_total():\n    assert total(2, 2) == 4\n",
}


@pytest.fixture(scope="module")
def mended() -> Iterator[tuple[Home, Ran]]:
    with home(REPO) as h:
        yield h, h.fix("--assume")


@pytest.mark.long
def test_an_accepted_patch_has_a_strength_with_parts(mended: tuple[Home, Ran]) -> None:
    _, ran = mended
    assert ran.code == 0, ran
    checker(SCHEMA).validate(ran.report)
    told = ran.report["assessment"]
    strength = told["strength"]
    assert (strength["lines"]["part"], strength["lines"]["whole"]) == (1, 1)
    if not told["cut"]:  # a machine with nothing else to do
        assert strength["grade"] == "A"
        assert strength["mutants"]["part"] >= 5
        assert strength["functions"]["part"] == 1
    assert f"strength {strength['grade']} of A to E" in ran.err
    assert ran.report["seconds"]["strength"] == told["seconds"]


@pytest.mark.long
def test_mutants_of_what_ran_while_importing_are_run_anew() -> None:
    """A live program keeps what the import made of the function, so that no mutant can be put into it."""
    imported = {"calc.py": REPO["calc.py"] + "\n\nLEAST = clamp(3, 0, 10)\n"}
    with home({**REPO, **imported}) as h:
        ran = h.fix("--assume")
        assert ran.code == 0, ran
        mutants = ran.report["assessment"]["strength"]["mutants"]
        assert mutants["part"] >= 1
        assert "live program" not in " ".join(ran.report["assessment"]["cut"])


@pytest.mark.long
def test_old_and_new_are_shown_where_no_turned_test_wants_it(mended: tuple[Home, Ran]) -> None:
    near = mended[1].report["assessment"]["differential"]
    assert {d["origin"] for d in near["differences"]} <= {"near"}
    for d in near["differences"]:  # above the bounds old answered the lower one, new answers the upper one
        value, low, high = (int(n) for n in d["call"][len("clamp(") : -1].split(", "))
        assert value > high
        assert (d["old"], d["new"]) == (str(low), str(high))


@pytest.mark.long
def test_the_record_carries_it(mended: tuple[Home, Ran]) -> None:
    h, ran = mended
    folder = h.tasks / str(ran.report["task"])
    grade = ran.report["assessment"]["strength"]["grade"]
    events = [json.loads(line) for line in (folder / "journal.jsonl").read_text().splitlines()]
    assert [e["data"]["grade"] for e in events if e["kind"] == "strength"] == [grade]
    facts = json.loads((folder / "evidence.json").read_bytes())
    assert facts["strength"]["grade"] == grade
    assert facts["strength"]["lines"] == [1, 1]
    assert f"strength {grade} of A to E" in h.run("show", str(ran.report["task"])).out


@pytest.mark.long
def test_a_policy_that_demands_more_leaves_it_to_a_person() -> None:
    with home(DEMANDING) as h:
        ran = h.fix("--apply", "--assume")
        assert (ran.code, ran.report["outcome"]) == (1, "needs-person"), ran
        assert "the policy 'default' asks for A" in ran.reason
        assert "touched functions compared: 0 of 1" in ran.reason
        assert ran.report["patch"] is None
        assert len(ran.report["proposals"]) == 1
        assert ran.report["assessment"]["strength"]["grade"] != "A"
        assert (h.repo / "greet.py").read_text() == DEMANDING["greet.py"]


@pytest.mark.long
def test_tests_that_accept_other_repairs_too_are_called_weak() -> None:
    """Of sum, product and power one test with 2 and 2 accepts each; what it took is graded C at most, and says why."""
    with home(WEAK) as h:
        ran = h.fix("--assume")
        assert ran.code == 0, ran
        checker(SCHEMA).validate(ran.report)
        strength = ran.report["assessment"]["strength"]
        assert strength["others"] >= 1
        assert strength["grade"] not in ("A", "B")
        told = [text for text in strength["weak"] if text.startswith(f"{strength['others']} other behaviours")]
        assert len(told) == 1
        assert "the tests are weak here: " in ran.err
        assert told[0] in h.run("show", str(ran.report["task"])).out


@pytest.mark.long
def test_tests_that_tell_it_from_all_others_are_not(mended: tuple[Home, Ran]) -> None:
    strength = mended[1].report["assessment"]["strength"]
    assert (strength["others"], strength["weak"]) == (0, [])
