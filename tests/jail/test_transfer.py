"""Files over the jail's border: only regular ones, bounded, never through a link, never over what is there."""

import os
from pathlib import Path

import pytest

from localagent.errors import AnswerIsNo, UsageFault
from localagent.jail.api import Workspace
from localagent.jail.files.transfer import TransferBounds, marks_of, put_in, read_regular, take_out

BOUNDS = TransferBounds()


def test_only_new_and_altered_regular_files_come_out(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    (tree / "sub").mkdir(parents=True)
    for name in ("same", "altered", "sub/rewritten"):
        (tree / name).write_bytes(b"1")
    before = marks_of(tree, BOUNDS)
    (tree / "altered").write_bytes(b"2")
    os.utime(tree / "altered", ns=(0, 0))
    (tree / "sub/rewritten").write_bytes(b"1")
    (tree / "sub/new").write_bytes(b"new")
    (tree / "link").symlink_to("/etc/passwd")
    (tree / "folder-link").symlink_to("/etc")
    os.mkfifo(tree / "fifo")
    files, left_out = take_out(tree, before, tmp_path / "out", BOUNDS)
    assert [(f.name, f.bytes, f.copied) for f in files] == [
        ("altered", 1, True),
        ("sub/new", 3, True),
        ("sub/rewritten", 1, True),
    ]
    assert {one.name: one.why for one in left_out} == {
        "link": "a link",
        "folder-link": "a link",
        "fifo": "not a regular file",
    }
    assert sorted(p.relative_to(tmp_path / "out").as_posix() for p in (tmp_path / "out").rglob("*")) == [
        "altered", "sub", "sub/new", "sub/rewritten",
    ]  # fmt: skip


def test_nothing_is_overwritten_unless_forced_and_never_through_a_link(tmp_path: Path) -> None:
    tree, out, victim = tmp_path / "tree", tmp_path / "out", tmp_path / "victim"
    tree.mkdir()
    out.mkdir()
    victim.write_bytes(b"precious")
    (tree / "a").write_bytes(b"new")
    (out / "a").symlink_to(victim)
    files, left_out = take_out(tree, {}, out, BOUNDS)
    assert (files, [one.why for one in left_out]) == ((), [f"exists in {out}; --force replaces it"])
    take_out(tree, {}, out, BOUNDS, force=True)
    assert victim.read_bytes() == b"precious"
    assert not (out / "a").is_symlink()
    assert (out / "a").read_bytes() == b"new"
    assert [p.name for p in out.iterdir()] == ["a"]


def test_a_link_in_place_of_a_folder_of_out_is_not_followed(tmp_path: Path) -> None:
    tree, out, elsewhere = tmp_path / "tree", tmp_path / "out", tmp_path / "elsewhere"
    (tree / "sub").mkdir(parents=True)
    (tree / "sub/f").write_bytes(b"x")
    out.mkdir()
    elsewhere.mkdir()
    (out / "sub").symlink_to(elsewhere)
    files, left_out = take_out(tree, {}, out, BOUNDS, force=True)
    assert files == ()
    assert [one.name for one in left_out] == ["sub/f"]
    assert list(elsewhere.iterdir()) == []


def test_bounds_hold_and_say_so(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    (tree / "a/b/c").mkdir(parents=True)
    (tree / "a/b/c/deep").write_bytes(b"x")
    (tree / "big").write_bytes(b"x" * 100)
    (tree / "one").write_bytes(b"1")
    (tree / "two").write_bytes(b"2")
    files, left_out = take_out(tree, {}, None, TransferBounds(files=1, depth=2, total_bytes=50))
    assert [f.name for f in files] == ["one"]
    assert {one.name: one.why for one in left_out} == {
        "a/b/c": "more than 2 folders deep",
        "big": "100 bytes: more than 50 bytes in all",
        "two": "more than 1 files",
    }
    assert "was not looked at" in take_out(tree, {}, None, TransferBounds(entries=2))[1][-1].why


def test_a_sparse_file_of_ten_gigabytes_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    with (tmp_path / "tree/huge").open("wb") as file:
        file.truncate(10 << 30)
    files, left_out = take_out(tmp_path / "tree", {}, tmp_path / "out", BOUNDS)
    assert files == ()
    assert left_out[0].why.startswith("10,737,418,240 bytes: more than")


def test_names_come_out_escaped(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "-rf \x1b[2J\u202e%").write_bytes(b"x")
    (tree / os.fsdecode(b"\xff")).write_bytes(b"y")
    (tree / ("\x01" * 100)).write_bytes(b"z")
    files, left_out = take_out(tree, {}, tmp_path / "out", BOUNDS)
    assert sorted(f.name for f in files) == ["%2Drf %1B[2J%E2%80%AE%25", "%FF"]
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == sorted(f.name for f in files)
    assert [one.why for one in left_out] == ["its escaped name is too long"]


def test_out_that_is_no_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "out").write_bytes(b"")
    with pytest.raises(AnswerIsNo, match="Not a directory"):
        take_out(tmp_path / "tree", {}, tmp_path / "out", BOUNDS)


def test_a_tree_closed_by_what_ran_inside_is_said(tmp_path: Path) -> None:
    files, left_out = take_out(tmp_path / "gone", {}, None, BOUNDS)
    assert files == ()
    assert left_out[0].name == "."


def test_inputs_are_copied_and_links_are_not(tmp_path: Path) -> None:
    source = tmp_path / "in"
    (source / "sub").mkdir(parents=True)
    (source / "sub/data").write_bytes(b"d")
    (source / "secret").symlink_to("/etc/shadow")
    os.mkfifo(source / "fifo")
    (tmp_path / "scratch").mkdir()
    with Workspace(tmp_path / "scratch") as workspace:
        left_out = put_in(workspace, source, BOUNDS)
        assert (workspace.tree / "in/sub/data").read_bytes() == b"d"
        assert not os.path.lexists(workspace.tree / "in/secret")
    assert sorted(one.name for one in left_out) == ["fifo", "secret"]


@pytest.mark.parametrize("kind", ["link", "fifo", "missing", "many", "large"])
def test_inputs_that_are_refused(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "in"
    if kind == "link":
        path.symlink_to("/etc/passwd")
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "many":
        path.mkdir()
        for number in range(4):
            (path / str(number)).touch()
    elif kind == "large":
        path.mkdir()
        (path / "f").write_bytes(b"x" * 11)
    (tmp_path / "scratch").mkdir()
    with Workspace(tmp_path / "scratch") as workspace, pytest.raises(UsageFault):
        put_in(workspace, path, TransferBounds(files=3, total_bytes=10))


def test_a_program_file_is_never_a_link_or_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "link").symlink_to("/etc/passwd")
    for name in ("fifo", "link", "missing"):
        with pytest.raises(UsageFault):
            read_regular(tmp_path / name, 100)
    (tmp_path / "large").write_bytes(b"x" * 101)
    with pytest.raises(UsageFault, match="larger than 100"):
        read_regular(tmp_path / "large", 100)
