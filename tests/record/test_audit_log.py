"""Writing the audit journal: chained, synced, one process at a time, torn lines cut on the record."""

import errno
import os
import signal
from pathlib import Path

import pytest

from localagent.domain.edit import digest_of
from localagent.fs.atomic_files import CannotRecord, RecordDamaged
from localagent.record.audit.entry import BEFORE_FIRST, AuditKind
from localagent.record.audit.log import AuditLog
from localagent.record.audit.segments import segments
from localagent.record.audit.verify_chain import check_audit
from localagent.record.journal import JournalStatus


def filled(state: Path, count: int, **more: int) -> AuditLog:
    log = AuditLog(state, **more)
    for n in range(count):
        log.append(AuditKind.REPORTED, {"n": n})
    return log


def test_entries_are_numbered_and_bound_to_each_other(tmp_path: Path) -> None:
    log = filled(tmp_path, 3)
    check = check_audit(log.folder)
    assert check.standing is JournalStatus.WHOLE
    assert [e.seq for e in check.entries] == [0, 1, 2]
    assert [e.prev for e in check.entries] == [BEFORE_FIRST, *(e.digest for e in check.entries[:2])]
    assert (log.folder.stat().st_mode & 0o777, segments(log.folder)[0].stat().st_mode & 0o777) == (0o700, 0o600)


def test_several_files_hold_one_chain(tmp_path: Path) -> None:
    log = filled(tmp_path, 30, segment_bytes=2000)
    log.rotate()
    log.append(AuditKind.REPORTED, {})
    assert len(segments(log.folder)) > 3
    check = check_audit(log.folder)
    assert (check.standing, len(check.entries)) == (JournalStatus.WHOLE, 32)


def test_a_torn_line_is_cut_and_the_cut_is_on_the_record(tmp_path: Path) -> None:
    log = filled(tmp_path, 2)
    last = segments(log.folder)[-1]
    torn = b'{"at":"2026-'
    last.write_bytes(last.read_bytes() + torn)
    assert check_audit(log.folder).standing is JournalStatus.TORN
    log.append(AuditKind.REPORTED, {})
    check = check_audit(log.folder)
    assert check.standing is JournalStatus.WHOLE
    assert [e.kind for e in check.entries[2:]] == [AuditKind.TORN_LINE_CUT, AuditKind.REPORTED]
    assert check.entries[2].data == {"file": last.name, "bytes": len(torn), "digest": digest_of(torn)}


def test_killed_between_entry_and_head_loses_nothing(tmp_path: Path) -> None:
    log = filled(tmp_path, 2)
    head = (log.folder / "head.json").read_bytes()
    log.append(AuditKind.REPORTED, {"n": 2})
    (log.folder / "head.json").write_bytes(head)
    assert check_audit(log.folder).standing is JournalStatus.WHOLE
    log.append(AuditKind.REPORTED, {"n": 3})
    check = check_audit(log.folder)
    assert (check.standing, len(check.entries)) == (JournalStatus.WHOLE, 4)


@pytest.mark.parametrize("what", ["last line", "cut end", "head", "no head", "no segment"])
def test_nothing_is_written_over_a_damaged_journal(tmp_path: Path, what: str) -> None:
    log = filled(tmp_path, 4)
    segment, head = segments(log.folder)[-1], log.folder / "head.json"
    rows = segment.read_bytes().splitlines(keepends=True)
    match what:
        case "last line":
            segment.write_bytes(b"".join([*rows[:-1], rows[-1].replace(b'"n":3', b'"n":4')]))
        case "cut end":
            segment.write_bytes(b"".join(rows[:-1]))
        case "head":
            head.write_bytes(head.read_bytes().replace(b"3", b"9"))
        case "no head":
            head.unlink()
        case "no segment":
            segment.unlink()
    before = segment.read_bytes() if segment.exists() else None
    with pytest.raises(RecordDamaged) as raised:
        log.append(AuditKind.REPORTED, {})
    assert "--set-aside" in raised.value.remedy
    assert (segment.read_bytes() if segment.exists() else None) == before
    assert check_audit(log.folder).standing is JournalStatus.ALTERED


def test_a_damaged_journal_is_kept_beside_a_new_one_that_names_it(tmp_path: Path) -> None:
    log = filled(tmp_path, 3)
    segment = segments(log.folder)[-1]
    segment.write_bytes(segment.read_bytes()[:-40])
    broken = segment.read_bytes()
    entry = log.set_aside()
    assert entry.data["files"] == {segment.name: digest_of(broken)}
    assert (log.folder / entry.data["folder"] / segment.name).read_bytes() == broken
    assert check_audit(log.folder).standing is JournalStatus.WHOLE
    log.append(AuditKind.REPORTED, {})


@pytest.mark.long
def test_processes_take_turns(tmp_path: Path) -> None:
    children = []
    for _ in range(4):
        child = os.fork()
        if child == 0:
            filled(tmp_path, 15, segment_bytes=3000)
            os._exit(0)
        children.append(child)
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * 4
    check = check_audit(tmp_path / "audit")
    assert (check.standing, len(check.entries)) == (JournalStatus.WHOLE, 60)


@pytest.mark.long
def test_killed_while_writing_never_breaks_the_chain(tmp_path: Path) -> None:
    for n in range(8):
        child = os.fork()
        if child == 0:
            signal.setitimer(signal.ITIMER_REAL, 0.004 + 0.003 * n)
            signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), signal.SIGKILL))
            filled(tmp_path, 100_000)
        os.waitpid(child, 0)
        AuditLog(tmp_path).append(AuditKind.REPORTED, {"after": n})
        assert check_audit(tmp_path / "audit").standing is JournalStatus.WHOLE


def test_a_full_disk_leaves_the_journal_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = filled(tmp_path, 2)
    segment = segments(log.folder)[-1]
    before, real = segment.read_bytes(), os.write

    def full(descriptor: int, data: bytes | memoryview) -> int:
        if len(data) < 30:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(descriptor, data[:25])

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(CannotRecord, match="audit journal"):
        log.append(AuditKind.REPORTED, {"n": 2})
    monkeypatch.undo()
    assert segment.read_bytes() == before
    log.append(AuditKind.REPORTED, {"n": 2})
    assert check_audit(log.folder).standing is JournalStatus.WHOLE


def test_an_entry_too_large_is_refused_and_a_link_is_not_followed(tmp_path: Path) -> None:
    log = filled(tmp_path, 1)
    with pytest.raises(CannotRecord, match="at most"):
        log.append(AuditKind.REPORTED, {"x": "y" * 100_000})
    segment = segments(log.folder)[-1]
    segment.rename(tmp_path / "elsewhere")
    segment.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(RecordDamaged):
        log.append(AuditKind.REPORTED, {})
