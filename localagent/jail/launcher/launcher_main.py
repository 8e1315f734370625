"""Starts every jail of one process of ours, whose child it is: `python -I -S launcher_main.py SOCKET PARENT`.

Kept ready, so that no jail pays for starting Python. For each order it forks a child that gives up everything and
becomes the backend, in this order: die with the parent; take the descriptors; a session of its own; join cgroups; in a
mount namespace of its own cover folders by an empty tmpfs into which just the sources are bound at their own paths
(folders that block an unprivileged user, and those in which the backend would leave folders of its own; without root
it takes a user namespace of its own for that); rlimits; an unprivileged real uid with no supplementary groups;
no_new_privs; signals as in a fresh session; exec. A fault is written as one JSON line to the status descriptor and
ends with 125.

Whatever loses its parent below here becomes a child of this process, and when ours ends, however it ends, this process
kills all that is left before it ends itself: a backend that was cut down between two of its own steps leaves nothing.
Standard library only, one thread, nothing of the repository.
"""

import array
import ctypes
import fcntl
import gc
import json
import os
import resource
import select
import signal
import socket
import stat
import sys
import time
from typing import Any

CLONE_NEWNS, CLONE_NEWUSER = 0x00020000, 0x10000000
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 1, 2, 4, 32, 4096, 16384, 1 << 18
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 1, 36, 38
FAILED = 125
_LIBC = ctypes.CDLL(None, use_errno=True)


def _check(result: int, what: str) -> None:
    if result != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")


def _mount(source: str, target: str, kind: str, flags: int, data: str = "") -> None:
    words = [os.fsencode(word) for word in (source, target, kind)]
    _check(_LIBC.mount(*words, ctypes.c_ulong(flags), os.fsencode(data)), f"mount {target}")


def die_with(parent: int, how: int = signal.SIGKILL) -> None:
    """Arrange a signal at the end of the thread that started us; leave at once if it is gone already."""
    _check(_LIBC.prctl(PR_SET_PDEATHSIG, int(how), 0, 0, 0), "prctl")
    if os.getppid() != parent:
        os._exit(FAILED)


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


def carry_out(order: dict[str, Any], parent: int) -> None:
    """Carry out the order; does not return."""
    os.umask(0o022)
    die_with(parent)
    os.setsid()
    join(order["cgroups"])
    if order["covers"]:
        if order["uid"] is None and os.geteuid() != 0:
            own_users()
            die_with(parent)  # a change of credentials may forget it
        cover(order["covers"], order["sources"])
    limit(order["limits"])
    if order["uid"] is not None:
        become(order["uid"])
        die_with(parent)  # a change of uid forgets it
    _check(_LIBC.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "prctl")
    for number in signal.valid_signals():  # ignored by Python, or by who started us in the background
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    os.execve(order["argv"][0], order["argv"], {})  # noqa: S606


def obey(received: list[int], numbers: list[int], parent: int) -> None:
    """The child: the first descriptor holds the order, the rest get their numbers. Does not return."""
    status = -1
    try:
        with os.fdopen(received[0], "rb") as stream:
            order = json.loads(stream.read())
        take(received[1:], numbers)
        status = order["status"]
        carry_out(order, parent)
    except (OSError, ValueError) as fault:
        os.write(status, (json.dumps({"launch-fault": str(fault)}) + "\n").encode())
    finally:
        os._exit(FAILED)


def children() -> list[int]:
    """Our children, those that we adopted included."""
    with open(f"/proc/self/task/{os.getpid()}/children") as file:  # noqa: PTH123
        return [int(word) for word in file.read().split()]


class Server:
    """Answers orders. A jail's first process is waited for only when asked, so that its number stays its own."""

    def __init__(self, orders: socket.socket) -> None:
        self._orders = orders
        self._jails: set[int] = set()

    def serve(self) -> None:
        """Until the other side is gone."""
        wake_read, wake_write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        for number in (signal.SIGCHLD, signal.SIGTERM):
            signal.signal(number, lambda *_: None)
        while True:
            ready, _, _ = select.select([self._orders.fileno(), wake_read], [], [])
            if wake_read in ready and signal.SIGTERM in os.read(wake_read, 1 << 12):
                break
            if self._orders.fileno() in ready and not self._answer():
                break
            for pid in set(children()) - self._jails:
                os.waitpid(pid, os.WNOHANG)

    def _answer(self) -> bool:
        try:
            text, received = receive(self._orders)
        except ConnectionResetError:  # killed before it had read our last answer
            return False
        if not text:
            return False
        wanted = json.loads(text)
        answer = self._reap(wanted["reap"]) if "reap" in wanted else self._start(received, wanted["numbers"])
        for number in received:
            os.close(number)
        try:
            self._orders.send(json.dumps(answer).encode())
        except OSError:  # nobody is there to be told
            return False
        return True

    def _start(self, received: list[int], numbers: list[int]) -> dict[str, object]:
        ours = os.getpid()
        try:
            pid = os.fork()
        except OSError as fault:
            return {"fault": str(fault)}
        if pid == 0:
            obey(received, numbers, ours)
        self._jails.add(pid)
        return {"pid": pid}

    def _reap(self, pid: int) -> dict[str, object]:
        """The wait status; None when it has not ended yet, and then it is waited for as an adopted one."""
        if pid not in self._jails:
            return {"status": None}
        self._jails.discard(pid)
        ended, status = os.waitpid(pid, os.WNOHANG)
        return {"status": status if ended else None}

    def clear(self) -> None:
        """Kill what is below us until nothing is; a killed init takes its whole namespace with it."""
        while True:
            for pid in children():
                os.kill(pid, signal.SIGKILL)
            try:
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
            except ChildProcessError:  # none is left: the list alone may miss one
                return
            time.sleep(0.001)


if __name__ == "__main__":
    _check(_LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), "prctl")
    die_with(int(sys.argv[2]), signal.SIGTERM)
    gc.disable()
    os.set_inheritable(int(sys.argv[1]), False)
    server = Server(socket.socket(fileno=int(sys.argv[1])))
    try:
        server.serve()
    finally:
        server.clear()
