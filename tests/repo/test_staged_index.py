"""The index as it is, and written: partial staging, merges, links, attributes, worktrees, submodules, odd names."""

import os
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.git_builder import Repo

from localagent.domain.paths import RepoPath
from localagent.errors import AnswerIsNo
from localagent.repo.git import Git
from localagent.repo.staged_index import (
    StagedFile,
    attribute_conflicts,
    carried_over,
    keep_blobs,
    staged_files,
    temporary_index,
    work_tree,
    write_staged,
)


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    return Repo(tmp_path / "repo")


def put(git: Git, file: StagedFile, data: bytes) -> None:
    with TemporaryDirectory() as folder:
        write_staged(git, [file], keep_blobs(git, [(file, data)], Path(folder)))


def git_of(repo: Repo, **environ: str) -> Git:
    return Git(repo.folder, environ)


def names(repo: Repo) -> dict[str, bytes | None]:
    return {f.path: f.data for f in staged_files(git_of(repo))}


def test_first_commit_and_later_ones(repo: Repo) -> None:
    repo.stage("a.py", "a = 1\n")
    repo.stage("notes.txt", "x\n")
    assert names(repo) == {"a.py": b"a = 1\n"}
    repo.commit()
    assert names(repo) == {}
    repo.stage("a.py", "a = 2\n")
    repo.write("a.py", "a = 3\n")
    repo.write("untracked.py", "a = 3\n")
    assert names(repo) == {"a.py": b"a = 2\n"}


def test_renamed_deleted_intended_links_and_modes(repo: Repo) -> None:
    repo.stage("old.py", "a = 1\n" * 9)
    repo.stage("gone.py", "b = 1\n")
    repo.commit()
    repo.git("mv", "old.py", "new.py")
    repo.git("rm", "-q", "gone.py")
    (repo.folder / "link.py").symlink_to("new.py")
    repo.git("add", "link.py")
    repo.write("later.py", "c = 1\n")
    repo.git("add", "-N", "later.py")
    repo.stage("run.py", "d = 1\n").chmod(0o755)
    repo.git("add", "run.py")
    found = {f.path: f.mode for f in staged_files(git_of(repo))}
    assert found == {"new.py": "100644", "run.py": "100755"}


def test_names_of_any_bytes(repo: Repo) -> None:
    odd = os.fsdecode(b"a\n\xff \"'\t.py")
    (repo.folder / odd).write_bytes(b"x = 1\n")
    repo.git("add", "-A")
    (found,) = staged_files(git_of(repo))
    assert found.path == odd
    put(git_of(repo), found, b"x = 2\n")
    assert names(repo) == {odd: b"x = 2\n"}


def test_merge_leaves_what_either_side_had(repo: Repo) -> None:
    repo.stage("both.py", "a = 1\n")
    repo.commit()
    repo.git("checkout", "-q", "-b", "side")
    repo.stage("theirs.py", "t = 1\n")
    repo.stage("both.py", "a = 2\n")
    repo.commit()
    repo.git("checkout", "-q", "main")
    repo.stage("both.py", "a = 3\n")
    repo.commit()
    repo.git("merge", "side", check=False)
    (unmerged,) = [f for f in staged_files(git_of(repo)) if f.data is None]
    assert unmerged.path == "both.py"
    assert "not merged yet" in unmerged.reason
    repo.stage("both.py", "a = 4\n")
    assert names(repo) == {"both.py": b"a = 4\n"}


def test_rebase_stopped_at_a_conflict(repo: Repo) -> None:
    repo.stage("a.py", "a = 1\n")
    repo.commit()
    repo.git("checkout", "-q", "-b", "side")
    repo.stage("a.py", "a = 2\n")
    repo.commit()
    repo.git("checkout", "-q", "main")
    repo.stage("a.py", "a = 3\n")
    repo.commit()
    repo.git("rebase", "main", "side", check=False)
    assert [f.reason for f in staged_files(git_of(repo))] == ["not merged yet: resolve it and add it"]
    repo.stage("a.py", "a = 5\n")
    assert names(repo) == {"a.py": b"a = 5\n"}


def test_worktree_submodule_and_subfolder(repo: Repo, tmp_path: Path) -> None:
    repo.stage("pkg/a.py", "a = 1\n")
    repo.commit()
    repo.git("worktree", "add", "-q", str(tmp_path / "other"))
    other = Repo(tmp_path / "other", init=False)
    other.stage("pkg/b.py", "b = 1\n")
    git = Git(other.folder / "pkg", {})
    assert work_tree(git) == other.folder
    assert {f.path for f in staged_files(git.at(work_tree(git)))} == {"pkg/b.py"}
    assert names(repo) == {}
    repo.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(repo.folder), "sub")
    assert names(repo) == {}
    inner = Repo(repo.folder / "sub", init=False)
    inner.stage("c.py", "c = 1\n")
    assert names(inner) == {"c.py": b"c = 1\n"}


