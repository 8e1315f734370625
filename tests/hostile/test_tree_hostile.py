"""Trees made to trap whoever reads or writes them."""

import os
import socket
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from localagent.domain.edit import FileChange, Patch
from localagent.domain.paths import RepoPath
from localagent.domain.task import FileKind
from localagent.errors import AnswerIsNo
from localagent.fs import openat
from localagent.repo import apply_patch as land_module
from localagent.repo import snapshot as snapshot_module
from localagent.repo.apply_patch import TreeDiffers, land
from localagent.repo.apply_record import FileRecord
from localagent.repo.snapshot import TreeChanged, TreeTooLarge, take_snapshot


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    root = tmp_path / "repo"
    root.mkdir()
    (root / "a.py").write_bytes(b"a = 1\n")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/secret.py").write_bytes(b"a = 1\n")
    return root


def patch_of(name: str) -> Patch:
    return Patch(changes=(FileChange(path=RepoPath(name), before=b"a = 1\n", after=b"a = 2\n"),))


def test_what_is_no_file_is_left_out_and_said(repo: Path, tmp_path: Path) -> None:
    os.mkfifo(repo / "fifo.py")
    with socket.socket(socket.AF_UNIX) as unix:
        unix.bind(str(repo / "socket.py"))
    (repo / "zero.py").symlink_to("/dev/zero")
    (repo / "out").symlink_to(tmp_path / "outside")
    (repo / "up.py").symlink_to("../outside/secret.py")
    (repo / "two").symlink_to("out")
    (repo / "proc").symlink_to("/proc/self/root")
    snap = take_snapshot(repo, tmp_path / "store")
    assert set(snap.entries) == {"a.py"}
    assert snap.left_out == {
        "fifo.py": "a FIFO",
        "socket.py": "a socket",
        **dict.fromkeys(("zero.py", "out", "up.py", "two", "proc"), "a link out of the tree"),
    }


def test_links_that_stay_inside_are_kept_as_links(repo: Path, tmp_path: Path) -> None:
    (repo / "d").mkdir()
    links = {"l.py": "a.py", "d/up.py": "../a.py", "abs.py": str(repo / "a.py"), "loop": "loop", "gone": "nothing"}
    for name, target in links.items():
        (repo / name).symlink_to(target)
    snap = take_snapshot(repo, tmp_path / "store")
    kept = {p: x.target for p, x in snap.entries.items() if x.kind is FileKind.SYMLINK}
    assert kept == links
    assert all(str((Path(snap.store) / n).readlink()) == t for n, t in links.items())


def test_sparse_giant_is_left_out(repo: Path, tmp_path: Path) -> None:
    with (repo / "giant.bin").open("wb") as f:
        f.truncate(1 << 40)
    assert take_snapshot(repo, tmp_path / "store").left_out == {"giant.bin": "larger than 64 MiB"}


def test_too_much_is_refused_and_the_copy_removed(repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot_module, "MAX_TOTAL_BYTES", 10)
    (repo / "b.py").write_bytes(b"12345")
    with pytest.raises(TreeTooLarge):
        take_snapshot(repo, tmp_path / "store")
    assert not (tmp_path / "store").exists()
    monkeypatch.setattr(snapshot_module, "MAX_ENTRIES", 1)
    with pytest.raises(TreeTooLarge, match="files"):
        take_snapshot(repo, tmp_path / "store")


def test_very_deep_directories(repo: Path, tmp_path: Path) -> None:
    (repo / ("d/" * 400)).mkdir(parents=True)
    snap = take_snapshot(repo, tmp_path / "store")
    assert snap.left_out == {"/".join("d" * 100): "more than 100 directories deep"}
    assert "a.py" in snap.entries


