"""A snapshot as the index has it."""

from pathlib import Path

import pytest
from support.git_builder import Repo

from localagent.domain.paths import RepoPath
from localagent.errors import AnswerIsNo
from localagent.repo.git import Git
from localagent.repo.index_overlay import overlaid
from localagent.repo.snapshot import take_snapshot
from localagent.repo.source_map import SourceMap
from localagent.repo.staged_index import unstaged


def test_files_are_as_staged_and_the_tree_is_untouched(tmp_path: Path) -> None:
    repo = Repo(tmp_path / "repo")
    for name in ("a.py", "gone.py", "pkg/deep/b.py", "same.py"):
        repo.stage(name, f"x = '{name}'\n")
    repo.write("a.py", "working\n")
    (repo.folder / "gone.py").unlink()
    for path in (repo.folder / "pkg/deep/b.py", repo.folder / "pkg/deep", repo.folder / "pkg"):
        path.unlink() if path.is_file() else path.rmdir()
    repo.write("new.py", "y = 1\n")
    files = unstaged(Git(repo.folder, {}))
    assert sorted(files) == ["a.py", "gone.py", "pkg/deep/b.py"]
    before = take_snapshot(repo.folder, tmp_path / "store")
    after = overlaid(before, files)
    sources = SourceMap(after)
    assert {str(p): sources[p] for p in sources} == {
        "a.py": b"x = 'a.py'\n", "gone.py": b"x = 'gone.py'\n", "new.py": b"y = 1\n",
        "pkg/deep/b.py": b"x = 'pkg/deep/b.py'\n", "same.py": b"x = 'same.py'\n",
    }  # fmt: skip
    assert before.digest != after.digest
    assert repo.read("a.py") == b"working\n"


def test_files_go(tmp_path: Path) -> None:
    (tmp_path / "repo").mkdir()
    (tmp_path / "repo" / "a.py").write_text("x = 1\n")
    after = overlaid(
        take_snapshot(tmp_path / "repo", tmp_path / "store"), {RepoPath("a.py"): None, RepoPath("b/c.py"): None}
    )
    assert (dict(after.entries), list((tmp_path / "store").iterdir())) == ({}, [])
    assert (tmp_path / "repo" / "a.py").exists()


def test_links_are_replaced_and_never_written_through(tmp_path: Path) -> None:
    repo, outside = tmp_path / "repo", tmp_path / "outside.py"
    repo.mkdir()
    outside.write_text("mine\n")
    (repo / "target.py").write_text("inner\n")
    (repo / "a.py").symlink_to("target.py")
    (repo / "folder").mkdir()
    (repo / "link").symlink_to("folder")
    snapshot = take_snapshot(repo, tmp_path / "store")
    after = overlaid(snapshot, {RepoPath("a.py"): b"new\n"})
    assert SourceMap(after)[RepoPath("a.py")] == b"new\n"
    assert (tmp_path / "store" / "target.py").read_text() == "inner\n"
    with pytest.raises(AnswerIsNo, match="cannot be put as it is staged"):
        overlaid(snapshot, {RepoPath("link/x.py"): b"new\n"})
    with pytest.raises(AnswerIsNo, match="cannot be put as it is staged"):
        overlaid(snapshot, {RepoPath("folder"): b"new\n"})
