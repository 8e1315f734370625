"""Attacks on the kernel's larger interfaces: those that tests do not need and that have been ways out.

Calls that would change the machine are made with arguments that change nothing: the permission is asked before them.
"""

import ctypes
import errno
import fcntl
import mmap
import os
import signal
import termios

from ..boundaries import Wall
from .attack import Bait, Category, Lacks, Register
from .system_calls import by_kernel, call, libc

attack = Register(Category.KERNEL)
NEWUSER, NEWNS, NEWNET = 0x10000000, 0x00020000, 0x40000000
FURTHER = (Wall.SECCOMP, Wall.CAPABILITIES)
AS_ROOT = (Wall.SECCOMP, Wall.USER)
TIOCLINUX = 0x541C
UNSHARE_I386, UNSHARE_X32 = 310, 0x40000000 | 272


def called(what: str, name: str, *arguments: object) -> str:
    """Make the call; Lacks where the kernel has none."""
    try:
        return "%s answered %d" % (what, call(name, *arguments))
    except OSError as fault:
        by_kernel(fault, what)
        raise


@attack("a user namespace of its own", Wall.SECCOMP, "EPERM")
def unshare_user(bait: Bait) -> str:
    """Become root in a new user namespace, which opens most of the kernel's attack surface."""
    return called("unshare", "unshare", NEWUSER)


@attack("a mount namespace of its own", Wall.SECCOMP, "EPERM", opens=FURTHER)
def unshare_mount(bait: Bait) -> str:
    """Have mounts of its own."""
    return called("unshare", "unshare", NEWNS)


@attack("a new namespace by clone", Wall.SECCOMP, "EPERM")
def clone(bait: Bait) -> str:
    """Start a process in a new user namespace with clone's flags instead of unshare."""
    pid = call("clone", NEWUSER | signal.SIGCHLD, 0, 0, 0, 0)
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    return "cloned %d" % pid


@attack("clone3", Wall.SECCOMP, "ENOSYS", open_reason="EINVAL")
def clone3(bait: Bait) -> str:
    """Start a process with clone3, whose flags a filter cannot look into; the size given is wrong on purpose."""
    return "answered %d" % call("clone3", 0, 0)


@attack("joining a namespace", Wall.SECCOMP, "EPERM", opens=FURTHER)
def setns(bait: Bait) -> str:
    """Join a network namespace."""
    return called("setns", "setns", os.open("/proc/self/ns/net", os.O_RDONLY), NEWNET)


@attack("mounting", Wall.SECCOMP, "EPERM", opens=FURTHER)
def mount(bait: Bait) -> str:
    """Mount a tmpfs over /tmp."""
    return called("mount", "mount", b"none", b"/tmp", b"tmpfs", 0, 0)


@attack("unmounting", Wall.SECCOMP, "EPERM", opens=FURTHER)
def umount(bait: Bait) -> str:
    """Unmount what covers /dev/shm."""
    return called("umount2", "umount2", b"/dev/shm", 2)


@attack("pivot_root", Wall.SECCOMP, "EPERM", opens=FURTHER, open_reason="ENOENT")
def pivot_root(bait: Bait) -> str:
    """Change the root of the mount namespace; the folder named is not there."""
    return called("pivot_root", "pivot_root", b"/no/such", b"/no/such")


@attack("chroot", Wall.SECCOMP, "EPERM", opens=FURTHER)
def chroot(bait: Bait) -> str:
    """Change the root folder."""
    libc("chroot", b"/tmp")
    return "changed"


@attack("the new mount interface", Wall.SECCOMP, "EPERM", opens=FURTHER)
def fsopen(bait: Bait) -> str:
    """Open a file system without a mount point (fsopen)."""
    return called("fsopen", "fsopen", b"tmpfs", 0)


@attack("cloning a mount", Wall.SECCOMP, "EPERM", opens=FURTHER)
def open_tree(bait: Bait) -> str:
    """Clone a mount into a descriptor (open_tree)."""
    return called("open_tree", "open_tree", -100, b"/usr", 1)


@attack("changing a mount's flags", Wall.SECCOMP, "EPERM", opens=(Wall.SECCOMP,), open_reason="EINVAL")
def mount_setattr(bait: Bait) -> str:
    """Change flags of a mount by the newer call; the size given is wrong on purpose."""
    return called("mount_setattr", "mount_setattr", -100, b"/usr", 0, 0, 0)


