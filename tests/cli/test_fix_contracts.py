"""What `fix` promises a caller: exit codes with their reasons, `--out`, `--report`, `--json`, `--quiet`, `--apply`."""

import argparse
import json
import os
import resource
import venv
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.fix_builder import ADDED, ADDER, CHECKOUT, Home, Ran, home, tree_of

from localagent.cli.fix import add_arguments
from localagent.cli.main import main

GREEN = {
    "one.py": "def one():\n    return 1\n",
    "test_one.py": "from one import one\n\n\ndef test_one():\n    assert one() == 1\n",
}
NEVER = {
    "sums.py": (
        "def total(x):\n    y = x + 1\n    z = [y, x, 3]\n    for i in z:\n        y += i\n    return sum(z) + y\n"
    ),
    "test_sums.py": "from sums import total\n\n\ndef test_total():\n    assert total(7) == 'never'\n",
}
DEFAULT_POLICY = (CHECKOUT / "policies" / "default.toml").read_text()


@pytest.mark.long
def test_no_tests() -> None:
    with home({"one.py": GREEN["one.py"]}) as h:
        ran = h.fix()
        assert (ran.code, ran.report["outcome"], ran.reason) == (1, "no-tests", "no tests found")
        assert "--test" in ran.out
        assert "--check" in ran.out
        assert " is a folder of " not in ran.out


@pytest.mark.long
def test_no_tests_in_a_folder_of_a_repository_names_the_repository() -> None:
    with home(GREEN) as h:
        (h.repo / ".git").mkdir()
        (h.repo / "src").mkdir()
        ran = h.fix("--repo", str(h.repo / "src"))
        assert (ran.code, ran.report["outcome"]) == (1, "no-tests")
        assert f"is a folder of {h.repo}: pass --repo {h.repo}; or" in ran.out


def test_a_model_server_is_refused_before_anything_runs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fix", "--model", "unix:/run/llm.sock"]) == 2
    assert "a model server is for `do` and `chat`" in capsys.readouterr().err


@pytest.mark.long
def test_what_breaks_pytest_itself_is_named() -> None:
    hook = "def pytest_collection_modifyitems():\n    raise RuntimeError('inventory is offline')\n"
    with home({**GREEN, "conftest.py": hook}) as h:
        ran = h.fix()
        assert (ran.code, ran.report["outcome"]) == (1, "no-tests")
        assert "RuntimeError: inventory is offline" in ran.reason
        assert "conftest.py:2" in ran.reason


@pytest.mark.long
def test_nothing_to_fix_writes_no_diff() -> None:
    with home(GREEN) as h:
        ran = h.fix("--out", str(h.root / "out.diff"))
        assert (ran.code, ran.report["outcome"]) == (0, "nothing-to-fix")
        assert ran.out == "nothing to fix: every test and check passes\n"
        assert not (h.root / "out.diff").exists()


def test_the_repository_is_the_current_folder_unless_named() -> None:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    assert parser.parse_args([]).repo == "."
    assert parser.parse_args(["--repo", "elsewhere"]).repo == "elsewhere"


@pytest.mark.long
def test_a_task_that_no_check_can_judge_is_refused() -> None:
    with home(GREEN) as h:
        ran = h.fix("--task", "make it faster")
        assert (ran.code, ran.report["outcome"]) == (1, "needs-person")
        assert "nothing could show that the task is done" in ran.reason
        assert ran.report["text"] == "make it faster"
        assert "add a test" in ran.out


def test_every_usage_fault_at_once() -> None:
    with home() as h:
        args = ("--max-candidates", "0", "--jobs", "-1", "--max-seconds", "inf", "--out", str(h.root / "no" / "x"))
        ran = h.run("fix", "--repo", str(h.root / "no"), *args, "--report", str(h.root), "--check", "python 'x")
        assert ran.code == 2
        wanted = ("--repo", "--max-candidates", "--jobs", "--max-seconds", "--out", "--report", "--check")
        assert [name for name in wanted if f"localagent: {name}" not in ran.err] == []
        assert not h.tasks.exists()


@pytest.mark.parametrize(
    ("policy", "said"),
    [
        (None, ["No such file"]),
        (b"\xff[[[", ["not TOML"]),
        (b'schema = "x"\nbogus = 1\n[size]\nmax_files = "three"\n', ["schema", "bogus: unknown key", "size.max_files"]),
    ],
)
def test_a_policy_that_is_missing_or_garbled(policy: bytes | None, said: list[str]) -> None:
    with home() as h:
        place = h.root / "policy.toml"
        if policy is not None:
            place.write_bytes(policy)
        ran = h.fix("--policy", str(place))
        assert ran.code == 2
        assert [text for text in said if text not in ran.err] == []
        assert "localagent policy show" in ran.err
        assert not h.tasks.exists()


