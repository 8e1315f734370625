"""What the worker does to processes below it: limits, reaping, ending leftovers, cleaning scratch directories.

The jail around is the boundary; this only keeps one candidate's traces from the next. Where `ctypes` is missing the
process controls are skipped (the jail's end still ends everything).
"""

from __future__ import annotations

import fcntl
import os
import resource
import shutil
import signal
import stat
import sys
import threading
import time
from typing import Any, Dict, Iterable, List, Set, Tuple

_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_SET_CHILD_SUBREAPER = 36
SCRATCH = ("/tmp", "/dev/shm")
_POOLS = ("numpy", "torch")  # their pools of threads (OpenBLAS, OpenMP) are made anew in a forked child
_LOOKS = 40  # at threads that may be ending
_LIMITS = 16  # RLIM_NLIMITS of Linux
_F_GETSIG = 11
_IOPRIO_GET, _SCHED_GETATTR = {"x86_64": (252, 315), "aarch64": (31, 275)}.get(os.uname().machine, (0, 0))


try:  # once, from the library: the repository may have a module of that name
    import ctypes

    _call: Any = ctypes.CDLL(None).prctl
    _syscall: Any = ctypes.CDLL(None).syscall
except (ImportError, OSError, AttributeError):
    _call = _syscall = None


def _prctl(option: int, value: int) -> None:
    if _call is not None:
        _call(option, value, 0, 0, 0)


def guard_supervisor() -> None:
    """Adopt orphans; let no process of the same user look into this one or take its descriptors."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    _prctl(_PR_SET_DUMPABLE, 0)


def guard_session() -> None:
    """Adopt orphans of the tests, end with the supervisor, and be an ordinary process again."""
    _prctl(_PR_SET_DUMPABLE, 1)
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    _prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL))


def hide() -> None:
    """Let nothing of the same user look into this process from now on; what it forks calls `guard_child`."""
    _prctl(_PR_SET_DUMPABLE, 0)


def guard_child() -> None:
    """End with the session, and be an ordinary process."""
    _prctl(_PR_SET_DUMPABLE, 1)
    _prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL))


def state(descriptors: Iterable[int] = ()) -> Tuple[Any, ...]:
    """What other processes of this user can change in this one, and what it shares with those it forks.

    Limits, priorities, processors and scheduling; flags, signal, owner, mode and attributes of the standard descriptors
    and of `descriptors`.
    """
    limits = []
    for number in range(_LIMITS):
        try:
            limits.append(resource.getrlimit(number))
        except (OSError, ValueError):
            limits.append((-2, -2))
    flags = []
    for fd in (0, 1, 2, *descriptors):
        try:
            asked = [fcntl.fcntl(fd, code) for code in (fcntl.F_GETFL, _F_GETSIG, fcntl.F_GETOWN)]
            flags.append((asked, os.fstat(fd).st_mode, _attributes(fd)))
        except OSError:
            flags.append(([], -1, []))
    scheduling = (os.sched_getscheduler(0), os.sched_getparam(0).sched_priority, sorted(os.sched_getaffinity(0)))
    return limits, flags, os.getpriority(os.PRIO_PROCESS, 0), scheduling, _raw()


def _attributes(fd: int) -> List[str]:
    try:
        return sorted(os.listxattr(fd))
    except OSError:  # no such thing on that file system
        return []


def _raw() -> Tuple[int, bytes]:
    """The I/O priority, and what the scheduler knows beyond policy and priority; nothing where it cannot be asked."""
    if _syscall is None or not _IOPRIO_GET:
        return 0, b""
    told = ctypes.create_string_buffer(64)
    _syscall(_SCHED_GETATTR, 0, told, 64, 0)
    return int(_syscall(_IOPRIO_GET, 1, 0)), told.raw


def data_bytes() -> int:
    """How much memory of its own this process has asked for; 0 where that cannot be asked."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[5]) * resource.getpagesize()
    except (OSError, ValueError, IndexError):
        return 0


def limit_data(extra_bytes: int, held: int = 0) -> None:
    """Allow `extra_bytes` more data than is held now, so that a runaway list fails and does not end the jail.

    What is only reserved, as compilers do, and what files are mapped do not count: the jail limits the address space. A
    process that was just forked may be told how much its parent `held`.
    """
    held = held or data_bytes()
    if not held:
        return
    try:
        hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
        wanted = held + extra_bytes
        resource.setrlimit(resource.RLIMIT_DATA, (wanted if hard < 0 else min(wanted, hard), hard))
    except (OSError, ValueError):
        return


