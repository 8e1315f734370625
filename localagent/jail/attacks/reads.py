"""Attacks that read what lies outside: homes, keys, other users' files, devices, sockets, through every door known."""

import ctypes
import errno
import fcntl
import os
import stat
import termios

from ..boundaries import Wall
from .attack import AttackStopped, Bait, Category, Lacks, Register, failed
from .system_calls import by_kernel, call

attack = Register(Category.READS)
ORDINARY_DEVICES = {"core", "fd", "full", "null", "ptmx", "pts", "random", "shm", "stderr", "stdin", "stdout", "tty"}
ORDINARY_DEVICES |= {"urandom", "zero"}


def there(path: str) -> str:
    """OSError unless something is at `path`."""
    return "%s is there, mode %o" % (path, os.lstat(path).st_mode)


def read(path: str) -> str:
    """OSError unless the file can be read."""
    number = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        return repr(os.read(number, 200))
    finally:
        os.close(number)


def canary(path: str, bait: Bait) -> str:
    """OSError unless the canary can be read at `path`."""
    text = read(path)
    if bait.token not in text:
        raise failed(errno.ENOENT)
    return "read the canary at " + path


def strangers(folder: str, places: "tuple[str, ...]") -> "list[str]":
    """What is below `folder` and neither one of `places` nor on the way to one."""
    found = []
    for name in os.listdir(folder):
        path = os.path.join(folder, name)
        if any(place.startswith(path + "/") for place in places):
            found += strangers(path, places)
        elif path not in places:
            found.append(path)
    return found


@attack("home folders", Wall.FILES, "ENOENT", "the interpreter alone", target="/home")
def homes(bait: Bait) -> str:
    """List /home, where the users' files are; an interpreter that lies below it may be there, and the way to it."""
    found = strangers("/home", bait.interpreter)
    if not found and any(place.startswith("/home/") for place in bait.interpreter):
        raise AttackStopped("the interpreter alone")
    return str(found[:5])


@attack("home of root", Wall.FILES, "ENOENT", "empty", target="/root", open_reason="EACCES|succeeded")
def home_of_root(bait: Bait) -> str:
    """List /root; where the interpreter lies below it, only that may be found on the way."""
    if not [name for name in os.listdir("/root") if name.startswith((".bash", ".profile", ".ssh", ".cache"))]:
        raise AttackStopped("empty")
    return "the files of root are listed"


@attack("keys and history of the user", Wall.FILES, "ENOENT", "EACCES", shown="ro")
def keys(bait: Bait) -> str:
    """Look for .ssh, .gnupg, .aws, .netrc, .bash_history and the like in the home of who started the jail."""
    names = (".ssh", ".gnupg", ".aws", ".netrc", ".git-credentials", ".bash_history", ".config", ".canary")
    fault = failed(errno.ENOENT)
    for name in names:
        try:
            return there(os.path.join(bait.home, name))
        except OSError as seen:
            fault = seen
    raise fault


@attack("shadow passwords", Wall.FILES, "ENOENT", target="/etc/shadow")
def shadow(bait: Bait) -> str:
    """Look for /etc/shadow."""
    return there("/etc/shadow")


@attack("other files of /etc", Wall.FILES, "ENOENT")
def etc(bait: Bait) -> str:
    """Look for host keys, sudo rules, name servers, file system tables and certificates' keys in /etc."""
    for name in ("ssh", "sudoers", "resolv.conf", "fstab", "hostname", "ssl/private", "environment", "profile"):
        if os.path.lexists("/etc/" + name):
            return "/etc/%s is there" % name
    raise failed(errno.ENOENT)


@attack("/var", Wall.FILES, "ENOENT", target="/var")
def var(bait: Bait) -> str:
    """List /var: logs, mail, spool, other users' temporary files."""
    return str(os.listdir("/var")[:5])


@attack("sockets of /run", Wall.FILES, "ENOENT", target="/run")
def run(bait: Bait) -> str:
    """Look below /run for what services leave there: sockets, locks, users' folders."""
    return str(os.listdir("/run")[:5])


@attack("/sys", Wall.FILES, "ENOENT", target="/sys")
def sys_folder(bait: Bait) -> str:
    """List /sys: devices, cgroups, firmware, tracing."""
    return str(os.listdir("/sys")[:5])


@attack("/boot", Wall.FILES, "ENOENT", target="/boot")
def boot(bait: Bait) -> str:
    """Look for the kernel's image and its symbols in /boot."""
    return there("/boot")


@attack("the host's temporary files", Wall.FILES, "ENOENT", shown="ro")
def host_tmp(bait: Bait) -> str:
    """Read a file that any user of the host may read, at its own path."""
    return canary(bait.canary, bait)


@attack("neighbours of the workspace", Wall.FILES, "ENOENT", shown="ro")
def sibling(bait: Bait) -> str:
    """List the folder beside the workspace, by the path that it has outside."""
    return str(os.listdir(bait.sibling))


