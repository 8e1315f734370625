"""One answer of a forked child that may run anything: bounded in time, ended whatever becomes of it."""

from __future__ import annotations

import os
import signal
import time
from typing import Any, Callable, Dict

from . import child_limits
from .json_frames import Reader, WireClosed, WireFault, WireTimeout, send

_exit = os._exit


class WaitingChild:
    """A fork of the program as it stands, which makes its answer when it is asked, and ends when it is not.

    `make` gets what it was told.
    """

    def __init__(self, make: Callable[[Dict[str, Any]], Dict[str, Any]], cpu_seconds: float) -> None:
        self._answer_fd, write_fd = os.pipe()
        go_fd, self._go_fd = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            try:
                os.close(self._answer_fd)
                os.close(self._go_fd)
                child_limits.guard_child()
                told = Reader(go_fd).receive()
                child_limits.limit_cpu(cpu_seconds)
                send(write_fd, make(told))
            finally:
                _exit(0)
        os.close(write_fd)
        os.close(go_fd)
        self._ended = False

    def answer(self, wall_seconds: float, asked: Dict[str, Any]) -> Dict[str, Any]:
        """What it made of what it is told; empty when it did not come to its end. It has ended then."""
        send(self._go_fd, asked)
        told: Dict[str, Any] = {}
        try:
            told = Reader(self._answer_fd).receive(time.monotonic() + wall_seconds)
        except (WireClosed, WireFault, WireTimeout):
            told = {}
        self.end()
        return told

    def end(self) -> None:
        """End it, whatever it does; once."""
        if self._ended:
            return
        self._ended = True
        os.close(self._go_fd)
        os.close(self._answer_fd)
        os.kill(self._pid, signal.SIGKILL)  # not reaped yet, so the number is still its own
        os.waitpid(self._pid, 0)


def answer_of_child(make: Callable[[], Dict[str, Any]], cpu_seconds: float, wall_seconds: float) -> Dict[str, Any]:
    """What `make` returns in a child of its own; empty when it did not come to its end."""
    return WaitingChild(lambda _told: make(), cpu_seconds).answer(wall_seconds, {})
