"""The git hook: never over another's, never through a link, taken away exactly."""

import stat
from pathlib import Path

import pytest
from support.git_builder import ENVIRON, Repo

from localagent.errors import AnswerIsNo
from localagent.repo.git import Git
from localagent.repo.git_hook import CHAINED, install, uninstall

COMMAND = ("/bin/echo", "it's us")


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    repo = Repo(tmp_path / "repo")
    for sample in (repo.folder / ".git" / "hooks").glob("*"):
        sample.unlink()
    return repo


def hooks(repo: Repo) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in (repo.folder / ".git" / "hooks").iterdir()}


def put(repo: Repo, *, chain: bool = False) -> Path:
    return install(Git(repo.folder, {}), ENVIRON, COMMAND, chain=chain)


def take(repo: Repo) -> Path:
    return uninstall(Git(repo.folder, {}), ENVIRON)


def test_put_run_put_again_and_taken_away(repo: Repo) -> None:
    path = put(repo)
    assert stat.S_IMODE(path.stat().st_mode) == 0o755
    assert b"it's us" in repo.git("hook", "run", "pre-commit") + path.read_bytes().replace(b"'\\''", b"'")
    assert put(repo) == path
    take(repo)
    assert hooks(repo) == {}
    with pytest.raises(AnswerIsNo, match="there is no"):
        take(repo)


def test_another_hook_stands(repo: Repo) -> None:
    other = repo.folder / ".git" / "hooks" / "pre-commit"
    other.write_bytes(b"#!/bin/sh\nexit 0\n")
    with pytest.raises(AnswerIsNo, match="is not ours"):
        put(repo)
    with pytest.raises(AnswerIsNo, match="is not ours"):
        take(repo)
    assert hooks(repo) == {"pre-commit": b"#!/bin/sh\nexit 0\n"}


def test_chained_runs_first_and_decides(repo: Repo) -> None:
    other = repo.folder / ".git" / "hooks" / "pre-commit"
    other.write_bytes(b"#!/bin/sh\necho other >> ran\nexit 3\n")
    other.chmod(0o750)
    put(repo, chain=True)
    assert set(hooks(repo)) == {"pre-commit", CHAINED}
    repo.stage("a.py", "a = 1\n")
    repo.git("commit", "-m", "x", check=False)
    assert repo.read("ran") == b"other\n"
    assert b"a.py" in repo.git("status", "--short")
    put(repo, chain=True)
    take(repo)
    assert hooks(repo) == {"pre-commit": b"#!/bin/sh\necho other >> ran\nexit 3\n"}
    assert stat.S_IMODE(other.stat().st_mode) == 0o750


def test_links_are_not_followed(repo: Repo, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_bytes(put(repo).read_bytes())
    take(repo)
    link = repo.folder / ".git" / "hooks" / "pre-commit"
    link.symlink_to(outside)
    for verb in (put, take):
        with pytest.raises(AnswerIsNo, match="is not ours"):
            verb(repo)
    put(repo, chain=True)
    take(repo)
    assert link.readlink() == outside
    link.unlink()
    folder = repo.folder / ".git" / "hooks"
    folder.rmdir()
    (tmp_path / "shared").mkdir()
    folder.symlink_to(tmp_path / "shared")
    with pytest.raises(AnswerIsNo, match="no folder of its own"):
        put(repo)
    assert list((tmp_path / "shared").iterdir()) == []


def test_changed_by_hand_is_not_ours(repo: Repo) -> None:
    path = put(repo)
    path.write_bytes(path.read_bytes() + b"echo more\n")
    with pytest.raises(AnswerIsNo, match="is not ours, or was changed"):
        take(repo)


def test_shared_hooks_are_left_alone(repo: Repo) -> None:
    repo.git("config", "core.hooksPath", ".husky")
    with pytest.raises(AnswerIsNo, match=r"\.husky \(core.hooksPath\)"):
        put(repo)
    assert not (repo.folder / ".husky").exists()
    repo.git("config", "core.hooksPath", ".git/hooks")
    put(repo)
    assert "pre-commit" in hooks(repo)


def test_worktrees_share_the_repository_s(repo: Repo, tmp_path: Path) -> None:
    repo.commit()
    repo.git("worktree", "add", "-q", str(tmp_path / "other"))
    path = install(Git(tmp_path / "other", {}), ENVIRON, COMMAND)
    assert path == repo.folder / ".git" / "hooks" / "pre-commit"
