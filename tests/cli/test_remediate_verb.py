"""`localagent remediate` from a log to a patch that git takes: without running anything, and with tests in the jail."""

import json
import subprocess
from pathlib import Path

import pytest
from support.fix_builder import Home, home, tree_of
from support.git_builder import Repo
from support.sarif_builder import log, result, run

from localagent.cli.main import main
from localagent.record.audit.verify_chain import check_audit

BAD = "def f(a, b):\n    if len(a) == None:\n        return 1\n    return not a in b\n"
GOOD = "def f(a, b):\n    if len(a) is None:\n        return 1\n    return a not in b\n"
LOG = log(run(result("E711", line=2), result("E713", line=4), tool="ruff"))
ODD = (
    "class Odd:\n    def __eq__(self, other):\n        return True\n\n    __hash__ = None\n\n\n"
    "def missing(x):\n    if x == None:\n        return 1\n    return 0\n\n\n"
    "def without(x, y):\n    return not x in y\n\n\n"
    "def grown(x, y=[]):\n    y.append(x)\n    return y\n\n\n"
    "def never(x, z=[]):\n    return [x, *z]\n"
)
TESTS = (
    "from odd import Odd, grown, missing, without\n\n\n"
    "def test_missing():\n    assert missing(Odd()) == 1\n\n\n"
    "def test_without():\n    assert without(1, [2])\n\n\n"
    "def test_grown():\n    assert grown(1) == [1]\n"
)


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repo:
    repo = Repo(tmp_path / "repo")
    repo.stage("a.py", BAD)
    repo.commit()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "in.sarif").write_bytes(LOG)
    return repo


def remediate(repo: Repo, *arguments: str) -> int:
    return main(["remediate", "--sarif", str(repo.folder.parent / "in.sarif"), "--repo", str(repo.folder), *arguments])


def test_a_patch_that_git_applies(repo: Repo, tmp_path: Path) -> None:
    out, sarif = tmp_path / "p.diff", tmp_path / "out.sarif"
    before = tree_of(repo.folder)
    assert remediate(repo, "--out", str(out), "--sarif-out", str(sarif)) == 0
    assert tree_of(repo.folder) == before
    repo.git("apply", str(out))
    assert repo.read("a.py").decode() == GOOD
    found = json.loads(sarif.read_bytes())["runs"][0]["results"]
    assert [r["properties"]["localagent"]["state"] for r in found] == ["fixed", "fixed"]
    assert [len(r["fixes"]) for r in found] == [1, 1]


def test_what_is_applied_is_on_the_record(repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(repo.folder)
    audit = tmp_path / "state" / "localagent" / "audit"
    assert remediate(repo, "--apply") == 0
    assert main(["undo"]) == 0
    kinds = [e.kind.value for e in check_audit(audit).entries]
    assert kinds == ["task-started", "task-ended", "applying", "applied", "reported", "undoing", "undone"]
    (audit / "head.json").write_text("{}")
    assert remediate(repo, "--apply") == 1
    assert repo.read("a.py").decode() == BAD


def test_apply_and_undo(repo: Repo, capsys: pytest.CaptureFixture[str]) -> None:
    assert remediate(repo, "--apply", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["applied"], told["files"], repo.read("a.py").decode()) == (True, ["a.py"], GOOD)
    assert main(["undo", told["task"]]) == 0
    assert repo.read("a.py").decode() == BAD
    assert main(["apply", told["task"]]) == 0
    assert repo.read("a.py").decode() == GOOD
    assert main(["show", told["task"]]) == 0
    assert "2 fixed" in capsys.readouterr().out


def test_findings_that_remain_are_told(repo: Repo, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "in.sarif").write_bytes(log(run(result("E711", line=2), result("S102", line=1), tool="ruff")))
    assert remediate(repo) == 1
    told = capsys.readouterr()
    assert told.out.startswith("diff --git a/a.py b/a.py\n")
    assert "a.py:1: ruff S102: won't-fix: there is no repair for S102" in told.err


def test_nothing_to_do(repo: Repo, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "in.sarif").write_bytes(log(run(result("E711", line=2, suppressions=[{"kind": "external"}]))))
    assert remediate(repo) == 0
    assert capsys.readouterr().out == ""
    assert not (tmp_path / "state").exists()


def test_a_log_made_elsewhere(repo: Repo, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "in.sarif").write_bytes(log(run(result("E711", "file:///ci/x/a.py", 2))))
    assert remediate(repo) == 1
    assert "leaves the repository (--was-at names the folder" in capsys.readouterr().err
    assert remediate(repo, "--was-at", "/ci/x") == 0


def test_every_wrong_argument_at_once(repo: Repo, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = ["--out", "/nowhere/x", "--max-seconds", "0", "--was-at", "here"]
    assert main(["remediate", "--sarif", "/nowhere", "--repo", "/nowhere", *wrong]) == 2
    told = capsys.readouterr().err
    assert all(name in told for name in ("--sarif:", "--repo:", "--out:", "--max-seconds:", "--was-at:"))


def test_a_file_changed_while_landing(repo: Repo, tmp_path: Path) -> None:
    """The patch is for what was read: the link that took its place is not followed."""
    outside = tmp_path / "outside.py"
    outside.write_text(BAD)
    (repo.folder / "a.py").unlink()
    (repo.folder / "a.py").symlink_to(outside)
    assert remediate(repo, "--apply") == 1
    assert outside.read_text() == BAD


def sarif_of(place: Home, *extra: str) -> tuple[int, dict[str, dict[str, str]], str]:
    found = [("E711", 9), ("E713", 15), ("B006", 18), ("B006", 23)]
    (place.root / "in.sarif").write_bytes(log(run(*(result(rule, "odd.py", line) for rule, line in found))))
    ran = place.run("remediate", "--sarif", "in.sarif", "--repo", str(place.repo), "--json", *extra)
    told = json.loads(ran.out)
    return ran.code, {f"{f['rule']}:{f['line']}": f for f in told["findings"]}, told["patch"]


@pytest.mark.long
def test_tests_in_the_jail_decide() -> None:
    with home({"odd.py": ODD, "test_odd.py": TESTS}) as place:
        code, said, patch = sarif_of(place, "--test", "test_odd.py")
        assert (code, said["E711:9"]["state"]) == (1, "failed")
        assert "test_missing" in said["E711:9"]["why"]
        assert (said["E713:15"]["state"], said["E713:15"]["proof"]) == ("fixed", "tests")
        assert (said["B006:18"]["state"], said["B006:18"]["proof"]) == ("fixed", "tests")
        assert (said["B006:23"]["state"], "no passing test runs it" in said["B006:23"]["why"]) == ("skipped", True)
        done = subprocess.run(["git", "apply", "--check", "-"], cwd=place.repo, input=patch.encode(), check=False)
        assert done.returncode == 0
        assert not list(place.scratch.iterdir())


@pytest.mark.long
def test_tests_that_vouch_for_nothing() -> None:
    with home({"odd.py": ODD, "test_odd.py": "def test_x():\n    assert False\n"}) as place:
        (place.root / "in.sarif").write_bytes(log(run(result("E713", "odd.py", 15))))
        ran = place.run("remediate", "--sarif", "in.sarif", "--repo", str(place.repo), "--test", "test_odd.py")
        assert (ran.code, "none can vouch" in ran.err, ran.out) == (1, True, "")
