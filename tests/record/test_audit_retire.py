"""Old segments go away for keeping on the record, and only on the record: the journal that is left still holds."""

from pathlib import Path

import pytest

from localagent.fs.atomic_files import CannotRecord
from localagent.record.audit.entry import AuditKind, now_text
from localagent.record.audit.log import AuditLog
from localagent.record.audit.segments import segments
from localagent.record.audit.verify_chain import EntrySpan, check_audit
from localagent.record.journal import JournalStatus

LATER = "9999-01-01T00:00:00.000000Z"


@pytest.fixture
def log(tmp_path: Path) -> AuditLog:
    made = AuditLog(tmp_path, segment_bytes=600)
    for number in range(12):
        made.append(AuditKind.APPLIED, {"task": f"t{number}"})
    assert len(segments(made.folder)) > 3
    return made


def test_what_is_left_holds_and_goes_on(log: AuditLog, tmp_path: Path) -> None:
    before = segments(log.folder)
    entry = log.retire(LATER, tmp_path / "kept")
    assert entry is not None
    assert list(entry.data["files"]) == [p.name for p in before[:-1]]
    assert sorted(p.name for p in (tmp_path / "kept").iterdir()) == [p.name for p in before[:-1]]
    log.append(AuditKind.APPLIED, {"task": "next"})
    check = check_audit(log.folder)
    assert (check.standing, check.entries[0].seq) == (JournalStatus.WHOLE, entry.data["first"])


def test_what_is_not_old_stays(log: AuditLog, tmp_path: Path) -> None:
    assert log.retire("2000-01-01T00:00:00.000000Z", tmp_path / "kept") is None
    assert not (tmp_path / "kept").exists()
    assert now_text() < LATER


def test_a_segment_that_nobody_retired_is_missed(log: AuditLog, tmp_path: Path) -> None:
    segments(log.folder)[0].unlink()
    check = check_audit(log.folder)
    assert check.standing is JournalStatus.ALTERED
    assert "earlier segments are not here" in check.reason


def test_one_more_than_was_retired_is_missed(log: AuditLog, tmp_path: Path) -> None:
    middle = segments(log.folder)[2]
    times = [e.at for e in check_audit(log.folder).entries if f"audit-{e.seq:012d}.jsonl" == middle.name]
    assert log.retire(times[0], tmp_path / "kept") is not None
    assert check_audit(log.folder).standing is JournalStatus.WHOLE
    segments(log.folder)[0].unlink()
    assert check_audit(log.folder).standing is JournalStatus.ALTERED


def test_an_entry_that_was_altered_to_retire_more_is_found(log: AuditLog, tmp_path: Path) -> None:
    log.retire(LATER, tmp_path / "kept")
    last = segments(log.folder)[-1]
    text = last.read_bytes()
    last.write_bytes(text.replace(b'"kind":"retired"', b'"kind":"applied"'))
    assert check_audit(log.folder).standing is JournalStatus.ALTERED


@pytest.mark.parametrize("moment", ["copied", "on the record"])
def test_a_kill_in_between_loses_nothing_and_the_next_call_goes_on(
    log: AuditLog, tmp_path: Path, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        pass

    def die(*_: object, **__: object) -> None:
        raise Killed

    count = len(check_audit(log.folder).entries)
    with monkeypatch.context() as patch:
        if moment == "copied":
            patch.setattr(AuditLog, "_append", die)
        else:
            patch.setattr(Path, "unlink", die)
        with pytest.raises(Killed):
            log.retire(LATER, tmp_path / "kept")
    check = check_audit(log.folder)
    assert check.standing is JournalStatus.WHOLE
    assert len(check.entries) == count + (moment == "on the record")
    assert log.retire(LATER, tmp_path / "kept") is not None
    assert check_audit(log.folder).standing is JournalStatus.WHOLE
    assert segments(log.folder)[0].name != "audit-000000000000.jsonl"


def test_another_file_of_that_name_is_not_overwritten(log: AuditLog, tmp_path: Path) -> None:
    place = tmp_path / "kept"
    place.mkdir()
    (place / segments(log.folder)[0].name).write_text("another")
    with pytest.raises(CannotRecord, match="is another file"):
        log.retire(LATER, place)
    assert check_audit(log.folder).standing is JournalStatus.WHOLE


def test_a_late_beginning_must_be_vouched_for_by_an_entry_that_holds(log: AuditLog, tmp_path: Path) -> None:
    entry = log.retire(LATER, tmp_path / "kept")
    assert entry is not None
    first = int(entry.data["first"])
    assert check_audit(log.folder, EntrySpan(last=first)).standing is JournalStatus.WHOLE
    last = segments(log.folder)[-1]
    rows = last.read_bytes().splitlines(keepends=True)
    head, mark, digest = rows[-1].rpartition(b'"prev":"sha256:')
    other = b"1" if digest.startswith(b"0") else b"0"
    last.write_bytes(b"".join([*rows[:-1], head, mark, other, digest[1:]]))
    for span in (EntrySpan(), EntrySpan(last=first)):
        assert check_audit(log.folder, span).standing is JournalStatus.ALTERED
