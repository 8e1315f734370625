"""System calls by name for the attack programs, with errno as OSError. Numbers where libc has no wrapper."""

import ctypes
import errno
import os
from typing import Any

from .attack import Lacks, failed

_LIBC = ctypes.CDLL(None, use_errno=True)
# name -> (x86-64, the generic table that arm64 and riscv64 share); None where an architecture never had it
NUMBERS: "dict[str, tuple[int | None, int | None]]" = {
    "ptrace": (101, 117),
    "syslog": (103, 116),
    "modify_ldt": (154, None),
    "pivot_root": (155, 41),
    "acct": (163, 89),
    "settimeofday": (164, 170),
    "mount": (165, 40),
    "umount2": (166, 39),
    "swapon": (167, 224),
    "reboot": (169, 142),
    "sethostname": (170, 161),
    "ioperm": (173, None),
    "init_module": (175, 105),
    "delete_module": (176, 106),
    "clone": (56, 220),
    "shmget": (29, 194),
    "msgget": (68, 186),
    "personality": (135, 92),
    "mq_open": (240, 180),
    "kexec_load": (246, 104),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "ioprio_set": (251, 30),
    "migrate_pages": (256, 238),
    "unshare": (272, 97),
    "perf_event_open": (298, 241),
    "fanotify_init": (300, 262),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "clock_adjtime": (305, 266),
    "setns": (308, 268),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "kcmp": (312, 272),
    "finit_module": (313, 273),
    "memfd_create": (319, 279),
    "bpf": (321, 280),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "open_tree": (428, 428),
    "fsopen": (430, 430),
    "clone3": (435, 435),
    "pidfd_getfd": (438, 438),
    "process_madvise": (440, 440),
    "mount_setattr": (442, 442),
    "memfd_secret": (447, 447),
}


def call(name: str, *arguments: Any) -> int:
    """Make a system call. OSError when the kernel or a filter refuses; Lacks where this architecture has none."""
    which = {"x86_64": 0, "aarch64": 1, "riscv64": 1}.get(os.uname().machine)
    number = None if which is None else NUMBERS[name][which]
    if number is None:
        raise Lacks("no number is known for %s on %s" % (name, os.uname().machine))
    return _checked(_LIBC.syscall(ctypes.c_long(number), *(_as_c_long(value) for value in arguments)))


def libc(name: str, *arguments: Any) -> int:
    """Call a function of the C library that answers -1 on a fault."""
    function = getattr(_LIBC, name)
    return _checked(function(*(_as_c_long(value) for value in arguments)))


def _as_c_long(value: Any) -> Any:
    return ctypes.c_long(value) if isinstance(value, int) else value


def _checked(result: int) -> int:
    if result < 0:
        raise failed(ctypes.get_errno() or errno.EIO)
    return int(result)


def by_kernel(fault: OSError, what: str) -> None:
    """Lacks when the kernel has no such call; else the fault again."""
    if fault.errno in (errno.ENOSYS, errno.EAFNOSUPPORT, errno.EPROTONOSUPPORT, errno.ESOCKTNOSUPPORT):
        raise Lacks("the kernel has no %s" % what) from fault
    raise fault
