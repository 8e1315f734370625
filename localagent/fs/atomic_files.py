"""Reading and writing our own files: whole or not at all, bounded, never through a link.

Does not promise that a file is unread by the same user; and `write_through` is atomic only where a rename can be
(not on devices, pipes and mount points, which are written in place).
"""

import contextlib
import errno
import fcntl
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from localagent.errors import AnswerIsNo, UsageFault
from localagent.fs.openat import closing, read_regular, replace_file, write_all


class CannotRecord(AnswerIsNo):
    """Something could not be written: no space, no right, no directory. What stood there before still stands."""


class RecordDamaged(AnswerIsNo):
    """A file of ours does not hold what we wrote: cut short, altered, or not a regular file."""


def _error_text(error: OSError) -> str:
    return error.strerror or str(error)


def _remedy(error: OSError, path: Path) -> str:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"free space on the file system of {path.parent}"
    return f"make {path.parent} a directory that you may write to"


def write_private(path: Path, data: bytes) -> None:
    """Put `data` at `path` (mode 0600): a reader, or a crash at any point, sees the old bytes or the new ones."""
    try:
        replace_file(path, data, mode=0o600)
    except OSError as error:
        raise CannotRecord(f"cannot write {path}: {_error_text(error)}", remedy=_remedy(error, path)) from error


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
        raise CannotRecord(f"cannot write {path}: {_error_text(error)}", remedy=_remedy(error, path)) from error
    if seen is not None and stat.S_ISDIR(seen.st_mode):
        raise UsageFault(f"cannot write {path}: it is a directory", remedy="name a file")
    try:
        if seen is None:
            replace_file(target, data, mode=None)
        elif stat.S_ISREG(seen.st_mode):
            try:
                replace_file(target, data, mode=stat.S_IMODE(seen.st_mode))
            except OSError as error:
                if error.errno not in (errno.EACCES, errno.EPERM, errno.EBUSY, errno.EROFS, errno.EXDEV):
                    raise
                _overwrite(target, data)
        else:
            _overwrite(target, data)
    except OSError as error:
        raise CannotRecord(f"cannot write {path}: {_error_text(error)}", remedy=_remedy(error, path)) from error


def _overwrite(path: Path, data: bytes) -> None:
    with closing(os.open(path, os.O_WRONLY | os.O_TRUNC | os.O_NOCTTY | os.O_CLOEXEC)) as descriptor:
        write_all(descriptor, data)


def open_lock(path: str | Path, directory: int | None = None, *, make: bool = True) -> int:
    """A descriptor of a lock file, which is made where it may be. OSError for anything but a regular file.

    FileNotFoundError where there is none and none is made. Opening waits for nobody: a pipe in its place does not hang.
    """
    flags = os.O_RDWR | os.O_CREAT if make else os.O_RDONLY
    descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600, dir_fd=directory)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(f"{path} is not a regular file; remove it")
    return descriptor


@contextlib.contextmanager
def locked_folder(folder: Path, what: str, remedy: str) -> Iterator[None]:
    """Alone in a private folder, which is made; others are waited for. CannotRecord where it cannot be."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = open_lock(folder / "lock")
    except OSError as error:
        raise CannotRecord(f"cannot keep {what} in {folder}: {error.strerror or error}", remedy=remedy) from error
    with closing(lock):
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def read_bounded(path: Path, limit_bytes: int) -> bytes:
    """The whole of a regular file of at most `limit_bytes`. FileNotFoundError if absent, RecordDamaged for all else."""
    try:
        return read_regular(path, None, limit_bytes)[0]
    except FileNotFoundError:
        raise
    except OSError as error:
        raise RecordDamaged(f"cannot read {path}: {_error_text(error)}") from error