@attack("the kernel's key rings", Wall.SECCOMP, "EPERM")
def keyctl(bait: Bait) -> str:
    """Ask for the session's key ring, where credentials of the user lie."""
    return called("keyctl", "keyctl", 0, -3, 0, 0, 0)


@attack("adding a key", Wall.SECCOMP, "EPERM")
def add_key(bait: Bait) -> str:
    """Put a key into the process's own ring."""
    return called("add_key", "add_key", b"user", b"attack", b"x", 1, -2)


@attack("asking for a key", Wall.SECCOMP, "EPERM", open_reason="ENOKEY")
def request_key(bait: Bait) -> str:
    """Search all rings for a key."""
    return called("request_key", "request_key", b"user", b"localagent-no-such-key", 0, 0)


@attack("bpf", Wall.SECCOMP, "EPERM", opens=AS_ROOT, open_reason="EINVAL|E2BIG|EFAULT")
def bpf(bait: Bait) -> str:
    """Reach the kernel's virtual machine; the map asked for is wrong on purpose."""
    return called("bpf", "bpf", 0, 0, 0)


@attack("perf events", Wall.SECCOMP, "EPERM", open_reason="EFAULT|EACCES|E2BIG|EINVAL")
def perf(bait: Bait) -> str:
    """Measure the processor, and through it other processes."""
    return called("perf_event_open", "perf_event_open", 0, 0, -1, -1, 0)


@attack("userfaultfd", Wall.SECCOMP, "EPERM")
def userfaultfd(bait: Bait) -> str:
    """Stop the kernel in the middle of a copy (user mode faults), as exploits do."""
    return called("userfaultfd", "userfaultfd", 1)


@attack("io_uring", Wall.SECCOMP, "ENOSYS", open_reason="EFAULT|EINVAL|EPERM")
def io_uring(bait: Bait) -> str:
    """Set up a queue of system calls that a filter does not see."""
    return "answered %d" % call("io_uring_setup", 1, 0)


@attack("personality", Wall.SECCOMP, "EPERM")
def personality(bait: Bait) -> str:
    """Switch off the randomizing of addresses."""
    return called("personality", "personality", 0x0040000)


@attack("kernel calls by the 32-bit door", Wall.SECCOMP, "SIGSYS", open_reason="succeeded|SIGSEGV")
def int80_entry(bait: Bait) -> str:
    """Make a refused call through int 0x80, whose numbers are others than those that the filter knows."""
    return _machine_code(b"\xb8" + UNSHARE_I386.to_bytes(4, "little") + b"\xbb\0\0\0\0\xcd\x80\xc3")


@attack("kernel calls by the x32 door", Wall.SECCOMP, "SIGSYS", open_reason="succeeded")
def x32_entry(bait: Bait) -> str:
    """Make a refused call by its number in the x32 table, which is the same call with another number."""
    return _machine_code(b"\xb8" + UNSHARE_X32.to_bytes(4, "little") + b"\xbf\0\0\0\0\x0f\x05\xc3")


def _machine_code(code: bytes) -> str:
    """Call a few bytes of machine code (in a child: a filter may end it)."""
    if os.uname().machine != "x86_64":
        raise Lacks("only x86-64 has this door")
    area = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    area.write(b"\x53" + code[:-1] + b"\x5b\xc3")  # rbx belongs to the caller
    place = ctypes.addressof(ctypes.c_char.from_buffer(area))
    return "the kernel answered %d" % ctypes.CFUNCTYPE(ctypes.c_int)(place)()


@attack("pushing input into a terminal", Wall.SECCOMP, "EPERM", open_reason="succeeded|EIO")
def tiocsti(bait: Bait) -> str:
    """Type into a terminal as if the user did (TIOCSTI); the terminal is one of our own."""
    _, slave = os.openpty()
    if os.fork() == 0:
        os._exit(_typing(slave))
    code = os.waitstatus_to_exitcode(os.wait()[1])
    if code:
        raise OSError(code, os.strerror(code))
    return "typed"


def _typing(slave: int) -> int:
    try:
        os.setsid()
        fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
        fcntl.ioctl(slave, termios.TIOCSTI, b"x")
    except OSError as fault:
        return fault.errno or 1
    return 0


@attack("pasting into a console", Wall.SECCOMP, "EPERM", open_reason="ENOTTY")
def tioclinux(bait: Bait) -> str:
    """Paste into a console (TIOCLINUX); on a terminal of our own the kernel has no such call."""
    _, slave = os.openpty()
    fcntl.ioctl(slave, TIOCLINUX, b"\x03")
    return "pasted"


