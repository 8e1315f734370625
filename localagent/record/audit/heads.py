"""Signed heads: at task end, and when asked, the newest entry's number and digest are signed and kept.

A signed head shows that the journal up to it is the one that stood there when the key signed. Whoever holds the key can
sign another one: keep heads, or the key, where the journal's writers cannot reach.
"""

import base64
import fcntl
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from localagent.domain.edit import digest_of
from localagent.record.attest.dsse import NotVerified, Signer, open_envelope, sign
from localagent.record.audit.check import AuditCheck
from localagent.record.audit.entry import BEFORE_FIRST, now_text
from localagent.record.audit.segments import read_head, read_signed
from localagent.record.files import CannotRecord, RecordDamaged, write_private
from localagent.record.jsontext import canonical, load

PAYLOAD_TYPE = "application/vnd.localagent.audit-head+json"
_KEYS = {"at", "digest", "previous", "seq"}


@dataclass(frozen=True, kw_only=True, slots=True)
class SignedHead:
    """One signed head that holds."""

    seq: int
    digest: str
    at: str
    key_id: str


def sign_head(folder: Path, signer: Signer) -> SignedHead | None:
    """Sign the kept head and keep that; None where there is nothing to sign."""
    path = folder / "heads.jsonl"
    try:
        lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise CannotRecord(f"cannot sign the head in {folder}: {error.strerror or error}") from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        head, before = read_head(folder), read_signed(folder)
        if head is None or head.seq < 0:
            return None
        rows = before.splitlines(keepends=True)
        previous = digest_of(rows[-1]) if rows else BEFORE_FIRST
        at = now_text()
        payload = canonical({"at": at, "digest": head.digest, "previous": previous, "seq": head.seq})
        write_private(path, before + canonical(sign(signer, PAYLOAD_TYPE, payload)))
    finally:
        os.close(lock)
    return SignedHead(seq=head.seq, digest=head.digest, at=at, key_id=signer.key_id)


def signed_today(folder: Path) -> bool:
    """Whether the newest signed head says that it is of today (UTC); what it says is not verified here."""
    rows = read_signed(folder).splitlines()
    try:
        at = load(base64.b64decode(load(rows[-1])["payload"]))["at"] if rows else ""
    except (ValueError, TypeError, KeyError):
        return False
    return isinstance(at, str) and at[:10] == now_text()[:10]


def check_heads(
    folder: Path, check: AuditCheck, keys: Mapping[str, Ed25519PublicKey], *, last: int | None = None
) -> tuple[SignedHead, ...]:
    """Every signed head, each held against the entries. RecordDamaged with the line of the first that does not hold.

    Heads outside what was checked (before its first entry, behind `last`) must only be signed and in their order.
    """
    path = folder / "heads.jsonl"
    digests = {entry.seq: entry.digest for entry in check.entries}
    first = check.entries[0].seq if check.entries else 0
    previous = BEFORE_FIRST
    found: list[SignedHead] = []
    for number, row in enumerate(check.signed.splitlines(keepends=True), 1):
        head, follows = _opened(path, number, row, keys)
        if follows != previous:
            raise RecordDamaged(f"{path}:{number} does not follow from the signed head before it")
        previous = digest_of(row)
        inside = head.seq >= first and (last is None or head.seq <= last)
        if inside and digests.get(head.seq) != head.digest:
            what = "is missing" if head.seq not in digests else "is another one"
            raise RecordDamaged(f"{path}:{number}: entry {head.seq}, signed as {head.digest}, {what} in the journal")
        found.append(head)
    return tuple(found)


def _opened(path: Path, number: int, row: bytes, keys: Mapping[str, Ed25519PublicKey]) -> tuple[SignedHead, str]:
    try:
        opened = open_envelope(load(row), PAYLOAD_TYPE, keys)
        found = load(opened.payload)
        if not isinstance(found, dict) or set(found) != _KEYS or not isinstance(found["seq"], int):
            raise ValueError("not a head")
        texts = {name: found[name] for name in _KEYS - {"seq"}}
        if not all(isinstance(value, str) for value in texts.values()):
            raise ValueError("not a head")
    except (ValueError, NotVerified) as error:
        raise RecordDamaged(f"{path}:{number}: {error}") from error
    head = SignedHead(seq=found["seq"], digest=found["digest"], at=found["at"], key_id=opened.key_id)
    return head, str(found["previous"])
