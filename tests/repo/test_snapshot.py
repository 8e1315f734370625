"""A snapshot is the tree's bytes, modes, times and links, and says what it left out and why."""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from localagent.domain.task import FileKind
from localagent.errors import AnswerIsNo
from localagent.repo import snapshot as snapshot_module
from localagent.repo.snapshot import take_snapshot

OLD = 1_500_000_000_123_456_789


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    root = tmp_path / "repo"
    for name, data in {
        "pkg/mod.py": b"x = 1\r\n",
        "pkg/data.bin": bytes(range(256)),
        "tests/test_mod.py": b"\xef\xbb\xbfpass\n",
        "run": b"#!/bin/sh\n",
        "out/made.py": b"made = 1\n",
        "out/keep.py": b"keep = 1\n",
        ".gitignore": b"out/*\n!keep.py\n*.log\n# comment\n\n",
        "pkg/.gitignore": b"/*.tmp\n!a.log\n",
        "pkg/a.log": b"",
        "a.log": b"",
        "pkg/b.tmp": b"",
        ".git/config": b"[core]\n\tfsmonitor = touch /tmp/pwned\n",
        ".git/info/exclude": b"excluded.txt\n",
        "excluded.txt": b"",
        "pkg/__pycache__/mod.pyc": b"",
        "env/pyvenv.cfg": b"",
        "env/lib/site.py": b"",
        "node_modules/x/y.py": b"",
    }.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        os.utime(path, ns=(OLD, OLD))
    (root / "run").chmod(0o755)
    (root / "empty").mkdir()
    return root


def test_copies_bytes_modes_and_times(repo: Path, tmp_path: Path) -> None:
    snap = take_snapshot(repo, tmp_path / "store")
    for path, entry in snap.entries.items():
        copy, here = Path(snap.store) / path, repo / path
        assert copy.read_bytes() == here.read_bytes()
        assert copy.stat().st_mtime_ns == OLD
        assert entry.mode == here.stat().st_mode & 0o7777
        assert entry.size == here.stat().st_size
    assert (Path(snap.store) / "run").stat().st_mode & 0o777 == 0o755
    assert (Path(snap.store) / "empty").is_dir()
    assert "pkg/data.bin" in snap.entries


def test_leaves_out_with_reasons(repo: Path, tmp_path: Path) -> None:
    snap = take_snapshot(repo, tmp_path / "store", exclude=[repo / "run"])
    assert snap.left_out == {
        ".git": "version control",
        "env": "a virtual environment",
        "node_modules": "a cache, made anew when needed",
        "pkg/__pycache__": "a cache, made anew when needed",
        "run": "excluded",
    }
    assert not (Path(snap.store) / ".git").exists()
    assert not (Path(snap.store) / "env").exists()


def test_git_as_a_file_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "repo").mkdir()
    (tmp_path / "repo" / ".git").write_text("gitdir: /elsewhere\n")
    assert take_snapshot(tmp_path / "repo", tmp_path / "store").left_out == {".git": "version control"}


def test_ignored_as_git_sees_it(repo: Path, tmp_path: Path) -> None:
    snap = take_snapshot(repo, tmp_path / "store")
    ignored = {p for p, x in snap.entries.items() if x.ignored}
    assert ignored == {"a.log", "pkg/b.tmp", "out/made.py", "excluded.txt"}
    less = take_snapshot(repo, tmp_path / "less", keep_ignored=False)
    assert set(snap.entries) - set(less.entries) == ignored
    assert less.left_out["a.log"] == "ignored"


def test_digest_speaks_of_paths_modes_and_contents(repo: Path, tmp_path: Path) -> None:
    first = take_snapshot(repo, tmp_path / "1").digest
    os.utime(repo / "run")
    assert take_snapshot(repo, tmp_path / "2").digest == first
    (repo / "run").chmod(0o644)
    second = take_snapshot(repo, tmp_path / "3").digest
    (repo / "run").rename(repo / "run2")
    third = take_snapshot(repo, tmp_path / "4").digest
    assert len({first, second, third}) == 3


def test_the_tree_itself_is_not_touched(repo: Path, tmp_path: Path) -> None:
    def look() -> dict[str, tuple[int, int, int]]:
        return {str(p): (p.lstat().st_mtime_ns, p.lstat().st_ctime_ns, p.lstat().st_mode) for p in repo.rglob("*")}

    before = look()
    take_snapshot(repo, tmp_path / "store")
    assert look() == before


def test_store_inside_the_repository_does_not_hold_itself(repo: Path) -> None:
    snap = take_snapshot(repo, repo / "store")
    assert not any(p.startswith("store/") for p in snap.entries)
    assert snap.left_out["store"] == "excluded"


def test_no_directory(tmp_path: Path) -> None:
    with pytest.raises(AnswerIsNo, match="cannot enter"):
        take_snapshot(tmp_path / "no", tmp_path / "store")
    assert not (tmp_path / "store").exists()


_NAME = st.text(
    alphabet=st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1, max_size=12
).filter(lambda s: s not in (".", "..") and s not in snapshot_module.NOT_COPIED and not s.startswith("pyvenv"))


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(files=st.dictionaries(_NAME, st.binary(max_size=50), max_size=6))
def test_law_any_names_and_bytes_come_through(files: dict[str, bytes], tmp_path: Path) -> None:
    root = tmp_path / os.urandom(6).hex()
    (root / "d").mkdir(parents=True)
    for name, data in files.items():
        (root / "d" / name).write_bytes(data)
    snap = take_snapshot(root, tmp_path / os.urandom(6).hex())
    found = {p: (Path(snap.store) / p).read_bytes() for p, x in snap.entries.items() if x.kind is FileKind.REGULAR}
    assert found == {f"d/{n}": b for n, b in files.items()}
