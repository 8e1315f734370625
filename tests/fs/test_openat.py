"""Files by descriptor: never through a link, made with their mode, replaced whole or not at all."""

import os
import stat
from pathlib import Path

import pytest

from localagent.fs import openat
from localagent.fs.openat import NotRegularError


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_new_file_has_exactly_its_mode_and_replaces_nothing(tmp_path: Path) -> None:
    openat.write_new(tmp_path / "a", b"one", mode=0o666)
    assert mode_of(tmp_path / "a") == 0o666
    (tmp_path / "link").symlink_to(tmp_path / "absent")
    for name in ("a", "link"):
        with pytest.raises(FileExistsError):
            openat.write_new(tmp_path / name, b"two", mode=0o600)
    assert (tmp_path / "a").read_bytes() == b"one"
    assert not (tmp_path / "absent").exists()


@pytest.mark.parametrize("below", [False, True])
def test_replacing_a_link_leaves_what_it_led_to(tmp_path: Path, below: bool) -> None:
    (tmp_path / "target").write_bytes(b"kept")
    (tmp_path / "link").symlink_to("target")
    with openat.root_directory(tmp_path) as root:
        name, directory = ("link", root) if below else (tmp_path / "link", None)
        openat.replace_file(name, b"new", directory, mode=0o640)
    assert (tmp_path / "target").read_bytes() == b"kept"
    assert not (tmp_path / "link").is_symlink()
    assert ((tmp_path / "link").read_bytes(), mode_of(tmp_path / "link")) == (b"new", 0o640)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "target"]


def test_a_replacement_that_fails_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").write_bytes(b"old")

    def full(_descriptor: int) -> None:
        raise OSError(28, "no space")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="no space"):
        openat.replace_file(tmp_path / "a", b"new", mode=None)
    assert (tmp_path / "a").read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_folders_are_made_on_the_way_but_links_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "root" / "link").symlink_to(tmp_path / "out")
    with openat.root_directory(tmp_path / "root") as root:
        with pytest.raises(FileNotFoundError), openat.parent_directory(root, ("a", "b", "c")):
            pass
        with openat.parent_directory(root, ("a", "b", "c"), make_mode=0o750) as parent:
            openat.write_new("c", b"x", parent, mode=0o600)
        with pytest.raises(NotADirectoryError), openat.parent_directory(root, ("link", "c"), make_mode=0o750):
            pass
    assert (tmp_path / "root" / "a" / "b" / "c").read_bytes() == b"x"
    assert mode_of(tmp_path / "root" / "a") == 0o750
    assert list((tmp_path / "out").iterdir()) == []


def test_only_regular_files_of_at_most_the_limit_are_read(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"12345")
    (tmp_path / "link").symlink_to("a")
    os.mkfifo(tmp_path / "pipe")
    assert openat.read_regular(tmp_path / "a", None, 5)[0] == b"12345"
    with pytest.raises(OSError, match="larger than 4 bytes"):
        openat.read_regular(tmp_path / "a", None, 4)
    for name in ("link", "pipe", "."):
        with pytest.raises(NotRegularError):
            openat.read_regular(tmp_path / name, None, 5)


def test_a_finished_file_is_moved_over_another_but_a_link_is_not(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"new")
    (tmp_path / "b").write_bytes(b"old")
    (tmp_path / "link").symlink_to("b")
    openat.move_file(tmp_path / "a", tmp_path / "b")
    assert (tmp_path / "b").read_bytes() == b"new"
    with pytest.raises(NotRegularError):
        openat.move_file(tmp_path / "link", tmp_path / "c")
