"""The audit journal's entries and the auditor's report, redacted; and the check of an export that was."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from localagent.record.audit.entry import DIGEST as DIGEST_FORM
from localagent.record.audit.entry import AuditKind, Entry
from localagent.record.audit.heads import UNVERIFIABLE
from localagent.record.audit.segments import SegmentLine, lines_of
from localagent.record.audit.verify_chain import AuditCheck, EntryLocation
from localagent.record.journal import JournalStatus
from localagent.record.redacted.allowed_texts import (
    BUILDER,
    COMMIT,
    DIGEST,
    HEX,
    HOOK,
    JAIL,
    KIND,
    LEVEL,
    LIMITS,
    OUTCOME,
    POLICY,
    TASK,
    TIME,
    VERDICT,
    VERSION,
    denied,
    each,
)
from localagent.record.redacted.redaction import Each, Fields, Named, OneOf, Redaction, Shape, among, matching, never
from localagent.text.strict_json import canonical, load

EXPORT_SCHEMA = "localagent/audit-redacted/1"
_KEYS = {"at", "data", "digest", "kind", "prev", "schema", "seq"}
_SEGMENT = matching(r"audit-\d{12}\.jsonl|head\.json|heads\.jsonl")
_ASIDE = matching(r"set-aside-[0-9T.-]{1,40}Z")
_PLACE = matching(r"(audit-\d{12}\.jsonl|head\.json|heads\.jsonl):\d+ \(entry -?\d+\)")
_WHY = among(frozenset({"AnswerIsNo", "UsageFault", "CannotEnforce", "CannotRecord", "RecordDamaged"}))


def redacted_export(entries: Sequence[Entry], rules: frozenset[str]) -> bytes:
    """Entries with what their data may keep. Each names its own digest, so that the chain can still be followed."""
    redaction, shape = Redaction(), Fields(_data(rules))
    return b"".join(
        canonical(
            {
                "schema": EXPORT_SCHEMA,
                "seq": entry.seq,
                "prev": entry.prev,
                "digest": entry.digest,
                "at": entry.at,
                "kind": entry.kind.value,
                "data": redaction.of(entry.data, shape),
            }
        )
        for entry in entries
    )


def _data(rules: frozenset[str]) -> dict[str, Shape]:
    """Data of entries of every kind; names mean the same in all."""
    return {
        **each("asked snapshot patch test change diff evidence report bundle line digest prev", DIGEST),
        **each("repo name to"),
        **each("by seed exit enumerated verified chosen bytes first apply encrypted same departs_at"),
        **each("ordered_by approved_by count entry number seq"),
        **each("task ordered_task", TASK),
        **each("key retired", HEX),
        "commit": COMMIT,
        "origin": Fields({"builder": BUILDER, **each("findings below", Each(DIGEST)), "rules": Each(among(rules))}),
        "builder": BUILDER,
        "signed": Fields({**each("digest line", DIGEST), **each("number seq")}),
        "version": VERSION,
        "policy": OneOf((DIGEST, Fields({"name": POLICY, "digest": DIGEST}))),
        "model": OneOf((never, Fields(each("digest weights", DIGEST)))),
        "outcome": OUTCOME,
        "jail": JAIL,
        "denied": denied(rules),
        "limits_hit": LIMITS,
        "journal": Fields({"lines": never, "tip": DIGEST}),
        "files": OneOf((never, Named(_SEGMENT, DIGEST))),
        "what": KIND,
        "verdict": VERDICT,
        "hook": HOOK,
        "rules": Each(among(rules)),
        "names": Each(never),
        "why": _WHY,
        "file": _SEGMENT,
        "folder": _ASIDE,
    }


def redacted_audit_report(report: Mapping[str, Any], rules: frozenset[str]) -> dict[str, Any]:
    """The auditor's report, in the same form: the page can be made of it."""
    event = Fields({**_data(rules), "entry": never, "at": TIME, "kind": KIND})
    task = Fields({**_data(rules), **each("started ended applied undone", TIME), "attested": never})
    shape = Fields(
        {
            "schema": among(frozenset({str(report["schema"])})),
            "since": TIME,
            "chain": _chain(),
            "keys": Each(Fields({"id": HEX, **each("made retired", TIME), "encrypted": never})),
            "entries": never,
            "totals": _totals(rules),
            "tasks": Each(task),
            **each("landings refusals approvals replays notable", Each(event)),
        }
    )
    return dict(Redaction().of(report, shape))