@attack("climbing with ..", Wall.FILES, "ENOENT", shown="ro")
def climb(bait: Bait) -> str:
    """Climb from the workspace with more `..` than there are folders, then down to the canary."""
    return canary(os.path.join(bait.workspace_inside, *[".."] * 40) + bait.canary, bait)


@attack("climbing from an open folder", Wall.FILES, "ENOENT", shown="ro")
def climb_by_descriptor(bait: Bait) -> str:
    """Climb with openat from a descriptor of the workspace, one `..` at a time."""
    number = os.open(bait.workspace_inside, os.O_PATH | os.O_DIRECTORY)
    for _ in range(40):
        number = os.open("..", os.O_PATH | os.O_DIRECTORY, dir_fd=number)
    found = os.open(bait.canary.lstrip("/"), os.O_RDONLY, dir_fd=number)
    return "read %r" % os.read(found, 20)


@attack("a link that leads out", Wall.FILES, "ENOENT", shown="ro")
def link(bait: Bait) -> str:
    """Plant a symbolic link to the canary in the workspace and read through it."""
    path = os.path.join(bait.workspace_inside, "link-out")
    os.symlink(bait.canary, path)
    return canary(path, bait)


@attack("/proc/*/root and /proc/*/cwd", Wall.FILES, "ENOENT", shown="ro")
def proc_root(bait: Bait) -> str:
    """Look for the canary below the root and working folder of every process in sight."""
    for pid in [name for name in os.listdir("/proc") if name.isdigit()]:
        for door in ("root", "cwd"):
            try:
                return canary("/proc/%s/%s%s" % (pid, door, bait.canary), bait)
            except OSError:
                continue
    raise failed(errno.ENOENT)


@attack("environments of other processes", Wall.PROCESSES, "ENOENT", standin=True)
def environments(bait: Bait) -> str:
    """Look for the victim's environment through /proc/PID/environ."""
    with open("/proc/%d/environ" % bait.victim, "rb") as file:
        return "read %d bytes" % len(file.read())


@attack("open files of other processes", Wall.PROCESSES, "ENOENT", standin=True)
def open_files(bait: Bait) -> str:
    """List and reopen the victim's descriptors through /proc/PID/fd."""
    return str(os.listdir("/proc/%d/fd" % bait.victim))


@attack("an inherited descriptor", Wall.DESCRIPTORS, "EBADF", given=True)
def descriptors(bait: Bait) -> str:
    """Use each descriptor above standard error that this jail was started with."""
    parent = "/proc/%d/fd" % os.getppid()  # ours is one of a fork; between us there is a pipe
    for name in os.listdir(parent):
        kind = os.readlink(os.path.join(parent, name))
        if int(name) > 2 and not kind.startswith("pipe:"):
            return "descriptor %s is %s" % (name, kind)
    raise failed(errno.EBADF)


@attack("device nodes", Wall.DEVICES, "ENOENT")
def devices(bait: Bait) -> str:
    """Look for any device of the host's /dev: disks, memory, kernel log, KVM, input."""
    found = sorted(set(os.listdir("/dev")) - ORDINARY_DEVICES)
    if not found:
        raise failed(errno.ENOENT)
    return "there are " + " ".join(found[:8])


@attack("raw disks", Wall.DEVICES, "ENOENT")
def disks(bait: Bait) -> str:
    """Look for a block device anywhere in /dev."""
    for name in os.listdir("/dev"):
        if stat.S_ISBLK(os.lstat("/dev/" + name).st_mode):
            return "/dev/%s is a disk" % name
    raise failed(errno.ENOENT)


@attack("the terminal of who started it", Wall.DEVICES, "ENXIO", "ENOENT", standin=True)
def terminal(bait: Bait) -> str:
    """Open the controlling terminal."""
    if bait.own_terminal:
        os.setsid()
        fcntl.ioctl(os.openpty()[1], termios.TIOCSCTTY, 0)
    return "opened %d" % os.open("/dev/tty", os.O_RDWR)


@attack("memory of the machine", Wall.USER, "ENOENT", "EACCES", "EPERM", target="/proc/kcore")
def kcore(bait: Bait) -> str:
    """Open /proc/kcore for reading."""
    return "opened %d" % os.open("/proc/kcore", os.O_RDONLY)


@attack("handles instead of paths", Wall.SECCOMP, "EPERM", opens=(Wall.SECCOMP,))
def handles(bait: Bait) -> str:
    """Turn a path into a file handle, the first half of opening what no path leads to (name_to_handle_at)."""
    handle, mount = ctypes.create_string_buffer(136), ctypes.c_int()
    ctypes.c_uint.from_buffer(handle).value = 128
    try:
        call("name_to_handle_at", -100, b"/usr", handle, ctypes.byref(mount), 0)
    except OSError as fault:
        if fault.errno == errno.EOPNOTSUPP:
            raise Lacks("the file system has no handles") from fault
        by_kernel(fault, "file handles")
    return "got a handle"
