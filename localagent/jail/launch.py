"""First program of every jail, kept ready as `python -I -S launch.py SOCKET PARENT`: gives up all, becomes the backend.

One process of ours waits for orders, so that no jail pays for starting Python: for each it clones a child of our own
process (CLONE_PARENT), which carries the order out. Standard library only, one thread, nothing of the repository. In
this order: die with the parent; take the descriptors; a session of its own; join cgroups; in a mount namespace of its
own cover folders by an empty tmpfs into which just the sources are bound at their own paths (folders that block an
unprivileged user, and those in which the backend would leave folders of its own; without root it takes a user
namespace of its own for that); rlimits; an unprivileged real uid with no supplementary groups; no_new_privs; signals
as in a fresh session; exec. A fault is written as one JSON line to the status descriptor and ends with 125.
"""

import array
import ctypes
import fcntl
import gc
import json
import os
import resource
import signal
import socket
import stat
import sys
from typing import Any

CLONE_NEWNS, CLONE_NEWUSER, CLONE_PARENT = 0x00020000, 0x10000000, 0x00008000
CLONE_NUMBERS = {"x86_64": 56, "aarch64": 220, "riscv64": 220, "loongarch64": 220, "ppc64le": 120, "armv7l": 120}
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 1, 2, 4, 32, 4096, 16384, 1 << 18
PR_SET_PDEATHSIG, PR_SET_NO_NEW_PRIVS = 1, 38
FAILED = 125
_LIBC = ctypes.CDLL(None, use_errno=True)


def _check(result: int, what: str) -> None:
    if result != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")


def _mount(source: str, target: str, kind: str, flags: int, data: str = "") -> None:
    words = [os.fsencode(word) for word in (source, target, kind)]
    _check(_LIBC.mount(*words, ctypes.c_ulong(flags), os.fsencode(data)), f"mount {target}")


def die_with(parent: int) -> None:
    """Arrange SIGKILL at the end of the thread that started us; leave at once if it is gone already."""
    _check(_LIBC.prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0), "prctl")
    if os.getppid() != parent:
        os._exit(FAILED)


def clone_sibling() -> int:
    """Fork, with the child a child of our parent's: 0 in the child, its number in ours."""
    number = CLONE_NUMBERS.get(os.uname().machine)
    if number is None:
        raise OSError(f"the launcher does not know the processor {os.uname().machine}")
    flags = CLONE_PARENT | int(signal.SIGCHLD)
    pid = int(_LIBC.syscall(ctypes.c_long(number), ctypes.c_ulong(flags), *[ctypes.c_ulong(0)] * 4))
    _check(min(pid, 0), "clone")
    return pid


def take(received: list[int], numbers: list[int]) -> None:
    """Give each received descriptor its number in the child and close every other: no order may come from a jail."""
    above = max(numbers) + 1
    moved = [fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, above) for number in received]
    for number, wanted in zip(moved, numbers):  # noqa: B905 - as many of the one as of the other
        os.dup2(number, wanted, inheritable=True)
    kept = sorted(numbers)
    for low, high in zip(kept, [*kept[1:], 1 << 20]):  # noqa: B905 - pairs of neighbours
        os.closerange(low + 1, high)


def receive(orders: socket.socket) -> tuple[bytes, list[int]]:
    """One message and its descriptors, which are closed at exec (socket.recv_fds of Python 3.11 forgets that flag)."""
    received = array.array("i")
    text, parts, _, _ = orders.recvmsg(1 << 16, socket.CMSG_SPACE(253 * received.itemsize), socket.MSG_CMSG_CLOEXEC)
    for level, kind, data in parts:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            received.frombytes(data[: len(data) - len(data) % received.itemsize])
    return text, list(received)


def join(files: list[str]) -> None:
    """Enter the cgroups whose list of processes, or of threads (we have one, and that is quicker), are given."""
    for path in files:
        with open(path, "w") as file:  # noqa: PTH123 - fewer imports, this runs before every jail
            file.write("0")


