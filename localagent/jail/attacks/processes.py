"""Attacks on other processes, by multiplying, or by outliving the run. The victim is a sleeper started for this."""

import contextlib
import ctypes
import errno
import os
import resource
import signal
import threading
import time

from ..boundaries import Wall
from .attack import STAYS, AttackStopped, Bait, Category, Register, Witness, failed
from .system_calls import by_kernel, call, libc

attack = Register(Category.PROCESSES)
FORKS = 60
SURVIVOR_SECONDS = 8
PTRACE_SEIZE = 0x4206


class _Vector(ctypes.Structure):
    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


def _forks(thread_too: bool = False) -> str:
    made: "list[int]" = []
    stop = threading.Event()
    threads = 0
    try:
        for _ in range(FORKS):
            if thread_too:
                threading.Thread(target=stop.wait, daemon=True).start()
                threads += 1
                continue
            pid = os.fork()
            if pid == 0:
                signal.alarm(20)
                while True:
                    time.sleep(1)
            made.append(pid)
    except RuntimeError:  # what Python makes of EAGAIN for threads
        raise failed(errno.EAGAIN) from None
    finally:
        stop.set()
        for pid in made:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
    return "%d of them at once" % (len(made) + threads)


@attack("a fork bomb", Wall.PROCESS_COUNT, "EAGAIN", limits={"processes": 24}, raised={"processes": 90}, alone=True)
def fork_bomb(bait: Bait) -> str:
    """Fork sixty processes at once where 24 are allowed."""
    return _forks()


@attack("a thread bomb", Wall.PROCESS_COUNT, "EAGAIN", limits={"processes": 24}, raised={"processes": 90}, alone=True)
def thread_bomb(bait: Bait) -> str:
    """Start sixty threads at once where 24 are allowed."""
    return _forks(thread_too=True)


@attack("outliving the run", Wall.PROCESSES, "left", witness=Witness.SURVIVOR, alone=True)
def outlive(bait: Bait) -> str:
    """Fork twice with a session of its own, ignore every signal, let go of every descriptor, and stay."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            libc("prctl", 1, 0, 0, 0, 0)  # no signal at the parent's end
            for number in set(signal.valid_signals()) - {signal.SIGKILL, signal.SIGSTOP}:
                with contextlib.suppress(OSError, ValueError):
                    signal.signal(number, signal.SIG_IGN)
            os.closerange(0, 256)
            os.execv("/bin/sleep", [bait.token + STAYS, str(SURVIVOR_SECONDS)])
        os._exit(0)
    time.sleep(0.2)
    raise AttackStopped("left")


@attack("a signal to a process outside", Wall.PROCESSES, "ESRCH", witness=Witness.VICTIM)
def kill(bait: Bait) -> str:
    """Send SIGTERM to a process of the host by its number, of the same user."""
    os.kill(bait.victim, signal.SIGTERM)
    return "sent it"


@attack("a signal through a pidfd", Wall.PROCESSES, "ESRCH", witness=Witness.VICTIM)
def pidfd(bait: Bait) -> str:
    """Open a process of the host by pidfd_open and signal it."""
    number = os.pidfd_open(bait.victim)
    signal.pidfd_send_signal(number, signal.SIGTERM)
    return "sent it"


@attack("host processes in /proc", Wall.PROCESSES, "ENOENT")
def listing(bait: Bait) -> str:
    """Look for a process of the host in /proc."""
    with open("/proc/%d/stat" % bait.victim, encoding="utf-8", errors="replace") as file:
        return file.read(60)


@attack("ptrace", Wall.SECCOMP, "EPERM", opens=(Wall.SECCOMP,), standin=True)
def ptrace(bait: Bait) -> str:
    """Trace another process."""
    call("ptrace", PTRACE_SEIZE, bait.victim, 0, 0)
    return "traces %d" % bait.victim


@attack("the memory file of another process", Wall.PROCESSES, "ENOENT", standin=True)
def memory_file(bait: Bait) -> str:
    """Open /proc/PID/mem of another process for writing."""
    os.close(os.open("/proc/%d/mem" % bait.victim, os.O_RDWR))
    return "opened it"


@attack("reading another process's memory", Wall.SECCOMP, "EPERM", opens=(Wall.SECCOMP,), standin=True)
def read_memory(bait: Bait) -> str:
    """Read another process's memory with process_vm_readv."""
    here = ctypes.create_string_buffer(8)
    local = _Vector(ctypes.addressof(here), 8)
    with open("/proc/self/maps", encoding="ascii") as file:
        remote = _Vector(int(file.readline().split("-")[0], 16), 8)  # a fork has the same places
    count = call("process_vm_readv", bait.victim, ctypes.byref(local), 1, ctypes.byref(remote), 1, 0)
    return "read %d bytes" % count


@attack("taking another process's descriptor", Wall.SECCOMP, "EPERM", opens=(Wall.SECCOMP,), standin=True)
def take_descriptor(bait: Bait) -> str:
    """Copy a descriptor out of another process with pidfd_getfd."""
    try:
        number = os.pidfd_open(bait.victim)
    except OSError:
        number = os.pidfd_open(os.getppid())
    try:
        return "took %d" % call("pidfd_getfd", number, 9, 0)
    except OSError as fault:
        by_kernel(fault, "pidfd_getfd")
        raise


@attack("comparing kernel objects", Wall.SECCOMP, "EPERM", opens=(Wall.SECCOMP,))
def kcmp(bait: Bait) -> str:
    """Ask whether two processes share a kernel object (kcmp), which tells kernel addresses' order."""
    try:
        return "told %d" % call("kcmp", os.getpid(), os.getpid(), 1, 0, 0)
    except OSError as fault:
        by_kernel(fault, "kcmp")
        raise


@attack("a higher priority", Wall.USER, "EPERM", "EACCES")
def nice(bait: Bait) -> str:
    """Take precedence over every other process."""
    os.setpriority(os.PRIO_PROCESS, 0, -10)
    return "priority -10"


@attack("real-time scheduling", Wall.USER, "EPERM")
def real_time(bait: Bait) -> str:
    """Take a real-time policy, which starves the machine."""
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    return "real-time"


@attack("real-time disk access", Wall.USER, "EPERM")
def ioprio(bait: Bait) -> str:
    """Take the real-time class of disk access."""
    call("ioprio_set", 1, 0, (1 << 13) | 4)
    return "real-time disk access"


@attack("raising a hard limit", Wall.USER, "EPERM")
def raise_limit(bait: Bait) -> str:
    """Raise the hard limit on open files."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard + 1))
    except ValueError:  # what Python makes of EPERM
        raise failed(errno.EPERM) from None
    return "raised to %d" % (hard + 1)


@attack("safe from the memory killer", Wall.USER, "EACCES", "EPERM", "EROFS")
def oom_score(bait: Bait) -> str:
    """Have the kernel kill everything else first when memory runs out."""
    with open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
        file.write("-1000")
    return "never killed"


@attack("becoming root", Wall.CAPABILITIES, "EINVAL", "EPERM")
def become_root(bait: Bait) -> str:
    """Take user id 0."""
    os.setresuid(0, 0, 0)
    return "is root inside"


@attack("other groups", Wall.USER, "EPERM", "EINVAL")
def groups(bait: Bait) -> str:
    """Take the groups of disks and of Docker."""
    os.setgroups([0, 6, 999])
    return "took groups"
