"""State of one schema lies in a folder of its own: what a newer version needs is made beside, and renamed into place.

Schema 1 lies in the state directory itself, schema N in `schema-N` below it. The first run of a newer version copies
the newest older state, migrates the copy and renames it: a kill at any moment leaves the old state as it was and the
new one whole or absent. The old version goes on with its own, as it was at the upgrade. Not promised: that what an old
version writes after that is seen by the newer one. Imports nothing but the standard library and our errors.
"""

import fcntl
import os
import re
import shutil
import stat
from collections.abc import Callable, Mapping
from pathlib import Path

from localagent.errors import CannotEnforce
from localagent.fs.openat import sync_directory

SCHEMA = 1
Migration = Callable[[Path], None]
MIGRATIONS: Mapping[int, Migration] = {}  # by the schema that it starts from; each makes the next one of a copy
_BESIDE = re.compile(r"\.?schema-\d+(\.partial)?|\.schema\.lock|set-aside-schema-\d+-.*")


def live(base: Path, schema: int = SCHEMA) -> Path:
    """Where state of a schema lies, in the state directory `base`."""
    return base if schema == 1 else base / f"schema-{schema}"


def base_of(place: Path, schema: int = SCHEMA) -> Path:
    """The state directory in which state of a schema lies at `place`."""
    return place if schema == 1 else place.parent


def ready(base: Path, schema: int = SCHEMA, migrations: Mapping[int, Migration] | None = None) -> Path:
    """Where the state is, brought to this schema where only older state is there. CannotEnforce where it cannot be."""
    place = live(base, schema)
    if schema == 1 or place.is_dir() or not base.is_dir():
        return place
    try:
        with (base / ".schema.lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            newest = _newest_older(base, schema)
            if newest and not place.is_dir():
                _bring(live(base, newest), place, newest, schema, MIGRATIONS if migrations is None else migrations)
    except (OSError, ValueError, KeyError, shutil.Error) as fault:
        raise CannotEnforce(
            f"the state in {base} cannot be brought to schema {schema}: {type(fault).__name__}: {fault}",
            remedy="what stood before is as it was: `localagent-kit rollback` goes back to the version that reads it",
        ) from fault
    return place


def _newest_older(base: Path, schema: int) -> int:
    """The newest schema before this one of which there is state; 0 when there is none."""
    for number in range(schema - 1, 1, -1):
        if live(base, number).is_dir():
            return number
    return int(any(not _BESIDE.fullmatch(child.name) for child in base.iterdir()))


def _bring(source: Path, place: Path, first: int, schema: int, migrations: Mapping[int, Migration]) -> None:
    partial = place.with_name(f".{place.name}.partial")
    if partial.exists():
        shutil.rmtree(partial)
    shutil.copytree(source, partial, symlinks=True, ignore=_left_out)
    for number in range(first, schema):
        migrations[number](partial)
    os.sync()
    partial.rename(place)
    sync_directory(place.parent)


def _left_out(folder: str, names: list[str]) -> set[str]:
    """State of other schemas, and what is no state: sockets, pipes, devices."""
    kept = (stat.S_ISREG, stat.S_ISDIR, stat.S_ISLNK)
    modes = {name: os.lstat(Path(folder, name)).st_mode for name in names}
    return {name for name, mode in modes.items() if _BESIDE.fullmatch(name) or not any(is_(mode) for is_ in kept)}
