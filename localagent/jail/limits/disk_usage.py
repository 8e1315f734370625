"""Whether a jail filled the disk behind its writable binds. A sample, like all watching; tmpfs is bounded by its size.

Cheap while nothing happens: only when the filesystem's free space, or its free inodes, fell by more than the limit is
it looked at who took it, and now and then anyway. Each file and folder counts for a block at least, so that empty
ones, which take inodes alone, are bounded too. What cannot be counted (too many files, too deep) is too much.
"""

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


class DiskWatch:
    """Counts what changed below the writable binds since the watch was made."""

    def __init__(self, writable: Sequence[str], limit_bytes: int) -> None:
        self._writable = tuple(writable)
        self._limit_bytes = limit_bytes
        self._began = time.time() - 1.0
        self._free = {path: _free(path) for path in self._writable}
        self._next = 0.0
        self._pause = PAUSE_SECONDS
        self._due = time.monotonic() + self._pause

    def exceeded(self, root_pid: int) -> bool:
        """True when files changed since the start, or deleted ones still open below `root_pid`, hold too much."""
        now = time.monotonic()
        if not self._writable or now < self._next:
            return False
        due = now >= self._due
        if not due and not any(self._fell(path) for path in self._writable):
            return False
        if due:  # somebody else may have freed as much as was taken here
            self._pause = min(self._pause * 2, LONGEST_PAUSE_SECONDS)
            self._due = now + self._pause
        taken = sum(self._changed(path) for path in self._writable)
        self._next = now + min(PAUSE_SECONDS, 11 * (time.monotonic() - now))  # at most a tenth of the time is spent so
        return taken > self._limit_bytes or taken + deleted_bytes(root_pid) > self._limit_bytes

    def _fell(self, path: str) -> bool:
        """True when the filesystem holds so much more than at the start that it is worth looking who took it."""
        (bytes_before, inodes_before), (bytes_now, inodes_now) = self._free[path], _free(path)
        return max(bytes_before - bytes_now, (inodes_before - inodes_now) * BLOCK_BYTES) > self._limit_bytes

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