def _chain() -> Fields:
    """The reason goes: over an altered journal it cites what was altered."""
    return Fields(
        {
            "standing": among(frozenset({*(standing.value for standing in JournalStatus), UNVERIFIABLE})),
            **each("entries signed_heads reason"),
            "head": Fields({"entry": never, "digest": DIGEST}),
            "place": _PLACE,
            "clock_set_back": Each(Fields({"seq": never, "at": TIME, "seconds": never})),
            "newest_signed": Fields({"entry": never, "at": TIME, "key": HEX}),
        }
    )


def _totals(rules: frozenset[str]) -> Fields:
    return Fields(
        {
            **each("tasks candidates attested applied undone refused_landings refusals approved withdrawn"),
            "outcomes": Named(OUTCOME, never),
            "by_day": Named(TIME, never),
            "refused_candidates": denied(rules),
            "limits_hit": LIMITS,
            "levels": Named(LEVEL, never),
        }
    )


def is_redacted(path: Path) -> bool:
    """Whether a file says of itself, in its first line, that it is a redacted export."""
    first = next(iter(lines_of(path, exported=True)), None)
    try:
        found = load(first.data) if first is not None else None
    except ValueError:
        return False
    return isinstance(found, dict) and found.get("schema") == EXPORT_SCHEMA


def check_redacted(path: Path, *, head: str = "") -> AuditCheck:
    """Whether each line names the digest that the next one follows from, without a gap, and `head` is among them.

    No more can be seen: what an entry says was left out, so its digest holds its place in the chain, not its words.
    """
    entries: list[Entry] = []
    for line in lines_of(path, exported=True):
        try:
            entry = _entry(line)
            if entries and (entry.seq, entry.prev) != (entries[-1].seq + 1, entries[-1].digest):
                raise ValueError("does not follow from the line before it")
        except ValueError as fault:
            seq = entries[-1].seq + 1 if entries else 0
            place = EntryLocation(file=line.file, line=line.number, seq=seq)
            return AuditCheck(standing=JournalStatus.ALTERED, entries=tuple(entries), place=place, reason=str(fault))
        entries.append(entry)
    if head and not any(entry.digest == head for entry in entries):
        place = EntryLocation(file=path.name, line=0, seq=entries[-1].seq + 1 if entries else 0)
        why = f"no entry has the digest {head}"
        return AuditCheck(standing=JournalStatus.ALTERED, entries=tuple(entries), place=place, reason=why)
    return AuditCheck(standing=JournalStatus.WHOLE, entries=tuple(entries))


def _entry(line: SegmentLine) -> Entry:
    if not line.whole:
        raise ValueError(f"the last line is cut after {len(line.data)} bytes")
    found = load(line.data)
    if not isinstance(found, dict) or set(found) != _KEYS or found["schema"] != EXPORT_SCHEMA:
        raise ValueError("not an entry of a redacted export")
    if canonical(found) != line.data + b"\n":
        raise ValueError("not written as localagent writes")
    seq, data = found["seq"], found["data"]
    right = type(seq) is int and seq >= 0 and isinstance(data, dict) and isinstance(found["at"], str)
    if not right or not all(isinstance(d, str) and DIGEST_FORM.fullmatch(d) for d in (found["prev"], found["digest"])):
        raise ValueError("not an entry of a redacted export")
    kind = AuditKind(found["kind"])
    return Entry(seq=seq, prev=found["prev"], at=found["at"], kind=kind, data=data, digest=found["digest"])
