"""Reading and writing our own files: whole or not at all, bounded, never through a link.

Does not promise that a file is unread by the same user; and `write_through` is atomic only where a rename can be
(not on devices, pipes and mount points, which are written in place).
"""

import contextlib
import errno
import os
import secrets
import stat
from pathlib import Path

from localagent.errors import AnswerIsNo, UsageFault


class CannotRecord(AnswerIsNo):
    """Something could not be written: no space, no right, no directory. What stood there before still stands."""


class RecordDamaged(AnswerIsNo):
    """A file of ours does not hold what we wrote: cut short, altered, or not a regular file."""


def _why(error: OSError) -> str:
    return os.strerror(error.errno) if error.errno else str(error)


def _remedy(error: OSError, path: Path) -> str:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"free space on the file system of {path.parent}"
    return f"make {path.parent} a directory that you may write to"


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def sync_directory(directory: Path) -> None:
    """Make a rename in `directory` durable; file systems that cannot sync a directory are let be."""
    with contextlib.suppress(OSError):
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _replace(path: Path, data: bytes, mode: int, *, exact_mode: bool) -> None:
    """Write beside `path`, sync, rename over it. Raises OSError with nothing left behind."""
    beside = path.parent / f".localagent-{secrets.token_hex(8)}.tmp"
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
    try:
        try:
            if exact_mode:
                os.fchmod(descriptor, mode)
            _write_all(descriptor, data)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        beside.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            beside.unlink()
        raise
    sync_directory(path.parent)


def write_private(path: Path, data: bytes) -> None:
    """Put `data` at `path` (mode 0600): a reader, or a crash at any point, sees the old bytes or the new ones."""
    try:
        _replace(path, data, 0o600, exact_mode=True)
    except OSError as error:
        raise CannotRecord(f"cannot write {path}: {_why(error)}", remedy=_remedy(error, path)) from error


def write_through(path: Path, data: bytes) -> None:
    """Put `data` where a user asked for it: links are followed, an existing mode is kept, else the umask decides.

    A regular file in a directory that takes new files is replaced atomically. A device, a pipe, or a file whose
    directory refuses (a mount point, a directory without write permission) is written in place.
    """
    target = Path(os.path.realpath(path))
    try:
        seen = target.stat()
    except FileNotFoundError:
        seen = None
    except OSError as error:
        raise CannotRecord(f"cannot write {path}: {_why(error)}", remedy=_remedy(error, path)) from error
    if seen is not None and stat.S_ISDIR(seen.st_mode):
        raise UsageFault(f"cannot write {path}: it is a directory", remedy="name a file")
    try:
        if seen is None:
            _replace(target, data, 0o666, exact_mode=False)
        elif stat.S_ISREG(seen.st_mode):
            try:
                _replace(target, data, stat.S_IMODE(seen.st_mode), exact_mode=True)
            except OSError as error:
                if error.errno not in (errno.EACCES, errno.EPERM, errno.EBUSY, errno.EROFS, errno.EXDEV):
                    raise
                _write_in_place(target, data)
        else:
            _write_in_place(target, data)
    except OSError as error:
        raise CannotRecord(f"cannot write {path}: {_why(error)}", remedy=_remedy(error, path)) from error


def _write_in_place(path: Path, data: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_TRUNC | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        _write_all(descriptor, data)
    finally:
        os.close(descriptor)


def open_lock(path: Path, *, make: bool = True) -> int:
    """A descriptor of a lock file, which is made where it may be. OSError for anything but a regular file.

    FileNotFoundError where there is none and none is made. Opening waits for nobody: a pipe in its place does not hang.
    """
    flags = os.O_RDWR | os.O_CREAT if make else os.O_RDONLY
    descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(f"{path} is not a regular file; remove it")
    return descriptor


def read_bounded(path: Path, limit_bytes: int) -> bytes:
    """The whole of a regular file of at most `limit_bytes`. FileNotFoundError if absent, RecordDamaged for all else."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise RecordDamaged(f"cannot read {path}: {_why(error)}") from error
    try:
        seen = os.fstat(descriptor)
        if not stat.S_ISREG(seen.st_mode):
            raise RecordDamaged(f"cannot read {path}: not a regular file")
        parts: list[bytes] = []
        left = limit_bytes + 1
        while left > 0 and (part := os.read(descriptor, min(left, 1 << 20))):
            parts.append(part)
            left -= len(part)
    except OSError as error:
        raise RecordDamaged(f"cannot read {path}: {_why(error)}") from error
    finally:
        os.close(descriptor)
    if left <= 0:
        raise RecordDamaged(f"cannot read {path}: larger than {limit_bytes:,} bytes")
    return b"".join(parts)
