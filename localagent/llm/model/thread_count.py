"""How many threads the model may use: never more than cores that are free, at least one, and no more than help.

Threads wait for each other by spinning: one more than cores are free costs most of the speed, not a part of it. The
load of the last minute is a guess of what is free; where it leaves room for several they are tried before the first
request, twice as many each time. Once chosen this usual number stays for the life of the child.

While it reads, a batch at a time, more may help (`ThreadCount`): a search waits for its order, and its cores are idle.
That alters no answer. A lone token's does depend on the number (llama.cpp shares out its attention among the threads,
and sums what they found), so it is always decoded by the usual number.
"""

import os
import time
from collections.abc import Callable
from pathlib import Path

SEARCH_CORES = 4  # what the checks of a task use beside, at most; where fewer are free they share two with the model
TRIAL_SECONDS = 0.05
_GAIN = 0.2
_SPARE_CORES = 0.4  # that threads together may be short of: two need 1.6 seconds of the processor in each second
_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.5, 60.0


def usable_cores() -> int:
    """Cores this process may run on: its affinity, lowered by a cgroup quota where there is one."""
    cores = len(os.sched_getaffinity(0))
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text(encoding="ascii").split()
        cores = min(cores, max(1, int(quota) // int(period)))
    except (OSError, ValueError):
        pass  # no quota, or "max"
    return cores


def free_threads(*, reserved_cores: int = 0) -> int:
    """Threads for the model beside `reserved_cores` that are busy, and whatever else loads the machine: at most.

    Of more than two free cores the search's own are left to it.
    """
    try:
        load = os.getloadavg()[0]
    except OSError:
        load = 0.0
    free = usable_cores() - max(float(reserved_cores), load)
    return max(1, min(2, round(free)), round(free) - SEARCH_CORES)


def most_reading(usual: int) -> int:
    """Threads that may read while cores are idle, where so many usually do: as many as a search would keep busy."""
    return max(usual, min(usable_cores(), SEARCH_CORES))


def worthwhile(rate: Callable[[int], float], most: int) -> int:
    """Threads to use, at most so many: twice as many while that makes it a fifth faster, then all. `rate` tries some.

    The last step is shorter than twice, and has to gain as much less.
    """
    best, known = 1, rate(1) if most > 1 else 0.0
    while best < most:
        threads = min(2 * best, most)
        found = rate(threads)
        if found < known * (1.0 + _GAIN * (threads - best) / best):
            break
        best, known = threads, found
    return best


class ThreadCount:
    """How many threads decode the next batch: as many as found cores of their own at the last one.

    Threads that all have a core spend as many seconds of the processor as there are of them in each second. Where they
    spend less at two batches in a row, others need the cores: so many threads fewer go on, and more are tried again
    after a pause, which is twice as long each time it was in vain.
    """

    def __init__(self, usual: int, most: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        """`usual` as `worthwhile` found, `most` is never exceeded."""
        self._most = max(1, most)
        self._size = max(1, min(usual, most))
        self._clock = clock
        self._again_at = clock()
        self._crowded = False
        self._pause_seconds = _PAUSE_SECONDS

    def next(self) -> int:
        """For the next batch."""
        if self._size < self._most and self._clock() >= self._again_at:
            self._size = self._most
        return self._size

    def worked(self, *, wall_seconds: float, cpu_seconds: float) -> None:
        """What the last batch took, of which all of its threads' processor seconds."""
        found = max(1, int(cpu_seconds / max(wall_seconds, 1e-6) + _SPARE_CORES))
        crowded, self._crowded = self._crowded, found < self._size
        if not self._crowded:
            self._pause_seconds = _PAUSE_SECONDS
        if not (crowded and self._crowded):
            return
        self._size, self._crowded = found, False
        self._again_at = self._clock() + self._pause_seconds
        self._pause_seconds = min(2 * self._pause_seconds, _LONGEST_PAUSE_SECONDS)
