"""Opening, reading, making and replacing files by descriptor: component by component, never through a link.

Reading blocks on nothing and has a bound. Between two calls anybody may still change an untrusted tree; what was opened
is what its descriptor says. Where a function takes no directory, names are paths.
"""

import contextlib
import errno
import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from localagent.errors import AnswerIsNo

_ROOT = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_REGULAR = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_CHUNK = 1 << 20
Name = str | Path


class NotRegularError(OSError):
    """Something else than a regular file stands there."""


@contextlib.contextmanager
def closing(descriptor: int) -> Iterator[int]:
    """Close a descriptor at the end."""
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def open_root(path: Path) -> int:
    """A directory that the user named: links that lead to it are the user's own."""
    return os.open(path, _ROOT)


@contextlib.contextmanager
def root_directory(path: Path) -> Iterator[int]:
    """A descriptor of the repository's root; AnswerIsNo if it cannot be entered."""
    try:
        descriptor = open_root(path)
    except OSError as error:
        raise AnswerIsNo(f"cannot enter {path}: {error.strerror}", remedy="name a directory you may read") from error
    with closing(descriptor):
        yield descriptor


def open_directory(name: Name, parent: int | None = None) -> int:
    """A real directory; OSError for links and everything else."""
    return os.open(name, _ROOT | os.O_NOFOLLOW, dir_fd=parent)


@contextlib.contextmanager
def parent_directory(root: int, parts: Sequence[str], *, make_mode: int | None = None) -> Iterator[int]:
    """A descriptor of the directory that holds the last of some path components, each a real directory.

    What is missing is made with `make_mode` where one is given.
    """
    at = os.dup(root)
    try:
        for part in parts[:-1]:
            if make_mode is not None:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(part, make_mode, dir_fd=at)
            below = open_directory(part, at)
            os.close(at)
            at = below
        yield at
    finally:
        os.close(at)


def open_regular(name: Name, directory: int | None = None) -> int:
    """A descriptor to read a regular file; NotRegularError for links, FIFOs, devices, directories. Never blocks."""
    seen = os.stat(name, dir_fd=directory, follow_symlinks=False)
    if not stat.S_ISREG(seen.st_mode):
        raise NotRegularError(0, "not a regular file")
    descriptor = os.open(name, _REGULAR, dir_fd=directory)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise NotRegularError(0, "not a regular file")
    return descriptor


def read_regular(name: Name, directory: int | None, limit_bytes: int) -> tuple[bytes, os.stat_result]:
    """Bytes and status of a regular file; OSError (EFBIG) when it is larger than the limit."""
    with closing(open_regular(name, directory)) as descriptor:
        return b"".join(chunks(descriptor, limit_bytes)), os.fstat(descriptor)


def chunks(descriptor: int, limit_bytes: int) -> Iterator[bytes]:
    """What a descriptor gives, piece by piece; OSError (EFBIG) past the limit."""
    left = limit_bytes
    while part := os.read(descriptor, min(_CHUNK, left + 1)):
        left -= len(part)
        if left < 0:
            raise OSError(errno.EFBIG, f"larger than {limit_bytes:,} bytes")
        yield part


def write_all(descriptor: int, data: bytes) -> None:
    """Write everything; OSError if the disk is full."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def open_new(name: Name, directory: int | None = None, mode: int = 0o600) -> int:
    """A descriptor to write a file that was not there before; FileExistsError for anything that stands there."""
    return os.open(name, _NEW, mode, dir_fd=directory)


def open_append(path: Path, *, new: bool) -> int:
    """A descriptor that adds to a file of ours, which is made with mode 0600; `new` where none may stand there."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
    return os.open(path, flags | (os.O_EXCL if new else 0), 0o600)


def write_new(name: Name, data: bytes, directory: int | None = None, *, mode: int) -> None:
    """A new file with exactly this mode, not synced."""
    with closing(open_new(name, directory)) as descriptor:
        write_all(descriptor, data)
        os.fchmod(descriptor, mode)


def replace_file(name: Name, data: bytes, directory: int | None = None, *, mode: int | None) -> None:
    """Write beside a file, sync, rename over it: a crash at any point leaves the old bytes or the new ones.

    The mode is exactly `mode`; None leaves it to the umask. OSError with nothing left behind.
    """
    place = Path(name)
    beside = place.with_name(f".localagent-{os.urandom(8).hex()}.tmp")
    descriptor = open_new(beside, directory, 0o666 if mode is None else mode)
    try:
        with closing(descriptor):
            if mode is not None:
                os.fchmod(descriptor, mode)
            write_all(descriptor, data)
            os.fsync(descriptor)
        os.rename(beside, place, src_dir_fd=directory, dst_dir_fd=directory)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(beside, dir_fd=directory)
        raise
    sync_directory(place.parent, directory)


def move_file(source: Path, target: Path) -> None:
    """Sync a finished file of ours and rename it over another."""
    with closing(open_regular(source)) as descriptor:
        os.fsync(descriptor)
    source.replace(target)
    sync_directory(target.parent)


def sync_directory(directory: Path, parent: int | None = None) -> None:
    """Make a rename in `directory` durable; file systems that cannot sync a directory are let be."""
    with contextlib.suppress(OSError), closing(os.open(directory, _ROOT, dir_fd=parent)) as descriptor:
        os.fsync(descriptor)
