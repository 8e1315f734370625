"""Who changed lines last: from objects alone, whatever the repository configures."""

from pathlib import Path

from support.git_builder import Repo

from localagent.domain.paths import RepoPath
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


def test_a_file_git_does_not_know_has_no_history(tmp_path: Path) -> None:
    repo = Repo(tmp_path / "r")
    repo.write("b.py", "x\n")
    assert last_changes(Git(repo.folder, {}), RepoPath("b.py"), [1], b"x\n") == {}
    assert last_changes(Git(tmp_path, {}), RepoPath("r/b.py"), [1], b"x\n") == {}
