"""Runs collected tests in this process, each under a CPU timer, with a record at its start and one at its end.

The timer's handler tells where the test was when its time was up; code that no handler reaches is ended by the kernel.
"""

from __future__ import annotations

import os
import signal
import sys
from time import monotonic as _monotonic
from time import perf_counter as _perf_counter
from typing import Any, Callable, Dict, List, Optional, Tuple, Union

from . import child_limits
from .failure_trace import FailureTrace
from .failures import WALL_TIME_IS_UP, imports_library, plain, sets_up_for_several, stack_frames
from .line_trace import LineTracer
from .pytest_plugin import SessionPlugin

EXIT_HUNG = 97
EXIT_STOPPED = 92
_exit = os._exit
_setitimer = signal.setitimer
_getitimer = signal.getitimer
_settle = signal.signal

Send = Callable[[Dict[str, Any]], None]


SHARED_CPU_SECONDS = 20.0  # of one process: the first test that needs a library or a database makes it ready for all


class CpuTimer:
    """The CPU timer of the current test (or of the collection, when `index` is None).

    A test whose time is up while a library is imported, or a fixture of several tests set up, gets its time again: what
    that takes says nothing of the test, nor of a candidate. The repository's own modules are not libraries.
    """

    def __init__(self, root: str, send: Send) -> None:
        self._root = root
        self._cpu_seconds = 0.0
        self._shared_left = SHARED_CPU_SECONDS
        self.send = send
        self.index: Optional[int] = None
        self.begin = 0.0
        self.tracer: Union[LineTracer, FailureTrace, None] = None

    def arm(self, cpu_seconds: float) -> None:
        """Start counting now."""
        self.begin = _perf_counter()
        _settle(signal.SIGPROF, self._up)
        self._count(cpu_seconds)

    def _count(self, cpu_seconds: float) -> None:
        self._cpu_seconds = cpu_seconds
        child_limits.limit_cpu(cpu_seconds)
        _setitimer(signal.ITIMER_PROF, cpu_seconds)

    def disarm(self) -> None:
        """Count no more."""
        _setitimer(signal.ITIMER_PROF, 0)

    def _up(self, signum: int, frame: Any) -> None:
        waits = _getitimer(signal.ITIMER_PROF)[0] > 0  # somebody else gave the signal
        shared = imports_library(self._root, frame) or sets_up_for_several(frame)
        if shared and not waits and self._shared_left > 0:
            self._shared_left -= self._cpu_seconds
            self._count(self._cpu_seconds)
            return
        sys.settrace(None)
        lines = self.tracer.take() if self.tracer is not None else None
        said = WALL_TIME_IS_UP if waits else "did not finish in its CPU time"
        failure = plain("TimeLimit", said, stack_frames(self._root, frame))
        try:
            self.send(
                {
                    "k": "done",
                    "i": self.index,
                    "outcome": "timed-out",
                    "seconds": max(0.0, _perf_counter() - self.begin),
                    "failure": failure,
                    "lines": lines,
                }
            )
        finally:
            _exit(EXIT_HUNG)


def run_items(
    plugin: SessionPlugin,
    items: List[Any],
    order: List[Tuple[int, float]],
    watch: CpuTimer,
    *,
    stop_on_bad: bool,
    grace_tests: int,
    until: Optional[float] = None,
) -> bool:
    """Run items by (index, CPU seconds), reporting through the watch's `send`; whether all of them ran.

    `grace_tests`: how many more after a bad one that stops. `until`: no test begins later, on the monotonic clock.
    """
    left: Optional[int] = None
    for position, (index, cpu_seconds) in enumerate(order):
        if until is not None and position and _monotonic() >= until:
            _exit(EXIT_STOPPED)  # what the next tests share is set up; the rest needs a process of its own
        if left is not None:
            left -= 1
            if left < 0:
                return False
        following = items[order[position + 1][0]] if position + 1 < len(order) else None
        watch.index = index
        watch.send({"k": "start", "i": index})
        watch.arm(cpu_seconds)
        if watch.tracer is not None:
            watch.tracer.start()
        answer = plugin.run(items[index], following)
        if watch.tracer is not None:
            watch.tracer.stop()
            answer["lines"] = watch.tracer.take()
        watch.disarm()
        answer.update(k="done", i=index)
        watch.send(answer)
        if plugin.stopped:
            _exit(EXIT_STOPPED)  # the rest needs a process in which no item is half torn down
        if stop_on_bad and left is None and answer["outcome"] not in ("passed", "skipped"):
            left = grace_tests
    return True
