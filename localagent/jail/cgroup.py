"""Memory and process limits for a whole jail by control groups (v1 controllers or a v2 tree), where we may make them.

Only ever makes and removes groups of its own below the group this process is in (v1) or the mount's root (v2).
What is not promised: without a writable hierarchy `find` answers None and the jail's level is lower.
"""

import itertools
import os
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from localagent.domain.jailspec import JailLimits

_numbers = itertools.count()
PREFIX = "localagent-"


@dataclass(frozen=True, kw_only=True, slots=True)
class Cgroup:
    """The groups of one jail."""

    folders: tuple[Path, ...]

    @property
    def join_files(self) -> tuple[str, ...]:
        """Where the launcher, one thread, writes itself in: v1 lists threads as well, which waits for no other."""
        tasks = ((folder / "tasks", folder / "cgroup.procs") for folder in self.folders)
        return tuple(str(threads if threads.exists() else processes) for threads, processes in tasks)

    def memory_exceeded(self) -> bool:
        """True when the kernel killed a process of this group for memory."""
        for folder in self.folders:
            for name in ("memory.oom_control", "memory.events"):
                with suppress(OSError):
                    for line in (folder / name).read_text().splitlines():
                        word, _, number = line.partition(" ")
                        if word == "oom_kill" and number != "0":
                            return True
        return False

    def remove(self) -> None:
        """Remove the groups; they are empty once the jail's processes are gone."""
        for folder in self.folders:
            for _ in range(50):
                try:
                    folder.rmdir()
                except FileNotFoundError:
                    break
                except OSError:
                    time.sleep(0.01)
                else:
                    break


@dataclass(frozen=True, kw_only=True, slots=True)
class CgroupRoot:
    """Where groups can be made: one folder per v1 controller, or one v2 folder."""

    folders: tuple[Path, ...]
    version: int

    def make(self, limits: JailLimits) -> Cgroup:
        """Make the groups of one jail, limits set; OSError if the kernel refuses."""
        name = f"{PREFIX}{os.getpid()}-{next(_numbers)}"
        made: list[Path] = []
        try:
            for parent in self.folders:
                folder = parent / name
                folder.mkdir()
                made.append(folder)
                self._limit(folder, limits)
        except OSError:
            Cgroup(folders=tuple(made)).remove()
            raise
        return Cgroup(folders=tuple(made))

    def _limit(self, folder: Path, limits: JailLimits) -> None:
        memory = limits.resident_bytes + limits.tmp_bytes  # what lies in /tmp is charged to the group as well
        wanted = {
            "memory.limit_in_bytes": str(memory),
            "memory.memsw.limit_in_bytes": str(memory),
            "memory.max": str(memory),
            "memory.swap.max": "0",
            "memory.oom.group": "1",
            "pids.max": str(limits.processes + 2),
        }
        for name, value in wanted.items():
            with suppress(FileNotFoundError):
                file = folder / name
                if file.exists():
                    file.write_text(value)


def find() -> CgroupRoot | None:
    """A hierarchy with the memory controller in which this process may make groups; tried by making one.

    Groups that a killed process of ours left behind are removed on the way.
    """
    for root in (_version_one(), _version_two()):
        if root is not None and _works(root):
            _sweep(root)
            return root
    return None


def _version_one() -> CgroupRoot | None:
    rows = [line.split(":", 2) for line in Path("/proc/self/cgroup").read_text().splitlines()]
    paths = {name: path for _, names, path in rows for name in names.split(",")}
    folders = []
    for controller in ("memory", "pids"):
        folder = Path(f"/sys/fs/cgroup/{controller}{paths.get(controller, '')}".rstrip("/"))
        if controller not in paths or not (folder / "cgroup.procs").exists():
            return None
        folders.append(folder)
    return CgroupRoot(folders=tuple(folders), version=1)


def _version_two() -> CgroupRoot | None:
    mount = Path("/sys/fs/cgroup")
    try:
        controllers = (mount / "cgroup.subtree_control").read_text().split()
    except OSError:
        return None
    return CgroupRoot(folders=(mount,), version=2) if {"memory", "pids"} <= set(controllers) else None


def _sweep(root: CgroupRoot) -> None:
    for parent in root.folders:
        for folder in parent.glob(f"{PREFIX}*-*"):
            pid = folder.name.removeprefix(PREFIX).partition("-")[0]
            if pid.isdigit() and not Path("/proc", pid).exists():
                with suppress(OSError):  # not empty yet, or not ours
                    folder.rmdir()


def _works(root: CgroupRoot) -> bool:
    try:
        group = root.make(JailLimits())
    except OSError:
        return False
    group.remove()
    return True
