"""`hook fix` killed at every step that changes something: index and working file never stay apart."""

import subprocess
import sys
from pathlib import Path

import pytest
from support.git_builder import ENVIRON, Repo

from localagent.errors import AnswerIsNo
from localagent.precommit.fix_files import settled

ROOT = Path(__file__).resolve().parents[2]
BAD = b"a = not x in y\n\n\n\n\nb = 1\n"
FIXED = b"a = x not in y\n\n\n\n\nb = 1\n"
LATER = b"c = 2  # not staged\n"
# Every event of the interpreter that may come before a change: the process ends itself when the n-th one is met.
KILLED = """
import os, signal, sys
n, last, count = int(sys.argv[1]), sys.argv[2], 0
MAY_CHANGE = {"os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.chmod", "os.chown", "os.utime", "subprocess.Popen"}
def watch(event, args):
    global count
    if event in MAY_CHANGE or (event == "open" and isinstance(args[2], int) and args[2] & os.O_CREAT):
        count += 1
        if count == n or (last and event == "subprocess.Popen" and last in args[1]):
            os.kill(os.getpid(), signal.SIGKILL)
from localagent.cli.main import main
import localagent.cli.hook, localagent.repo.staged_index, localagent.repo.apply_patch
import localagent.lint.libcst_check, localagent.precommit.crash_recovery
sys.addaudithook(watch)
sys.exit(main(["hook", "fix"]))
"""


def killed(repo: Repo, n: int, last: str = "") -> int:
    env = {**ENVIRON, "PYTHONPATH": str(ROOT), "XDG_STATE_HOME": f"{repo.folder}.state", "PYTHONDONTWRITEBYTECODE": "1"}
    argv = [sys.executable, "-c", KILLED, str(n), last]
    return subprocess.run(argv, cwd=repo.folder, env=env, capture_output=True, check=False).returncode


def fresh(folder: Path) -> Repo:
    repo = Repo(folder)
    for name in ("a.py", "pkg/b.py"):
        repo.stage(name, BAD)
        repo.write(name, BAD + LATER)
    return repo


def stands(repo: Repo) -> set[tuple[bytes, bytes]]:
    return {(repo.staged(name), repo.read(name)) for name in ("a.py", "pkg/b.py")}


def settle(repo: Repo) -> str:
    return settled(repo.folder.resolve(), {}, Path(f"{repo.folder}.state") / "localagent" / "hook")


def check_killed_at(folder: Path, n: int) -> bool:
    """Whether the run was killed; both files of both places are as before or as after, once it was settled."""
    repo = fresh(folder)
    if killed(repo, n) != -9:
        assert stands(repo) == {(FIXED, FIXED + LATER)}
        return False
    (repo.folder / ".git" / "index.lock").unlink(missing_ok=True)
    settle(repo)
    assert stands(repo) in ({(BAD, BAD + LATER)}, {(FIXED, FIXED + LATER)}), n
    assert [p.name for p in repo.folder.rglob("*.tmp")] == []
    state = Path(f"{repo.folder}.state") / "localagent" / "hook"
    assert not state.exists() or list(state.iterdir()) == []
    assert killed(repo, 0) in (0, 1)
    assert stands(repo) == {(FIXED, FIXED + LATER)}
    return True


@pytest.mark.slow
def test_killed_at_every_step(tmp_path: Path) -> None:
    n = 1
    while check_killed_at(tmp_path / f"repo{n}", n):
        n += 1
    assert n > 20, "the steps were not met"


@pytest.fixture
def torn(tmp_path: Path) -> Repo:
    """Files written, the index not: killed when git is about to be started for the last time."""
    repo = fresh(tmp_path / "repo")
    assert killed(repo, 0, last="update-index") == -9
    assert stands(repo) == {(BAD, FIXED + LATER)}
    return repo


@pytest.mark.long
def test_files_are_taken_back_when_the_index_was_not_written(torn: Repo) -> None:
    assert "are taken back" in settle(torn)
    assert stands(torn) == {(BAD, BAD + LATER)}
    assert settle(torn) == ""


@pytest.mark.long
def test_the_next_run_makes_it_whole(torn: Repo) -> None:
    assert killed(torn, 0) == 1
    assert stands(torn) == {(FIXED, FIXED + LATER)}


@pytest.mark.long
def test_an_index_that_was_written_is_left(torn: Repo) -> None:
    """git went on after we were killed."""
    for name in ("a.py", "pkg/b.py"):
        blob = torn.git("hash-object", "-w", "--stdin", stdin=FIXED).decode().strip()
        torn.git("update-index", "--cacheinfo", f"100644,{blob},{name}")
    assert settle(torn) == ""
    assert stands(torn) == {(FIXED, FIXED + LATER)}


@pytest.mark.long
def test_what_a_person_did_since_stays(torn: Repo) -> None:
    torn.write("a.py", b"mine\n")
    assert "its working files stay" in settle(torn)
    assert (torn.read("a.py"), torn.read("pkg/b.py")) == (b"mine\n", FIXED + LATER)
    assert settle(torn) == ""


@pytest.mark.long
def test_what_a_person_staged_since_stays(torn: Repo) -> None:
    torn.git("add", "a.py")
    torn.write("pkg/b.py", FIXED)
    torn.git("add", "pkg/b.py")
    assert "nothing is taken back" in settle(torn)
    assert torn.read("a.py") == FIXED + LATER


@pytest.mark.long
def test_a_damaged_intent_stops_with_a_remedy(torn: Repo) -> None:
    state = Path(f"{torn.folder}.state") / "localagent" / "hook"
    (intent,) = state.rglob("intent.json")
    for text in ("[]", "{", '{"schema": "localagent/hook-intent/1", "blobs": {"../x": "y"}}', "{}"):
        intent.write_text(text)
        with pytest.raises(AnswerIsNo, match="is damaged"):
            settle(torn)
    assert stands(torn) == {(BAD, FIXED + LATER)}
