"""A deadline that is counted from the start of the process, as whoever waits for it counts.

When it passes, what runs is told to stop and `DeadlinePassed` is raised in the main thread between two steps of Python.
A reserve is kept for clearing up; how much is measured all along, by how long the kernel lets us wait for a processor.
What does not end then, in a single long step in C, is for the process that waits for this one: it has a reserve of
its own, `shown`, to say what there is and end.
"""

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from localagent.errors import LocalagentError
from localagent.fs.processor_wait import slowdown

if TYPE_CHECKING:
    from localagent.app.cancellation import Stop  # whoever waits needs none of the repair loop

RESERVE_SECONDS = 0.4
SHOWN_SECONDS = 0.08  # to print what there is and end, on a free machine
MOST_SLOWED = 4.0
MOST_SHOWN_SLOWED = 16.0
_LOOK_SECONDS = 0.05


class DeadlinePassed(KeyboardInterrupt):
    """The time is up."""


def process_age() -> float:
    """Seconds since this process was started (from the kernel, to a hundredth)."""
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    started = int(fields[19]) / os.sysconf("SC_CLK_TCK")  # field 22; the state is field 3
    return max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - started)


def slowed(age: float, most: float = MOST_SLOWED) -> float:
    """How many times longer than its processor time the process has taken so far: 1 to `most`.

    On a busy machine clearing up takes longer in the same measure.
    """
    spent = os.times()
    return min(most, max(1.0, age / max(0.05, sum(spent[:4]))))


class Deadline:
    """So many seconds from the process's start."""

    def __init__(self, seconds: float) -> None:
        age = process_age()
        self._seconds = seconds
        self._slowed = slowed(age)
        self._shown_slowed = slowed(age, MOST_SHOWN_SLOWED)
        self._end = time.monotonic() + seconds - age

    def left(self) -> float:
        """Seconds left to work in; negative when it is over."""
        reserve = min(self._seconds / 2, RESERVE_SECONDS * max(self._slowed, slowdown(MOST_SLOWED)))
        return self._end - reserve - time.monotonic()

    def shown(self, late_seconds: float) -> float:
        """Seconds left to wait in, for a process that woke up so much too late before; negative when it is over."""
        reserve = SHOWN_SECONDS * max(self._shown_slowed, slowdown(MOST_SHOWN_SLOWED)) + late_seconds
        return self._end - min(self._seconds / 4, reserve) - time.monotonic()

    def run(self, work: Callable[[], None], stop: "Stop") -> bool:
        """Do the work; False where the time was up before: then its jails are ended, and it by `DeadlinePassed`."""
        if self.left() <= 0:
            return False
        over = False

        def ring(_number: int, _frame: object) -> None:
            nonlocal over
            if self.left() > 0:
                return
            over = True
            signal.setitimer(signal.ITIMER_REAL, 0)
            stop.now()
            raise DeadlinePassed

        before = signal.signal(signal.SIGALRM, ring)
        signal.setitimer(signal.ITIMER_REAL, max(0.001, min(_LOOK_SECONDS, self.left())), _LOOK_SECONDS)
        try:
            work()
        except (DeadlinePassed, LocalagentError):
            if not over:  # what is raised on the way out of an ended jail says nothing
                raise
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        return not over
