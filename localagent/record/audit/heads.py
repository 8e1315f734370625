"""Signed heads, checked: each the newest entry's number and digest, signed when it was that (`signing`).

A signed head shows that the journal up to it is the one that stood there when the key signed. Whoever holds the key can
sign another one: keep heads, or the key, where the journal's writers cannot reach. Not shown: that nothing was cut off
behind the newest head that is left.
"""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from localagent.domain.edit import digest_of
from localagent.fs.atomic_files import RecordDamaged, read_bounded
from localagent.record.attest.dsse import KeyUnknown, NotVerified, open_envelope
from localagent.record.audit.entry import BEFORE_FIRST, DIGEST, AuditKind, now_text
from localagent.record.audit.segments import read_signed
from localagent.record.audit.verify_chain import AuditCheck, EntrySpan
from localagent.text.strict_json import load
from localagent.text.visible_text import one_line

PAYLOAD_TYPE = "application/vnd.localagent.audit-head+json"
UNVERIFIABLE = "unverifiable"  # beside the standings of a journal: signed by a key that is not known here
_KEYS = {"at", "digest", "previous", "seq"}
_MEMORY_KEYS = {"digest", "line", "number", "seq"}
_MEMORY_BYTES = 4096


@dataclass(frozen=True, kw_only=True, slots=True)
class SignedHead:
    """One signed head that holds."""

    seq: int
    digest: str
    at: str
    key_id: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Remembered:
    """What a signer keeps beside its key of the newest head it signed: its entry, and the line in `heads.jsonl`."""

    seq: int
    digest: str
    number: int
    line: str


@dataclass(frozen=True, kw_only=True, slots=True)
class HeadsCheck:
    """The heads that hold. `unknown` says where others are signed by keys that are not known, "" if none is."""

    heads: tuple[SignedHead, ...] = ()
    unknown: str = ""


def read_memory(path: Path) -> Remembered | None:
    """What a signer remembers; None if it signed nothing yet, RecordDamaged for anything else."""
    try:
        found = load(read_bounded(path, _MEMORY_BYTES))
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise RecordDamaged(f"{path} is damaged: {error}") from error
    if not isinstance(found, dict) or set(found) != _MEMORY_KEYS:
        raise RecordDamaged(f"{path} is damaged: it does not say what was signed last")
    numbers = all(type(found[name]) is int and found[name] >= 0 for name in ("number", "seq"))
    if not numbers or not all(isinstance(found[n], str) and DIGEST.fullmatch(found[n]) for n in ("digest", "line")):
        raise RecordDamaged(f"{path} is damaged: it does not say what was signed last")
    return Remembered(**found)


def signed_today(folder: Path) -> bool:
    """Whether the newest signed head says that it is of today (UTC); what it says is not verified here."""
    rows = read_signed(folder).splitlines()
    try:
        at = load(base64.b64decode(load(rows[-1])["payload"]))["at"] if rows else ""
    except (ValueError, TypeError, KeyError):
        return False
    return isinstance(at, str) and at[:10] == now_text()[:10]


def check_heads(
    path: Path,
    check: AuditCheck,
    keys: Mapping[str, Ed25519PublicKey],
    *,
    span: EntrySpan | None = None,
    known: Remembered | None = None,
    opened: int = 0,
) -> HeadsCheck:
    """Every signed head, each held against the entries. RecordDamaged with the line of the first that does not hold.

    `path` is where they lie, for messages. Every signing is an entry too: heads that it names must be there. Heads
    outside what was checked (the span) must only be signed and in their order. `known`, what the signer remembers, must
    be there as well. The signatures of the first `opened` heads are not looked at: `known` vouches for them.
    """
    span = span or EntrySpan()
    rows = check.signed.splitlines(keepends=True)
    _named(path, check, rows)
    _remembered(path, check, rows, span, known)
    digests = {entry.seq: entry.digest for entry in check.entries}
    first = check.entries[0].seq if check.entries else 0
    previous = digest_of(rows[opened - 1]) if opened else BEFORE_FIRST
    found: list[SignedHead] = []
    unknown: dict[str, int] = {}
    for number, row in enumerate(rows[opened:], opened + 1):
        try:
            head, follows = _opened(path, number, row, keys)
        except KeyUnknown as no:
            unknown.setdefault(no.key_ids, number)
            previous = digest_of(row)
            continue
        if follows != previous:
            raise RecordDamaged(f"{path}:{number} does not follow from the signed head before it")
        previous = digest_of(row)
        inside = head.seq >= first and (span.last is None or head.seq <= span.last)
        if inside and digests.get(head.seq) != head.digest:
            what = "is missing" if head.seq not in digests else "is another one"
            raise RecordDamaged(f"{path}:{number}: entry {head.seq}, signed as {head.digest}, {what} in the journal")
        found.append(head)
    if found and not span.first and found[-1].seq < first:
        raise RecordDamaged(f"{path}: the newest signed head is over entry {found[-1].seq}, before all that are here")
    told = "; ".join(f"{path}:{number} is signed by {key}, which is not known here" for key, number in unknown.items())
    return HeadsCheck(heads=tuple(found), unknown=told)