def limit_cpu(more_seconds: float) -> None:
    """Kernel stop for code that no Python signal handler can reach; whole seconds, so later than the timer."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    soft = int(used.ru_utime + used.ru_stime + more_seconds + 1.5)
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    try:
        resource.setrlimit(resource.RLIMIT_CPU, (soft if hard < 0 else min(soft, hard), hard))
    except (OSError, ValueError):
        return


def _parents() -> Dict[int, int]:
    """Process id to parent's, for all visible processes."""
    found: Dict[int, int] = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open("/proc/%s/stat" % name, "rb") as file:
                text = file.read()
        except OSError:
            continue
        found[int(name)] = int(text[text.rindex(b")") + 2 :].split()[1])
    return found


def children() -> Set[int]:
    """Processes whose parent is this one."""
    me = os.getpid()
    return {pid for pid, parent in _parents().items() if parent == me}


def end_leftovers(keep: Set[int]) -> bool:
    """End and reap every child that is not in `keep`, and what they leave behind. False if some would not end."""
    deadline = time.monotonic() + 5.0
    while True:
        if not keep:
            try:
                if os.waitpid(-1, os.WNOHANG)[0]:
                    continue
            except ChildProcessError:
                return True
        left = children() - keep
        if not left:
            return True
        for pid in left:
            _end(pid)
        if time.monotonic() > deadline:
            return False


def _end(pid: int) -> None:
    for target in (-pid, pid):
        try:
            os.kill(target, signal.SIGKILL)
        except OSError:
            continue
    try:
        os.waitpid(pid, 0)
    except OSError:
        return


def _threads() -> int:
    """Threads of this process as the kernel counts them; 1 where it cannot be asked."""
    try:
        return len(os.listdir("/proc/self/task"))
    except OSError:
        return 1


def lost_in_a_fork() -> str:
    """What the code under test has running here that a forked child would lack, or ""."""
    others = [t.name for t in threading.enumerate() if t is not threading.main_thread() and t.is_alive()]
    if others:
        return "importing the tests started %d thread(s) (%s)" % (len(others), ", ".join(others[:3])[:200])
    native = 0 if any(name in sys.modules for name in _POOLS) else _threads() - 1
    for _ in range(_LOOKS if native else 0):  # one that was told to end may take a moment
        time.sleep(0.005)
        native = _threads() - 1
        if not native:
            break
    if native > 0:
        return "importing the tests started %d thread(s) outside Python" % native
    torch = sys.modules.get("torch")
    try:
        if torch is not None and torch.cuda.is_initialized():
            return "importing the tests opened a CUDA device"
    except Exception:  # whatever calls itself torch here
        return ""
    return ""


class _Folder:
    """A scratch directory as it was: who may use it, its times and attributes, what lay in it."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.names = set(os.listdir(path))
        found = os.stat(path)
        self.mode, self.times = stat.S_IMODE(found.st_mode), (found.st_atime_ns, found.st_mtime_ns)
        self.attributes = _attributes_of(path)

    def restore(self) -> None:
        """As it was. Links in it are removed, never followed. Raises OSError where that cannot be."""
        found = os.stat(self.path)
        if stat.S_IMODE(found.st_mode) != self.mode:
            os.chmod(self.path, self.mode)
        for name in set(_attributes_of(self.path)) - set(self.attributes):  # access lists are among them
            os.removexattr(self.path, name)
        for name in [name for name in os.listdir(self.path) if name not in self.names]:
            path = os.path.join(self.path, name)
            try:
                os.unlink(path)
            except OSError:
                _remove_tree(path)
        os.utime(self.path, ns=self.times)


def _attributes_of(path: str) -> List[str]:
    try:
        return os.listxattr(path)
    except OSError:  # no such thing on that file system
        return []


def scratch_entries() -> List[_Folder]:
    """The scratch directories as they are now."""
    return [_Folder(place) for place in SCRATCH if os.path.isdir(place)]


def clean_scratch(keep: List[_Folder]) -> bool:
    """Make the scratch directories what they were; False if one would not be."""
    try:
        for folder in keep:
            folder.restore()
    except OSError:
        return False
    return True


def _remove_tree(path: str) -> None:
    shutil.rmtree(path, ignore_errors=True)
    if not os.path.lexists(path):
        return
    _open_up(path)
    for base, folders, _files in os.walk(path):  # modes taken away by the tests
        for name in folders:
            _open_up(os.path.join(base, name))
    shutil.rmtree(path, ignore_errors=True)


def _open_up(path: str) -> None:
    try:
        if not os.path.islink(path):
            os.chmod(path, 0o700)
    except OSError:
        return


def exit_signals() -> List[int]:
    """Signals by which the kernel's CPU limits end a process."""
    return [int(signal.SIGPROF), int(signal.SIGXCPU), int(signal.SIGVTALRM)]
