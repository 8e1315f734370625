"""Which patches that need a person somebody approved, when and why: `<state>/patches/approvals.jsonl`, a ledger.

An approval holds for one change of one repository: the digest of the patch and that of what it makes of the files.
"""

import os
from dataclasses import asdict, fields
from pathlib import Path

from localagent.domain.review import PatchApproval
from localagent.record.audit.entry import AuditKind
from localagent.record.audit.log import AuditLog
from localagent.record.hash_chained_log import Ledger

APPROVED = "approved"
WITHDRAWN = "withdrawn"
_KEYS = {field.name for field in fields(PatchApproval)}


class PatchApprovals:
    """The approvals of patches below one state directory. Creating the value touches nothing."""

    def __init__(self, state_dir: Path) -> None:
        self.path = state_dir / "patches" / "approvals.jsonl"
        self._audit = AuditLog(state_dir)
        self._ledger = Ledger(self.path, {APPROVED, WITHDRAWN}, _KEYS, "an approval of a patch")

    def standing(self, patch: str, change: str, repo: str) -> tuple[PatchApproval, ...]:
        """The approvals of exactly this change that were not withdrawn. RecordDamaged if the ledger was altered."""
        found: list[PatchApproval] = []
        for kind, data in self._ledger.entries():
            approval = PatchApproval(**data)
            if (approval.patch, approval.repo) != (patch, repo):
                continue
            if kind == WITHDRAWN:
                found.clear()
            elif approval.change == change:
                found.append(approval)
        return tuple(found)

    def approve(self, approval: PatchApproval) -> str:
        """Record an approval; returns the digest of its line."""
        return self._append(APPROVED, approval)

    def withdraw(self, approval: PatchApproval) -> str:
        """Take back every approval of the patch in its repository; returns the digest of the line."""
        return self._append(WITHDRAWN, approval)

    def _append(self, kind: str, approval: PatchApproval) -> str:
        self._audit.ready()
        digest = self._ledger.append(kind, asdict(approval))
        event = AuditKind.APPROVED if kind == APPROVED else AuditKind.WITHDRAWN
        data = {"patch": approval.patch, "change": approval.change, "repo": approval.repo, "line": digest}
        if approval.task:
            data["task"] = approval.task
        self._audit.append(event, {**data, "by": os.getuid()})
        return digest