def own_users() -> None:
    """A user namespace with nobody but ourselves in it, so that an unprivileged user may mount in one of his own."""
    uid, gid = os.getuid(), os.getgid()
    _check(_LIBC.unshare(CLONE_NEWUSER), "unshare user")
    for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
        with open(f"/proc/self/{name}", "w") as file:  # noqa: PTH123
            file.write(text)


def cover(covers: list[tuple[str, int]], sources: list[str]) -> None:
    """Cover each folder by a tmpfs of the mode given and bind the sources below it back at their own paths."""
    _check(_LIBC.unshare(CLONE_NEWNS), "unshare")
    _mount("none", "/", "none", MS_REC | MS_PRIVATE)
    opened = [(path, os.open(path, os.O_PATH | os.O_CLOEXEC)) for path in sources]
    for folder, mode in covers:
        _mount("tmpfs", folder, "tmpfs", MS_NOSUID | MS_NODEV, f"mode={mode:04o},size=256k")
    for path, number in opened:
        os.makedirs(os.path.dirname(path), mode=0o711, exist_ok=True)  # noqa: PTH103, PTH120
        if stat.S_ISDIR(os.fstat(number).st_mode):
            os.makedirs(path, exist_ok=True)  # noqa: PTH103
        else:
            os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644))
        _mount(f"/proc/self/fd/{number}", path, "none", MS_BIND | MS_REC)
        os.close(number)


def limit(limits: dict[str, tuple[int, int]]) -> None:
    """Set rlimits, never above the hard limit that is already there."""
    for name, (soft, hard) in limits.items():
        which = getattr(resource, name)
        ceiling = resource.getrlimit(which)[1]
        if ceiling != resource.RLIM_INFINITY:
            soft, hard = min(soft, ceiling), min(hard, ceiling)  # noqa: PLW2901
        resource.setrlimit(which, (soft, hard))


def become(uid: int) -> None:
    """Take `uid` as real, effective and saved user and group, with no other groups."""
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)


def carry_out(order: dict[str, Any]) -> None:
    """Carry out the order; does not return."""
    os.umask(0o022)
    die_with(order["parent"])
    os.setsid()
    join(order["cgroups"])
    if order["covers"]:
        if order["uid"] is None and os.geteuid() != 0:
            own_users()
            die_with(order["parent"])  # a change of credentials may forget it
        cover(order["covers"], order["sources"])
    limit(order["limits"])
    if order["uid"] is not None:
        become(order["uid"])
        die_with(order["parent"])  # a change of uid forgets it
    _check(_LIBC.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "prctl")
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # ignored by Python, which the command must not inherit
        signal.signal(number, signal.SIG_DFL)
    os.execve(order["argv"][0], order["argv"], {})  # noqa: S606


def obey(received: list[int], numbers: list[int]) -> None:
    """The child: the first descriptor holds the order, the rest get their numbers. Does not return."""
    status = -1
    try:
        with os.fdopen(received[0], "rb") as stream:
            order = json.loads(stream.read())
        take(received[1:], numbers)
        status = order["status"]
        carry_out(order)
    except (OSError, ValueError) as fault:
        os.write(status, (json.dumps({"launch-fault": str(fault)}) + "\n").encode())
    finally:
        os._exit(FAILED)


def serve(orders: socket.socket) -> None:
    """Answer each message of descriptors, whose text lists their numbers, by the process made for it or a fault."""
    while True:
        text, received = receive(orders)
        if not text:
            return
        try:
            pid = clone_sibling()
            if pid == 0:
                obey(received, json.loads(text))
            answer: dict[str, object] = {"pid": pid}
        except OSError as fault:
            answer = {"fault": str(fault)}
        for number in received:
            os.close(number)
        orders.send(json.dumps(answer).encode())


if __name__ == "__main__":
    die_with(int(sys.argv[2]))
    gc.disable()
    os.set_inheritable(int(sys.argv[1]), False)
    serve(socket.socket(fileno=int(sys.argv[1])))
