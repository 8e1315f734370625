"""One answer of a forked child that may run anything: bounded in time, ended whatever becomes of it."""

from __future__ import annotations

import os
import signal
import time
from typing import Any, Callable, Dict

from . import child_limits
from .json_frames import Reader, WireClosed, WireFault, WireTimeout, send

_exit = os._exit


def answer_of_child(make: Callable[[], Dict[str, Any]], cpu_seconds: float, wall_seconds: float) -> Dict[str, Any]:
    """What `make` returns in a child of its own; empty when it did not come to its end."""
    read_fd, write_fd = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(read_fd)
            child_limits.guard_child()
            child_limits.limit_cpu(cpu_seconds)
            send(write_fd, make())
        finally:
            _exit(0)
    os.close(write_fd)
    told: Dict[str, Any] = {}
    try:
        told = Reader(read_fd).receive(time.monotonic() + wall_seconds)
    except (WireClosed, WireFault, WireTimeout):
        told = {}
    os.close(read_fd)
    os.kill(pid, signal.SIGKILL)  # not reaped yet, so the number is still its own
    os.waitpid(pid, 0)
    return told
