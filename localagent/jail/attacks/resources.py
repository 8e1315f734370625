"""Attacks on what every process of the machine shares: memory, processor, disk, files, and whoever reads the output.

Each takes little more than its tight limit and no more than the control's raised one.
"""

import ctypes
import errno
import mmap
import os
import tempfile
import threading
import time
import zipfile

from ..boundaries import Wall
from .attack import AttackStopped, Bait, Category, Register, failed
from .system_calls import by_kernel, call

attack = Register(Category.RESOURCES)
MB = 1 << 20
GB = 1 << 30
TIGHT_MEMORY = {"resident_bytes": 48 * MB, "tmp_bytes": 8 * MB}
MORE_MEMORY = {"resident_bytes": 512 * MB}
TIGHT_TMP = {"tmp_bytes": 8 * MB, "file_bytes": 64 * MB}
MORE_TMP = {"tmp_bytes": 128 * MB, "file_bytes": 64 * MB}
MAP_NORESERVE = 0x4000


def _hold(size: int, flags: int) -> str:
    with mmap.mmap(-1, size, flags=flags) as area:
        for place in range(0, size, mmap.PAGESIZE):
            area[place] = 1
        time.sleep(1.0)  # for a watcher, where the kernel does not bound it
    return "held %d MB" % (size // MB)


def _fill(folder: str, megabytes: int) -> str:
    with tempfile.NamedTemporaryFile(dir=folder, buffering=0) as file:
        for _ in range(megabytes):
            file.write(b"x" * MB)
    return "wrote %d MB" % megabytes


@attack("a huge heap", Wall.ADDRESS_SPACE, "ENOMEM", raised={"address_space_bytes": 16 * GB})
def heap(bait: Bait) -> str:
    """Map 6 GB where 4 GB are allowed; nothing of it is touched."""
    size = 6 * GB
    mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | MAP_NORESERVE).close()
    return "mapped 6 GB"


@attack("a huge stack", Wall.ADDRESS_SPACE, "EAGAIN", "ENOMEM", raised={"address_space_bytes": 16 * GB})
def stack(bait: Bait) -> str:
    """Start a thread with a stack of 5 GB."""
    threading.stack_size(5 * GB)
    thread = threading.Thread(target=int)
    try:
        thread.start()
    except RuntimeError:  # what Python makes of EAGAIN
        raise failed(errno.EAGAIN) from None
    thread.join()
    return "a stack of 5 GB"


@attack(
    "memory of one process",
    Wall.MEMORY,
    "ending:memory",
    "SIGKILL",
    limits=TIGHT_MEMORY,
    raised=MORE_MEMORY,
    alone=True,
)
def memory(bait: Bait) -> str:
    """Touch 120 MB of private memory where 48 MB are allowed."""
    return _hold(120 * MB, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)


@attack(
    "memory that processes share",
    Wall.MEMORY,
    "ending:memory",
    "SIGKILL",
    limits=TIGHT_MEMORY,
    raised=MORE_MEMORY,
    alone=True,
)
def shared_memory(bait: Bait) -> str:
    """Touch 120 MB of shared anonymous memory, which belongs to no file and no one process."""
    return _hold(120 * MB, mmap.MAP_SHARED | mmap.MAP_ANONYMOUS)


