"""Attacks that only want to know: who and where this is, what else runs, what the kernel said.

Not promised, and so not attacked: the kernel's version, the processor's model, the clock, what lies in /usr, and the
places outside of what is shown (mount tables tell them).
"""

import os
import pwd
import socket

from ..boundaries import Wall
from .attack import AttackStopped, Bait, Category, Register, failed
from .system_calls import by_kernel, call

attack = Register(Category.INFORMATION)


@attack("the environment", Wall.ENVIRONMENT, "as-asked", given=True)
def environment(bait: Bait) -> str:
    """Look for variables that were not asked for: tokens, proxies, paths."""
    extra = sorted(set(os.environ) - set(bait.allowed))
    if extra:
        return "found " + " ".join(extra[:5])
    raise AttackStopped("as-asked")


@attack("the host's name", Wall.HOST_NAME, "other-name")
def name(bait: Bait) -> str:
    """Ask for the name of the machine."""
    if bait.host_name in (socket.gethostname(), os.uname().nodename):
        return "it is " + bait.host_name
    raise AttackStopped("other-name")


@attack("the host's domain", Wall.FILES, "ENOENT", target="/etc/hosts")
def domain(bait: Bait) -> str:
    """Look into /etc/hosts and /etc/resolv.conf for names of the network."""
    with open("/etc/hosts", encoding="utf-8", errors="replace") as file:
        lines = [line.split("#")[0].split() for line in file]
    names = {word for words in lines for word in words[1:]} - {"localhost", "jail"}
    if names or os.path.lexists("/etc/resolv.conf"):
        return "names: %s" % sorted(names)[:5]
    raise failed(2)


@attack("the users of the host", Wall.FILES, "made-up")
def users(bait: Bait) -> str:
    """List the accounts."""
    names = {entry.pw_name for entry in pwd.getpwall()}
    if names <= {"root", "nobody", "user"}:
        raise AttackStopped("made-up")
    return "%d accounts: %s" % (len(names), " ".join(sorted(names)[:5]))


@attack("the user's id", Wall.USER, "nobody")
def user_id(bait: Bait) -> str:
    """Ask for the user id, real and mapped, and the groups."""
    with open("/proc/self/uid_map", encoding="ascii") as file:
        rows = [line.split() for line in file]
    if os.getuid() != 0 and len(rows) == 1 and rows[0][2] == "1" and set(os.getgroups()) <= {os.getgid()}:
        raise AttackStopped("nobody")
    return "uid %d, map %s, groups %s" % (os.getuid(), rows, os.getgroups())


@attack("the machine's id", Wall.FILES, "ENOENT", target="/etc/machine-id|/var/lib/dbus/machine-id|/etc/hostid")
def machine_id(bait: Bait) -> str:
    """Look for the machine's id where services keep it."""
    for path in ("/etc/machine-id", "/var/lib/dbus/machine-id", "/etc/hostid"):
        if os.path.lexists(path):
            return path + " is there"
    raise failed(2)


@attack("the kernel's log", Wall.SECCOMP, "EPERM", opens=(Wall.SECCOMP, Wall.USER))
def log(bait: Bait) -> str:
    """Ask for the size of the kernel's log (syslog)."""
    try:
        return "%d bytes" % call("syslog", 10, 0, 0)
    except OSError as fault:
        by_kernel(fault, "kernel log")
        raise


@attack("the kernel's log device", Wall.DEVICES, "ENOENT", target="/dev/kmsg")
def log_device(bait: Bait) -> str:
    """Look for /dev/kmsg, where anybody may read on many machines."""
    return "%o" % os.lstat("/dev/kmsg").st_mode


@attack("folders that are not shown, in the mount table", Wall.FILES, "not-told", shown="ro")
def mounts(bait: Bait) -> str:
    """Look in /proc/self/mountinfo for the folder of a file that is not shown."""
    with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as file:
        if os.path.dirname(bait.canary) in file.read():
            return "the mount table names it"
    raise AttackStopped("not-told")


@attack("what else runs", Wall.PROCESSES, "own-only")
def running(bait: Bait) -> str:
    """List processes and count those that are not of this jail."""
    pids = [int(entry) for entry in os.listdir("/proc") if entry.isdigit()]
    if bait.victim in pids or len(pids) > 30:
        return "%d processes" % len(pids)
    raise AttackStopped("own-only")


@attack("the control group", Wall.CGROUP_PATH, "root-of-its-own")
def cgroup(bait: Bait) -> str:
    """Ask for the path of the control group, which names containers, users and sessions."""
    with open("/proc/self/cgroup", encoding="ascii") as file:
        paths = {line.strip().split(":", 2)[2] for line in file if line.strip()}
    if paths <= {"/"}:
        raise AttackStopped("root-of-its-own")
    return "it is " + " ".join(sorted(paths)[:3])


@attack("how busy the machine is", Wall.PROCESSES, "small-numbers")
def numbers(bait: Bait) -> str:
    """Look at one's own process number, which tells how busy the machine is."""
    if os.getpid() < 1000 and os.getpid() != bait.victim:
        raise AttackStopped("small-numbers")
    return "it is %d" % os.getpid()


@attack("kernel addresses", Wall.USER, "hidden", target="/proc/kallsyms")
def symbols(bait: Bait) -> str:
    """Read where the kernel's functions lie (/proc/kallsyms), which exploits need."""
    try:
        with open("/proc/kallsyms", encoding="ascii") as file:
            first = [file.readline().split() for _ in range(40)]
    except OSError:
        raise AttackStopped("hidden") from None
    if any(words and int(words[0], 16) for words in first):
        return "addresses are told"
    raise AttackStopped("hidden")
