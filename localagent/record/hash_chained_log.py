"""What people decided, a line each, in a file whose lines are bound to the ones before by their digests.

Replaced as a whole under a lock, so a killed process leaves the old file or the new one. It keeps out what cannot reach
the user's state directory: everything in a jail. It keeps out neither the user nor a program of theirs outside a jail.
"""

import fcntl
import os
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from localagent.domain.edit import digest_of
from localagent.fs.atomic_files import CannotRecord, RecordDamaged, open_lock, read_bounded, write_private
from localagent.record.journal import BEFORE_FIRST, JournalStatus, read_journal, verify_journal
from localagent.text.strict_json import dump

_MOST_BYTES = 64 << 20


class Ledger:
    """The lines of one file, of the kinds and with the texts that it may hold. Creating the value touches nothing."""

    def __init__(self, path: Path, kinds: Collection[str], keys: Collection[str], what: str) -> None:
        self.path = path
        self._kinds, self._keys, self._what = frozenset(kinds), frozenset(keys), what

    def entries(self) -> Iterator[tuple[str, dict[str, str]]]:
        """(kind, texts) of every line, oldest first. RecordDamaged if the file was altered or cut."""
        try:
            self._whole()
            entries = read_journal(self.path)
        except FileNotFoundError:
            return
        for number, entry in enumerate(entries, 1):
            data = entry["data"]
            if (
                entry["kind"] not in self._kinds
                or not isinstance(data, dict)
                or set(data) != self._keys
                or not all(isinstance(value, str) for value in data.values())
            ):
                raise RecordDamaged(f"{self.path}:{number} is not {self._what}")
            yield entry["kind"], data

    def append(self, kind: str, data: Mapping[str, str]) -> str:
        """Add a line; returns its digest."""
        with self._locked():
            try:
                tip, before = self._whole(), read_bounded(self.path, _MOST_BYTES)
            except FileNotFoundError:
                tip, before = BEFORE_FIRST, b""
            entry = {"seq": before.count(b"\n"), "prev": tip, "at": round(time.time(), 3), "kind": kind}
            line = dump({**entry, "data": dict(data)})
            write_private(self.path, before + line)
            return digest_of(line)

    def _whole(self) -> str:
        """The digest of the last line; RecordDamaged unless every line holds."""
        check = verify_journal(self.path)
        if check.standing is not JournalStatus.WHOLE:
            raise RecordDamaged(
                f"{self.path} was altered: {check.reason}",
                remedy="look at what was altered, put the file right or away, then approve anew what is needed",
            )
        return check.tip

    @contextmanager
    def _locked(self) -> Iterator[None]:
        folder = self.path.parent
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = open_lock(folder / "lock")
        except OSError as error:
            raise CannotRecord(
                f"cannot keep approvals in {folder}: {error.strerror or error}",
                remedy="set XDG_STATE_HOME to a directory that you may write to",
            ) from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)
