"""From one weak test to a person's choice: `fix`, `show`, `apply --choose`, `undo`, in a real repository and jail."""

import json

import pytest
from support.fix_builder import home

PROGRAM = "def third(items):\n    return items[1]\n"
WEAK = "from m import third\n\n\ndef test_third():\n    assert third([5, 6, 7, 8]) == 7\n"


@pytest.mark.long
def test_rivals_that_differ_are_ambiguous_and_the_input_that_tells_them_apart_is_shown() -> None:
    program, test = "def f(a, b):\n    return a % b\n", "from m import f\n\n\ndef test_f():\n    assert f(2, 2) == 4\n"
    with home({"m.py": program, "test_m.py": test}) as h:
        ran = h.fix("--json")
        assert (ran.code, ran.report["outcome"], ran.report["patch"]) == (1, "ambiguous", None), ran
        told = next(json.loads(line) for line in ran.out.splitlines() if '"ambiguous"' in line and '"event"' in line)
        answers = {str(number): answer for number, answer in told["answers"]}
        assert (ran.report["ambiguity"]["call"], ran.report["ambiguity"]["answers"]) == (told["call"], answers)
        assert f"on {told['call']}: 1 answers " in ran.report["reason"]
        for number, answer in told["answers"]:
            patched = next(p["patch"] for p in ran.report["proposals"] if p["number"] == number)
            body = next(line[1:] for line in patched.splitlines() if line.startswith("+    return"))
            space: dict[str, object] = {}
            exec("def f(a, b):\n" + body + f"\nfound = {told['call']}", space)
            assert str(space["found"]) == answer
        assert len({answer for _, answer in told["answers"]}) > 1
        shown = h.run("show").out
        assert ": ambiguous" in shown
        assert f"Where they differ\n  {told['call']}\n    proposal 1: {answers['1']}\n" in shown


@pytest.mark.long
def test_the_best_is_assumed_where_the_user_says_so_and_the_report_tells() -> None:
    with home({"m.py": PROGRAM, "test_m.py": WEAK}) as h:
        ran = h.fix("--assume")
        assert (ran.code, ran.report["outcome"], ran.report["proposals"]) == (0, "accepted", []), ran
        assert any("--assume" in w for w in ran.report["warnings"])


@pytest.mark.long
def test_the_first_that_passes_is_taken_where_the_user_says_so() -> None:
    with home({"m.py": PROGRAM, "test_m.py": WEAK}) as h:
        ran = h.fix("--first")
        assert (ran.code, ran.report["outcome"]) == (0, "accepted"), ran
        assert any("--first" in w for w in ran.report["warnings"])
        assert ran.report["plausible"] <= 2  # one more may have been on its way
        assert h.fix("--first", "--assume").code == 2


@pytest.mark.long
def test_a_person_sees_the_rivals_and_takes_one() -> None:
    with home({"m.py": PROGRAM, "test_m.py": WEAK}) as h:
        ran = h.fix("--apply", "--out", str(h.root / "out.diff"))
        assert (ran.code, ran.report["outcome"]) == (1, "needs-person"), ran
        assert (h.repo / "m.py").read_text() == PROGRAM  # nobody has chosen yet
        assert not (h.root / "out.diff").exists()
        proposals = ran.report["proposals"]
        assert "IndexError in third([" in ran.reason  # right, but who would know from one list of four?
        assert len(proposals) > 1
        wanted = next(p["number"] for p in proposals if "+    return items[2]" in p["patch"])
        chosen = f"localagent apply {ran.report['task']} --choose {'|'.join(str(p['number']) for p in proposals)}"
        assert f"to write one of its proposals: {chosen}" in ran.err
        shown = h.run("show").out
        assert f"--choose {'|'.join(str(p['number']) for p in proposals)}" in shown
        task = ran.report["task"]
        assert h.run("apply", task, "--choose", str(wanted)).code == 0
        assert (h.repo / "m.py").read_text() == PROGRAM.replace("1", "2")
        assert h.run("undo", task).code == 0
        assert (h.repo / "m.py").read_text() == PROGRAM
