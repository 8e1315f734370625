"""Attacks that change what lies outside the workspace, or leave behind what acts there later."""

import contextlib
import ctypes
import errno
import os
import resource
import signal
import tempfile

from ..boundaries import Wall
from .attack import AttackStopped, Bait, Category, Lacks, Register, Witness, failed
from .system_calls import by_kernel, call

attack = Register(Category.WRITES)
O_TMPFILE = os.O_TMPFILE | os.O_RDWR
MS_REMOUNT_BIND = 32 | 4096


def write(path: str, flags: int = 0) -> str:
    """OSError unless `path` can be opened for writing; writes one harmless line."""
    number = os.open(path, os.O_WRONLY | os.O_NOFOLLOW | flags, 0o600)
    os.write(number, b"was here\n")
    os.close(number)
    return "wrote " + path


def may_open(path: str) -> str:
    """OSError unless `path` can be opened for writing; writes nothing."""
    os.close(os.open(path, os.O_WRONLY))
    return "could write " + path


@attack("a file in /usr", Wall.READ_ONLY, "EROFS", open_reason="EACCES")
def usr(bait: Bait) -> str:
    """Put a program where the system looks for programs."""
    return write("/usr/local-attack", os.O_CREAT)


@attack("a file in the root folder", Wall.READ_ONLY, "EROFS")
def root(bait: Bait) -> str:
    """Make a folder in /."""
    os.mkdir("/attack")
    return "made /attack"


@attack("a file in /etc", Wall.READ_ONLY, "EROFS")
def etc(bait: Bait) -> str:
    """Put a file into /etc that the loader reads."""
    return write("/etc/ld.so.preload", os.O_CREAT)


@attack("a file in /dev", Wall.READ_ONLY, "EROFS")
def dev(bait: Bait) -> str:
    """Put a file into /dev."""
    return write("/dev/attack", os.O_CREAT)


@attack("a new file in a folder shown read-only", Wall.READ_ONLY, "EROFS", witness=Witness.CANARY)
def shown(bait: Bait) -> str:
    """Make a file in a folder that belongs to the jail's own user and is shown read-only."""
    return write(os.path.join(bait.shown_inside, "new"), os.O_CREAT)


@attack("emptying a file shown read-only", Wall.READ_ONLY, "EROFS", witness=Witness.CANARY)
def truncate(bait: Bait) -> str:
    """Truncate a file that belongs to the jail's own user and is shown read-only."""
    os.truncate(os.path.join(bait.shown_inside, "canary"), 0)
    return "emptied it"


@attack("modes and times of a file shown read-only", Wall.READ_ONLY, "EROFS", witness=Witness.CANARY)
def modes(bait: Bait) -> str:
    """Make a file set-uid and older, which needs no writing of its content."""
    path = os.path.join(bait.shown_inside, "canary")
    os.utime(path, (0, 0))
    os.chmod(path, 0o4755)
    return "changed its mode"


@attack("reopening a read-only descriptor", Wall.READ_ONLY, "EROFS", witness=Witness.CANARY)
def reopen(bait: Bait) -> str:
    """Open for reading, then again for writing through /proc/self/fd."""
    number = os.open(os.path.join(bait.shown_inside, "canary"), os.O_RDONLY)
    again = os.open("/proc/self/fd/%d" % number, os.O_WRONLY)
    os.write(again, b"was here")
    return "wrote through /proc/self/fd"


@attack("O_TMPFILE and a link", Wall.READ_ONLY, "EROFS", witness=Witness.CANARY)
def tmpfile(bait: Bait) -> str:
    """Make a nameless file in a folder shown read-only and give it a name there."""
    number = os.open(bait.shown_inside, O_TMPFILE, 0o600)
    doors = os.open("/proc/self/fd", os.O_PATH)
    os.link(str(number), os.path.join(bait.shown_inside, "new"), src_dir_fd=doors, follow_symlinks=True)
    return "linked it"


@attack("deleting and renaming", Wall.READ_ONLY, "EROFS", witness=Witness.CANARY)
def rename(bait: Bait) -> str:
    """Put another file in the place of one that is shown read-only."""
    path = os.path.join(bait.shown_inside, "canary")
    os.rename(path, path + ".old")
    return "renamed it"


@attack("an extended attribute", Wall.READ_ONLY, "EROFS", witness=Witness.CANARY)
def attribute(bait: Bait) -> str:
    """Set an extended attribute on a file shown read-only."""
    try:
        os.setxattr(os.path.join(bait.shown_inside, "canary"), "user.attack", b"1")
    except OSError as fault:
        if fault.errno == errno.EOPNOTSUPP:
            raise Lacks("the file system has no extended attributes") from fault
        raise
    return "set it"


@attack("a hard link to what is outside", Wall.FILES, "ENOENT", witness=Witness.CANARY, shown="rw", open_reason="EXDEV")
def hardlink(bait: Bait) -> str:
    """Link the canary into the workspace, to be written there. Where it is shown, mounts still part them (EXDEV)."""
    path = os.path.join(bait.workspace_inside, "linked")
    os.link(bait.canary, path)
    return write(path)


@attack("writing through a link", Wall.FILES, "ENOENT", witness=Witness.CANARY, shown="rw")
def through_link(bait: Bait) -> str:
    """Write to the canary through a symbolic link in the workspace."""
    path = os.path.join(bait.workspace_inside, "link-to-write")
    os.symlink(bait.canary, path)
    os.close(os.open(path, os.O_WRONLY | os.O_APPEND))
    return "opened it for writing"