FOLDERS = ("/usr/local/bin", "/usr/bin", "/bin")
SYSTEM_JAIL, SYSTEM_NSJAIL = (
    next((p for f in FOLDERS if (p := Path(f, name)).exists()), None) for name in ("bwrap", "nsjail")
)


@pytest.mark.long
def test_without_a_jail_nothing_runs() -> None:
    """The policy forbids the carried binary, and the system's, if there is one, is covered by another file."""
    with home({**ADDER, "conftest.py": "raise SystemExit('ran')\n"}) as h:
        policy = h.root / "policy.toml"
        policy.write_text(DEFAULT_POLICY.replace('third_party_binaries = "allow"', 'third_party_binaries = "deny"'))
        before = tree_of(h.repo)
        covered: tuple[str, ...] = ()
        if SYSTEM_JAIL is not None:
            place = str(SYSTEM_JAIL.resolve())
            other = () if SYSTEM_NSJAIL is None else ("--ro-bind", "/dev/null", str(SYSTEM_NSJAIL.resolve()))
            covered = (place, "--dev-bind", "/", "/", "--ro-bind", "/dev/null", place, *other, "--")
        ran = h.fix("--policy", str(policy), within=covered)
        assert (ran.code, ran.report["outcome"]) == (4, "cannot-enforce")
        assert "no sound jail on this machine" in ran.reason
        assert "apt install bubblewrap" in ran.out
        assert ran.report["failing"] == []
        assert "running the tests" not in ran.err
        assert tree_of(h.repo) == before


def test_a_named_model_that_is_absent() -> None:
    with home() as h:
        ran = h.fix(model=("--model", str(h.root / "none.gguf")))
        assert (ran.code, ran.report["outcome"]) == (4, "cannot-enforce")
        assert "none.gguf" in ran.reason
        assert "No such file" in ran.reason
        assert "running the tests" not in ran.err


@pytest.mark.long
def test_a_python_without_pytest() -> None:
    with home() as h:
        h.write({"pyproject.toml": '[dependency-groups]\ntesting = ["pytest>=8"]\n'})
        venv.create(h.repo / ".venv", with_pip=False)
        ran = h.fix()
        assert ran.code == 1
        assert ran.reason.endswith("/repo/.venv/bin/python has no pytest, which pyproject.toml declares")
        assert "-m ensurepip && " in ran.out
        assert "-m pip install --group testing" in ran.out
        assert "--check" in ran.out


@pytest.fixture(scope="module")
def applied() -> Iterator[tuple[Home, Ran, dict[str, tuple[int, int, bytes]]]]:
    """A run with everything asked for: --apply, --out, --report, --json."""
    with home({**ADDER, "script.sh": "#!/bin/sh\n"}) as h:
        (h.repo / "adder.py").chmod(0o755)
        os.utime(h.repo / "adder.py", ns=(1, 1_600_000_000_123_456_789))
        before = tree_of(h.repo)
        ran = h.fix("--apply", "--assume", "--json", "--out", str(h.root / "out.diff"), candidates=8)
        yield h, ran, before


@pytest.mark.long
def test_out_and_report_are_written(applied: tuple[Home, Ran, dict[str, tuple[int, int, bytes]]]) -> None:
    h, ran, _ = applied
    assert (ran.code, ran.report["outcome"]) == (0, "accepted")
    assert (h.root / "out.diff").read_text() == ran.report["patch"]
    assert sorted(ran.report["fail_to_pass"]) == ["test_adder.py::test_add", "test_adder.py::test_more"]
    assert ran.report["pass_to_pass"] == ["test_adder.py::test_zero"]
    assert {"snapshot", "baseline", "localize", "search", "full-check"} <= set(ran.report["seconds"])


@pytest.mark.long
def test_json_is_one_event_a_line(applied: tuple[Home, Ran, dict[str, tuple[int, int, bytes]]]) -> None:
    _, ran, _ = applied
    events = [json.loads(line) for line in ran.out.splitlines()]
    kinds = [e["event"] for e in events]
    assert kinds[-1] == "result"
    assert {"stage", "baseline", "localized", "controls", "checked", "full-check"} <= set(kinds)
    assert events[-1]["report"] == ran.report
    assert ran.err == ""


