"""JailLimits -> the kernel's rlimits. Pure. What rlimits cannot bound (the tree as a whole) is the watcher's."""

import math

from localagent.domain.jailspec import JailLimits
from localagent.jail.boundaries import CLOSED, Wall

FIXED_LIMITS = {
    "RLIMIT_CORE": (1, 1),  # not 0: that is ignored where core_pattern pipes to a program of the host; 1 stops both
    "RLIMIT_MEMLOCK": (1 << 20, 1 << 20),
    "RLIMIT_MSGQUEUE": (0, 0),
    "RLIMIT_NICE": (0, 0),  # where the user may raise priorities, a jail may not
    "RLIMIT_RTPRIO": (0, 0),
}
OUTER_PROCESSES = 2  # the backend's process and the jail's init count as processes of the same uid
INIT_PROCESSES = 1  # within the jail's user namespace the init alone does


def process_limit(limits: JailLimits) -> tuple[int, int]:
    """RLIMIT_NPROC, soft and hard, where it is set outside; also the most that the tree as a whole can then hold."""
    count = limits.processes + OUTER_PROCESSES
    return count, count


def process_limit_within(limits: JailLimits) -> tuple[int, int]:
    """RLIMIT_NPROC where it is set late, for what is within the jail's user namespace."""
    count = limits.processes + INIT_PROCESSES
    return count, count


def kernel_cpu_seconds(limits: JailLimits) -> int:
    """RLIMIT_CPU: the backstop of one process. A second later than the watcher, who counts the whole tree."""
    return math.ceil(limits.cpu_seconds) + 1


def rlimits(limits: JailLimits, uid: int | None, open_walls: frozenset[Wall] = CLOSED) -> dict[str, tuple[int, int]]:
    """What the launcher sets. Without a uid of its own processes are limited later, inside (see watch.Watch)."""
    cpu = kernel_cpu_seconds(limits)
    return {
        **({} if uid is None else {"RLIMIT_NPROC": process_limit(limits)}),
        **({} if Wall.FIXED_LIMITS in open_walls else FIXED_LIMITS),
        "RLIMIT_AS": (limits.address_space_bytes, limits.address_space_bytes),
        "RLIMIT_CPU": (cpu, cpu + 1),
        "RLIMIT_FSIZE": (limits.file_bytes, limits.file_bytes),
        "RLIMIT_NOFILE": (limits.open_files, limits.open_files),
    }
