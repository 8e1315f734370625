"""Where the audit journal lies: segments named by their first entry's number, and the head, the newest entry's digest.

Reading only. A segment is read whole: writing starts a new one long before the limit.
"""

import base64
import fcntl
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from localagent.fs.atomic_files import RecordDamaged, open_lock, read_bounded
from localagent.record.audit.entry import DIGEST
from localagent.text.strict_json import canonical, load

_NAME = re.compile(r"audit-(\d{12})\.jsonl", re.ASCII)
_MOST_BYTES = 64 << 20
_EXPORT_BYTES = 2 << 30  # all segments in one file
_HEAD_BYTES = 4096


@dataclass(frozen=True, kw_only=True, slots=True)
class Head:
    """The newest entry: how many there are is `seq` + 1; -1 before the first."""

    seq: int
    digest: str


@dataclass(frozen=True, kw_only=True, slots=True)
class SegmentLine:
    """A line as it lies in a file; `whole` is False for bytes behind the last newline."""

    file: str
    number: int
    data: bytes
    whole: bool = True


@contextmanager
def reading(folder: Path) -> Iterator[None]:
    """While inside, nobody writes: head, lines and signed heads belong together. No lock file: nobody ever did."""
    try:
        lock = open_lock(folder / "lock", make=False)
    except FileNotFoundError:
        yield
        return
    except OSError as error:
        raise RecordDamaged(f"cannot read {folder}: {error.strerror or error}") from error
    try:
        fcntl.flock(lock, fcntl.LOCK_SH)
        yield
    finally:
        os.close(lock)


def read_signed(folder: Path) -> bytes:
    """The signed heads as they are kept, nothing if there are none."""
    try:
        return read_bounded(folder / "heads.jsonl", _MOST_BYTES)
    except FileNotFoundError:
        return b""


def newest_signed(folder: Path) -> int | None:
    """The entry that the newest signed head says it is over, None without one; what it says is not verified here."""
    rows = read_signed(folder).splitlines()
    try:
        seq = load(base64.b64decode(load(rows[-1])["payload"]))["seq"] if rows else None
    except (ValueError, TypeError, KeyError) as error:
        raise RecordDamaged(f"{folder / 'heads.jsonl'}: the last line is no signed head") from error
    return seq if isinstance(seq, int) else None


def segment_name(first: int) -> str:
    """The file name of the segment that begins with entry `first`."""
    return f"audit-{first:012d}.jsonl"


def first_of(name: str) -> int | None:
    """The number of a segment's first entry by its name, None for any other name."""
    found = _NAME.fullmatch(name)
    return int(found[1]) if found else None


def segments(folder: Path) -> tuple[Path, ...]:
    """The segments, oldest first."""
    try:
        return tuple(sorted(p for p in folder.iterdir() if first_of(p.name) is not None))
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise RecordDamaged(f"cannot read {folder}: {error.strerror or error}") from error


def read_segment(path: Path) -> bytes:
    """A segment's bytes; RecordDamaged if it is no readable file."""
    try:
        return read_bounded(path, _MOST_BYTES)
    except FileNotFoundError as error:
        raise RecordDamaged(f"{path} went away while it was read") from error


def lines_of(path: Path, *, exported: bool = False) -> Iterator[SegmentLine]:
    """Every line of a segment, or of a file with all that was exported; a torn one behind the last newline included."""
    rows = (read_bounded(path, _EXPORT_BYTES) if exported else read_segment(path)).split(b"\n")
    torn = rows.pop()
    for number, row in enumerate(rows, 1):
        yield SegmentLine(file=path.name, number=number, data=row)
    if torn:
        yield SegmentLine(file=path.name, number=len(rows) + 1, data=torn, whole=False)


def head_bytes(head: Head) -> bytes:
    """The head as it is kept."""
    return canonical({"digest": head.digest, "seq": head.seq})


def read_head(folder: Path) -> Head | None:
    """The kept head; None if there is none, RecordDamaged if it is not one."""
    path = folder / "head.json"
    try:
        data = read_bounded(path, _HEAD_BYTES)
    except FileNotFoundError:
        return None
    try:
        found = load(data)
        seq, digest = found["seq"], found["digest"]
        right = isinstance(seq, int) and not isinstance(seq, bool) and isinstance(digest, str)
        if right and DIGEST.fullmatch(digest) and head_bytes(Head(seq=seq, digest=digest)) == data:
            return Head(seq=seq, digest=digest)
    except (ValueError, TypeError, KeyError):
        pass
    raise RecordDamaged(f"{path} is damaged: it does not name a newest entry")