def test_attributes_that_change_bytes(repo: Repo) -> None:
    repo.write(".gitattributes", "f.py filter=x\ni.py ident\ne.py working-tree-encoding=UTF-16\nt.py text eol=crlf\n")
    paths = [
        StagedFile(path=p, mode="", blob="", data=b"").path for p in map(RepoPath, ("f.py", "i.py", "e.py", "t.py"))
    ]
    told = attribute_conflicts(git_of(repo), paths)
    assert set(told) == {"f.py", "i.py", "e.py"}
    assert told[paths[0]] == "its attribute filter=x changes its bytes on the way to the index"


def test_written_with_its_mode_and_nothing_else(repo: Repo) -> None:
    repo.stage("a.py", "a = 1\n").chmod(0o755)
    repo.stage("b.py", "b = 1\n")
    repo.git("add", "-A")
    files = {f.path: f for f in staged_files(git_of(repo))}
    put(git_of(repo), files[RepoPath("a.py")], b"a = 2\r\n")
    assert repo.staged("a.py") == b"a = 2\r\n"
    assert repo.git("ls-files", "-s", "a.py").startswith(b"100755")
    assert repo.staged("b.py") == b"b = 1\n"
    assert repo.read("a.py") == b"a = 1\n"


def test_staged_anew_meanwhile(repo: Repo) -> None:
    repo.stage("a.py", "a = 1\n")
    (file,) = staged_files(git_of(repo))
    repo.stage("a.py", "a = 2\n")
    with pytest.raises(AnswerIsNo, match=r"staged anew meanwhile: 'a\.py'"):
        put(git_of(repo), file, b"a = 3\n")
    assert repo.staged("a.py") == b"a = 2\n"


def test_other_index(repo: Repo, tmp_path: Path) -> None:
    repo.stage("a.py", "a = 1\n")
    index = repo.folder / ".git" / "index.lock"
    index.write_bytes((repo.folder / ".git" / "index").read_bytes())
    git = git_of(repo, GIT_INDEX_FILE=".git/index.lock")
    (file,) = staged_files(git)
    put(git, file, b"a = 2\n")
    assert [f.data for f in staged_files(git)] == [b"a = 2\n"]
    assert repo.staged("a.py") == b"a = 1\n"
    assert not temporary_index(git)
    assert temporary_index(git_of(repo, GIT_INDEX_FILE=str(tmp_path / "next-index-12.lock")))


def test_large_files_are_not_read(repo: Repo) -> None:
    repo.stage("a.py", b"#" * 2_000_001)
    (file,) = staged_files(git_of(repo))
    assert (file.data, "larger than 2,000,000 bytes" in file.reason) == (None, True)


def test_no_repository(tmp_path: Path) -> None:
    with pytest.raises(AnswerIsNo, match="no git working tree"):
        work_tree(Git(tmp_path, {}))


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        (b"1\n2\n3\n4\n5\n", b"1\n2\nX\n4\n5\n"),
        (b"0\n0\n1\n2\n3\n4\n5\n6\n", b"0\n0\n1\n2\nX\n4\n5\n6\n"),
        (b"1\n2\nY\n4\n5\n", None),
        (b"1\nY\n3\n4\n5\n", None),
        (b"1\n2\n3\nY\n5\n", None),
        (b"1\n2\nX\n4\n5\n", b"1\n2\nX\n4\n5\n"),
        (b"1\r\n2\r\n3\r\n4\r\n5\r\n", None),
        (b"", None),
    ],
)
def test_carried_over(other: bytes, expected: bytes | None) -> None:
    assert carried_over(b"1\n2\n3\n4\n5\n", b"1\n2\nX\n4\n5\n", other) == expected


lines = st.lists(st.sampled_from([b"a\n", b"b\n", b"c\n", b"d\n"]), max_size=8).map(b"".join)


@given(lines, lines, lines)
def test_carrying_over_changes_nothing_else(before: bytes, after: bytes, other: bytes) -> None:
    """Where it answers, it is longer or shorter by exactly what the change is."""
    carried = carried_over(before, after, other)
    if carried is not None and other not in (before, after) and before != after:
        assert len(carried) - len(other) == len(after) - len(before)
