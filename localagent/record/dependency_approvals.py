"""Who let which distribution in, when and why: a ledger of its own, `<state>/dependencies/approvals.jsonl`.

What a ledger keeps out, and what not, is said in `localagent.record.hash_chained_log`; where that is too little the
policy says `approvals = "deny"`.
"""

import os
from collections.abc import Iterator
from dataclasses import asdict, fields
from pathlib import Path

from localagent.domain.dependency import DependencyApproval
from localagent.record.audit.entry import AuditKind
from localagent.record.audit.log import AuditLog
from localagent.record.hash_chained_log import Ledger

APPROVED = "approved"
WITHDRAWN = "withdrawn"
_KEYS = {field.name for field in fields(DependencyApproval)}


class ApprovalStore:
    """The approvals below one state directory. Creating the value touches nothing."""

    def __init__(self, state_dir: Path) -> None:
        self._audit = AuditLog(state_dir)
        self.path = state_dir / "dependencies" / "approvals.jsonl"
        self._ledger = Ledger(self.path, {APPROVED, WITHDRAWN}, _KEYS, "an approval")

    def standing(self) -> tuple[DependencyApproval, ...]:
        """Every approval that was not withdrawn, oldest first. RecordDamaged if the journal was altered or cut."""
        found: list[DependencyApproval] = []
        for approval, kind in self._entries():
            if kind == WITHDRAWN:
                found = [kept for kept in found if kept.name != approval.name]
            else:
                found.append(approval)
        return tuple(found)

    def approve(self, approval: DependencyApproval) -> str:
        """Record an approval; returns the digest of its line."""
        return self._append(APPROVED, approval)

    def withdraw(self, approval: DependencyApproval) -> str:
        """Take back every approval of a name; returns the digest of the line. `reason`, `who` and `at` say why."""
        return self._append(WITHDRAWN, approval)

    def _entries(self) -> Iterator[tuple[DependencyApproval, str]]:
        yield from ((DependencyApproval(**data), kind) for kind, data in self._ledger.entries())

    def _append(self, kind: str, approval: DependencyApproval) -> str:
        self._audit.ready()
        digest = self._ledger.append(kind, asdict(approval))
        event = AuditKind.APPROVED if kind == APPROVED else AuditKind.WITHDRAWN
        data = {"name": approval.name, "version": approval.version, "line": digest, "by": os.getuid()}
        self._audit.append(event, data)
        return digest
