"""Memory and process limits for a whole jail by control groups (v1 controllers or a v2 tree), where we may make them.

Only ever makes and removes groups of its own below the group this process is in (v2: see cgroup_v2).
What is not promised: without a writable hierarchy `find` answers None, the jail's level is lower, and memory and the
number of processes are watched over the whole tree instead.
"""

import itertools
import os
import signal
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from localagent.domain.jailspec import JailLimits
from localagent.jail.limits import cgroup_v2, process_usage
from localagent.jail.limits.cgroup_v2 import PREFIX

_numbers = itertools.count()


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

    def kill(self) -> None:
        """End every process in the groups at once, where the kernel can."""
        for folder in self.folders:
            cgroup_v2.kill(folder)

    def remove(self) -> None:
        """Remove the groups, and end whatever is still in them.

        They are empty once the jail's processes are gone. A backend that was killed between two of its own steps (with
        its launcher, say) can leave a process that waits for it for ever.
        """
        for folder in self.folders:
            for tries in range(50):
                try:
                    folder.rmdir()
                except FileNotFoundError:
                    break
                except OSError:
                    if tries:
                        _end_members(folder)
                    time.sleep(0.01)
                else:
                    break


def _end_members(folder: Path) -> None:
    """Kill every process of a group of ours; one that our pid namespace does not show reads as 0 and is left."""
    with suppress(OSError, ValueError):
        for number in map(int, (folder / "cgroup.procs").read_text().split()):
            if number > 1 and number != os.getpid():
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(number, signal.SIGKILL)


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
        if self.version == 2:
            cgroup_v2.limit(folder, limits)
            return
        memory = limits.resident_bytes + limits.tmp_bytes  # what lies in /tmp is charged to the group as well
        wanted = {
            "memory.limit_in_bytes": str(memory),
            "memory.memsw.limit_in_bytes": str(memory),
            "pids.max": str(limits.processes + 2),
        }
        for name, value in wanted.items():
            with suppress(FileNotFoundError):
                file = folder / name
                if file.exists():
                    file.write_text(value)


def find() -> CgroupRoot | None:
    """A hierarchy with the memory controller in which this process may make groups; tried by making one."""
    return examined()[0]


def examined() -> tuple[CgroupRoot | None, str]:
    """(what `find` answers, why there is none).

    Groups that a killed process of ours left behind are removed on the way. Version 2 may move us into a leaf.
    """
    first = _version_one()
    if first is not None and not _refusal(first):
        _sweep(first)
        return first, ""
    why = f"v1: {_refusal(first)}" if first is not None else ""
    second = _version_two()
    if isinstance(second, CgroupRoot):
        refusal = _refusal(second)
        if not refusal:
            _sweep(second)
            return second, ""
        second = cgroup_v2.CgroupRefused(why=refusal)
    return None, "; ".join(part for part in (why, f"v2: {second.why}") if part)


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


def _version_two() -> CgroupRoot | cgroup_v2.CgroupRefused:
    own = cgroup_v2.own_group(Path("/proc/self/cgroup").read_text(), Path("/proc/self/mountinfo").read_text())
    if isinstance(own, cgroup_v2.CgroupRefused):
        return own
    found = cgroup_v2.prepare(own, set(process_usage.descendants(os.getpid())))
    return found if isinstance(found, cgroup_v2.CgroupRefused) else CgroupRoot(folders=(found,), version=2)


def _sweep(root: CgroupRoot) -> None:
    for parent in root.folders:
        for folder in parent.glob(f"{PREFIX}*-*"):
            pid = folder.name.removeprefix(PREFIX).partition("-")[0]
            if pid.isdigit() and not Path("/proc", pid).exists():
                with suppress(OSError):  # not empty: its maker may live in another pid namespace
                    folder.rmdir()


def _refusal(root: CgroupRoot) -> str:
    """Why no group can be made there, or "": tried by making one."""
    try:
        group = root.make(JailLimits())
    except OSError as fault:
        return f"{fault.filename or root.folders[0]}: {fault.strerror}"
    group.remove()
    return ""