@attack("loading a kernel", Wall.SECCOMP, "EPERM", opens=AS_ROOT, open_reason="EINVAL|ENOSYS|EADDRNOTAVAIL|succeeded")
def kexec(bait: Bait) -> str:
    """Load another kernel; the flags are wrong on purpose."""
    return called("kexec_load", "kexec_load", 0, 0, 0, 0xFF00)


@attack("loading a kernel module", Wall.SECCOMP, "EPERM", opens=AS_ROOT, open_reason="ENOEXEC|EFAULT|EINVAL")
def init_module(bait: Bait) -> str:
    """Load a module; the image is empty on purpose."""
    return called("init_module", "init_module", b"", 0, b"")


@attack("removing a kernel module", Wall.SECCOMP, "EPERM", opens=AS_ROOT, open_reason="ENOENT|EFAULT")
def delete_module(bait: Bait) -> str:
    """Remove a module; no module has the name."""
    return called("delete_module", "delete_module", b"localagent_no_such_module", 0o4000)


@attack("rebooting", Wall.SECCOMP, "EPERM", opens=FURTHER, open_reason="EINVAL")
def reboot(bait: Bait) -> str:
    """Reboot; the magic numbers are wrong on purpose."""
    return called("reboot", "reboot", 0, 0, 0, 0)


@attack("swapping", Wall.SECCOMP, "EPERM", opens=AS_ROOT, open_reason="ENOENT")
def swapon(bait: Bait) -> str:
    """Swap onto a file; there is no such file."""
    return called("swapon", "swapon", b"/no/such", 0)


@attack("accounting of processes", Wall.SECCOMP, "EPERM", opens=AS_ROOT, open_reason="ENOENT")
def acct(bait: Bait) -> str:
    """Have the kernel write a record of every process to a file; there is no such file."""
    return called("acct", "acct", b"/no/such")


@attack("setting the clock", Wall.SECCOMP, "EPERM", opens=AS_ROOT)
def clock(bait: Bait) -> str:
    """Set the clock and the time zone, to nothing: only the permission is asked."""
    return called("settimeofday", "settimeofday", 0, 0)


@attack("ports of the processor", Wall.SECCOMP, "EPERM", opens=AS_ROOT, open_reason="EINVAL|succeeded")
def ioperm(bait: Bait) -> str:
    """Ask for a hardware port, of which there are none so high."""
    return called("ioperm", "ioperm", 65535, 8, 1)


@attack("segments of the processor", Wall.SECCOMP, "EPERM")
def modify_ldt(bait: Bait) -> str:
    """Read the local descriptor table, an old way into the kernel."""
    buffer = ctypes.create_string_buffer(64)
    return called("modify_ldt", "modify_ldt", 0, buffer, 64)


@attack("watching the whole file system", Wall.SECCOMP, "EPERM")
def fanotify(bait: Bait) -> str:
    """Watch file accesses of the machine."""
    return called("fanotify_init", "fanotify_init", 0x200, 0)


@attack("moving memory between nodes", Wall.SECCOMP, "EPERM", open_reason="EINVAL")
def migrate(bait: Bait) -> str:
    """Move the pages of a process (migrate_pages)."""
    return called("migrate_pages", "migrate_pages", 0, 0, 0, 0)


@attack("the host name", Wall.CAPABILITIES, "EPERM")
def host_name(bait: Bait) -> str:
    """Change the host name."""
    return called("sethostname", "sethostname", b"attack", 6)


@attack("System V message queues", Wall.SECCOMP, "EPERM")
def messages(bait: Bait) -> str:
    """Make a System V message queue, where many kernel faults were."""
    return called("msgget", "msgget", 0, 0o1600)


@attack("drivers", Wall.DEVICES, "ENOENT", open_reason="succeeded|EACCES")
def drivers(bait: Bait) -> str:
    """Open KVM, FUSE, loop control, the hypervisor's or a user-made network device."""
    fault = OSError(errno.ENOENT, os.strerror(errno.ENOENT))
    for name in ("kvm", "fuse", "loop-control", "net/tun", "vhost-net", "uinput", "dri/card0", "mem", "userfaultfd"):
        try:
            os.close(os.open("/dev/" + name, os.O_RDWR))
        except OSError as seen:
            fault = seen if seen.errno != errno.ENOENT else fault
        else:
            return "opened /dev/" + name
    raise fault
