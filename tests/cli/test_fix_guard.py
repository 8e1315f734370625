"""`fix --test` with the rest of the suite as guard: whole runs, from the command line to the report and the replay."""

import json
from pathlib import Path

import pytest
from support.fix_builder import home
from support.schema_checker import checker

# the operator is wrong; one call does not tell by which other it is to be replaced, and the other file's does
RATES = {
    "rates/__init__.py": "",
    "rates/core.py": "def share(amount, parts):\n    return amount + parts\n",
    "tests/test_core.py": "from rates.core import share\n\n\ndef test_one():\n    assert share(3, 1) == 3\n",
    "tests/test_other.py": "from rates.core import share\n\n\ndef test_debt():\n    assert share(-4.5, 3) == -1.5\n",
}
GOAL = ("--test", "tests/test_core.py", "--first")
RIGHT = "+    return amount / parts\n"


SCHEMA = json.loads((Path(__file__).resolve().parents[2] / "docs" / "report.schema.json").read_text())


@pytest.mark.slow
def test_a_patch_that_breaks_a_test_elsewhere_is_refused_and_the_right_one_taken() -> None:
    with home(RATES) as h:
        blind = h.fix(*GOAL, "--guard", "none", seconds=100)
        assert blind.code == 0
        assert RIGHT not in blind.report["patch"], "without a guard another one comes first"
        assert blind.report["guard"]["why"] == "--guard none"
        assert "guard: no test outside --test ran (--guard none)" in blind.err

        ran = h.fix(*GOAL, seconds=100)
        assert (ran.code, ran.report["outcome"]) == (0, "accepted")
        assert RIGHT in ran.report["patch"]
        checker(SCHEMA).validate(ran.report)
        told = ran.report["guard"]
        assert (told["found"], told["ran"], told["passed"], told["not_run"], told["broken"]) == (1, 1, 1, 0, [])
        assert "breaks tests outside --test: tests/test_other.py::test_debt" in ran.err
        assert "guard: 1 of 1 tests outside --test ran in" in ran.err
        assert ran.report["seconds"]["guard"] > 0
        shown = h.run("show", ran.report["task"])
        assert "1 of 1 tests outside --test ran in" in shown.out
        replayed = h.run("replay", ran.report["task"])
        assert replayed.code == 0, replayed.out + replayed.err

        task = h.tasks / blind.report["task"]
        kept = json.loads((task / "task.json").read_bytes())
        assert (kept["guard"], kept["guard_seconds"]) == (["none"], 120.0)
        asked = json.loads((task / "evidence.json").read_bytes())["asked"]
        assert (asked["guard"], asked["guard_seconds"]) == (["none"], 120.0)


@pytest.mark.slow
def test_no_right_patch_in_reach_means_exit_1() -> None:
    both = RATES["tests/test_other.py"] + "\n\ndef test_same():\n    assert share(2, 2) == 4\n"
    with home({**RATES, "tests/test_other.py": both}) as h:
        ran = h.fix("--test", "tests/test_core.py", "--assume", seconds=60, candidates=30)
        assert ran.code == 1
        assert ran.report["patch"] is None


@pytest.mark.long
def test_without_test_the_guard_says_that_everything_is_the_goal() -> None:
    with home({**RATES, "tests/test_other.py": RATES["tests/test_other.py"] + "    assert share(8, 2) == 4\n"}) as h:
        ran = h.fix("--first")
        assert ran.code == 0
        told = ran.report["guard"]
        assert (told["found"], told["ran"], told["seconds"]) == (0, 0, 0)
        assert told["why"] == "all tests are among those to repair, and the full check ran them"


@pytest.mark.long
def test_a_check_without_tests_has_no_guard() -> None:
    run = "out = subprocess.check_output([sys.executable, 'main.py'])\nsys.exit(out.strip() != b'5')\n"
    with home({"main.py": "print(2 - 3)\n", "check.py": f"import subprocess, sys\n{run}"}) as h:
        ran = h.fix("--check", "python check.py", "--first")
        assert (ran.code, ran.report["guard"]["why"]) == (0, "no tests found")


def test_faults_of_the_guard_are_told_together() -> None:
    with home(RATES) as h:
        ran = h.run(
            *("fix", "--repo", str(h.repo), "--guard", "none", "--guard", " ", "--guard-seconds", "0"),
            *("--max-candidates", "0"),
        )
        assert ran.code == 2
        for text in (
            "--guard: none stands alone",
            "--guard: is empty",
            "--guard-seconds: more than 0",
            "--max-candidates",
        ):
            assert text in ran.err
        assert not Path(h.tasks).exists()
