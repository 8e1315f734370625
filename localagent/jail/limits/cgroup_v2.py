"""Where groups of cgroup v2 may be made: in the subtree that was delegated to this process, never elsewhere.

A group that hands controllers to groups below it may hold no process itself, so this process and its own children
first move into a leaf below the group (`localagent-PID-main`). Where a process that is not ours shares the group, or
nobody delegated it, the answer is a reason and nothing is touched. Not promised: that the leaf goes away; it is empty
once we end, and the next start, or the end of the delegated unit, removes it.
"""

import os
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from localagent.domain.jailspec import JailLimits

PREFIX = "localagent-"
MAIN = "-main"
CONTROLLERS = ("memory", "pids")
DELEGATED = ("user.delegate", "trusted.delegate")  # what systemd marks a delegated group with
OPTIONAL = {"memory.swap.max": "0", "memory.oom.group": "1"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Own:
    """The group this process is in. `top`: it is the highest that this process can see, as in a container."""

    folder: Path
    top: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class CgroupRefused:
    """Why no group may be made."""

    why: str


def own_group(cgroup: str, mountinfo: str) -> Own | CgroupRefused:
    """This process's group, from the texts of /proc/self/cgroup and /proc/self/mountinfo."""
    path = next((line[3:] for line in cgroup.splitlines() if line.startswith("0::")), "")
    if not path.startswith("/"):
        return CgroupRefused(why="there is no cgroup v2 hierarchy")
    if path.startswith("/.."):
        return CgroupRefused(why="the group of this process lies outside what it can see")
    for line in mountinfo.splitlines():
        left, _, right = line.partition(" - ")
        fields = left.split()
        if len(fields) < 6 or right.split(" ", 1)[0] != "cgroup2":
            continue
        root, mount = (field.encode().decode("unicode_escape") for field in fields[3:5])
        if path == root or path.startswith(root.rstrip("/") + "/"):
            below = path[len(root.rstrip("/")) :].lstrip("/")
            return Own(folder=Path(mount, below), top=not below)
    return CgroupRefused(why="cgroup v2 is not mounted where this process could see its group")


def prepare(own: Own, mine: Collection[int], controllers: tuple[str, ...] = CONTROLLERS) -> Path | CgroupRefused:
    """The folder in which groups with the controllers can be made; may move the processes `mine` into a leaf."""
    folder = own.folder
    if folder.name.startswith(PREFIX) and folder.name.endswith(MAIN) and _enabled(folder.parent, controllers):
        return folder.parent
    missing = [name for name in controllers if name not in _fields(folder / "cgroup.controllers")]
    if missing:
        return CgroupRefused(why=f"{folder} is not given the controllers {', '.join(missing)}")
    if not (folder / "cgroup.type").exists():
        return CgroupRefused(why=f"{folder} is the root of all groups, which nobody delegates")
    if not _delegated(own):
        return CgroupRefused(why=f"{folder} is not delegated to us")
    if _enabled(folder, controllers):
        return folder
    strangers = [pid for pid in _fields(folder / "cgroup.procs") if int(pid) not in mine]
    if strangers:
        return CgroupRefused(why=f"{folder} also holds processes that are not ours ({', '.join(strangers[:5])})")
    return _enable_controllers(folder, controllers)


def limit(folder: Path, limits: JailLimits) -> None:
    """Set the limits of one group; OSError where a limit that matters cannot be set."""
    memory = limits.resident_bytes + limits.tmp_bytes  # what lies in /tmp is charged to the group as well
    for name, value in (("memory.max", str(memory)), ("pids.max", str(limits.processes + 2))):
        _write(folder / name, value)
    for name, value in OPTIONAL.items():  # kernels without swap, or before 4.19, have no such file
        with suppress(FileNotFoundError):
            _write(folder / name, value)


def kill(folder: Path) -> None:
    """End every process of a group at once, where the kernel can (5.14); the jail's own end does it everywhere."""
    with suppress(OSError):
        _write(folder / "cgroup.kill", "1")


def _enable_controllers(folder: Path, controllers: tuple[str, ...]) -> Path | CgroupRefused:
    leaf = folder / f"{PREFIX}{os.getpid()}{MAIN}"
    moved: list[str] = []
    try:
        leaf.mkdir(exist_ok=True)
        for pid in _fields(folder / "cgroup.procs"):
            with suppress(ProcessLookupError):  # ended meanwhile
                _write(leaf / "cgroup.procs", pid)
                moved.append(pid)
        _write(folder / "cgroup.subtree_control", " ".join(f"+{name}" for name in controllers))
    except OSError as fault:
        for pid in moved:
            with suppress(OSError):
                _write(folder / "cgroup.procs", pid)
        with suppress(OSError):
            leaf.rmdir()
        return CgroupRefused(why=f"{folder}: {fault.strerror}")
    return folder


def _delegated(own: Own) -> bool:
    """Marked so by systemd, given to this user, or all that a container has."""
    for name in DELEGATED:
        with suppress(OSError):
            if os.getxattr(own.folder, name) == b"1":
                return True
    owner = own.folder.stat().st_uid
    return own.top or (owner != 0 and owner == os.geteuid())


def _enabled(folder: Path, controllers: tuple[str, ...]) -> bool:
    return bool(controllers) and set(controllers) <= set(_fields(folder / "cgroup.subtree_control"))


def _fields(path: Path) -> list[str]:
    try:
        return path.read_text().split()
    except OSError:
        return []


def _write(path: Path, text: str) -> None:
    """Into a file of the kernel's, which must be there: it is never made."""
    number = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(number, text.encode())
    finally:
        os.close(number)
