"""The walls of a jail by name: what an attack is held by, and what its control has open.

A wall is opened by tests alone, to show that an attack would succeed without it: no command, policy or jail spec can
name one (tests/repository/test_fences.py). Standard library only: attack programs read this module inside the jail.
"""

from enum import Enum


class Wall(str, Enum):  # noqa: UP042 - read inside jails, whatever their Python
    """One layer of the jail."""

    FILES = "files shown"  # what of the host's file system is visible at all
    READ_ONLY = "read-only mounts"
    DEVICES = "minimal /dev"
    PROCESSES = "pid namespace"
    NETWORK = "net namespace"
    IPC = "ipc namespace"
    HOST_NAME = "uts namespace"
    CGROUP_PATH = "cgroup namespace"
    USER = "user namespace"  # with it: an unprivileged uid
    CAPABILITIES = "no capabilities"
    SECCOMP = "seccomp filter"
    ENVIRONMENT = "cleared environment"
    DESCRIPTORS = "closed descriptors"
    FIXED_LIMITS = "fixed rlimits"  # those that no jail spec can change
    ADDRESS_SPACE = "address space limit"
    MEMORY = "memory limit"
    PROCESS_COUNT = "process limit"
    CPU = "processor time limit"
    WALL_CLOCK = "wall clock limit"
    OUTPUT = "output limit"
    DISK = "disk limit"
    TMP_SIZE = "size of /tmp and /dev/shm"
    FILE_SIZE = "file size limit"
    OPEN_FILES = "open files limit"
    CLEANING = "removal that follows no link"
    RECORDS = "outcomes from what was raised"  # the warm worker: never an exit code, never a file
    OWN_PROCESS = "a process of its own"  # the warm worker: one fork a test or candidate


OPENABLE = frozenset(
    {
        Wall.FILES,
        Wall.READ_ONLY,
        Wall.DEVICES,
        Wall.PROCESSES,
        Wall.NETWORK,
        Wall.IPC,
        Wall.HOST_NAME,
        Wall.CGROUP_PATH,
        Wall.USER,
        Wall.CAPABILITIES,
        Wall.SECCOMP,
        Wall.FIXED_LIMITS,
    }
)
CLOSED: "frozenset[Wall]" = frozenset()
