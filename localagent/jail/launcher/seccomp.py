"""A deny-list seccomp filter: kernel interfaces that no test needs and that have been ways out.

Built through pyseccomp when libseccomp is at hand, else absent (the jail's level says so). A deny-list is a second
wall, not the first: what it does not name is allowed.
"""

import errno
import importlib
import os
import resource
import socket
import stat
import threading
from functools import cache
from types import ModuleType

REFUSED = (
    *("add_key", "keyctl", "request_key"),
    *("bpf", "perf_event_open", "userfaultfd", "ptrace", "process_vm_readv", "process_vm_writev", "kcmp"),
    *("pidfd_getfd", "process_madvise", "lookup_dcookie", "quotactl", "quotactl_fd"),
    *("mount", "umount", "umount2", "pivot_root", "chroot", "move_mount", "open_tree", "fsopen", "fsconfig"),
    *("fsmount", "fspick", "mount_setattr", "swapon", "swapoff"),
    *("unshare", "setns", "kexec_load", "kexec_file_load", "init_module", "finit_module", "delete_module"),
    *("create_module", "reboot", "acct", "syslog", "iopl", "ioperm", "vhangup", "nfsservctl"),
    *("settimeofday", "clock_settime", "clock_adjtime", "adjtimex", "stime"),
    *("name_to_handle_at", "open_by_handle_at", "fanotify_init", "vm86", "vm86old", "modify_ldt"),
    *("mbind", "migrate_pages", "move_pages", "set_mempolicy", "set_mempolicy_home_node"),
    *("shmget", "msgget", "semget", "memfd_secret", "uselib", "personality"),
)
# Answered as by a kernel that lacks them, so that callers take the older way (which the filter can look into).
MISSING = ("clone3", "io_uring_setup", "io_uring_enter", "io_uring_register", "memfd_create")
# Every socket family but these: a family's module is loaded by whoever asks for it, and the rare ones are little tried.
FAMILIES = (int(socket.AF_UNIX), 2, 10)  # Unix, IPv4, IPv6
REFUSED_IOCTLS = (0x5412, 0x541C, 0x5423)  # TIOCSTI, TIOCLINUX, TIOCSETD
_LOW_WORD = 0xFFFFFFFF
_building = threading.Lock()


def _library() -> ModuleType | None:
    try:
        return importlib.import_module("pyseccomp")
    except (ImportError, RuntimeError, OSError, AttributeError):
        return None


_OPEN_TREE_ATTR, _FCHMODAT2 = 467, 452  # of every architecture; younger than the names that libseccomp knows
# Calls that set a file's mode, and at which argument; those that make a file if their flags, one before, say so.
_MODES = (("chmod", 1), ("fchmod", 1), ("fchmodat", 2), ("creat", 1), ("mknod", 1), ("mknodat", 2))
_OPENING = (("open", 1), ("openat", 2))


@cache
def program(*, set_ids: bool = True) -> bytes | None:
    """The filter as BPF for this machine, or None without libseccomp.

    Without `set_ids` no file can be given a set-uid or set-gid bit either, nor be made with one.
    """
    with _building:
        library = _library()
        return None if library is None else _export(library, set_ids=set_ids)


def _export(library: ModuleType, *, set_ids: bool) -> bytes | None:
    try:
        rules = library.SyscallFilter(library.ALLOW)
        _fill(library, rules)
        if not set_ids:
            _refuse_set_ids(library, rules)
        number = os.memfd_create("localagent-seccomp", os.MFD_CLOEXEC)
        with os.fdopen(number, "w+b") as file:
            rules.export_bpf(file)
            file.seek(0)
            return file.read()
    except OSError:
        return None


def _fill(library: ModuleType, rules: object) -> None:
    denied, missing = library.ERRNO(errno.EPERM), library.ERRNO(errno.ENOSYS)
    for names, action in ((REFUSED, denied), (MISSING, missing)):
        for name in names:
            _add(library, rules, action, name)
    _add(library, rules, library.ERRNO(errno.EOPNOTSUPP), "fallocate")  # takes gigabytes between two looks at the disk
    rules.add_rule(denied, _OPEN_TREE_ATTR)  # type: ignore[attr-defined]
    _add(library, rules, denied, "clone", library.Arg(0, library.MASKED_EQ, 0x10000000, 0x10000000))
    for flag in (0x00020000, 0x02000000, 0x04000000, 0x08000000, 0x20000000, 0x40000000):
        _add(library, rules, denied, "clone", library.Arg(0, library.MASKED_EQ, flag, flag))
    for name in ("socket", "socketpair"):
        for family in set(range(max(FAMILIES))) - set(FAMILIES):
            _add(library, rules, denied, name, library.Arg(0, library.MASKED_EQ, _LOW_WORD, family))
        _add(library, rules, denied, name, library.Arg(0, library.GT, max(FAMILIES)))
    # The limit on cores stays 1: with 0, a core_pattern that pipes would hand every crash to a program of the host.
    core = library.Arg(0, library.MASKED_EQ, _LOW_WORD, resource.RLIMIT_CORE)
    _add(library, rules, denied, "setrlimit", core)
    core = library.Arg(1, library.MASKED_EQ, _LOW_WORD, resource.RLIMIT_CORE)
    _add(library, rules, denied, "prlimit64", core, library.Arg(2, library.NE, 0))
    for request in REFUSED_IOCTLS:
        _add(library, rules, denied, "ioctl", library.Arg(1, library.MASKED_EQ, _LOW_WORD, request))


def _refuse_set_ids(library: ModuleType, rules: object) -> None:
    denied = library.ERRNO(errno.EPERM)
    for bit in (stat.S_ISUID, stat.S_ISGID):
        for name, at in _MODES:
            _add(library, rules, denied, name, library.Arg(at, library.MASKED_EQ, bit, bit))
        rules.add_rule(denied, _FCHMODAT2, library.Arg(2, library.MASKED_EQ, bit, bit))  # type: ignore[attr-defined]
        for name, at in _OPENING:
            for making in (os.O_CREAT, os.O_TMPFILE & ~os.O_DIRECTORY):
                flags = library.Arg(at, library.MASKED_EQ, making, making)
                _add(library, rules, denied, name, flags, library.Arg(at + 1, library.MASKED_EQ, bit, bit))
    _add(library, rules, library.ERRNO(errno.ENOSYS), "openat2")  # its mode lies in memory, where no filter can look


def _add(library: ModuleType, rules: object, action: int, name: str, *args: object) -> None:
    """Add a rule unless this architecture does not know the call."""
    try:
        number = library.resolve_syscall(library.Arch.NATIVE, name)
    except (OSError, ValueError):
        return
    if number >= 0:
        rules.add_rule(action, name, *args)  # type: ignore[attr-defined]
