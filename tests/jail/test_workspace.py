"""Workspaces: copies, replacements, removal whatever is in them."""

import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from localagent.domain.paths import RepoPath
from localagent.errors import CannotEnforce
from localagent.jail.api import Workspace, sweep
from localagent.jail.files.workspace import DiskFull, remove_tree


@pytest.fixture
def store(tmp_path: Path) -> Path:
    folder = tmp_path / "store"
    (folder / "pkg").mkdir(parents=True)
    (folder / "pkg" / "a.py").write_bytes(b"x = 1\r\n")
    (folder / "run.sh").write_bytes(b"#!/bin/sh\n")
    (folder / "run.sh").chmod(0o755)
    (folder / "away").symlink_to("/etc")
    (folder / "with space\nand line").write_bytes(b"")
    (folder / os.fsdecode(b"latin\xe9.py")).write_bytes(b"\xe9")
    return folder


@pytest.fixture
def scratch(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "scratch"
    folder.mkdir()
    yield folder
    assert list(folder.iterdir()) == []


def test_copy_is_whole_and_changes_are_new_files(store: Path, scratch: Path) -> None:
    changes = {RepoPath("pkg/a.py"): b"x = 2\n", RepoPath("new/deep/b.py"): b"", RepoPath("run.sh"): b"#!/bin/sh\n:\n"}
    with Workspace.create(scratch, store, changes=changes) as made:
        assert (made.tree / "pkg/a.py").read_bytes() == b"x = 2\n"
        assert (made.tree / "new/deep/b.py").exists()
        assert os.access(made.tree / "run.sh", os.X_OK)
        assert (made.tree / "away").readlink() == Path("/etc")
        assert (made.tree / "with space\nand line").exists()
        assert (made.tree / os.fsdecode(b"latin\xe9.py")).read_bytes() == b"\xe9"
    assert (store / "pkg/a.py").read_bytes() == b"x = 1\r\n"


def test_a_linked_copy_shares_files_until_they_are_written(store: Path, scratch: Path) -> None:
    with Workspace.create(scratch, store, changes={RepoPath("run.sh"): b"other"}, link=True) as made:
        assert (made.tree / "pkg/a.py").samefile(store / "pkg/a.py")
        assert not (made.tree / "run.sh").samefile(store / "run.sh")
        made.write(RepoPath("pkg/a.py"), b"changed")
        assert (made.tree / "pkg/a.py").read_bytes() == b"changed"
    assert (store / "pkg/a.py").read_bytes() == b"x = 1\r\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_files_belong_to_the_uid_and_nothing_outside_does(store: Path, scratch: Path) -> None:
    with Workspace.create(scratch, store, changes={RepoPath("n/b.py"): b""}, uid=54321) as made:
        for path in (made.tree, made.tree / "pkg", made.tree / "pkg/a.py", made.tree / "n", made.tree / "n/b.py"):
            assert path.stat().st_uid == 54321
        assert (made.tree / "away").lstat().st_uid == 54321
        assert Path("/etc").stat().st_uid == 0


def test_nobody_else_can_look_in(store: Path, scratch: Path) -> None:
    with Workspace.create(scratch, store, changes={}) as made:
        assert made.folder.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("planted", ["link", "file", "fifo"])
def test_a_parent_that_is_no_real_folder_is_refused(store: Path, scratch: Path, tmp_path: Path, planted: str) -> None:
    with Workspace.create(scratch, store, changes={}) as made:
        place = made.tree / "planted"
        if planted == "link":
            place.symlink_to(tmp_path)
        elif planted == "file":
            place.write_text("")
        else:
            os.mkfifo(place)
        with pytest.raises(CannotEnforce, match="not a real folder"):
            made.write(RepoPath("planted/x.py"), b"")
    assert not (tmp_path / "x.py").exists()


def test_a_link_or_fifo_in_a_files_place_is_replaced(store: Path, scratch: Path, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("whole")
    with Workspace.create(scratch, store, changes={}) as made:
        (made.tree / "l.py").symlink_to(victim)
        os.mkfifo(made.tree / "f.py")
        for name in ("l.py", "f.py"):
            made.write(RepoPath(name), b"mine")
            assert (made.tree / name).read_bytes() == b"mine"
            assert not (made.tree / name).is_symlink()
    assert victim.read_text() == "whole"


def test_a_folder_in_a_files_place_is_refused(store: Path, scratch: Path) -> None:
    with Workspace.create(scratch, store, changes={}) as made, pytest.raises(CannotEnforce, match="is a folder"):
        made.write(RepoPath("pkg"), b"")


def test_make_folder(store: Path, scratch: Path) -> None:
    with Workspace.create(scratch, store, changes={}) as made:
        made.make_folder(RepoPath(".venv"))
        made.make_folder(RepoPath(".venv"))
        assert (made.tree / ".venv").is_dir()


def test_a_failed_creation_leaves_nothing(store: Path, scratch: Path) -> None:
    with pytest.raises(CannotEnforce):
        Workspace.create(scratch, store, changes={RepoPath("run.sh/below.py"): b""})


def test_an_unwritable_scratch_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(CannotEnforce) as caught:
        Workspace(tmp_path / "missing")
    assert "TMPDIR" in caught.value.remedy


@pytest.mark.long
def test_removal_minds_no_depth_no_mode_no_link(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "kept").write_text("kept")
    top = tmp_path / "top"
    top.mkdir()
    folder = os.open(top, os.O_RDONLY)
    for _ in range(3000):
        os.mkdir("d", dir_fd=folder)
        below = os.open("d", os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = below
    os.symlink(victim, "link", dir_fd=folder)
    os.close(folder)
    (top / "locked").mkdir()
    (top / "locked" / "file").write_text("")
    (top / "locked").chmod(0)
    (top / "toplink").symlink_to(victim)
    os.mkfifo(top / "fifo")
    remove_tree(top)
    assert not top.exists()
    assert (victim / "kept").exists()
    remove_tree(top)  # nothing there is no fault


def test_removal_does_not_enter_a_link(tmp_path: Path) -> None:
    (tmp_path / "victim").mkdir()
    (tmp_path / "link").symlink_to("victim")
    remove_tree(tmp_path / "link")
    assert (tmp_path / "victim").is_dir()


def test_sweep_removes_what_a_dead_process_left(store: Path, scratch: Path) -> None:
    code = "import os, sys; from pathlib import Path; from localagent.jail.api import Workspace; "
    code += (
        "w = Workspace(Path(sys.argv[1])); (w.tree / 'x').write_text(''); print(w.folder.name, flush=True); os._exit(9)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(scratch)], capture_output=True, text=True, check=False)
    left = done.stdout.strip()
    with Workspace(scratch) as mine:
        (scratch / "localagent-ws-not-ours").mkdir()
        assert sweep(scratch) == (left,)
        assert mine.tree.is_dir()
        (scratch / "localagent-ws-not-ours").rmdir()
    assert sweep(scratch / "missing") == ()


def test_no_room_is_told_with_a_remedy_and_leaves_the_old_bytes(store: Path, scratch: Path) -> None:
    """A limit on the size of files stands for a full disk; the signal that comes with it is ignored."""
    kept = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    with Workspace.create(scratch, store, changes={}) as made:
        try:
            resource.setrlimit(resource.RLIMIT_FSIZE, (1000, kept[1]))
            for write in (
                lambda: made.write(RepoPath("pkg/a.py"), b"x" * 2000),
                lambda: Workspace.create(scratch, store, changes={RepoPath("new.py"): b"x" * 2000}),
            ):
                with pytest.raises(DiskFull, match=f"cannot write a workspace below {scratch}: File too large") as told:
                    write()
                assert "TMPDIR" in told.value.remedy
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, kept)
            signal.signal(signal.SIGXFSZ, handler)
        assert (made.tree / "pkg/a.py").read_bytes() == b"x = 1\r\n"


def test_rewriting_keeps_to_its_own_inode_and_never_to_one_with_another_name(tmp_path: Path) -> None:
    store = tmp_path / "store"
    store.mkdir()
    (store / "a.py").write_bytes(b"a long original\n")
    path = RepoPath("a.py")
    with Workspace.create(tmp_path, store, changes={}, link=True) as workspace:
        file = workspace.tree / "a.py"
        workspace.rewrite(path, b"first, which is longer than the second\n")
        made = file.stat().st_ino
        workspace.rewrite(path, b"second\n")
        assert (file.read_bytes(), file.stat().st_ino) == (b"second\n", made)
        os.link(file, tmp_path / "kept")  # somebody holds on to it
        workspace.rewrite(path, b"third\n")
        assert (file.read_bytes(), (tmp_path / "kept").read_bytes()) == (b"third\n", b"second\n")
        file.unlink()
        file.symlink_to(store / "a.py")
        workspace.rewrite(path, b"fourth\n")
        assert (file.is_symlink(), file.read_bytes()) == (False, b"fourth\n")
        file.unlink()
        os.link(store / "a.py", file)  # another inode in its place
        workspace.rewrite(path, b"fifth\n")
        assert file.read_bytes() == b"fifth\n"
    assert (store / "a.py").read_bytes() == b"a long original\n"