@pytest.mark.long
def test_apply_changes_one_file_and_undo_is_exact(applied: tuple[Home, Ran, dict[str, tuple[int, int, bytes]]]) -> None:
    h, ran, before = applied
    after = tree_of(h.repo)
    changed = {p for p in before if after[p] != before[p]}
    assert changed == {f"{h.repo}/adder.py"}
    mode, _, data = after[f"{h.repo}/adder.py"]
    assert data.endswith(ADDED)
    assert mode & 0o777 == 0o755
    assert h.run("undo", ran.report["task"]).code == 0
    assert tree_of(h.repo) == before


@pytest.mark.slow
def test_quiet_says_the_answer_only() -> None:
    with home() as h:
        ran = h.fix("--quiet", "--assume", candidates=8)
        assert ran.out.endswith("accepted: - -> +\n")
        assert "reading the tree" not in ran.err


@pytest.mark.long
def test_apply_is_refused_when_the_tree_has_changed_meanwhile() -> None:
    with home() as h:
        with h.start(*h.arguments("--apply", "--assume", "--no-model", candidates=8)) as process:
            while process.poll() is None and not any(h.tasks.glob("*/journal.jsonl")):
                pass
            while process.poll() is None and b'"baseline"' not in next(h.tasks.glob("*/journal.jsonl")).read_bytes():
                pass
            theirs = b"# somebody else was here\n" + (h.repo / "adder.py").read_bytes()
            (h.repo / "adder.py").write_bytes(theirs)
            out, err = process.communicate(timeout=120)
        report = json.loads((h.root / "report.json").read_bytes())
        assert (process.returncode, report["exit"], report["outcome"]) == (1, 1, "needs-person")
        assert b"localagent apply" not in out + err
        assert "accepted but not applied" in report["reason"]
        assert "'adder.py' is not what the patch was made for" in report["reason"]
        assert b"have the patch made again on the tree as it is" in out
        assert (h.repo / "adder.py").read_bytes() == theirs


@pytest.mark.long
def test_an_unwritable_out_is_told_and_the_patch_is_kept() -> None:
    with home() as h:
        ran = h.fix("--out", "/dev/full", "--assume", candidates=8)
        assert (ran.code, ran.report["outcome"]) == (1, "needs-person")
        assert "cannot write /dev/full: No space left on device" in ran.reason
        assert h.run("apply", ran.report["task"]).code == 0
        assert (h.repo / "adder.py").read_bytes().endswith(ADDED)


