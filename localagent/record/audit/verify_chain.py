"""Checking an audit journal: does every line follow from the one before, up to the head? Reads, changes nothing.

Shows every alteration of a line, of the order and of the end as long as head or signed heads are not altered alike.
Does not show that somebody who could write the folder did not write a whole new journal: that takes a signed head, or
one kept elsewhere.
"""

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from localagent.fs.atomic_files import RecordDamaged
from localagent.record.audit.entry import BEFORE_FIRST, AuditKind, Entry, parse_line
from localagent.record.audit.segments import (
    Head,
    SegmentLine,
    first_of,
    lines_of,
    read_head,
    read_signed,
    reading,
    segments,
)
from localagent.record.journal import JournalStatus

_ENVELOPE = b'{"payload":'  # how a signed head begins among the entries of an export


@dataclass(frozen=True, kw_only=True, slots=True)
class EntryLocation:
    """Where a fault is: a line of a file, and the number that the entry there should have."""

    file: str
    line: int
    seq: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line} (entry {self.seq})"


@dataclass(frozen=True, kw_only=True, slots=True)
class AuditCheck:
    """The answer. `entries` are those that hold; `place` and `reason` name the first fault, or the torn line.

    `signed` are the signed heads as they lay beside these entries; `heads.check_heads` looks into them.
    """

    standing: JournalStatus
    entries: tuple[Entry, ...]
    place: EntryLocation | None = None
    reason: str = ""
    signed: bytes = b""

    @property
    def tip(self) -> Head:
        """The last entry that holds."""
        if not self.entries:
            return Head(seq=-1, digest=BEFORE_FIRST)
        return Head(seq=self.entries[-1].seq, digest=self.entries[-1].digest)


@dataclass(frozen=True, kw_only=True, slots=True)
class EntrySpan:
    """Which entries to check, both ends included. `first` None: from the very first, which must be there."""

    first: int | None = None
    last: int | None = None


def check_audit(folder: Path, span: EntrySpan | None = None, *, head: str = "") -> AuditCheck:
    """Check the journal in a folder. `head`: a digest that one of the entries must have."""
    with reading(folder):
        return check_locked(folder, span or EntrySpan(), head)


def check_locked(folder: Path, span: EntrySpan, head: str = "") -> AuditCheck:
    """`check_audit` for whoever keeps others from writing already."""
    try:
        kept: Head | None = read_head(folder)
    except RecordDamaged as damage:
        return AuditCheck(
            standing=JournalStatus.ALTERED,
            entries=(),
            place=EntryLocation(file="head.json", line=1, seq=-1),
            reason=str(damage),
        )
    there = segments(folder)
    if span.first:  # what lies wholly before is not looked at
        later = [p for p in there if (first_of(p.name) or 0) <= span.first]
        there = there[max(0, len(later) - 1) :]
    lines = [line for path in there for line in lines_of(path)]
    if kept is None and there:
        return _altered(
            (), lines[0] if lines else SegmentLine(file=there[0].name, number=1, data=b""), 0, "no head is kept"
        )
    check = _with_head(_Walk(lines, kept, span).check(), head)
    return replace(check, signed=read_signed(folder))


def check_export(path: Path, *, head: str = "", span: EntrySpan | None = None) -> AuditCheck:
    """Check entries that `audit export` wrote into one file: without a head, so a cut end shows only by `head`.

    Signed heads that stand behind the entries are handed out like those that lie beside a journal.

    It was written whole, so that a last line without its end is no crash of ours.
    """
    lines = list(lines_of(path, exported=True))
    signed = [line for line in lines if line.whole and line.data.startswith(_ENVELOPE)]
    entries = [line for line in lines if not (line.whole and line.data.startswith(_ENVELOPE))]
    check = _Walk(entries, None, span or EntrySpan(first=-1), named=False).check()
    if check.standing is JournalStatus.TORN:
        check = replace(check, standing=JournalStatus.ALTERED, reason="the file ends within a line: it was cut")
    return replace(_with_head(check, head), signed=b"".join(line.data + b"\n" for line in signed))


def _with_head(check: AuditCheck, head: str) -> AuditCheck:
    if not head or check.standing is JournalStatus.ALTERED or any(e.digest == head for e in check.entries):
        return check
    last = check.tip.seq + 1
    place = EntryLocation(file="", line=0, seq=last)
    return AuditCheck(
        standing=JournalStatus.ALTERED,
        entries=check.entries,
        place=place,
        reason=f"no entry has the digest {head}: the journal was cut before it, or is another one",
    )


def _altered(entries: Sequence[Entry], line: SegmentLine, seq: int, reason: str) -> AuditCheck:
    place = EntryLocation(file=line.file, line=line.number, seq=seq)
    return AuditCheck(standing=JournalStatus.ALTERED, entries=tuple(entries), place=place, reason=reason)