@contextmanager
def without_privileges() -> Iterator[None]:
    """Root gives its rights up for a while."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_unreadable_is_left_out() -> None:
    with tempfile.TemporaryDirectory(dir="/var/tmp") as place:  # not below folders that only root may enter
        folder = Path(place)
        folder.chmod(0o777)
        tree = folder / "tree"
        tree.mkdir()
        (tree / "a.py").write_bytes(b"x = 1\n")
        (tree / "b.py").write_bytes(b"")
        (tree / "b.py").chmod(0)
        (tree / "d").mkdir(mode=0)
        with without_privileges():
            found = take_snapshot(tree, folder / "store").left_out
        assert set(found) == {"b.py", "d"}
        assert found["b.py"].startswith("cannot be read")
        assert found["d"].startswith("cannot be entered")
        (tree / "d").chmod(0o700)


def test_a_file_that_never_stands_still_is_refused(repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, count = openat.write_all, 0

    def write_all(descriptor: int, data: bytes) -> None:
        nonlocal count
        count += 1
        real(descriptor, data)
        with (repo / "a.py").open("ab") as f:
            f.write(b"# more\n")

    monkeypatch.setattr(openat, "write_all", write_all)
    with pytest.raises(TreeChanged, match=r"a\.py"):
        take_snapshot(repo, tmp_path / "store")
    assert count == 3
    assert not (tmp_path / "store").exists()


def test_a_file_that_changes_once_is_read_again(repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = openat.write_all

    def write_all(descriptor: int, data: bytes) -> None:
        monkeypatch.setattr(openat, "write_all", real)
        real(descriptor, data)
        time.sleep(0.02)
        (repo / "a.py").write_bytes(b"a = 7\n")

    monkeypatch.setattr(openat, "write_all", write_all)
    take_snapshot(repo, tmp_path / "store")
    assert (tmp_path / "store/a.py").read_bytes() == b"a = 7\n"


def test_a_file_swapped_for_a_link_or_fifo_before_opening(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = openat.open_regular

    def swapped(name: str, directory: int) -> int:
        if name == "a.py":
            (repo / "a.py").unlink()
            (repo / "a.py").symlink_to("../outside/secret.py")
        return real(name, directory)

    monkeypatch.setattr(openat, "open_regular", swapped)
    snap = take_snapshot(repo, tmp_path / "store")
    assert snap.left_out["a.py"].startswith("cannot be read")
    assert not snap.entries


def test_gitignore_as_fifo_link_binary_or_slow_pattern(repo: Path, tmp_path: Path) -> None:
    for name in ("fifo", "link", "binary", "slow"):
        (repo / name).mkdir()
        (repo / name / ("a" * 200 + ".py")).write_bytes(b"")
    os.mkfifo(repo / "fifo/.gitignore")
    (repo / "link/.gitignore").symlink_to("/dev/zero")
    (repo / "binary/.gitignore").write_bytes(bytes(range(256)) * 20 + b"\n!\n\\\n")
    (repo / "slow/.gitignore").write_bytes(b"*a*a*a*a*a*a*a*a*a*a*b\n" + b"**/" * 40 + b"x\n" + b"a" * 10_000 + b"\n")
    snap = take_snapshot(repo, tmp_path / "store")  # a matcher that tries every way would need years
    assert len([p for p in snap.entries if p.endswith("a.py") and len(p) > 100]) == 4


def test_names_that_drive_terminals_or_split_lines(repo: Path, tmp_path: Path) -> None:
    names = [b"new\nline.py", b"\x1b[2J.py", b"\xff\xfe.py", b" ", b"-rf", b"a\\b.py", b'"q".py']
    for name in names:
        (repo / os.fsdecode(name)).write_bytes(name)
    snap = take_snapshot(repo, tmp_path / "store")
    assert {os.fsencode(p) for p in snap.entries} == {*names, b"a.py"}


def test_landing_never_goes_through_a_link(repo: Path, tmp_path: Path) -> None:
    (repo / "d").symlink_to("../outside")
    with pytest.raises(TreeDiffers, match=r"secret\.py"):
        land(patch_of("d/secret.py"), repo, tmp_path / "undo")
    (repo / "l.py").symlink_to("../outside/secret.py")
    with pytest.raises(TreeDiffers, match=r"l\.py"):
        land(patch_of("l.py"), repo, tmp_path / "undo")
    assert (tmp_path / "outside/secret.py").read_bytes() == b"a = 1\n"


def test_landing_on_a_fifo_does_not_wait(repo: Path, tmp_path: Path) -> None:
    os.mkfifo(repo / "f.py")
    with pytest.raises(TreeDiffers, match="not a regular file"):
        land(patch_of("f.py"), repo, tmp_path / "undo")


def test_a_directory_swapped_for_a_link_while_landing(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (repo / "d").mkdir()
    (repo / "d/secret.py").write_bytes(b"a = 1\n")
    real = land_module._stage

    def swap(root: int, record: FileRecord, data: bytes, *, restore_time: bool) -> None:
        real(root, record, data, restore_time=restore_time)
        (repo / "d").rename(repo / "e")
        (repo / "d").symlink_to("../outside")
        monkeypatch.setattr(land_module, "_stage", real)

    monkeypatch.setattr(land_module, "_stage", swap)
    with pytest.raises(AnswerIsNo):
        land(patch_of("d/secret.py"), repo, tmp_path / "undo")
    assert sorted(p.name for p in (tmp_path / "outside").iterdir()) == ["secret.py"]
    assert (tmp_path / "outside/secret.py").read_bytes() == b"a = 1\n"


def test_a_file_changed_between_comparison_and_rename_is_kept(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = land_module._stage

    def typed_meanwhile(root: int, record: FileRecord, data: bytes, *, restore_time: bool) -> None:
        real(root, record, data, restore_time=restore_time)
        (repo / "a.py").write_bytes(b"typed by a person\n")

    monkeypatch.setattr(land_module, "_stage", typed_meanwhile)
    with pytest.raises(TreeDiffers, match=r"a\.py"):
        land(patch_of("a.py"), repo, tmp_path / "undo")
    assert {p.name: p.read_bytes() for p in repo.iterdir()} == {"a.py": b"typed by a person\n"}
