"""Who changed lines last: from objects alone, whatever the repository configures."""

import os
from pathlib import Path

import pytest
from support.git_builder import Repo

from localagent.domain.paths import RepoPath
from localagent.repo import git
from localagent.repo.git import Git
from localagent.repo.line_history import UNCOMMITTED, last_changes

PATH = RepoPath("a b.py")


def test_lines_are_followed_into_the_working_tree_and_nothing_configured_runs(tmp_path: Path) -> None:
    repo = Repo(tmp_path / "r")
    repo.stage(PATH, "one\ntwo\nthree\n")
    repo.commit("first")
    repo.stage(PATH, "one\n2\nthree\n")
    repo.commit("second")
    mark = tmp_path / "ran"
    repo.write(".gitattributes", "*.py filter=evil diff=evil\n")
    for key in ("filter.evil.clean", "filter.evil.smudge", "diff.evil.textconv", "diff.evil.command"):
        repo.git("config", key, f"touch {mark}; cat")
    now = b"new\none\n2\nthree\n"
    repo.write(PATH, now)
    found = last_changes(Git(repo.folder, {}), PATH, [1, 2, 3, 99], now)
    assert {n: change.summary for n, change in found.items()} == {1: "", 2: "first", 3: "second", 99: ""}
    assert found[1] == UNCOMMITTED
    assert found[3].author == "a"
    assert len(found[3].commit) == 40
    assert not mark.exists()


def test_files_that_blame_would_read_are_not_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A FIFO there holds git up until its time is over."""
    monkeypatch.setattr(git, "SECONDS", 10)
    repo = Repo(tmp_path / "r")
    repo.stage("sub/a.py", "one\n")
    repo.commit("first")
    for name in ("revs", "sub/revs", "map", "sub/map", ".mailmap", "sub/.mailmap"):
        os.mkfifo(repo.folder / name)
    repo.git("config", "blame.ignoreRevsFile", "revs")
    repo.git("config", "mailmap.file", "map")
    for folder, path in ((repo.folder, "sub/a.py"), (repo.folder / "sub", "a.py")):
        found = last_changes(Git(folder, {}), RepoPath(path), [1], b"one\n")
        assert [change.summary for change in found.values()] == ["first"]


def test_a_file_git_does_not_know_has_no_history(tmp_path: Path) -> None:
    repo = Repo(tmp_path / "r")
    repo.write("b.py", "x\n")
    assert last_changes(Git(repo.folder, {}), RepoPath("b.py"), [1], b"x\n") == {}
    assert last_changes(Git(tmp_path, {}), RepoPath("r/b.py"), [1], b"x\n") == {}
