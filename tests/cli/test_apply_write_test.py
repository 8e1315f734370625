"""`apply --choose N --write-test FILE`: what is chosen is held by a test, and `undo` takes both back."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.fix_builder import home, tree_of

from localagent.cli.main import main
from localagent.domain.behaviour import NamedFunction
from localagent.domain.edit import Candidate, Edit, FileChange, Patch, Splice
from localagent.domain.paths import RepoPath
from localagent.domain.task import Ambiguity, Task, TaskResult, Verdict
from localagent.record.store import TaskRecord, TaskStore

BEFORE, AFTER = b"def f(x):\n    return x\n", b"def f(x):\n    return x * 2\n"
TEST = "def test_f():\n    from a import f\n\n    assert f(3) == 6\n"
PLACE = NamedFunction(path=RepoPath("a.py"), module="a", qualname="f")
KNOWN = Ambiguity(call="f(3)", answers={1: "6", 2: "9"}, function=PLACE, exact=frozenset({1, 2}))


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    root = tmp_path / "repo"
    (root / "tests").mkdir(parents=True)
    (root / "a.py").write_bytes(BEFORE)
    return root


def keep(tmp_path: Path, repo: Path, ambiguity: Ambiguity | None = KNOWN) -> TaskRecord:
    record = TaskStore(tmp_path / "state" / "localagent").create(Task(id="", repo=str(repo)))
    patch = Patch(changes=(FileChange(path=RepoPath("a.py"), before=BEFORE, after=AFTER),))
    record.save_proposal(1, patch)
    splice = Splice(start=22, end=22, text=b" * 2")
    edit = Edit(path=RepoPath("a.py"), splices=(splice,), operator="o", line=2, end_line=2, prior=0)
    made = Candidate(number=1, patch=patch, edits=(edit,), cost=0.0)
    result = TaskResult(verdict=Verdict.AMBIGUOUS, reason="two", exit=1, proposals=(made,), ambiguity=ambiguity)
    record.save_result(result, proposed=[b""])
    return record


def apply(record: TaskRecord, file: str, *more: str) -> int:
    return main(["apply", record.id, "--choose", "1", "--write-test", file, *more])


@pytest.mark.parametrize("file", ["tests/test_a.py", "test_a.py", "./tests/a_test.py"])
def test_a_new_file_holds_the_test_and_goes_again(
    file: str, repo: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record, stood = keep(tmp_path, repo), tree_of(repo)
    assert apply(record, file) == 0
    assert (repo / file).read_text() == TEST
    assert (repo / "a.py").read_bytes() == AFTER
    said = capsys.readouterr().out
    assert said.startswith(f"changed a.py\nwrote {file.removeprefix('./')}:\n  def test_f():\n")
    assert "\n      assert f(3) == 6\n" in said
    assert main(["undo", record.id]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"removed {file.removeprefix('./')}"
    assert {p: (m, d) for p, (m, _, d) in tree_of(repo).items()} == {p: (m, d) for p, (m, _, d) in stood.items()}


@pytest.mark.parametrize(
    ("stood", "end"),
    [
        (b"", TEST),
        (b"x = 1\n", "\n\n" + TEST),
        (b"# no end", "\n\n\n" + TEST),
        (b"\xef\xbb\xbfx = 1\r\n", ("\n\n" + TEST).replace("\n", "\r\n")),
        (b"def test_f():\n    pass\n", "\n\n" + TEST.replace("test_f", "test_f_2")),
    ],
)
def test_a_file_that_is_there_gets_it_at_its_end_and_loses_it_again(
    stood: bytes, end: str, repo: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (repo / "tests.py").write_bytes(stood)
    record = keep(tmp_path, repo)
    assert apply(record, "tests.py", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["files"], told["test"]) == (["a.py"], "tests.py")
    assert (repo / "tests.py").read_bytes() == stood + end.encode()
    assert main(["undo", record.id]) == 0
    assert (repo / "tests.py").read_bytes() == stood


def refused(record: TaskRecord, repo: Path, file: str, *more: str) -> None:
    stood = tree_of(repo)
    assert apply(record, file, *more) == 2
    assert tree_of(repo) == stood


@pytest.mark.parametrize(
    ("file", "why"),
    [
        ("", "not a path inside"),
        (".", "not a path inside"),
        ("../test_a.py", "not a path inside"),
        ("/tmp/test_a.py", "not a path inside"),
        ("tests/../../test_a.py", "not a path inside"),
        ("none/test_a.py", "No such file"),
        ("a.py", "the proposal itself changes a.py"),
        ("tests", "not a regular file"),
        ("link.py", "not a regular file"),
        ("loose.py", "not a regular file"),
        ("out/test_a.py", "Not a directory"),
        ("fifo.py", "not a regular file"),
        ("a.py/test_a.py", "Not a directory"),
        ("tests/cases.py", "does not look for tests"),
        ("notes.txt", "does not look for tests"),
        ("latin.py", "not UTF-8"),
        ("broken.py", "nothing can be added"),
        ("conftest.py", "does not look for tests"),
        ("node_modules/test_a.py", "denied by the policy"),
        ("wallet_test.py", "asks a person"),
        ("prod.py", "does not look for tests"),
        ("tests/help.py", "does not look for tests"),
        (".git/test_a.py", "is hidden"),
        (".github/test_a.py", "is hidden"),
        ("tests/.test_a_test.py", "is hidden"),
        ("tests/TEST_a.py", "does not look for tests"),
        ("tests/test_\uff41.py", "not what it seems"),
        ("tests/test_old.py", "are alike but for case"),
    ],
)
def test_a_file_that_is_none_for_a_test_is_refused_and_nothing_is_written(
    file: str, why: str, repo: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/t.py").write_text("x = 1\n")
    (repo / "link.py").symlink_to("../outside/t.py")
    (repo / "loose.py").symlink_to("nowhere.py")
    (repo / "out").symlink_to("../outside")
    os.mkfifo(repo / "fifo.py")
    for name, data in {
        "notes.txt": b"",
        "latin.py": b"# \xe4\n",
        "broken.py": b"f(\n",
        "conftest.py": b"",
        "wallet_test.py": b"",
        "prod.py": b"x = 1\n",
        "tests/help.py": b"x = 1\n",
        "tests/test_OLD.py": b"",
    }.items():
        (repo / name).write_bytes(data)
    for name in ("node_modules", ".git", ".github"):
        (repo / name).mkdir()
    refused(keep(tmp_path, repo), repo, file)
    said = capsys.readouterr().err
    assert why in said
    assert (tmp_path / "outside/t.py").read_text() == "x = 1\n"


@pytest.mark.parametrize(
    ("stood", "why"),
    [
        ("import pytest\npytestmark = pytest.mark.skip\n", "line 2 marks every test in it (skip)"),
        (
            "import pytest\nif 1:\n    pytestmark = [pytest.mark.slow, pytest.mark.xfail(strict=False)]\n",
            "line 2 marks",
        ),
        ("__test__ = False\n", "line 1 sets __test__"),
        ("import pytest\npytest.skip('later', allow_module_level=True)\n", "line 2 skips the module"),
        ("from unittest import SkipTest\nraise SkipTest\n", "line 2 skips the module"),
    ],
)
def test_a_file_whose_tests_are_not_asked_is_refused(
    stood: str, why: str, repo: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (repo / "test_a.py").write_text(stood)
    refused(keep(tmp_path, repo), repo, "test_a.py")
    assert f"a test in test_a.py would not be asked: {why}" in capsys.readouterr().err


def test_a_mark_that_only_names_and_a_skip_within_a_test_hold_nothing_back(repo: Path, tmp_path: Path) -> None:
    marked = "import pytest\npytestmark = pytest.mark.usefixtures('f')\ndef test_b():\n    pytest.skip('b')\n"
    (repo / "test_a.py").write_text(marked)
    assert apply(keep(tmp_path, repo), "test_a.py") == 0


@pytest.mark.parametrize("file", ["tests/test_a.py", "prod.py", ".git/test_a.py"])
def test_a_policy_that_denies_tests_says_so_whatever_the_file(
    file: str, repo: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (repo / "prod.py").write_bytes(b"x = 1\n")
    (repo / ".git").mkdir()
    refused(keep(tmp_path, repo), repo, file, "--policy", "strict")
    said = capsys.readouterr().err
    assert "the patches.tests of the policy 'strict' denies tests" in said
    assert "--policy names another policy" in said


def test_it_needs_a_choice(repo: Path, tmp_path: Path) -> None:
    assert main(["apply", keep(tmp_path, repo).id, "--write-test", "test_a.py"]) == 2


@pytest.mark.parametrize(
    ("ambiguity", "why"),
    [
        (None, "no input is known"),
        (Ambiguity(call="f(3)", answers={1: "6", 2: "9"}), "no name leads to the function"),
        (Ambiguity(call="f(3)", answers={1: "6", 2: "9"}, function=PLACE), "not told whole"),
        (Ambiguity(call="g(3)", answers={1: "6"}, exact=frozenset({1}), function=NamedFunction(
            path=RepoPath("a.py"), module="a", qualname="g")), "a.py has no function g"),
        (Ambiguity(call="f(3)", answers={1: "6"}, exact=frozenset({1}), function=NamedFunction(
            path=RepoPath("requests/a.py"), module="requests.a", qualname="f")), "cannot be read"),
    ],
)  # fmt: skip
def test_what_cannot_be_a_test_is_refused_and_the_call_is_named(
    ambiguity: Ambiguity | None, why: str, repo: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    refused(keep(tmp_path, repo, ambiguity), repo, "test_a.py")
    said = capsys.readouterr().err
    assert why in said
    assert "write the test by hand" in said or "name a regular file" in said


def test_a_record_of_an_earlier_version_says_so(repo: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record = keep(tmp_path, repo)
    place = record.dir / "report.json"
    report: dict[str, Any] = json.loads(place.read_bytes())
    report["ambiguity"] = {name: report["ambiguity"][name] for name in ("call", "answers")}
    place.write_text(json.dumps(report))
    refused(record, repo, "test_a.py")
    said = capsys.readouterr().err
    assert "earlier version" in said
    assert "by hand, for f(3)" in said


PROGRAM = "def f(a, b):\n    return a % b\n"
WEAK = "from pkg.m import f\n\n\ndef test_f():\n    assert f(2, 2) == 4\n"
LAYOUT = {"src/pkg/__init__.py": "", "src/pkg/m.py": PROGRAM, "tests/test_m.py": WEAK}
CONFIG = {"pyproject.toml": '[tool.pytest.ini_options]\npythonpath = ["src"]\n'}


@pytest.mark.long
def test_a_real_choice_is_held_by_its_test_and_undone_with_it() -> None:
    with home({**LAYOUT, **CONFIG}) as h:
        stood = tree_of(h.repo)

        def passes() -> bool:
            argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/test_chosen.py"]
            done = subprocess.run(argv, cwd=h.repo, env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}, check=False)
            assert done.returncode in (0, 1)
            return done.returncode == 0

        ran = h.fix()
        assert (ran.code, ran.report["outcome"]) == (1, "ambiguous"), ran
        told = ran.report["ambiguity"]
        assert told["function"] == {"path": "src/pkg/m.py", "module": "pkg.m", "qualname": "f"}
        number = told["exact"][0]
        task, program = ran.report["task"], h.repo / "src/pkg/m.py"
        done = h.run("apply", task, "--choose", str(number), "--write-test", "tests/test_chosen.py")
        assert done.code == 0, done
        assert told["call"] in (h.repo / "tests/test_chosen.py").read_text()
        assert passes()
        chosen = program.read_text()
        for text in (PROGRAM, PROGRAM.replace("a % b", "None")):
            program.write_text(text)
            assert not passes()
        program.write_text(chosen)
        assert h.run("audit", "verify").code == 0
        assert h.run("undo", task).code == 0
        assert {p: (m, d) for p, (m, _, d) in tree_of(h.repo).items()} == {p: (m, d) for p, (m, _, d) in stood.items()}


@pytest.mark.long
def test_what_undo_would_take_away_is_held_against_the_record() -> None:
    with home({**LAYOUT, **CONFIG}) as h:
        ran = h.fix()
        task = ran.report["task"]
        number = str(ran.report["ambiguity"]["exact"][0])
        assert h.run("apply", task, "--choose", number, "--write-test", "tests/test_chosen.py").code == 0
        place = h.tasks / task / "undo" / "landing.json"
        kept = place.read_text()
        (h.repo / "tests/test_mine.py").write_bytes((h.repo / "tests/test_chosen.py").read_bytes())
        place.write_text(kept.replace("tests/test_chosen.py", "tests/test_mine.py"))
        assert "was altered" in h.run("undo", task).err
        assert (h.repo / "tests/test_mine.py").exists()
        place.write_text(kept)
        assert h.run("undo", task).code == 0
        assert not (h.repo / "tests/test_chosen.py").exists()