@attack(
    "memory of many processes",
    Wall.MEMORY,
    "ending:memory",
    "SIGKILL",
    limits=TIGHT_MEMORY,
    raised=MORE_MEMORY,
    alone=True,
)
def many(bait: Bait) -> str:
    """Touch 20 MB in each of six processes: no one of them holds much."""
    children = []
    for _ in range(6):
        pid = os.fork()
        if pid == 0:
            try:
                _hold(20 * MB, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
            finally:
                os._exit(0)
        children.append(pid)
    for pid in children:
        if os.waitpid(pid, 0)[1]:
            raise AttackStopped("SIGKILL")
    return "held 120 MB in six processes"


@attack("memory behind a descriptor", Wall.SECCOMP, "ENOSYS")
def memfd(bait: Bait) -> str:
    """Make an unnamed file in memory (memfd_create), which no tmpfs bounds."""
    number = call("memfd_create", b"attack", 0)
    os.close(number)
    return "made one"


@attack("secret memory", Wall.SECCOMP, "EPERM", open_reason="succeeded|ENOSYS")
def secret(bait: Bait) -> str:
    """Make memory that not even the kernel can look into (memfd_secret)."""
    os.close(call("memfd_secret", 0))
    return "made some"


@attack("locked memory", Wall.FIXED_LIMITS, "ENOMEM", "EPERM", "EAGAIN")
def lock(bait: Bait) -> str:
    """Lock 4 MB into memory."""
    area = mmap.mmap(-1, 4 * MB)
    view = ctypes.c_char.from_buffer(area)
    if ctypes.CDLL(None, use_errno=True).mlock(ctypes.byref(view), ctypes.c_size_t(4 * MB)):
        raise failed(ctypes.get_errno())
    return "locked 4 MB"


@attack("message queues", Wall.FIXED_LIMITS, "EMFILE", "ENOSYS")
def queues(bait: Bait) -> str:
    """Make a POSIX message queue, which is kernel memory."""
    try:
        os.close(call("mq_open", bait.token.encode(), os.O_CREAT | os.O_RDWR, 0o600, 0))
    except OSError as fault:
        by_kernel(fault, "message queues")
    return "made a queue"


@attack("filling /tmp", Wall.TMP_SIZE, "ENOSPC", limits=TIGHT_TMP, raised=MORE_TMP)
def tmp(bait: Bait) -> str:
    """Write 16 MB to /tmp where 8 MB are allowed."""
    return _fill(tempfile.gettempdir(), 16)


@attack("filling /dev/shm", Wall.TMP_SIZE, "ENOSPC", limits=TIGHT_TMP, raised=MORE_TMP)
def shm(bait: Bait) -> str:
    """Write 16 MB to /dev/shm where 8 MB are allowed."""
    return _fill("/dev/shm", 16)


@attack("a zip bomb", Wall.TMP_SIZE, "ENOSPC", limits=TIGHT_TMP, raised=MORE_TMP)
def zip_bomb(bait: Bait) -> str:
    """Unpack an archive of a few kilobytes into 32 MB."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "bomb.zip")
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for number in range(4):
                archive.writestr("part%d" % number, bytes(8 * MB))
        with zipfile.ZipFile(path) as archive:
            archive.extractall(folder)
    return "unpacked 32 MB"


@attack("a sparse file", Wall.FILE_SIZE, "EFBIG", limits={"file_bytes": 16 * MB}, raised={"file_bytes": 2 * GB})
def sparse(bait: Bait) -> str:
    """Make a file of 1 GB without content where 16 MB are allowed."""
    path = os.path.join(bait.workspace_inside, "sparse")
    with open(path, "wb") as file:
        file.truncate(GB)
    os.unlink(path)
    return "made 1 GB"


@attack("a large file", Wall.FILE_SIZE, "EFBIG", limits={"file_bytes": 16 * MB}, raised={"file_bytes": 2 * GB})
def large(bait: Bait) -> str:
    """Write 24 MB to one file where 16 MB are allowed."""
    return _fill(bait.workspace_inside, 24)


@attack("the disk behind the workspace", Wall.DISK, "ending:disk", limits=TIGHT_TMP, raised=MORE_TMP, alone=True)
def disk(bait: Bait) -> str:
    """Write 40 MB to the workspace in small files where 8 MB are allowed, and stay."""
    for number in range(40):
        with open(os.path.join(bait.workspace_inside, "f%d" % number), "wb") as file:
            file.write(os.urandom(MB))
            os.fsync(file.fileno())
    time.sleep(5.0)
    return "wrote 40 MB"


@attack("the disk's inodes", Wall.DISK, "ending:disk", limits=TIGHT_TMP, raised=MORE_TMP, alone=True)
def inodes(bait: Bait) -> str:
    """Make 6000 empty files in the workspace, which hold no byte of the disk but its inodes, and stay."""
    for number in range(6000):
        os.mknod(os.path.join(bait.workspace_inside, "i%d" % number), 0o100600)
    time.sleep(5.0)
    return "made 6000 empty files"


@attack(
    "a spinning processor",
    Wall.CPU,
    "ending:cpu",
    limits={"cpu_seconds": 0.4},
    raised={"cpu_seconds": 60.0},
    alone=True,
)
def spin(bait: Bait) -> str:
    """Spin for two seconds of processor time where 0.4 are allowed."""
    while time.process_time() < 2.0:
        pass
    return "spun for two seconds"


@attack(
    "spinning in many processes",
    Wall.CPU,
    "ending:cpu",
    limits={"cpu_seconds": 0.6},
    raised={"cpu_seconds": 60.0},
    alone=True,
)
def spin_in_turns(bait: Bait) -> str:
    """Spin in thirty processes one after the other, each below the limit."""
    for _ in range(30):
        if os.fork() == 0:
            until = time.process_time() + 0.08
            while time.process_time() < until:
                pass
            os._exit(0)
        os.wait()
    return "spun for two seconds in turns"


@attack(
    "sleeping for ever",
    Wall.WALL_CLOCK,
    "ending:wall",
    limits={"wall_seconds": 1.0},
    raised={"wall_seconds": 30.0},
    alone=True,
)
def sleep(bait: Bait) -> str:
    """Wait past the wall clock's limit without using anything."""
    time.sleep(4.0)
    return "slept past the limit"


@attack("open files", Wall.OPEN_FILES, "EMFILE", limits={"open_files": 64}, raised={"open_files": 256})
def open_files(bait: Bait) -> str:
    """Open the same file 120 times where 64 are allowed."""
    kept = [os.open("/dev/null", os.O_RDONLY) for _ in range(120)]
    for number in kept:
        os.close(number)
    return "opened 120 files"


def _flood(number: int) -> str:
    for _ in range(200):
        os.write(number, b"x" * 4096 + b"\n")
    return "wrote 800 KB"


@attack(
    "a flood on standard output",
    Wall.OUTPUT,
    "ending:output",
    limits={"output_bytes": 65536},
    raised={"output_bytes": 2 * MB},
    alone=True,
)
def flood_out(bait: Bait) -> str:
    """Write 800 KB to standard output where 64 KB are kept."""
    return _flood(1)


@attack(
    "a flood on standard error",
    Wall.OUTPUT,
    "ending:output",
    limits={"output_bytes": 65536},
    raised={"output_bytes": 2 * MB},
    alone=True,
)
def flood_error(bait: Bait) -> str:
    """Write 800 KB to standard error where 64 KB are kept."""
    return _flood(2)
