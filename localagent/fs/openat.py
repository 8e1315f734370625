"""Opening things of an untrusted tree: component by component, never through a link, never blocking.

Between two calls anybody may still change the tree; what was opened is what its descriptor says.
"""

import contextlib
import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from localagent.errors import AnswerIsNo

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_REGULAR = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
_CHUNK = 1 << 20


class NotRegularError(OSError):
    """Something else than a regular file stands there."""


@contextlib.contextmanager
def root_directory(path: Path) -> Iterator[int]:
    """A descriptor of the repository's root; AnswerIsNo if it cannot be entered."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise AnswerIsNo(f"cannot enter {path}: {error.strerror}", remedy="name a directory you may read") from error
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def open_directory(name: str, parent: int) -> int:
    """A real directory below another; OSError for links and everything else."""
    return os.open(name, _DIRECTORY, dir_fd=parent)


@contextlib.contextmanager
def parent_directory(root: int, parts: Sequence[str]) -> Iterator[int]:
    """A descriptor of the directory that holds the last of some path components, each a real directory."""
    at = os.dup(root)
    try:
        for part in parts[:-1]:
            below = open_directory(part, at)
            os.close(at)
            at = below
        yield at
    finally:
        os.close(at)


def open_regular(name: str, directory: int) -> int:
    """A descriptor to read a regular file; NotRegularError for links, FIFOs, devices, directories. Never blocks."""
    seen = os.stat(name, dir_fd=directory, follow_symlinks=False)
    if not stat.S_ISREG(seen.st_mode):
        raise NotRegularError(0, "not a regular file")
    descriptor = os.open(name, _REGULAR, dir_fd=directory)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise NotRegularError(0, "not a regular file")
    return descriptor


def read_regular(name: str, directory: int, limit_bytes: int) -> tuple[bytes, os.stat_result]:
    """Bytes and status of a regular file; OSError (EFBIG) when it is larger than the limit."""
    descriptor = open_regular(name, directory)
    try:
        parts = list(chunks(descriptor, limit_bytes))
        return b"".join(parts), os.fstat(descriptor)
    finally:
        os.close(descriptor)


def chunks(descriptor: int, limit_bytes: int) -> Iterator[bytes]:
    """What a descriptor gives, piece by piece; OSError (EFBIG) past the limit."""
    left = limit_bytes
    while part := os.read(descriptor, min(_CHUNK, left + 1)):
        left -= len(part)
        if left < 0:
            raise OSError(27, f"larger than {limit_bytes:,} bytes")
        yield part


def write_all(descriptor: int, data: bytes) -> None:
    """Write everything; OSError if the disk is full."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