class _Walk:
    """One pass over the lines."""

    def __init__(self, lines: list[SegmentLine], head: Head | None, span: EntrySpan, *, named: bool = True) -> None:
        self._lines, self._head, self._span, self._named = lines, head, span, named
        self._entries: list[Entry] = []
        self._needed = -1  # the entry that lets this one begin late: the walk must come to it

    def check(self) -> AuditCheck:
        entries = self._entries
        for at, line in enumerate(self._lines):
            expected = entries[-1].seq + 1 if entries else self._start(line)
            if not line.whole:
                if at + 1 < len(self._lines):
                    return _altered(entries, line, expected, "the last line of a segment is cut")
                return self._ended(line)
            try:
                entry = parse_line(line.data)
            except ValueError as error:
                return _altered(entries, line, expected, str(error))
            if not entries and self._span.first == -1:
                expected = entry.seq
            if fault := self._fault(at, line, entry, expected):
                return fault
            entries.append(entry)
            if self._span.last is not None and entry.seq >= max(self._span.last, self._needed):
                wanted = tuple(e for e in entries if e.seq <= self._span.last)
                return AuditCheck(standing=JournalStatus.WHOLE, entries=wanted)
        return self._ended(None)

    def _start(self, line: SegmentLine) -> int:
        """The number that the first line must have: 0, or what its segment is called where a span begins later."""
        first = first_of(line.file)
        wanted = self._span.first
        return first if wanted and wanted > 0 and first is not None and first <= wanted else max(0, wanted or 0)

    def _fault(self, at: int, line: SegmentLine, entry: Entry, expected: int) -> AuditCheck | None:
        entries = self._entries
        if not entries and self._retired_before(entry):
            return None
        if entry.seq != expected:
            what = f"entry {entry.seq} stands where {expected} should be"
            if entry.seq > expected and not entries:
                what += ": earlier segments are not here (--from checks what is)"
            return _altered(entries, line, expected, what)
        if self._named and line.number == 1 and first_of(line.file) != entry.seq:
            return _altered(entries, line, expected, "the segment's name is not its first entry's number")
        if not entries:
            if entry.seq == 0 and entry.prev != BEFORE_FIRST:
                return _altered(entries, line, expected, "the first entry follows from another one")
            return None
        if entry.prev == entries[-1].digest:
            return None
        if self._vouched(at, entry):
            reason = "was altered: the next line carries another digest"
            return _altered(entries[:-1], self._lines[at - 1], entries[-1].seq, reason)
        return _altered(entries, line, expected, "does not follow from the line before it")

    def _retired_before(self, first: Entry) -> bool:
        """Whether an entry says that what lay before this first one was moved away for keeping."""
        if self._span.first or self._head is None or not first.seq:
            return False
        for line in self._lines:
            if line.whole and b'"retired"' in line.data:
                with contextlib.suppress(ValueError):
                    entry = parse_line(line.data)
                    told = (entry.data.get("first"), entry.data.get("prev"))
                    if entry.kind is AuditKind.RETIRED and told == (first.seq, first.prev):
                        self._needed = entry.seq
                        return True  # whether that entry itself holds, the walk will tell
        return False

    def _vouched(self, at: int, entry: Entry) -> bool:
        """Whether the line after this one, or the head, says that this one stands as it was written."""
        if at + 1 < len(self._lines) and self._lines[at + 1].whole:
            try:
                return parse_line(self._lines[at + 1].data).prev == entry.digest
            except ValueError:
                return False
        return self._head is not None and self._head == Head(seq=entry.seq, digest=entry.digest)

    def _ended(self, torn: SegmentLine | None) -> AuditCheck:
        """The end, held against the kept head."""
        entries, head = self._entries, self._head
        last = entries[-1].seq if entries else -1
        end = torn or (self._lines[-1] if self._lines else SegmentLine(file="head.json", number=1, data=b""))
        if head is not None:
            if head.seq > last:
                missing = head.seq - last
                where = end if torn else SegmentLine(file=end.file, number=end.number + bool(entries), data=b"")
                return _altered(entries, where, last + 1, f"{missing} entries are missing at the end")
            if head.seq < last - 1:
                late = len(entries) - (last - head.seq)
                reason = f"{last - head.seq} entries stand behind the head"
                return _altered(entries[: late + 1], self._lines[late], head.seq + 1, reason)
            behind = last - head.seq
            bound = entries[-1 - behind].digest if len(entries) > behind else BEFORE_FIRST
            if bound != head.digest and (len(entries) > behind or head.seq == -1):
                line = self._lines[len(entries) - 1 - behind]
                return _altered(entries[: -1 - behind], line, head.seq, "was altered: the head carries another digest")
        if torn is not None:
            return AuditCheck(
                standing=JournalStatus.TORN,
                entries=tuple(entries),
                place=EntryLocation(file=torn.file, line=torn.number, seq=last + 1),
                reason=f"the last line is cut after {len(torn.data)} bytes; the next entry cuts it off, on the record",
            )
        return AuditCheck(standing=JournalStatus.WHOLE, entries=tuple(entries))
