"""Which patch of a task is attested, and what persons did with it: the accepted one, or a proposal that was chosen.

What a proposal was, and how it did in its full check, stands in the task's facts, which were on the record before
anybody chose; that it was chosen and written is an entry of its own. Not promised: that it still stands in the tree;
a patch that was taken back says so among the approvals.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from localagent.domain.edit import Patch, digest_of
from localagent.domain.task import Verdict
from localagent.errors import AnswerIsNo
from localagent.fs.atomic_files import RecordDamaged
from localagent.record.attest.statement import CHOSEN
from localagent.record.audit.entry import AuditKind, Entry
from localagent.record.store import TaskRecord
from localagent.repo.diff.write_diff import unified_diff

_OF_THE_DIFF = (AuditKind.APPROVED, AuditKind.WITHDRAWN)
_OF_THE_TASK = (AuditKind.UNDONE,)


def attested_facts(record: TaskRecord, facts: Mapping[str, Any], mine: Sequence[Entry]) -> dict[str, Any]:
    """The facts of the patch that is attested. AnswerIsNo where there is none, RecordDamaged where it is another."""
    if facts["outcome"] == Verdict.ACCEPTED.value and facts["diff"]:
        _hold(record.patch(), facts, f"{record.dir / 'patch.json'} is not the patch that was accepted")
        return dict(facts)
    number = next((e.data.get("chosen") for e in reversed(mine) if e.kind is AuditKind.APPLIED), None)
    if not isinstance(number, int):
        raise AnswerIsNo(
            f"task {record.id} has no accepted patch to attest, and none that a person chose: {facts['outcome']}",
            remedy=f"`localagent show {record.id}` says why; a proposal is attested once "
            f"`localagent apply {record.id} --choose N` has written it",
        )
    proposals = {p["number"]: p for p in facts.get("proposals", ())}
    if number not in proposals:
        raise AnswerIsNo(
            f"proposal {number} of task {record.id} was written, but what its checks said was not kept then",
            remedy="run the task again: proposals are kept with their checks since this version",
        )
    found = {**facts, **{k: v for k, v in proposals[number].items() if k != "number"}, "outcome": CHOSEN}
    if len(proposals) > 1:
        found["strength"] = None  # measured, if at all, for no one of several
    where = record.dir / f"proposal-{number}.json"
    _hold(record.proposal(number), found, f"{where} is not the proposal that was checked")
    return found


def approvals_of(facts: Mapping[str, Any], mine: Sequence[Entry]) -> list[dict[str, Any]]:
    """What persons did with exactly this patch: approved, withdrawn, written, taken back."""
    return [
        {"kind": e.kind.value, "at": e.at, "by": e.data.get("by"), "entry": e.seq, "digest": e.digest}
        for e in mine
        if e.kind in _OF_THE_TASK
        or (e.kind in _OF_THE_DIFF and e.data.get("patch") == facts["diff"])
        or (e.kind is AuditKind.APPLIED and e.data.get("patch") == facts["patch"])
    ]


def _hold(patch: Patch | None, facts: Mapping[str, Any], fault: str) -> None:
    if patch is None or patch.digest != facts["patch"] or digest_of(unified_diff(patch)) != facts["diff"]:
        raise RecordDamaged(fault)
