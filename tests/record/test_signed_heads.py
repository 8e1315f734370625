"""Signed heads: held against the journal; what was cut, written anew or dropped is neither signed nor believed."""

import os
import shutil
import signal
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from bench.audit import write_journal
from localagent.domain.edit import digest_of
from localagent.fs.atomic_files import RecordDamaged, write_private
from localagent.record.attest.keys import KeyRing
from localagent.record.audit import sign_heads
from localagent.record.audit.entry import AuditKind, line_of
from localagent.record.audit.heads import HeadsCheck, SignedHead, began_anew, check_heads, read_memory
from localagent.record.audit.log import AuditLog
from localagent.record.audit.segments import Head, head_bytes, segment_name, segments
from localagent.record.audit.sign_heads import memory_of, sign_head
from localagent.record.audit.verify_chain import EntrySpan, check_audit
from localagent.record.journal import JournalStatus


@pytest.fixture
def ring(tmp_path: Path) -> KeyRing:
    ring = KeyRing(tmp_path / "data")
    ring.new()
    return ring


def signed(ring: KeyRing, state: Path) -> SignedHead | None:
    signer = ring.signer()
    assert signer is not None
    return sign_head(AuditLog(state), ring, signer)


def checked(ring: KeyRing, folder: Path) -> HeadsCheck:
    known = read_memory(memory_of(ring, folder))
    return check_heads(folder / "heads.jsonl", check_audit(folder), ring.public_keys(), known=known)


def test_signed_heads_hold_against_a_journal_written_anew(tmp_path: Path, ring: KeyRing) -> None:
    folder = write_journal(tmp_path / "a", 5)
    signed(ring, tmp_path / "a")
    AuditLog(tmp_path / "a").append(AuditKind.REPORTED, {})
    last = signed(ring, tmp_path / "a")
    heads = checked(ring, folder).heads
    assert [h.seq for h in heads] == [4, 6]
    assert heads[-1] == last
    other = write_journal(tmp_path / "b", 8)
    (other / "heads.jsonl").write_bytes((folder / "heads.jsonl").read_bytes())
    assert check_audit(other).standing is JournalStatus.WHOLE
    with pytest.raises(RecordDamaged, match=r"heads\.jsonl:1: entry 4, signed as .* is another one"):
        checked(ring, other)


def test_altered_and_dropped_signed_heads_are_found(tmp_path: Path, ring: KeyRing) -> None:
    folder = write_journal(tmp_path, 3)
    for _ in range(3):
        AuditLog(tmp_path).append(AuditKind.REPORTED, {})
        signed(ring, tmp_path)
    path, keys = folder / "heads.jsonl", ring.public_keys()
    rows = path.read_bytes().splitlines(keepends=True)
    assert len(checked(ring, folder).heads) == 3
    altered = rows[2].replace(b'"sig":"', b'"sig":"AAAA')
    for data in (rows[0] + rows[2], b"".join(rows[:2]), b"", rows[0] + rows[1] + altered):
        path.write_bytes(data)
        with pytest.raises(RecordDamaged, match=r"signed head \d, which entry \d+ names, is (missing|another one)"):
            check_heads(path, check_audit(folder), keys)
    path.unlink()
    with pytest.raises(RecordDamaged, match="is missing"):
        check_heads(path, check_audit(folder), keys)
    with pytest.raises(RecordDamaged, match="is missing"):
        signed(ring, tmp_path)


def test_heads_of_a_journal_that_does_not_name_them_are_held_against_each_other(tmp_path: Path, ring: KeyRing) -> None:
    folder, path = write_journal(tmp_path, 3), tmp_path / "audit" / "heads.jsonl"
    for _ in range(3):
        signed(ring, tmp_path)
    rows = path.read_bytes().splitlines(keepends=True)
    check = replace(check_audit(folder), entries=check_audit(folder).entries[:3])  # none says what was signed
    torn = rows[0].replace(b'"sig":"', b'"sig":"AAAA')
    for data, why in ((rows[0] + rows[2], ":2 does not follow"), (torn, ":1: .*signature")):
        with pytest.raises(RecordDamaged, match=why):
            check_heads(path, replace(check, signed=data), ring.public_keys(), span=EntrySpan(last=2))


def test_a_key_that_is_not_known_is_no_alteration_and_no_yes(tmp_path: Path, ring: KeyRing) -> None:
    folder = write_journal(tmp_path, 3)
    signed(ring, tmp_path)
    old = ring.public_keys()
    ring.rotate()
    signed(ring, tmp_path)
    assert (len(checked(ring, folder).heads), checked(ring, folder).unknown) == (2, "")
    for keys, number in ((old, 2), ({n: k for n, k in ring.public_keys().items() if n not in old}, 1), ({}, 1)):
        found = check_heads(folder / "heads.jsonl", check_audit(folder), keys)
        assert f"heads.jsonl:{number} is signed by key " in found.unknown
        assert len(found.heads) == len(keys)


