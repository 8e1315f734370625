"""How many threads the model may use: never more than cores that are free, at least one."""

import os
from pathlib import Path

MAX_THREADS = 2


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
    """Threads for the model beside `reserved_cores` busy with the search and whatever else loads the machine."""
    try:
        load = os.getloadavg()[0]
    except OSError:
        load = 0.0
    free = usable_cores() - max(float(reserved_cores), load)
    return max(1, min(MAX_THREADS, round(free)))
