"""How many threads the model may use: never more than cores that are free, at least one, and no more than help.

Threads wait for each other by spinning: one more than cores are free costs most of the speed, not a part of it. The
load of the last minute is a guess of what is free; where it leaves room for several they are tried before the first
request, twice as many each time. Once chosen the number stays for the life of the child: another one would answer a
little otherwise, and a replay could not follow it.
"""

import os
from collections.abc import Callable
from pathlib import Path

SEARCH_CORES = 4  # what the checks of a task use beside, at most; where fewer are free they share two with the model
TRIAL_SECONDS = 0.05
_GAIN = 0.2


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
