"""Signing heads: at task end, and when asked, the newest entry's number and digest are signed, and that is an entry.

Before it signs, the journal must hold from the last head on that the signer remembers, and that head must be in it: a
journal that was cut or written anew is not signed. The memory lies beside the key. Not promised: that whoever can write
the journal *and* the folder of the key cannot make it forget, and so have the next signing vouch for another journal;
heads, or a recorder, of another user's are for that.

Killed between the signed head and its entry, a signing leaves a head that no entry names: that holds, and the next one
goes on from it.
"""

import hashlib
import os
from dataclasses import asdict
from pathlib import Path

from localagent.domain.edit import digest_of
from localagent.fs.atomic_files import RecordDamaged, write_private
from localagent.record.attest.dsse import Signer, sign
from localagent.record.attest.keys import KeyRing
from localagent.record.audit.entry import BEFORE_FIRST, AuditKind, now_text
from localagent.record.audit.heads import PAYLOAD_TYPE, Remembered, SignedHead, check_heads, read_memory
from localagent.record.audit.log import AuditLog
from localagent.record.audit.segments import first_of, read_signed, segments
from localagent.record.audit.verify_chain import EntrySpan, check_locked
from localagent.record.journal import JournalStatus
from localagent.text.strict_json import canonical


def memory_of(ring: KeyRing, folder: Path) -> Path:
    """Where the keys of a ring remember what they signed of the journal in a folder."""
    name = hashlib.sha256(os.fsencode(os.path.realpath(folder))).hexdigest()[:32]
    return ring.folder / f"signed-{name}.json"


def sign_head(log: AuditLog, ring: KeyRing, signer: Signer) -> SignedHead | None:
    """Sign the newest entry and put that on the record; None where there is nothing to sign.

    RecordDamaged where the journal, its signed heads, or what was signed before does not hold: nothing is signed then.
    """
    path, memory = log.folder / "heads.jsonl", memory_of(ring, log.folder)
    with log.exclusive() as append:
        known = read_memory(memory)
        check = check_locked(log.folder, EntrySpan(first=_from(log.folder, known)))
        if check.standing is not JournalStatus.WHOLE:
            raise RecordDamaged(
                f"the journal does not hold at {check.place}: {check.reason}; its head is not signed",
                remedy="`localagent audit verify` says more",
            )
        goes_on = known is not None and any(e.digest == known.digest for e in check.entries)
        opened = known.number if known is not None and goes_on else 0
        check_heads(path, check, ring.public_keys(), known=known, opened=opened)
        if not check.entries:
            return None
        ring.keep_public(signer.private.public_key())
        before, at, tip = read_signed(log.folder), now_text(), check.tip
        rows = before.splitlines(keepends=True)
        previous = digest_of(rows[-1]) if rows else BEFORE_FIRST
        payload = canonical({"at": at, "digest": tip.digest, "previous": previous, "seq": tip.seq})
        line = canonical(sign(signer, PAYLOAD_TYPE, payload))
        write_private(path, before + line)
        now = Remembered(seq=tip.seq, digest=tip.digest, number=len(rows) + 1, line=digest_of(line))
        said = {"entry": now.seq, "digest": now.digest, "number": now.number, "line": now.line, "key": signer.key_id}
        append(AuditKind.HEAD_SIGNED, said)
        write_private(memory, canonical(asdict(now)))
    return SignedHead(seq=tip.seq, digest=tip.digest, at=at, key_id=signer.key_id)


def _from(folder: Path, known: Remembered | None) -> int | None:
    """The entry to check from: the last one signed, where its segment is here; else all that is there."""
    there = segments(folder)
    if known is None or not there or (first_of(there[0].name) or 0) > known.seq:
        return None
    return known.seq
