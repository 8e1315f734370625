"""Bounded reading of files that others wrote: regular files, never blocking, in a repository never through a link."""

import errno
import os
import stat
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

from localagent.errors import UsageFault

MOST_ENTRIES = 20_000
_FILE = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


def read_named(path: Path, limit_bytes: int) -> bytes:
    """A file that the user named (links are the user's own). UsageFault when it cannot be read whole."""
    try:
        return _whole(os.open(path, _FILE), limit_bytes)
    except OSError as error:
        raise UsageFault(f"{path}: cannot be read: {error.strerror or error}") from error


def read_below(root: Path, relative: str, limit_bytes: int) -> bytes:
    """A file of a repository, opened component by component. OSError (ELOOP or ENOTDIR for links)."""
    *folders, name = PurePosixPath(relative).parts
    at = os.open(root, _FOLDER)
    try:
        for folder in folders:
            below = os.open(folder, _FOLDER | os.O_NOFOLLOW, dir_fd=at)
            os.close(at)
            at = below
        return _whole(os.open(name, _FILE | os.O_NOFOLLOW, dir_fd=at), limit_bytes)
    finally:
        os.close(at)


def _whole(descriptor: int, limit_bytes: int) -> bytes:
    """Everything of a regular file; closes the descriptor."""
    with os.fdopen(descriptor, "rb") as stream:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "not a regular file")
        data = stream.read(limit_bytes + 1)
    if len(data) > limit_bytes:
        raise OSError(errno.EFBIG, f"larger than {limit_bytes:,} bytes")
    return data


def matches_below(root: Path, pattern: str) -> list[str]:
    """The relative paths that match a pattern whose last part alone may hold `*`, sorted; [] without the folder."""
    parent = PurePosixPath(pattern).parent
    last = PurePosixPath(pattern).name
    found = []
    try:
        with os.scandir(root / parent) as entries:
            for number, entry in enumerate(entries):
                if number >= MOST_ENTRIES:
                    raise UsageFault(f"{root / parent}: more than {MOST_ENTRIES:,} entries")
                if fnmatchcase(entry.name, last) and not entry.is_dir(follow_symlinks=False):
                    found.append(str(parent / entry.name))
    except OSError:
        return []
    return sorted(found)