@pytest.mark.long
@pytest.mark.parametrize("drop", [True, False])
@pytest.mark.parametrize("entries", [0, 3, 90])
def test_a_journal_written_anew_is_not_signed(tmp_path: Path, ring: KeyRing, entries: int, drop: bool) -> None:
    folder = write_journal(tmp_path, 30)
    assert signed(ring, tmp_path) is not None
    heads = (folder / "heads.jsonl").read_bytes()
    shutil.rmtree(folder)
    if entries:
        write_journal(tmp_path, entries)
        AuditLog(tmp_path).append(AuditKind.APPLIED, {"never": "was"})
    folder.mkdir(exist_ok=True)
    if not drop:
        (folder / "heads.jsonl").write_bytes(heads)
    with pytest.raises(RecordDamaged, match=r"written anew|is another one|is missing"):
        signed(ring, tmp_path)
    with pytest.raises(RecordDamaged):
        checked(ring, folder)


def test_one_that_pretends_to_be_retired_is_not_signed(tmp_path: Path, ring: KeyRing) -> None:
    folder = write_journal(tmp_path, 3)
    signed(ring, tmp_path)
    heads = (folder / "heads.jsonl").read_bytes()
    for path in (*segments(folder), folder / "head.json"):
        path.unlink()
    prev = "sha256:" + "7" * 64
    line = line_of(seq=50, prev=prev, kind=AuditKind.RETIRED, data={"first": 50, "prev": prev, "files": {}})
    (folder / segment_name(50)).write_bytes(line)
    (folder / "head.json").write_bytes(head_bytes(Head(seq=50, digest=digest_of(line))))
    assert check_audit(folder).standing is JournalStatus.WHOLE
    with pytest.raises(RecordDamaged, match="no such entry"):
        signed(ring, tmp_path)
    check = replace(check_audit(folder), signed=heads)
    with pytest.raises(RecordDamaged, match="before all that are here"):
        check_heads(folder / "heads.jsonl", check, ring.public_keys())


def test_what_was_signed_last_stays_when_files_are_retired(tmp_path: Path, ring: KeyRing) -> None:
    log = AuditLog(tmp_path, segment_bytes=2000)
    for number in range(60):
        log.append(AuditKind.REPORTED, {"n": number})
        if number == 30:
            signed(ring, tmp_path)
    entry = log.retire("9999", tmp_path / "kept")
    assert entry is not None
    assert 0 < entry.data["first"] <= 30
    assert len(checked(ring, log.folder).heads) == 1
    assert signed(ring, tmp_path) is not None


def test_what_is_set_aside_on_the_record_is_signed_on(tmp_path: Path, ring: KeyRing) -> None:
    folder = write_journal(tmp_path, 3)
    signed(ring, tmp_path)
    AuditLog(tmp_path).set_aside()
    with pytest.raises(RecordDamaged, match="no such entry") as said:
        signed(ring, tmp_path)
    assert "--set-aside" in said.value.remedy
    known = read_memory(memory_of(ring, folder))
    assert known is not None
    AuditLog(tmp_path).set_aside(asdict(known))
    assert "signed up to entry 2, was set aside" in began_anew(check_audit(folder))
    assert checked(ring, folder).heads == ()
    assert signed(ring, tmp_path) is not None
    assert signed(ring, tmp_path) is not None
    assert len(checked(ring, folder).heads) == 2


@pytest.mark.parametrize("step", ["entry", "memory"])
def test_a_kill_while_signing_leaves_what_holds_and_goes_on(
    tmp_path: Path, ring: KeyRing, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    class KilledError(BaseException):
        pass

    def killed(*_: object) -> None:
        raise KilledError

    folder = write_journal(tmp_path, 3)
    signed(ring, tmp_path)
    with monkeypatch.context() as patch:
        if step == "entry":
            patch.setattr(AuditLog, "_append", killed)
        else:
            patch.setattr(sign_heads, "write_private", _only("heads.jsonl", killed))
        with pytest.raises(KilledError):
            signed(ring, tmp_path)
    assert len(checked(ring, folder).heads) == 2
    assert signed(ring, tmp_path) is not None
    assert len(checked(ring, folder).heads) == 3


def _only(name: str, otherwise: Callable[[], None]) -> Callable[[Path, bytes], None]:
    def write(path: Path, data: bytes) -> None:
        if path.name != name:
            otherwise()
        write_private(path, data)

    return write


@pytest.mark.long
def test_verifying_beside_a_writer_sees_one_moment(tmp_path: Path, ring: KeyRing) -> None:
    child = os.fork()
    if child == 0:
        while True:
            AuditLog(tmp_path, segment_bytes=4000).append(AuditKind.REPORTED, {})
            signed(ring, tmp_path)
    try:
        seen = 0
        while seen < 60:
            check = check_audit(tmp_path / "audit")
            assert check.standing is JournalStatus.WHOLE, (str(check.place), check.reason)
            check_heads(tmp_path / "audit" / "heads.jsonl", check, ring.public_keys())
            seen = len(check.entries)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
