"""Whether a jail filled the disk behind its writable binds. A sample, like all watching; tmpfs is bounded by its size.

Cheap while nothing happens: only when the filesystem's free space, or its free inodes, fell by more than what is left
of the limit is it looked at who took it, and now and then anyway. The nearer the limit, the sooner the next look. Each
file and folder counts for a block at least, so that empty ones, which take inodes alone, are bounded too. What cannot
be counted (too many files, too deep) is too much.
"""

import math
import os
import stat
import time
from collections.abc import Sequence
from contextlib import suppress

from localagent.jail.limits import process_usage

ENTRIES_LIMIT = 200_000
BLOCK_BYTES = 4096
PAUSE_SECONDS = 2.0
LONGEST_PAUSE_SECONDS = 32.0
SHORTEST_PAUSE_SECONDS = 0.01
FASTEST_BYTES_A_SECOND = 2 << 30


class DiskWatch:
    """Counts what changed below the writable binds since the watch was made."""

    def __init__(self, writable: Sequence[str], limit_bytes: int) -> None:
        self._writable = tuple(writable)
        self._limit_bytes = limit_bytes
        self._began = time.time() - 1.0
        self._free = {path: _free(path) for path in self._writable}
        self._left_bytes = limit_bytes  # what may still be written since `_free` was read
        self._next = 0.0
        self._pause = PAUSE_SECONDS
        self._due = time.monotonic() + self._pause

    def exceeded(self, root_pid: int) -> bool:
        """True when files changed since the start, or deleted ones still open below `root_pid`, hold too much."""
        now = time.monotonic()
        if not self._writable or now < self._next:
            return False
        due = now >= self._due
        if not due and self._fallen_bytes() <= self._left_bytes:
            return False
        if due:  # somebody else may have freed as much as was taken here
            self._pause = min(self._pause * 2, LONGEST_PAUSE_SECONDS)
            self._due = now + self._pause
        self._free = {path: _free(path) for path in self._writable}
        taken = sum(self._changed(path) for path in self._writable)
        if taken <= self._limit_bytes:
            taken += deleted_bytes(root_pid)
        self._left_bytes = max(0, self._limit_bytes - taken)
        self._next = now + min(PAUSE_SECONDS, 11 * (time.monotonic() - now))  # at most a tenth of the time is spent so
        return taken > self._limit_bytes

    def seconds_to_limit(self) -> float:
        """How long even a fast disk takes to reach the limit from here: until then nobody need look."""
        if not self._writable:
            return math.inf
        left = self._left_bytes - self._fallen_bytes()
        return max(left / FASTEST_BYTES_A_SECOND, self._next - time.monotonic(), SHORTEST_PAUSE_SECONDS)

    def _fallen_bytes(self) -> int:
        """How much more the filesystems hold than when the free space was read; inodes count as blocks."""
        fallen = [0]
        for path, (bytes_before, inodes_before) in self._free.items():
            bytes_now, inodes_now = _free(path)
            fallen += [bytes_before - bytes_now, (inodes_before - inodes_now) * BLOCK_BYTES]
        return max(fallen)

    def _changed(self, path: str) -> int:
        taken, entries, todo = 0, 0, [path]
        while todo:
            try:
                with os.scandir(todo.pop()) as found:
                    for entry in found:
                        entries += 1
                        with suppress(FileNotFoundError):
                            facts = entry.stat(follow_symlinks=False)
                            taken += max(facts.st_blocks * 512, BLOCK_BYTES) if facts.st_ctime >= self._began else 0
                        if entry.is_dir(follow_symlinks=False):
                            todo.append(entry.path)
                        if taken > self._limit_bytes or entries > ENTRIES_LIMIT:
                            return self._limit_bytes + 1
            except FileNotFoundError:
                continue
            except NotADirectoryError:  # the bind of one file
                with suppress(FileNotFoundError):
                    taken += os.lstat(path).st_blocks * 512
            except OSError:
                return self._limit_bytes + 1
        return taken


def _free(path: str) -> tuple[int, int]:
    """(bytes, inodes) that are free; some filesystems tell no inodes, then 0 each time."""
    try:
        facts = os.statvfs(path)
    except OSError:
        return 0, 0
    return facts.f_bfree * facts.f_frsize, facts.f_ffree


def deleted_bytes(root_pid: int) -> int:
    """Bytes of regular files without a name that processes below `root_pid` hold open."""
    seen: dict[tuple[int, int], int] = {}
    for pid in process_usage.descendants(root_pid):
        with suppress(OSError), os.scandir(f"/proc/{pid}/fd") as found:
            for entry in found:
                with suppress(OSError):
                    facts = entry.stat(follow_symlinks=True)
                    if stat.S_ISREG(facts.st_mode) and facts.st_nlink == 0:
                        seen[facts.st_dev, facts.st_ino] = facts.st_blocks * 512
    return sum(seen.values())
