"""A commit's tree out of the object store: its bytes, never a checkout, and nothing of the repository has a say."""

from pathlib import Path

import pytest
from support.git_builder import Repo

from localagent.domain.paths import RepoPath
from localagent.errors import AnswerIsNo, UsageFault
from localagent.repo.commit_tree import commit_of, take_commit
from localagent.repo.git import Git


def commit(repo: Repo, name: str = "HEAD") -> str:
    return commit_of(Git(repo.folder, {}), name)


def taken(repo: Repo, tmp_path: Path, folder: str = ".") -> Path:
    take_commit(Git(repo.folder / folder, {}), commit(repo), tmp_path / "store")
    return tmp_path / "store"


def test_the_tree_is_that_of_the_commit(tmp_path: Path) -> None:
    repo = Repo(tmp_path / "r")
    repo.stage("pkg/a.py", b"one\r\n\0\xff")
    run = repo.write("run.sh", "x\n")
    run.chmod(0o755)
    repo.git("add", "run.sh")
    repo.commit()
    repo.write("pkg/a.py", "two\n")
    repo.write("untracked.py", "")
    store = take_commit(Git(repo.folder, {}), commit(repo), tmp_path / "store")
    assert (tmp_path / "store/pkg/a.py").read_bytes() == b"one\r\n\0\xff"
    assert (tmp_path / "store/run.sh").stat().st_mode & 0o777 == 0o755
    assert sorted(store.entries) == ["pkg/a.py", "run.sh"]
    assert repo.read("pkg/a.py") == b"two\n"


def test_filters_attributes_and_hooks_have_no_say(tmp_path: Path) -> None:
    repo = Repo(tmp_path / "r")
    repo.stage(".gitattributes", "*.py filter=evil text eol=crlf ident\n")
    repo.stage("a.py", "x = 1  # $Id$\n")
    repo.commit()
    marker = tmp_path / "ran"
    for key in ("filter.evil.smudge", "filter.evil.process", "core.fsmonitor", "core.sshCommand"):
        repo.git("config", key, f"touch {marker}")
    hook = repo.write(".git/hooks/post-checkout", f"#!/bin/sh\ntouch {marker}\n")
    hook.chmod(0o755)
    store = taken(repo, tmp_path)
    assert (store / "a.py").read_bytes() == b"x = 1  # $Id$\n"
    assert not marker.exists()


def test_a_part_of_the_tree(tmp_path: Path) -> None:
    repo = Repo(tmp_path / "r")
    repo.stage("sub/a.py", "a\n")
    repo.stage("b.py", "b\n")
    repo.commit()
    store = taken(repo, tmp_path, "sub")
    assert [p.name for p in store.iterdir()] == ["a.py"]


def test_links_out_submodules_and_odd_trees_are_left_out(tmp_path: Path) -> None:
    repo = Repo(tmp_path / "r")
    repo.stage("a.py", "a\n")
    (repo.folder / "in").symlink_to("a.py")
    (repo.folder / "out").symlink_to("../../etc/passwd")
    (repo.folder / "root").symlink_to("/etc/passwd")
    repo.git("add", "-A")
    repo.commit()
    made = take_commit(Git(repo.folder, {}), commit(repo), tmp_path / "store")
    assert sorted(made.entries) == ["a.py", "in"]
    assert made.left_out == {"out": "a link out of the tree", "root": "a link out of the tree"}


def test_a_tree_that_would_write_through_a_link_is_refused(tmp_path: Path) -> None:
    """git would not make such a tree; its plumbing does, from hand-made bytes."""
    repo = Repo(tmp_path / "r")
    outside = tmp_path / "outside"
    outside.mkdir()
    blob = repo.git("hash-object", "-w", "--stdin", stdin=b"evil").decode().strip()
    link = repo.git("hash-object", "-w", "--stdin", stdin=str(outside).encode()).decode().strip()
    inner = b"100644 f\0" + bytes.fromhex(blob)
    sub = repo.git("hash-object", "-w", "-t", "tree", "--literally", "--stdin", stdin=inner).decode().strip()
    top = b"120000 d\0" + bytes.fromhex(link) + b"40000 d\0" + bytes.fromhex(sub)
    tree = repo.git("hash-object", "-w", "-t", "tree", "--literally", "--stdin", stdin=top).decode().strip()
    made = repo.git("commit-tree", tree, "-m", "m").decode().strip()
    take_commit(Git(repo.folder, {}), made, tmp_path / "store")
    assert list(outside.iterdir()) == []


@pytest.mark.parametrize("name", ["nowhere", "--all", "HEAD:a.py", "", "HEAD~5"])
def test_what_names_no_commit_is_a_usage_fault(name: str, tmp_path: Path) -> None:
    repo = Repo(tmp_path / "r")
    repo.stage("a.py", "a\n")
    repo.commit()
    with pytest.raises(UsageFault, match="names no commit"):
        commit(repo, name)


def test_a_missing_object_is_said(tmp_path: Path) -> None:
    repo = Repo(tmp_path / "r")
    repo.stage("a.py", "a\n")
    repo.commit()
    blob = repo.git("rev-parse", "HEAD:a.py").decode().strip()
    (repo.folder / ".git/objects" / blob[:2] / blob[2:]).unlink()
    try:
        made = take_commit(Git(repo.folder, {}), commit(repo), tmp_path / "store")
    except AnswerIsNo:
        return
    assert RepoPath("a.py") in made.left_out
