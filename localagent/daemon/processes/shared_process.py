"""Keeps a process running that serves all workers, and gives each worker a line to it: the model's, the recorder's.

The first process alone says whom a line is for; what is then said over it, it does not read.
"""

import json
import logging
import os
import socket
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from localagent.app.settings import Settings
from localagent.daemon.processes.spawn import start_process

MOST_ABOUT_BYTES = 4096
AGAIN_SECONDS = (0.0, 1.0, 5.0, 30.0)  # before each next start within some minutes; the last one from then on
_FORGOTTEN_SECONDS = 300.0
_END_SECONDS = 10.0
_log = logging.getLogger("localagent.daemon")


def order_of_settings(settings: Settings) -> dict[str, object]:
    """The daemon's settings for a process of its own."""
    return {
        "settings": {n: str(path) for n, path in asdict(settings).items() if isinstance(path, Path)},
        "system_owner": settings.system_owner,
        "gpu_layers": settings.gpu_layers,
    }


class SupervisedProcess:
    """`step` again and again, `line` for each worker, `end` at the last. Starts nothing before the first line."""

    def __init__(self, module: str, order: Mapping[str, object], *, cache: Path) -> None:
        self._module, self._order, self._cache = module, dict(order), cache
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._starts: list[float] = []

    def line(self, about: Mapping[str, object]) -> int | None:
        """A descriptor for one worker, which the caller closes once the worker has it.

        None where the process is not there just now: it is started again, less and less often.
        """
        if not self.ready():
            return None
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        with ours, theirs:
            assert self._control is not None
            try:
                socket.send_fds(self._control, [json.dumps(dict(about)).encode()], [theirs.fileno()])
            except OSError:
                return None  # it is ending; the next step sees that
            return os.dup(ours.fileno())

    def ready(self) -> bool:
        """Whether it runs, or could be started."""
        self.step()
        return self._control is not None or self._start()

    def step(self) -> None:
        """Notice that it ended."""
        if self._process is not None and self._process.poll() is not None:
            _log.error("the process %s ended with status %s", self._module, self._process.returncode)
            self._forget()

    def _start(self) -> bool:
        """False where it may not be started again yet, or cannot be."""
        now = time.monotonic()
        self._starts = [at for at in self._starts if now - at < _FORGOTTEN_SECONDS]
        wait = AGAIN_SECONDS[min(len(self._starts), len(AGAIN_SECONDS) - 1)]
        if self._starts and now - self._starts[-1] < wait:
            return False
        self._starts.append(now)
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            try:
                order = {**self._order, "control": theirs.fileno()}
                self._process = start_process(f"processes.{self._module}", order, (theirs.fileno(),), self._cache)
            except OSError as fault:
                ours.close()
                _log.error("the process %s could not be started: %s", self._module, fault)
                return False
        self._control = ours
        return True

    def _forget(self) -> None:
        if self._control is not None:
            self._control.close()
        self._process = self._control = None

    def end(self) -> None:
        """End it, and what it started."""
        process = self._process
        if process is None:
            return
        with suppress(OSError):
            if self._control is not None:
                self._control.shutdown(socket.SHUT_RDWR)
        try:
            process.wait(timeout=_END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        self._forget()
