"""What persons did with what a task found: the record of its landing, and whether it was rejected."""

from localagent.fs.atomic_files import RecordDamaged
from localagent.record.store import TaskRecord
from localagent.record.summary import PatchFate
from localagent.repo.apply_patch import landing_state
from localagent.repo.apply_record import LandingDamaged, LandState

_FATES = {LandState.LANDED: PatchFate.KEPT, LandState.UNDONE: PatchFate.TAKEN_BACK}


def fate_of(record: TaskRecord) -> PatchFate:
    """Open where nothing was done yet, or where a record is damaged."""
    try:
        if record.rejection() is not None:
            return PatchFate.REJECTED
        return _FATES.get(landing_state(record.dir / "undo"), PatchFate.OPEN)
    except (RecordDamaged, LandingDamaged):
        return PatchFate.OPEN
