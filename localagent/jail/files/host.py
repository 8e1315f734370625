"""Facts about this machine that the pure builder needs: layout of the system folders, reachability, uid ranges.

Only looks (lstat, readlink, /proc); changes nothing. Facts are read once per process and taken as constant.
"""

import os
import re
import secrets
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ETC_FILES = (
    "alternatives",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "localtime",
    "mime.types",
    "protocols",
    "services",
)
TOP_FOLDERS = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
JAIL_UID_BASE = 0x70000000
JAIL_UID_SPAN = 1 << 24


@dataclass(frozen=True, kw_only=True, slots=True)
class SystemLayout:
    """What of the host is shown read-only. `links` are (target, path) as on the host; `folders` real top folders."""

    links: tuple[tuple[str, str], ...]
    folders: tuple[str, ...]
    etc: tuple[str, ...]


@cache
def system_layout() -> SystemLayout:
    """The layout of this machine: /usr, and /bin, /lib, ... as links or folders, and the few files of /etc."""
    links: list[tuple[str, str]] = []
    folders: list[str] = ["/usr"]
    for name in TOP_FOLDERS:
        path = Path("/") / name
        if path.is_symlink():
            links.append((str(path.readlink()), str(path)))
        elif path.is_dir():
            folders.append(str(path))
    etc = tuple(f"/etc/{name}" for name in ETC_FILES if Path("/etc", name).exists())
    return SystemLayout(links=tuple(links), folders=tuple(folders), etc=etc)


@cache
def _uid_ranges() -> tuple[tuple[int, int], ...]:
    """(first, count) of the uids that exist in this user namespace, per /proc/self/uid_map."""
    rows = [line.split() for line in Path("/proc/self/uid_map").read_text().splitlines()]
    return tuple((int(row[0]), int(row[2])) for row in rows if len(row) == 3)


def may_switch_uid() -> bool:
    """True when this process is root and other uids exist in its user namespace."""
    return os.geteuid() == 0 and any(first + count > 1 for first, count in _uid_ranges())


def fresh_uid() -> int | None:
    """A uid (and gid) nobody uses, for one workspace or jail; None when not root or only root exists here.

    Chosen at random from 16 million where the namespace has them, so that RLIMIT_NPROC counts one jail alone.
    """
    if not may_switch_uid():
        return None
    for first, count in _uid_ranges():
        if first <= JAIL_UID_BASE and first + count >= JAIL_UID_BASE + JAIL_UID_SPAN:
            return JAIL_UID_BASE + secrets.randbelow(JAIL_UID_SPAN)
    first, count = max(_uid_ranges(), key=lambda span: span[0] + span[1])
    low = max(first, first + count - 4096, 1)  # a small container: its highest ids, away from accounts
    high = first + count - 2
    return low + secrets.randbelow(high - low) if high > low else None


@cache
def counts_processes_per_namespace() -> bool:
    """True when RLIMIT_NPROC counts within a user namespace (Linux 5.14 and later), not all of the user's processes."""
    major, minor = os.uname().release.split(".")[:2]
    return (int(major), int("".join(filter(str.isdigit, minor)) or 0)) >= (5, 14)


def blocking_folder(path: str) -> str | None:
    """The outermost folder above `path` that a stranger's uid may not traverse, or None. Links are resolved first."""
    folder = Path("/")
    for part in Path(os.path.realpath(path)).parent.parts:
        folder = folder / part
        if not folder.stat().st_mode & stat.S_IXOTH:
            return str(folder)
    return None


def submounts(paths: Iterable[str]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """(path, the mounts below it as mountinfo has them now, outer ones first), only for paths that have some."""
    points = [_unescaped(line.split(" ", 5)[4]) for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    found = ((path, tuple(sorted({point for point in points if point.startswith(path + "/")}))) for path in paths)
    return tuple((path, below) for path, below in found if below)


def _unescaped(text: str) -> str:
    """A path of mountinfo, where blanks and the like stand as three octal digits."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), text)