def heads_upto(signed: bytes, last: int) -> list[bytes]:
    """The lines of signed heads over entries up to `last`: they go with an export."""
    rows = signed.splitlines(keepends=True)
    try:
        over = [load(base64.b64decode(load(row)["payload"]))["seq"] for row in rows]
        return [row for row, seq in zip(rows, over, strict=True) if seq <= last]
    except (ValueError, TypeError, KeyError) as error:
        raise RecordDamaged(f"heads.jsonl holds a line that is no signed head: {error}") from error


def began_anew(check: AuditCheck) -> str:
    """What a journal says of one that was set aside for it, "" where it began as journals do."""
    first = check.entries[0] if check.entries else None
    if first is None or first.kind is not AuditKind.SET_ASIDE:
        return ""
    signed = first.data.get("signed") or {}
    upto = f", signed up to entry {signed.get('seq')}," if isinstance(signed, dict) and signed else ""
    return f"an earlier journal{upto} was set aside on {first.at[:19]}, in {one_line(str(first.data.get('folder')))}"


def _named(path: Path, check: AuditCheck, rows: Sequence[bytes]) -> None:
    """Heads of which the journal says that they were signed. The newest may be one that it does not name yet."""
    for entry in check.entries:
        if entry.kind is not AuditKind.HEAD_SIGNED:
            continue
        number, line = entry.data.get("number"), entry.data.get("line")
        if type(number) is not int or not 0 < number <= len(rows) or digest_of(rows[number - 1]) != line:
            what = "is missing" if type(number) is int and number > len(rows) else "is another one"
            raise RecordDamaged(f"{path}: signed head {number}, which entry {entry.seq} names, {what}")


def _remembered(
    path: Path, check: AuditCheck, rows: Sequence[bytes], span: EntrySpan, known: Remembered | None
) -> None:
    """What the signer remembers is still there, or is named by a journal that began anew on the record."""
    if known is None or span.first or (span.last is not None and span.last < known.seq):
        return
    first = check.entries[0] if check.entries else None
    if first is not None and first.kind is AuditKind.SET_ASIDE:
        signed = first.data.get("signed")
        if isinstance(signed, dict) and signed.get("digest") == known.digest:
            return
    if not any(e.seq == known.seq and e.digest == known.digest for e in check.entries):
        raise RecordDamaged(
            f"the key here signed entry {known.seq} as {known.digest}, and the journal has no such entry: it was cut, "
            "written anew, or is an older one",
            remedy="if that is meant, `localagent audit rotate --set-aside` begins anew and says so",
        )
    if known.number > len(rows) or digest_of(rows[known.number - 1]) != known.line:
        raise RecordDamaged(
            f"{path}: signed head {known.number}, which the key here signed, is missing or another one",
            remedy="if that is meant, `localagent audit rotate --set-aside` begins anew and says so",
        )


def _opened(path: Path, number: int, row: bytes, keys: Mapping[str, Ed25519PublicKey]) -> tuple[SignedHead, str]:
    try:
        opened = open_envelope(load(row), PAYLOAD_TYPE, keys)
        found = load(opened.payload)
        if not isinstance(found, dict) or set(found) != _KEYS or not isinstance(found["seq"], int):
            raise ValueError("not a head")
        texts = {name: found[name] for name in _KEYS - {"seq"}}
        if not all(isinstance(value, str) for value in texts.values()):
            raise ValueError("not a head")
    except KeyUnknown:
        raise
    except (ValueError, NotVerified) as error:
        raise RecordDamaged(f"{path}:{number}: {error}") from error
    head = SignedHead(seq=found["seq"], digest=found["digest"], at=found["at"], key_id=opened.key_id)
    return head, str(found["previous"])