@pytest.mark.long
def test_no_room_for_our_own_records() -> None:
    """Files may not grow beyond a few bytes, for the state directory as for the rest."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64))

    with home() as h:
        before = tree_of(h.repo)
        ran = h.run(*h.arguments("--no-model"), preexec_fn=limit)
        assert ran.code == 1, (ran.out, ran.err)
        assert "cannot" in ran.err
        assert "File too large" in ran.err
        assert tree_of(h.repo) == before
        assert list(h.scratch.iterdir()) == []


def checked(condition: str) -> dict[str, str]:
    """A function, and a program that exits 0 if a condition on it holds."""
    head = "import sys\n\nfrom prog import main\n\n"
    return {
        "prog.py": "def main(n):\n    return n - 3\n",
        "check.py": f"{head}sys.exit(0 if {condition} else 1)\n",
    }


@pytest.mark.long
def test_a_check_alone() -> None:
    with home(checked("[main(n) for n in (4, 9, 25)] == [7, 12, 28]")) as h:
        ran = h.fix("--check", "python check.py", "--assume", candidates=6)
        assert ran.code == 0, (ran.out, ran.err)
        assert ran.report["fail_to_pass"] == ["check:python check.py"]
        assert "return n + 3" in ran.report["patch"]
        assert ran.report["assessment"]["strength"]["grade"] == "C"
        mutants = ran.report["assessment"]["mutants"]
        assert mutants["killed"] == mutants["tried"] >= 3


@pytest.mark.long
def test_the_program_of_a_check_is_not_repaired_and_the_reason_says_so() -> None:
    own = "import sys\n\n\ndef main(n):\n    return n - 3\n\n\nif __name__ == '__main__':\n    sys.exit(main(4) != 7)\n"
    with home({"prog.py": own}) as h:
        ran = h.fix("--check", "python prog.py", candidates=40)
        assert (ran.code, ran.report["outcome"], ran.report["candidates_verified"]) == (1, "gave-up", 0)
        assert "prog.py is the program of --check 'python prog.py'" in ran.reason


@pytest.mark.slow
def test_a_check_that_notices_little_leaves_its_patch_to_a_person() -> None:
    """A function that leaves out some of what it is given is as good to it as the right one."""
    code = "def links(data):\n    found = []\n    for n in data:\n        if n > 2:\n            found.append(n[0])\n"
    code += "        else:\n            found.append(n)\n    return found\n"
    check = "import sys\n\nfrom prog import links\n\nsys.exit(not isinstance(links([3]), list))\n"
    with home({"prog.py": code, "check.py": check}) as h:
        ran = h.fix("--check", "python check.py", candidates=40)
        assert (ran.code, ran.report["patch"]) == (1, None)
        assert ran.report["outcome"] in ("needs-person", "ambiguous")
        assert ran.report["proposals"]


@pytest.mark.slow
def test_one_of_two_named_tests_is_progress_that_can_be_applied() -> None:
    test = "from adder import add, never\n\n\ndef test_add():\n    assert add(2, 3) == 5\n\n\n"
    test += "def test_more():\n    assert add(7, 4) == 11\n\n\ndef test_never():\n    assert never() is add\n"
    files = {"adder.py": ADDER["adder.py"] + "\n\ndef never():\n    return object()\n", "test_adder.py": test}
    with home(files) as h:
        ran = h.fix("--test", "test_adder.py", candidates=30)
        assert (ran.code, ran.report["outcome"], ran.report["patch"]) == (1, "progress", None)
        assert ran.reason.startswith("turns 2 of 3 tests and checks that were asked for; 1 does not run what it")
        assert ran.report["still_failing"] == ["test_adder.py::test_never"]
        (proposal,) = ran.report["proposals"]
        assert (len(proposal["fail_to_pass"]), proposal["still_failing"]) == (2, ["test_adder.py::test_never"])
        assert "--choose 1" in ran.err + ran.out
        assert h.run("apply", ran.report["task"], "--choose", "1").code == 0
        assert ADDED in (h.repo / "adder.py").read_bytes()


@pytest.mark.long
def test_a_check_that_many_programs_pass_leaves_the_choice_to_a_person() -> None:
    with home(checked("main(4) == 0")) as h:
        ran = h.fix("--check", "python check.py", candidates=8)
        assert (ran.code, ran.report["outcome"], ran.report["patch"]) == (1, "low-confidence", None)
        assert "it is right with confidence" in ran.reason
        assert ran.report["proposals"]


@pytest.mark.long
def test_unittest_as_a_check_on_a_python_without_pytest() -> None:
    test = "import unittest\nfrom adder import add\n\n\nclass T(unittest.TestCase):\n"
    test += "    def test_add(self):\n        self.assertEqual(add(2, 3), 5)\n"
    with home({"adder.py": ADDER["adder.py"], "test_it.py": test}) as h:
        venv.create(h.root / "env", with_pip=False)
        ran = h.fix("--python", str(h.root / "env"), "--check", "python -m unittest", "--assume", candidates=8)
        assert ran.code == 0, (ran.out, ran.err)
        assert ADDED.decode() in ran.report["patch"]
        assert ran.report["fail_to_pass"] == ["check:python -m unittest"]


@pytest.mark.long
def test_a_check_beside_pytest() -> None:
    files = {**ADDER, "check.py": "from adder import add\nassert add(1, 1) == 2, add(1, 1)\n"}
    with home(files) as h:
        ran = h.fix("--test", "test_adder.py", "--check", "python check.py", "--assume", candidates=8)
        assert ran.code == 0, (ran.out, ran.err)
        assert set(ran.report["fail_to_pass"]) >= {"check:python check.py", "test_adder.py::test_add"}


@pytest.mark.long
def test_a_wrong_policy_reaches_the_report(tmp_path: Path) -> None:
    with home() as h:
        policy, report = tmp_path / "policy.toml", tmp_path / "report.json"
        policy.write_text("colour = 1\n")
        repo = tmp_path / "repo"
        repo.mkdir()
        done = h.run("fix", "--repo", str(repo), "--policy", str(policy), "--report", str(report))
        assert done.code == 2
        found = json.loads(report.read_text())
        assert (found["outcome"], found["exit"]) == ("fault", 2)
        assert "colour: unknown key" in found["reason"]
