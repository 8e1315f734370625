import errno
import json
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from localagent.domain.task import Event
from localagent.fs.atomic_files import CannotRecord, RecordDamaged
from localagent.record import journal as journal_module
from localagent.record.journal import BEFORE_FIRST, Journal, JournalStatus, read_journal, verify_journal


def write(path: Path, count: int) -> None:
    with Journal(path) as journal:
        for n in range(count):
            journal.emit(Event(kind="denied", at_seconds=n / 10, data={"n": n, "path": "caf\udce9"}))


def test_what_was_emitted_is_read_back_in_order(tmp_path: Path) -> None:
    write(tmp_path / "j", 5)
    assert [e["data"] for e in read_journal(tmp_path / "j")] == [{"n": n, "path": "caf\udce9"} for n in range(5)]
    check = verify_journal(tmp_path / "j")
    assert (check.standing, check.lines) == (JournalStatus.WHOLE, 5)


def test_an_empty_journal_is_whole(tmp_path: Path) -> None:
    write(tmp_path / "j", 0)
    assert verify_journal(tmp_path / "j") == journal_module.JournalCheck(
        standing=JournalStatus.WHOLE, lines=0, tip=BEFORE_FIRST
    )


@pytest.mark.parametrize(
    "change",
    [
        lambda lines: [*lines[:1], *lines[2:]],
        lambda lines: [lines[1], lines[0], *lines[2:]],
        lambda lines: [lines[0], *lines],
        lambda lines: [lines[0], lines[1].replace(b'"n":1', b'"n":7'), *lines[2:]],
        lambda lines: [b"{}", *lines],
        lambda lines: [b"\xff", *lines],
        lambda lines: lines[1:],
    ],
)
def test_cut_out_swapped_doubled_or_altered_lines_are_seen(
    tmp_path: Path, change: Callable[[list[bytes]], list[bytes]]
) -> None:
    path = tmp_path / "j"
    write(path, 4)
    lines = change(path.read_bytes().splitlines())
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    assert verify_journal(path).standing is JournalStatus.ALTERED
    with pytest.raises(RecordDamaged, match="line"):
        read_journal(path)


def test_a_torn_last_line_is_told_from_tampering(tmp_path: Path) -> None:
    path = tmp_path / "j"
    write(path, 3)
    path.write_bytes(path.read_bytes()[:-5])
    check = verify_journal(path)
    assert (check.standing, check.lines) == (JournalStatus.TORN, 2)
    assert len(read_journal(path)) == 2


def test_killed_while_writing_leaves_a_torn_or_whole_journal(tmp_path: Path) -> None:
    path = tmp_path / "j"
    child = os.fork()
    if child == 0:
        journal = Journal(path)
        for n in range(100_000):
            journal.emit(Event(kind="x", at_seconds=0.0, data={"n": n}))
            if n == 50:
                os.kill(os.getpid(), 9)
    os.waitpid(child, 0)
    check = verify_journal(path)
    assert check.standing is JournalStatus.WHOLE
    assert check.lines == 51


def test_threads_do_not_tear_the_chain(tmp_path: Path) -> None:
    with Journal(tmp_path / "j") as journal:

        def emit_fifty() -> None:
            for _ in range(50):
                journal.emit(Event(kind="x", at_seconds=0.0))

        threads = [threading.Thread(target=emit_fifty) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    check = verify_journal(tmp_path / "j")
    assert (check.standing, check.lines) == (JournalStatus.WHOLE, 200)


def test_odd_values_are_written_as_json(tmp_path: Path) -> None:
    with Journal(tmp_path / "j") as journal:
        journal.emit(
            Event(
                kind="x", at_seconds=0.0, data={"nan": float("nan"), "set": {2, 1}, "object": Path("/x"), "b": b"\xe9"}
            )
        )
        journal.emit(Event(kind="x", at_seconds=0.0, data={"long": "x" * 2_000_000}))
    first, second = read_journal(tmp_path / "j")
    assert first["data"] == {"nan": None, "set": [1, 2], "object": "PosixPath('/x')", "b": "\udce9"}
    assert "bytes" in second["data"]["left_out"]
    assert all(json.loads(line) for line in (tmp_path / "j").read_text("ascii").splitlines())


def test_a_full_disk_is_told_once_and_the_task_can_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal(tmp_path / "j")
    journal.emit(Event(kind="x", at_seconds=0.0))

    def full(_descriptor: int, _data: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(CannotRecord, match="No space left"):
        journal.emit(Event(kind="x", at_seconds=0.0))
    journal.emit(Event(kind="x", at_seconds=0.0))
    monkeypatch.undo()
    journal.close()
    journal.close()
    assert verify_journal(tmp_path / "j").lines == 1


def test_a_journal_is_not_opened_over_another_or_through_a_link(tmp_path: Path) -> None:
    write(tmp_path / "j", 1)
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    for name in ("j", "link"):
        with pytest.raises(CannotRecord):
            Journal(tmp_path / name)
    assert not (tmp_path / "elsewhere").exists()
