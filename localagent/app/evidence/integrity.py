"""Whether what is about to be written, or put back, is what was on the record when the task ended.

The files of a task lie in the state directory, where whoever may write there can put another patch. The audit journal
has the digest of the task's facts, and they have each file's, before and after. Not compared: tasks whose end is not
in the journal here (the daemon's, and those of files that were retired); not shown: that the journal is the one that
was written, which signed heads do.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from localagent.app.evidence.task_evidence import WithoutEnd, digest_of_landing, recorded_facts
from localagent.app.settings import Settings
from localagent.domain.edit import Patch, digest_of
from localagent.fs.atomic_files import RecordDamaged
from localagent.record.audit.entry import AuditKind, Entry
from localagent.record.store import TaskRecord
from localagent.repo.apply_record import ABSENT, load_landing

Changed = dict[str, tuple[str, str]]  # digests before and after, by path


def hold_patch(settings: Settings, record: TaskRecord, patch: Patch) -> None:
    """RecordDamaged where the patch is neither the task's accepted one nor one of its proposals, as they were then."""
    changed = {str(c.path): (digest_of(c.before), digest_of(c.after)) for c in patch.changes}
    if (kept := _task_entries(settings, record)) is not None and changed not in _known(kept[0]):
        raise RecordDamaged(
            f"the patch kept in {record.dir} is not what task {record.id} ended with: it was altered",
            remedy="nothing was written; `localagent fix` does the task anew",
        )


def hold_undo(settings: Settings, record: TaskRecord) -> None:
    """RecordDamaged where what would be put back is not what the patch was made for; LandingDamaged, too."""
    landing = load_landing(record.dir / "undo")
    if landing is None or (kept := _task_entries(settings, record)) is None:
        return
    facts, mine = kept
    told = tuple((str(x.path), x.before, x.after) for x in landing.files)
    # a file that a patch leaves as it was is not in the record of its landing
    known = [{path: both for path, both in one.items() if both[0] != both[1]} for one in _known(facts)]
    if not any(
        {
            path: (_side(before), _side(after))
            for path, before, after in told
            if digest_of_landing(path, before, after) != test
        }
        in known
        for test in _tests(mine)
    ):
        raise RecordDamaged(
            f"what stands in {record.dir / 'undo'} is not what task {record.id} changed: it was altered",
            remedy="nothing was written; restore the files by hand, from git or a backup",
        )


def _side(digest: str) -> str:
    """One side of a file as the facts tell it, where what is not there is empty."""
    return digest_of(b"") if digest == ABSENT else digest


def _tests(mine: Sequence[Entry]) -> list[Any]:
    """The digests of the tests, None for none, that may stand in the record of the landing.

    The newest one that was ended, and those that were begun since: of them some were killed, others refused.
    """
    ended = max((n for n, e in enumerate(mine) if e.kind is AuditKind.APPLIED), default=0)
    landings = [e for e in mine[ended:] if e.kind in (AuditKind.APPLYING, AuditKind.APPLIED)]
    return [e.data.get("test") for e in landings] or [None]


def _task_entries(settings: Settings, record: TaskRecord) -> tuple[Mapping[str, Any], tuple[Entry, ...]] | None:
    """What is on the record, and the task's entries; None where nothing is. RecordDamaged for another repository."""
    try:
        facts, _, mine = recorded_facts(settings, record)
    except WithoutEnd:
        return None
    if facts["repo"] != record.task.repo:
        raise RecordDamaged(
            f"{record.dir / 'task.json'} names another repository than task {record.id} was about: it was altered",
            remedy=f"nothing was written; the task's repository is {facts['repo']}",
        )
    return facts, mine


def _known(facts: Mapping[str, Any]) -> list[Changed]:
    """Of the accepted patch, and of each proposal."""
    kept = [facts["files"], *(p["files"] for p in facts.get("proposals", ()))]
    return [{f["path"]: (f["before"], f["after"]) for f in files} for files in kept]