@attack("writing with ..", Wall.FILES, "ENOENT", witness=Witness.CANARY, shown="rw")
def dotdot(bait: Bait) -> str:
    """Write to the canary by a path of many `..`."""
    return write(os.path.join(bait.workspace_inside, *[".."] * 40) + bait.canary, os.O_APPEND)


@attack("links for whoever cleans up", Wall.CLEANING, "left", witness=Witness.CANARY, alone=True, shown="cleaning")
def for_the_cleaner(bait: Bait) -> str:
    """Fill the workspace with links to the canary's folder, and folders without rights, for removal to stumble over."""
    folder = os.path.dirname(bait.canary)
    for number in range(20):
        inner = os.path.join(bait.workspace_inside, "d%d" % number)
        os.mkdir(inner)
        os.symlink(folder, os.path.join(inner, "link"))
        os.symlink(folder, os.path.join(bait.workspace_inside, "l%d" % number))
        os.chmod(inner, 0)
    raise AttackStopped("left")


@attack(
    "folders too deep to remove",
    Wall.CLEANING,
    "left",
    "ending:disk",
    witness=Witness.REST,
    alone=True,
    shown="cleaning",
)
def deep(bait: Bait) -> str:
    """Leave a chain of 1500 folders, too long for any path."""
    os.chdir(bait.workspace_inside)
    for _ in range(1500):
        os.mkdir("d" * 20)
        os.chdir("d" * 20)
    raise AttackStopped("left")


@attack("a core dump", Wall.FIXED_LIMITS, "no-core", opens=(Wall.FIXED_LIMITS, Wall.SECCOMP))
def core(bait: Bait) -> str:
    """Crash, so that the kernel writes memory to a file or hands it to a program outside (core_pattern)."""
    pid = os.fork()
    if pid == 0:
        os.chdir(bait.workspace_inside)
        with contextlib.suppress(OSError, ValueError):
            ceiling = resource.getrlimit(resource.RLIMIT_CORE)[1]
            resource.setrlimit(resource.RLIMIT_CORE, (ceiling, ceiling))
        os.kill(os.getpid(), signal.SIGABRT)
    status = os.waitpid(pid, 0)[1]
    if not os.WCOREDUMP(status):
        raise AttackStopped("no-core")
    return "the kernel dumped a core"


@attack("a core for a program of the host", Wall.SECCOMP, "EPERM")
def core_limit(bait: Bait) -> str:
    """Lower the limit on cores to 0, which the kernel ignores where it pipes cores to a program of the host."""
    try:
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    except ValueError:  # what Python makes of EPERM
        raise failed(errno.EPERM) from None
    return "lowered it"


@attack("core_pattern", Wall.USER, "EROFS", "EACCES", "EPERM", opens=(Wall.USER, Wall.PROCESSES))
def core_pattern(bait: Bait) -> str:
    """Open for writing the kernel setting that names a program to start on every crash."""
    return may_open("/proc/sys/kernel/core_pattern")


@attack("settings of the kernel", Wall.USER, "EROFS", "EACCES", "EPERM", opens=(Wall.USER, Wall.PROCESSES))
def sysctl(bait: Bait) -> str:
    """Open kernel settings below /proc/sys for writing."""
    fault = failed(errno.ENOENT)
    for name in ("kernel/modprobe", "kernel/hotplug", "vm/drop_caches", "vm/overcommit_memory", "fs/file-max"):
        try:
            return may_open("/proc/sys/" + name)
        except OSError as seen:
            fault = seen if seen.errno != errno.ENOENT else fault
    raise fault


@attack("power and devices in /sys", Wall.FILES, "ENOENT", target="/sys", open_reason="EACCES|EROFS")
def sysfs(bait: Bait) -> str:
    """Open the switch for the machine's power states for writing."""
    return may_open("/sys/power/state" if os.path.exists("/sys/power/state") else "/sys/kernel/uevent_seqnum")


@attack("remounting read-write", Wall.SECCOMP, "EPERM", opens=(Wall.SECCOMP, Wall.CAPABILITIES))
def remount(bait: Bait) -> str:
    """Take the read-only flag off a mount."""
    call("mount", b"none", bait.shown_inside.encode(), b"none", MS_REMOUNT_BIND, 0)
    return "remounted it read-write"


@attack("making a device node", Wall.USER, "EPERM", "EACCES")
def mknod(bait: Bait) -> str:
    """Make a node of the null device, as one would of a disk; where Landlock stands, it answers first (EACCES)."""
    os.mknod(os.path.join(tempfile.gettempdir(), f"{bait.token}-node"), 0o020600, os.makedev(1, 3))
    return "made a device node"


@attack("a file given to another user", Wall.USER, "EPERM", "EINVAL")
def chown(bait: Bait) -> str:
    """Give a file of the workspace to another user, the first step to a set-uid program."""
    path = os.path.join(bait.workspace_inside, "given-away")
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o4755))
    os.chown(path, 1000, 1000)
    return "gave a file away"


@attack("opening by a handle", Wall.SECCOMP, "EPERM", opens=(Wall.SECCOMP,), open_reason="EBADF")
def by_handle(bait: Bait) -> str:
    """Open a file by a handle that was made up (open_by_handle_at), which passes by every mount's root."""
    handle = ctypes.create_string_buffer(136)
    ctypes.c_uint.from_buffer(handle).value = 8
    try:
        call("open_by_handle_at", -1, handle, os.O_RDONLY)  # the kernel, if asked, first misses the mount
    except OSError as fault:
        by_kernel(fault, "file handles")
    return "opened it"
