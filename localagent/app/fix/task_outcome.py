"""What persons did with what a task found: the record of its landing, and whether it was rejected."""

from localagent.fs.atomic_files import RecordDamaged
from localagent.record.store import TaskRecord
from localagent.record.summary import Fate
from localagent.repo.apply_patch import landing_state
from localagent.repo.apply_record import LandingDamaged, LandState

_FATES = {LandState.LANDED: Fate.KEPT, LandState.UNDONE: Fate.TAKEN_BACK}


def fate_of(record: TaskRecord) -> Fate:
    """Open where nothing was done yet, or where a record is damaged."""
    try:
        if record.rejection() is not None:
            return Fate.REJECTED
        return _FATES.get(landing_state(record.dir / "undo"), Fate.OPEN)
    except (RecordDamaged, LandingDamaged):
        return Fate.OPEN
