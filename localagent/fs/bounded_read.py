"""Bounded reading of files that others wrote: regular files, never blocking, in a repository never through a link."""

import errno
import os
import stat
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

from localagent.errors import UsageFault
from localagent.fs.openat import NotRegularError, chunks, closing, open_root, parent_directory, read_regular

MOST_ENTRIES = 20_000
_FILE = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY


def read_named(path: Path, limit_bytes: int) -> bytes:
    """A regular file that the user named (links are the user's own). UsageFault when it cannot be read whole."""
    try:
        with closing(os.open(path, _FILE)) as descriptor:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise NotRegularError(errno.EINVAL, "not a regular file")
            return b"".join(chunks(descriptor, limit_bytes))
    except OSError as error:
        raise UsageFault(f"{path}: cannot be read: {error.strerror or error}") from error


def read_prefix(path: Path, limit_bytes: int, remedy: str = "") -> bytes:
    """The beginning of whatever the user named, be it a pipe: a byte more than the limit where there is more.

    UsageFault when it cannot be read.
    """
    try:
        with path.open("rb") as stream:
            return stream.read(limit_bytes + 1)
    except OSError as error:
        raise UsageFault(f"{path}: cannot be read: {error.strerror or error}", remedy=remedy) from error


def read_below(root: Path, relative: str, limit_bytes: int) -> bytes:
    """A regular file of a repository, opened component by component; OSError for links and for the root itself."""
    parts = PurePosixPath(relative).parts
    if not parts:
        raise NotRegularError(errno.EISDIR, "the root itself")
    with closing(open_root(root)) as at, parent_directory(at, parts) as parent:
        return read_regular(parts[-1], parent, limit_bytes)[0]


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
