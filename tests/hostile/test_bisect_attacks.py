"""Repositories that attack whoever bisects them: nothing runs outside the jail, nothing of the user's changes."""

import json
from pathlib import Path

import pytest
from support.fix_builder import home, tree_of
from support.git_builder import Repo, armed

pytestmark = pytest.mark.long


def test_nothing_of_the_repository_runs_outside(tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    with home({}) as h:
        repo = Repo(h.repo)
        commits: list[str] = []
        for n in range(6):
            repo.stage("m.py", f"X = {1 if n < 3 else 2}  # {n}\n")
            repo.stage("test_m.py", "import pathlib\nfrom m import X\ntry:\n"
                       f"    pathlib.Path({str(mark)!r}).write_text('x')\n"
                       "except OSError:\n    pass\n\n\ndef test_x():\n    assert X == 1\n")  # fmt: skip
            repo.stage(".gitattributes", "* filter=evil diff=evil\n")
            repo.stage("big.bin", "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n")
            link = repo.folder / "outside"
            if not link.is_symlink():
                link.symlink_to("/etc/passwd")
            repo.git("add", "outside")
            head = commits[-1] if commits else "0" * 39 + "1"
            repo.git("update-index", "--add", "--cacheinfo", f"160000,{head},sub")
            repo.commit(str(n))
            commits.append(repo.git("rev-parse", "HEAD").decode().strip())
        armed(repo, mark)
        before = tree_of(h.repo)
        ran = h.run("bisect", "--repo", str(h.repo), "--test", "test_m.py", "--good", commits[0], "--json")
        told = json.loads(ran.out)
        assert (ran.code, told["first_bad"]["commit"]) == (0, commits[3]), (told, ran.err)
        warned = " ".join(told["warnings"])
        assert "a submodule" in warned
        assert "a link out of the tree" in warned
        assert "Git LFS pointers" in warned
        assert not mark.exists()
        assert tree_of(h.repo) == before


def test_a_tree_that_holds_itself_many_times_over_is_no_answer() -> None:
    """Ten folders in ten folders, ten deep: 10^10 files from a few objects."""
    with home({}) as h:
        repo = Repo(h.repo)
        repo.stage("test_m.py", "def test_x():\n    assert False\n")
        repo.commit()
        blob = repo.git("hash-object", "-w", "--stdin", stdin=b"x").decode().strip()
        tree = repo.git("mktree", stdin=b"".join(f"100644 blob {blob}\tf{n}\n".encode() for n in range(10)))
        for _ in range(9):
            name = tree.decode().strip()
            tree = repo.git("mktree", stdin=b"".join(f"040000 tree {name}\td{n}\n".encode() for n in range(10)))
        commit = repo.git("commit-tree", "-m", "bomb", "-p", "HEAD", tree.decode().strip()).decode().strip()
        ran = h.run("bisect", "--repo", str(h.repo), "--bad", commit, "--check", "false")
        assert ran.code == 1
        assert "longer than 32 MiB" in ran.err
