"""A journal that is asked for: what a worker may add, whose it is whatever it says, and that it fails loudly."""

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from pathlib import Path

import pytest

from localagent.fs.atomic_files import CannotRecord, RecordDamaged
from localagent.record.audit.entry import MOST_LINE_BYTES, AuditKind
from localagent.record.audit.log import AuditLog
from localagent.record.audit.remote_log import KINDS, MOST_ENTRIES, RecordedLog, ask_recorder, serve_line
from localagent.record.audit.verify_chain import check_audit
from localagent.record.journal import JournalStatus

ABOUT = {"ordered_task": "20260101-000000-000000-aaaaaa", "ordered_by": 7}


class Line:
    """A recorder's journal and a worker's end of a line to it."""

    def __init__(self, folder: Path) -> None:
        self.kept = AuditLog(folder / "kept")
        self.ours, theirs = socket.socketpair()
        self._thread = threading.Thread(target=serve_line, args=(theirs.detach(), self.kept, ABOUT))
        self._thread.start()
        self.log = RecordedLog(folder / "own", self.ours.fileno())

    def said(self, data: bytes) -> bytes:
        self.ours.sendall(data)
        return self.ours.recv(65536)

    def entries(self) -> list[dict[str, object]]:
        check = check_audit(self.kept.folder)
        assert check.standing is not JournalStatus.ALTERED
        return [dict(entry.data) for entry in check.entries]

    def close(self) -> None:
        self.ours.close()
        self._thread.join(20)
        assert not self._thread.is_alive()


@pytest.fixture
def line(tmp_path: Path) -> Iterator[Line]:
    made = Line(tmp_path)
    yield made
    made.close()


def test_every_entry_says_whose_it_is_whatever_the_worker_says(line: Line) -> None:
    line.log.ready()
    line.log.append(AuditKind.TASK_STARTED, {"task": "x", "ordered_by": 0, "ordered_task": "somebody else's"})
    line.log.append(AuditKind.TASK_ENDED, {"task": "x"})
    assert line.entries() == [{"task": "x", **ABOUT}, {"task": "x", **ABOUT}]
    assert [entry.kind for entry in check_audit(line.log.folder).entries] == ["task-started", "task-ended"]


def test_only_a_line_that_says_who_approved_carries_an_approval_and_nothing_else(tmp_path: Path) -> None:
    kept = AuditLog(tmp_path)
    for kind, wanted in ((AuditKind.APPROVED, True), (AuditKind.TASK_ENDED, False)):
        ours, theirs = socket.socketpair()
        about = {**ABOUT, "approved_by": 9}
        thread = threading.Thread(target=serve_line, args=(theirs.detach(), kept, about))
        thread.start()
        with ours, nullcontext() if wanted else pytest.raises(CannotRecord, match="nothing to say about that"):
            ask_recorder(ours.fileno(), kind, {"approved_by": 0})
        thread.join(20)
    assert [(e.kind, dict(e.data)) for e in check_audit(kept.folder).entries] == [
        ("approved", {**ABOUT, "approved_by": 9})
    ]


@pytest.mark.parametrize("kind", sorted(set(AuditKind) - KINDS))
def test_other_kinds_are_no_worker_s_to_add(line: Line, kind: AuditKind) -> None:
    with pytest.raises(CannotRecord, match="nothing to say about that"):
        line.log.append(kind, {"task": "x"})
    assert not line.kept.folder.exists()
    assert not line.log.folder.exists()  # nor is it in the task's own


@pytest.mark.parametrize(
    "data",
    [
        b"\n",
        b"[]\n",
        b'{"kind":"reported"}\n',
        b'{"kind":"reported","data":[]}\n',
        b'{"kind":9,"data":{}}\n',
        b"[" * 9999,
    ],
)
def test_what_is_no_request_ends_the_line_and_writes_nothing(line: Line, data: bytes) -> None:
    if data.endswith(b"\n") and data != b"\n":
        assert b'"fault":"request"' in line.said(data)
    else:
        with suppress(BrokenPipeError):  # closed in the middle of it
            line.ours.sendall(data + b"x" * (2 * MOST_LINE_BYTES))
            line.ours.shutdown(socket.SHUT_WR)
    with suppress(ConnectionResetError):  # closed over what was not read
        assert line.ours.recv(1) == b""
    assert not line.kept.folder.exists()


def test_so_many_entries_and_no_more(line: Line) -> None:
    for _ in range(MOST_ENTRIES):
        line.log.append(AuditKind.REPORTED, {})
    with pytest.raises(CannotRecord):
        line.log.append(AuditKind.REPORTED, {})
    assert len(line.entries()) == MOST_ENTRIES


def test_a_damaged_or_missing_recorder_is_said(line: Line) -> None:
    line.log.append(AuditKind.TASK_STARTED, {})
    [segment] = [path for path in line.kept.folder.iterdir() if path.name.endswith(".jsonl")]
    data = segment.read_bytes()
    segment.write_bytes(data.replace(b"task-started", b"task-ended__"))
    with pytest.raises(RecordDamaged):
        line.log.ready()
    segment.write_bytes(data)
    line.log.append(AuditKind.TASK_ENDED, {})
    line.ours.shutdown(socket.SHUT_WR)
    with pytest.raises(CannotRecord):
        line.log.append(AuditKind.REPORTED, {})
    assert len(line.entries()) == 2
    assert os.fstat(line.ours.fileno())
