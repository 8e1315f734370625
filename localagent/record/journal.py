"""The journal of one task: one event a line, appended, each line bound to the one before it by its digest.

Shows that nothing was cut out, reordered or altered within what is there. Does not show that the end is there (a cut
tail is a shorter, valid journal), nor keep the same user from writing a whole new one: that takes a signature.
"""

import fcntl
import os
import threading
import time
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import Any

from localagent.domain.edit import digest_of
from localagent.domain.task import Event
from localagent.errors import UsageFault
from localagent.fs.atomic_files import CannotRecord, RecordDamaged, read_bounded
from localagent.fs.openat import open_append, write_all
from localagent.text.strict_json import dump, load

BEFORE_FIRST = "sha256:" + "0" * 64
_SYNC_LINES = 200
_SYNC_SECONDS = 2.0
_MOST_BYTES = 1 << 30
_MOST_LINE_BYTES = 1 << 20


class Journal:
    """A sink that keeps events. Safe for use from several threads. Synced in batches, at stages and when closed.

    The first failure to write is raised as CannotRecord; after it events are dropped, so that a task can still end.
    """

    def __init__(self, path: Path, *, new: bool = True) -> None:
        self._lock = threading.Lock()
        self._previous = BEFORE_FIRST
        self._sequence = 0
        self._unsynced = 0
        self._synced_at = time.monotonic()
        self._broken = False
        self._path = path
        try:
            self._descriptor = open_append(path, new=new)
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(self._descriptor)
            raise UsageFault(
                f"another localagent is writing the journal {path}", remedy="wait until it has ended, or end it"
            ) from error
        except OSError as error:
            raise _cannot(path, error) from error

    @classmethod
    def reopened(cls, path: Path) -> "Journal":
        """A journal that goes on where its last whole line stands. RecordDamaged if it was altered."""
        journal = cls(path, new=False)
        try:
            check = verify_journal(path)
            if check.standing is JournalStatus.ALTERED:
                raise RecordDamaged(f"{path}: {check.reason}", remedy="it cannot be gone on with; begin anew")
            if check.standing is JournalStatus.TORN:
                whole = read_bounded(path, _MOST_BYTES).rfind(b"\n") + 1
                os.ftruncate(journal._descriptor, whole)
        except BaseException:
            journal.close()
            raise
        journal._sequence, journal._previous = check.lines, check.tip
        return journal

    @property
    def tip(self) -> tuple[int, str]:
        """How many lines were written, and the digest of the last of them."""
        with self._lock:
            return self._sequence, self._previous

    def __enter__(self) -> "Journal":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def emit(self, event: Event) -> None:
        """Append one event."""
        with self._lock:
            if self._broken or self._descriptor < 0:
                return
            line = self._line(event)
            try:
                write_all(self._descriptor, line)
                self._previous, self._sequence = digest_of(line), self._sequence + 1
                self._sync(now=event.kind == "stage" or event.kind.startswith(("full", "agent-")))
            except OSError as error:
                self._broken = True
                raise _cannot(self._path, error) from error

    def close(self) -> None:
        """Sync and close; a second call does nothing."""
        with self._lock:
            if self._descriptor < 0:
                return
            descriptor, self._descriptor = self._descriptor, -1
            try:
                os.fsync(descriptor)
            except OSError as error:
                if not self._broken:
                    raise _cannot(self._path, error) from error
            finally:
                os.close(descriptor)

    def _line(self, event: Event) -> bytes:
        entry = {"seq": self._sequence, "prev": self._previous, "at": round(event.at_seconds, 6), "kind": event.kind}
        line = dump({**entry, "data": event.data})
        if len(line) > _MOST_LINE_BYTES:
            line = dump({**entry, "data": {"left_out": f"{len(line)} bytes"}})
        return line

    def _sync(self, *, now: bool) -> None:
        self._unsynced += 1
        if now or self._unsynced >= _SYNC_LINES or time.monotonic() - self._synced_at >= _SYNC_SECONDS:
            os.fsync(self._descriptor)
            self._unsynced, self._synced_at = 0, time.monotonic()


def _cannot(path: Path, error: OSError) -> CannotRecord:
    return CannotRecord(
        f"cannot keep the journal {path}: {error.strerror or error}",
        remedy="free space, or set XDG_STATE_HOME to a directory that you may write to",
    )


class JournalStatus(StrEnum):
    """What a journal proves to be."""

    WHOLE = "whole"
    TORN = "torn"  # whole up to a last line that was being written when the process ended
    ALTERED = "altered"


@dataclass(frozen=True, kw_only=True, slots=True)
class JournalCheck:
    """The answer of `verify_journal`. `lines` are those that hold; `tip` is the digest of the last of them."""

    standing: JournalStatus
    lines: int
    tip: str
    reason: str = ""


def verify_journal(path: Path) -> JournalCheck:
    """Check every line against the one before it. RecordDamaged if it cannot be read, FileNotFoundError if absent."""
    lines = read_bounded(path, _MOST_BYTES).split(b"\n")
    torn = lines.pop()
    previous = BEFORE_FIRST
    for number, line in enumerate(lines):
        if wrong := _wrong(line, number, previous):
            return JournalCheck(
                standing=JournalStatus.ALTERED, lines=number, tip=previous, reason=f"line {number + 1}: {wrong}"
            )
        previous = digest_of(line + b"\n")
    if torn:
        reason = f"the last line is cut after {len(torn)} bytes"
        return JournalCheck(standing=JournalStatus.TORN, lines=len(lines), tip=previous, reason=reason)
    return JournalCheck(standing=JournalStatus.WHOLE, lines=len(lines), tip=previous)


def _wrong(line: bytes, number: int, previous: str) -> str:
    try:
        entry = load(line)
    except ValueError as error:
        return f"not JSON: {error}"
    if not isinstance(entry, dict) or set(entry) != {"seq", "prev", "at", "kind", "data"}:
        return "not an entry of a journal"
    if entry["seq"] != number:
        return f"sequence {entry['seq']!r}, expected {number}"
    return "" if entry["prev"] == previous else "does not follow from the line before it"


def read_journal(path: Path) -> list[dict[str, Any]]:
    """The entries of a journal that holds, a torn last line left out. RecordDamaged if it was altered."""
    check = verify_journal(path)
    if check.standing is JournalStatus.ALTERED:
        raise RecordDamaged(f"{path}: {check.reason}")
    return [load(line) for line in read_bounded(path, _MOST_BYTES).split(b"\n")[: check.lines]]
