"""Checking the audit journal: the law that no alteration passes, the place, spans."""

import random
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bench.audit import WAYS, trial, write_journal
from localagent.record.audit.entry import AuditKind, parse_line
from localagent.record.audit.log import AuditLog
from localagent.record.audit.segments import segments
from localagent.record.audit.verify_chain import EntrySpan, check_audit
from localagent.record.journal import JournalStatus


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_journal(tmp_path_factory.mktemp("state"), 90)


@pytest.mark.long
@given(seed=st.integers(0, 1 << 32))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_alteration_is_found_at_its_place(journal: Path, seed: int) -> None:
    assert trial(journal, random.Random(seed))[1:] == (True, True)


def test_the_bench_knows_each_kind_of_alteration() -> None:
    assert {way.__name__ for way in WAYS} >= {"one_byte", "dropped", "doubled", "made_up", "swapped", "cut"}


def test_the_place_is_the_altered_line(journal: Path) -> None:
    path = segments(journal)[0]
    before = path.read_bytes()
    rows = before.splitlines(keepends=True)
    try:
        path.write_bytes(b"".join([*rows[:4], rows[4].replace(b"gave-up", b"accept!"), *rows[5:]]))
        check = check_audit(journal)
        assert str(check.place) == f"{path.name}:5 (entry 4)"
        assert check.reason == "was altered: the next line carries another digest"
        assert len(check.entries) == 4
    finally:
        path.write_bytes(before)


def test_writing_the_same_in_another_way_is_an_alteration() -> None:
    line = b'{"at":"2026-01-01T00:00:00.000000Z","data":{},"kind":"reported","prev":"sha256:' + b"0" * 64
    line += b'","schema":"localagent/audit/1","seq":0}'
    assert parse_line(line).kind is AuditKind.REPORTED
    for other in (
        line.replace(b":0}", b": 0}"),
        line.replace(b'"seq":0', b'"seq":false'),
        line.replace(b"ted", b"t\\u0065d"),
    ):
        with pytest.raises(ValueError, match=r"not written as|not a count"):
            parse_line(other)


def test_a_head_that_is_kept_elsewhere_must_be_there(journal: Path) -> None:
    whole = check_audit(journal)
    assert check_audit(journal, head=whole.entries[7].digest).standing is JournalStatus.WHOLE
    other = check_audit(journal, head="sha256:" + "a" * 64)
    assert other.standing is JournalStatus.ALTERED
    assert "no entry has the digest" in other.reason


def test_spans(journal: Path) -> None:
    check = check_audit(journal, EntrySpan(first=40, last=50))
    assert check.standing is JournalStatus.WHOLE
    assert check.entries[-1].seq == 50
    assert check.entries[0].seq <= 40


def test_moved_segments_are_told_from_what_must_be_there(tmp_path: Path) -> None:
    folder = write_journal(tmp_path, 90)
    first, second = segments(folder)[:2]
    first.rename(tmp_path / "archived")
    check = check_audit(folder)
    assert check.standing is JournalStatus.ALTERED
    assert "earlier segments are not here" in check.reason
    start = parse_line(second.read_bytes().splitlines()[0]).seq
    assert check_audit(folder, EntrySpan(first=start)).standing is JournalStatus.WHOLE
    assert check_audit(folder, EntrySpan(first=start - 1)).standing is JournalStatus.ALTERED


def test_a_retired_journal_holds_from_its_very_first_entry_too(tmp_path: Path) -> None:
    log = AuditLog(write_journal(tmp_path, 90).parent)
    assert log.retire("9999", tmp_path / "kept") is not None
    for first in (None, 0):
        assert check_audit(log.folder, EntrySpan(first=first)).standing is JournalStatus.WHOLE
