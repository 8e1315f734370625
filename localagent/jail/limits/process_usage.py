"""What a process tree uses, read from /proc. A sample: what is born and gone between two samples is not seen."""

import os
from collections.abc import Iterator
from dataclasses import dataclass

_PAGE = os.sysconf("SC_PAGE_SIZE")
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, kw_only=True, slots=True)
class TreeUsage:
    """Resident bytes (a page shared by several counts for each), processor seconds, number of processes."""

    resident_bytes: int
    cpu_seconds: float
    processes: int


def _read(path: str) -> bytes:
    try:
        number = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return os.read(number, 1 << 16)
    except OSError:
        return b""
    finally:
        os.close(number)


def children(pid: int) -> list[int]:
    """Direct children of all threads of `pid`."""
    try:
        threads = os.listdir(f"/proc/{pid}/task")  # noqa: PTH208 - hot, names are enough
    except OSError:
        return []
    return [int(word) for thread in threads for word in _read(f"/proc/{pid}/task/{thread}/children").split()]


def descendants(root: int) -> Iterator[int]:
    """`root` and everything below it, parents first."""
    todo, seen = [root], {root}
    while todo:
        pid = todo.pop()
        yield pid
        fresh = [child for child in children(pid) if child not in seen]
        seen.update(fresh)
        todo.extend(fresh)


def usage(root: int) -> TreeUsage:
    """Sample the tree below and including `root`; processor time includes children that were waited for."""
    resident, ticks, count = 0, 0, 0
    for pid in descendants(root):
        fields = _read(f"/proc/{pid}/stat").rpartition(b")")[2].split()
        if len(fields) < 22:
            continue
        count += 1
        ticks += sum(int(word) for word in fields[11:15])  # utime stime cutime cstime
        resident += int(fields[21]) * _PAGE
    return TreeUsage(resident_bytes=resident, cpu_seconds=ticks / _TICKS, processes=count)


def proportional_bytes(root: int) -> int:
    """Resident and swapped bytes, shared pages counted once (PSS); slower than `usage`, asked before a kill."""
    total = 0
    for pid in descendants(root):
        text = _read(f"/proc/{pid}/smaps_rollup")
        if not text:
            fields = _read(f"/proc/{pid}/statm").split()
            total += (int(fields[1]) - int(fields[2])) * _PAGE if len(fields) > 2 else 0
            continue
        for line in text.splitlines():
            if line.startswith((b"Pss:", b"SwapPss:")):
                total += int(line.split()[1]) << 10
    return total
