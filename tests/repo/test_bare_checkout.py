"""A revision's tree out of an object store: what stands in the folder, and what hostile trees come to."""

import os
import subprocess
from pathlib import Path

import pytest
from support.git_builder import ENVIRON, Repo

from localagent.errors import AnswerIsNo
from localagent.repo.bare_checkout import materialise, open_mirror, resolve_commit
from localagent.repo.snapshot import TreeTooLarge, take_snapshot


def mirror_of(repo: Repo, place: Path) -> Path:
    subprocess.run(["git", "clone", "-q", "--mirror", repo.folder, place], env=ENVIRON, check=True)
    return place


def tree(repo: Repo, *entries: tuple[str, bytes, str]) -> str:
    """A tree object with any names, written without git's own checks."""
    data = b"".join(mode.encode() + b" " + name + b"\0" + bytes.fromhex(sha) for mode, name, sha in entries)
    out = repo.git("hash-object", "-w", "-t", "tree", "--literally", "--stdin", stdin=data)
    return out.decode().strip()


def blob(repo: Repo, data: bytes) -> str:
    return repo.git("hash-object", "-w", "--stdin", stdin=data).decode().strip()


def commit(repo: Repo, root: str) -> str:
    made = repo.git("commit-tree", "-m", "m", root).decode().strip()
    repo.git("update-ref", "refs/heads/main", made)
    return made


def test_a_mirror_gives_the_tree_of_a_checkout(tmp_path: Path) -> None:
    repo = Repo(tmp_path / "repo")
    repo.stage("a/b.py", "x = 1\r\n")
    repo.stage("run.sh", "#!/bin/sh\n").chmod(0o755)
    repo.stage("naïve name.txt", b"\xff\0")
    (repo.folder / "link").symlink_to("a/b.py")
    repo.git("add", "-A")
    repo.git("update-index", "--chmod=+x", "run.sh")
    repo.commit()
    git = open_mirror(mirror_of(repo, tmp_path / "mirror.git"))
    assert materialise(git, resolve_commit(git, "main"), tmp_path / "out") == {}
    there = take_snapshot(tmp_path / "out", tmp_path / "store-1")
    here = take_snapshot(repo.folder, tmp_path / "store-2")
    assert dict(there.entries) == dict(here.entries)
    assert there.digest == here.digest


def test_a_revision_that_is_not_there(tmp_path: Path) -> None:
    repo = Repo(tmp_path / "repo")
    repo.commit()
    git = open_mirror(repo.folder)
    with pytest.raises(AnswerIsNo, match="no commit 'gone'"):
        resolve_commit(git, "gone")
    with pytest.raises(AnswerIsNo, match="no commit '--help'"):
        resolve_commit(git, "--help")


def test_no_name_leads_out(tmp_path: Path) -> None:
    """A link and a folder of the same name, `..`, `.git` and names with slashes: nothing is written elsewhere."""
    repo = Repo(tmp_path / "repo")
    bad = blob(repo, b"bad")
    inner = tree(repo, ("100644", b"passwd", bad))
    to = blob(repo, os.fsencode(tmp_path / "outside"))
    (tmp_path / "outside").mkdir()
    root = tree(
        repo,
        ("120000", b"a", to),
        ("40000", b"a", inner),
        ("40000", b"..", inner),
        ("40000", b".GIT", inner),
        ("100644", b"../../up", bad),
        ("100644", b"good.py", bad),
        ("160000", b"sub", bad),
    )
    git = open_mirror(repo.folder)
    left_out = materialise(git, commit(repo, root), tmp_path / "out")
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["a", "good.py"]
    assert (tmp_path / "out" / "a").is_symlink()
    assert list((tmp_path / "outside").iterdir()) == []
    assert left_out == {
        "a": "a name that stands twice",
        "..": "not a name that can stand in a folder",
        ".GIT": "version control",
        "../../up": "not a name that can stand in a folder",
        "sub": "a submodule",
    }
    store = take_snapshot(tmp_path / "out", tmp_path / "store")
    assert store.left_out == {"a": "a link out of the tree"}


@pytest.mark.long
def test_a_tree_that_holds_itself_many_times(tmp_path: Path) -> None:
    repo = Repo(tmp_path / "repo")
    at = tree(repo, ("100644", b"x", blob(repo, b"x")))
    for _ in range(7):
        at = tree(repo, *(("40000", b"%02d" % n, at) for n in range(10)))
    with pytest.raises(TreeTooLarge, match="more than 300,000 entries"):
        materialise(open_mirror(repo.folder), commit(repo, at), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_nothing_of_the_repository_starts(tmp_path: Path) -> None:
    repo = Repo(tmp_path / "repo")
    repo.stage(".gitattributes", "*.py filter=x\n")
    repo.stage("a.py", "x = 1\n")
    repo.commit()
    ran = tmp_path / "ran"
    for key in ("filter.x.smudge", "core.fsmonitor", "core.pager", "uploadpack.packObjectsHook"):
        repo.git("config", key, f"touch {ran}")
    git = open_mirror(repo.folder)
    materialise(git, resolve_commit(git, "main"), tmp_path / "out")
    assert (tmp_path / "out" / "a.py").read_bytes() == b"x = 1\n"
    assert not ran.exists()


def test_an_object_that_is_missing(tmp_path: Path) -> None:
    repo = Repo(tmp_path / "repo")
    repo.stage("a.py", "x = 1\n")
    repo.stage("b.py", "x = 2\n")
    repo.commit()
    name = repo.git("rev-parse", "HEAD:a.py").decode().strip()
    (repo.folder / ".git" / "objects" / name[:2] / name[2:]).unlink()
    git = open_mirror(repo.folder)
    left_out = materialise(git, resolve_commit(git, "HEAD"), tmp_path / "out")
    assert left_out == {"a.py": "missing, or larger than 64 MiB"}
    assert [p.name for p in (tmp_path / "out").iterdir()] == ["b.py"]
