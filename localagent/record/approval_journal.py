"""Who approved what, when and why: `<state>/patches/approvals.jsonl` and `<state>/dependencies/approvals.jsonl`.

Each line is bound to the ones before by their digests. A file is replaced as a whole under a lock, so a killed process
leaves the old one or the new one. This keeps out what cannot reach the user's state directory: everything in a jail. It
keeps out neither the user nor a program of theirs outside a jail; where that is too little the policy takes no
approvals here (`dependencies.approvals` and `approvals.by_asker` are "deny").
"""

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import MISSING, asdict, dataclass, fields
from pathlib import Path
from typing import Generic, TypeVar

from localagent.domain.dependency import DependencyApproval
from localagent.domain.edit import digest_of
from localagent.domain.review import PatchApproval
from localagent.fs.atomic_files import RecordDamaged, locked_folder, read_bounded, write_private
from localagent.record.audit.entry import AuditKind
from localagent.record.audit.log import AuditLog
from localagent.record.journal import BEFORE_FIRST, JournalStatus, read_journal, verify_journal
from localagent.text.strict_json import dump

_MOST_BYTES = 64 << 20
_REMEDY = "set XDG_STATE_HOME to a directory that you may write to"
Approval = TypeVar("Approval", PatchApproval, DependencyApproval)
_KINDS = (AuditKind.APPROVED, AuditKind.WITHDRAWN)


@dataclass(frozen=True, kw_only=True, slots=True)
class ApprovalJournal(Generic[Approval]):
    """The approvals of one type below one state directory. Creating the value touches nothing.

    `subject`: what an approval is of; a withdrawal takes back all approvals of an equal one. `audited` are the fields
    that the audit log names, those in `optional` only where they are not empty.
    """

    state_dir: Path
    folder: str
    type: type[Approval]
    subject: Callable[[Approval], tuple[str, ...]]
    audited: tuple[str, ...]
    optional: tuple[str, ...] = ()

    @property
    def path(self) -> Path:
        """The file, which may not exist yet."""
        return self.state_dir / self.folder / "approvals.jsonl"

    def standing(self) -> tuple[Approval, ...]:
        """Every approval that was not withdrawn, oldest first. RecordDamaged if the file was altered or cut."""
        found: list[Approval] = []
        for kind, approval in self._entries():
            if kind is AuditKind.WITHDRAWN:
                found = [one for one in found if self.subject(one) != self.subject(approval)]
            else:
                found.append(approval)
        return tuple(found)

    def approve(self, approval: Approval) -> str:
        """Record an approval; returns the digest of its line."""
        return self._record(AuditKind.APPROVED, approval)

    def withdraw(self, approval: Approval) -> str:
        """Take back every approval of the same subject; returns the digest of the line, which says who and why."""
        return self._record(AuditKind.WITHDRAWN, approval)

    def _record(self, kind: AuditKind, approval: Approval) -> str:
        audit, texts = AuditLog(self.state_dir), asdict(approval)
        audit.ready()
        digest = self._append(kind, texts)
        named = {name: texts[name] for name in self.audited if texts[name] or name not in self.optional}
        audit.append(kind, {**named, "line": digest, "by": os.getuid()})
        return digest

    def _entries(self) -> Iterator[tuple[AuditKind, Approval]]:
        names = {field.name for field in fields(self.type)}
        needed = {field.name for field in fields(self.type) if field.default is MISSING}  # the others may be newer
        try:
            self._tip()
            entries = read_journal(self.path)
        except FileNotFoundError:
            return
        for number, entry in enumerate(entries, 1):
            kind, data = entry["kind"], entry["data"]
            if (
                kind not in _KINDS
                or not isinstance(data, dict)
                or not needed <= set(data) <= names
                or not all(isinstance(value, str) for value in data.values())
            ):
                raise RecordDamaged(f"{self.path}:{number} is not an approval")
            yield AuditKind(kind), self.type(**data)

    def _append(self, kind: AuditKind, texts: dict[str, str]) -> str:
        with locked_folder(self.path.parent, "approvals", _REMEDY):
            try:
                tip, before = self._tip(), read_bounded(self.path, _MOST_BYTES)
            except FileNotFoundError:
                tip, before = BEFORE_FIRST, b""
            entry = {"seq": before.count(b"\n"), "prev": tip, "at": round(time.time(), 3), "kind": kind, "data": texts}
            line = dump(entry)
            write_private(self.path, before + line)
            return digest_of(line)

    def _tip(self) -> str:
        """The digest of the last line; RecordDamaged unless every line holds."""
        check = verify_journal(self.path)
        if check.standing is not JournalStatus.WHOLE:
            raise RecordDamaged(
                f"{self.path} was altered: {check.reason}",
                remedy="look at what was altered, put the file right or away, then approve anew what is needed",
            )
        return check.tip


def patch_approvals(state_dir: Path) -> ApprovalJournal[PatchApproval]:
    """Approvals of patches, each for one change of one repository."""
    return ApprovalJournal(
        state_dir=state_dir,
        folder="patches",
        type=PatchApproval,
        subject=lambda approval: (approval.patch, approval.repo),
        audited=("patch", "change", "repo", "task"),
        optional=("task",),
    )


def dependency_approvals(state_dir: Path) -> ApprovalJournal[DependencyApproval]:
    """Approvals of distributions, each for a name or one version of it."""
    return ApprovalJournal(
        state_dir=state_dir,
        folder="dependencies",
        type=DependencyApproval,
        subject=lambda approval: (approval.name,),
        audited=("name", "version"),
    )
