"""Who let which distribution in, when and why: a journal of its own, each line bound to the one before by its digest.

One file for the user, `<state>/dependencies/approvals.jsonl`, replaced as a whole under a lock, so a killed process
leaves the old one or the new one. It keeps out what cannot reach the user's state directory: everything in a jail. It
does not keep out the user, nor a program that runs as the user outside a jail: where that matters the policy says
`approvals = "deny"`.
"""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from localagent.domain.dependency import Approval
from localagent.domain.edit import digest_of
from localagent.record.audit.entry import AuditKind
from localagent.record.audit.log import AuditLog
from localagent.record.files import CannotRecord, RecordDamaged, read_bounded, write_private
from localagent.record.journal import BEFORE_FIRST, Standing, read_journal, verify_journal
from localagent.record.jsontext import dump

APPROVED = "approved"
WITHDRAWN = "withdrawn"
_MOST_BYTES = 64 << 20
_KEYS = {field.name for field in fields(Approval)}


class ApprovalStore:
    """The approvals below one state directory. Creating the value touches nothing."""

    def __init__(self, state_dir: Path) -> None:
        self._audit = AuditLog(state_dir)
        self._folder = state_dir / "dependencies"
        self.path = self._folder / "approvals.jsonl"

    def standing(self) -> tuple[Approval, ...]:
        """Every approval that was not withdrawn, oldest first. RecordDamaged if the journal was altered or cut."""
        found: list[Approval] = []
        for approval, kind in self._entries():
            if kind == WITHDRAWN:
                found = [kept for kept in found if kept.name != approval.name]
            else:
                found.append(approval)
        return tuple(found)

    def approve(self, approval: Approval) -> str:
        """Record an approval; returns the digest of its line."""
        return self._append(APPROVED, approval)

    def withdraw(self, approval: Approval) -> str:
        """Take back every approval of a name; returns the digest of the line. `reason`, `who` and `at` say why."""
        return self._append(WITHDRAWN, approval)

    def _entries(self) -> Iterator[tuple[Approval, str]]:
        try:
            self._whole()
            entries = read_journal(self.path)
        except FileNotFoundError:
            return
        for number, entry in enumerate(entries, 1):
            yield self._parsed(entry, number), entry["kind"]

    def _parsed(self, entry: dict[str, Any], number: int) -> Approval:
        data = entry["data"]
        if (
            entry["kind"] not in (APPROVED, WITHDRAWN)
            or not isinstance(data, dict)
            or set(data) != _KEYS
            or not all(isinstance(value, str) for value in data.values())
        ):
            raise RecordDamaged(f"{self.path}:{number} is not an approval")
        return Approval(**data)

    def _whole(self) -> str:
        """The digest of the last line; RecordDamaged unless every line holds."""
        check = verify_journal(self.path)
        if check.standing is not Standing.WHOLE:
            raise RecordDamaged(
                f"{self.path} was altered: {check.reason}",
                remedy="look at what was altered, put the file right or away, then approve anew what is needed",
            )
        return check.tip

    def _append(self, kind: str, approval: Approval) -> str:
        self._audit.ready()
        with self._locked():
            try:
                tip, before = self._whole(), read_bounded(self.path, _MOST_BYTES)
            except FileNotFoundError:
                tip, before = BEFORE_FIRST, b""
            entry = {"seq": before.count(b"\n"), "prev": tip, "at": round(time.time(), 3), "kind": kind}
            line = dump({**entry, "data": asdict(approval)})
            write_private(self.path, before + line)
        digest = digest_of(line)
        event = AuditKind.APPROVED if kind == APPROVED else AuditKind.WITHDRAWN
        data = {"name": approval.name, "version": approval.version, "line": digest, "by": os.getuid()}
        self._audit.append(event, data)
        return digest

    @contextmanager
    def _locked(self) -> Iterator[None]:
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = os.open(self._folder / "lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise CannotRecord(
                f"cannot keep approvals in {self._folder}: {error.strerror or error}",
                remedy="set XDG_STATE_HOME to a directory that you may write to",
            ) from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)
