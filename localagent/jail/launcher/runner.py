"""Runs what a builder describes and tells how it ended, whatever the backend.

Several threads may start and wait at once. Each jail has one watching thread (see watch.Watch).

Not promised: where our init is not (see init_program), bubblewrap reports a command killed by signal n as 128+n, so a
program that exits with such a number by itself reads as signalled. PWD is set inside in addition to the spec's
environment.
"""

import os
import socket
import threading
from contextlib import suppress

from localagent.domain.jailspec import JailResult, JailSpec
from localagent.domain.outcome import JailOutcome
from localagent.errors import CannotEnforce
from localagent.jail.backends.backend import Backend
from localagent.jail.launcher.start import SETUP_REMEDY, start
from localagent.jail.launcher.watchdog import Watchdog


class NamespaceJail:
    """ports.Jail by a probed backend."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    @property
    def backend(self) -> str:
        """Name and version."""
        return self._backend.name

    @property
    def level(self) -> str:
        """See level.LEVELS."""
        return self._backend.level

    def run(self, spec: JailSpec, *, stdin: bytes = b"") -> JailResult:
        """Run to the end; whoever is interrupted meanwhile ends it. CannotEnforce when the jail could not be made."""
        process = NamespaceProcess(self._backend, *start(self._backend, spec, stdin=stdin, channel=False))
        try:
            return process.wait()
        except BaseException:
            process.kill()
            raise

    def start(self, spec: JailSpec) -> "NamespaceProcess":
        """Start with a channel; an argv element `{channel}` becomes its descriptor number inside."""
        return NamespaceProcess(self._backend, *start(self._backend, spec, stdin=b"", channel=True))


class NamespaceProcess:
    """ports.JailProcess. `wait` and `kill` may be called from any thread, any number of times."""

    def __init__(
        self,
        backend: Backend,
        watch: Watchdog,
        channel: socket.socket | None,
    ) -> None:
        self._backend = backend
        self._channel = channel
        self._wake_read, self._wake_write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._wake_lock = threading.Lock()
        self._done = threading.Event()
        self._result: JailResult | None = None
        self._fault = ""
        self._watch = watch
        threading.Thread(target=self._run, name="localagent-jail-watch", daemon=True).start()

    @property
    def channel(self) -> socket.socket:
        """Our end of the byte channel; the caller closes it."""
        if self._channel is None:
            raise CannotEnforce("this jail was run without a channel")
        return self._channel

    @property
    def pid(self) -> int:
        """The process id of the outer process, for tests and logs."""
        return self._watch.pid

    @property
    def alive(self) -> bool:
        """False once every process of the jail is gone."""
        return not self._done.is_set()

    def wait(self) -> JailResult:
        """Block until the end. CannotEnforce when the jail itself could not be made."""
        self._done.wait()
        if self._fault:
            raise CannotEnforce(f"the jail could not be made: {self._fault}", remedy=SETUP_REMEDY)
        if self._result is None:
            raise CannotEnforce("the jail's watcher ended without a result")
        return self._result

    def kill(self) -> JailResult:
        """End the whole process tree now; the ending is CANCELLED unless it had ended already. Never raises."""
        with self._wake_lock:
            if self._wake_write >= 0:
                with suppress(BlockingIOError):
                    os.write(self._wake_write, b"k")
        self._done.wait()
        return self._result or self._as_result(JailOutcome.COULD_NOT_START, -1, b"", self._fault.encode(), 0.0)

    def _run(self) -> None:
        try:
            end = self._watch.run(self._wake_read)
            self._fault = end.fault
            self._result = self._as_result(end.ending, end.returncode, end.stdout, end.stderr, end.wall_seconds)
        except OSError as fault:
            self._fault = f"the watcher failed: {fault}"
        finally:
            with self._wake_lock:
                os.close(self._wake_write)
                os.close(self._wake_read)
                self._wake_write = -1
            self._done.set()

    def _as_result(self, ending: JailOutcome, returncode: int, stdout: bytes, stderr: bytes, wall: float) -> JailResult:
        return JailResult(
            ending=ending,
            returncode=returncode,
            stdout=stdout,
            stderr=stderr,
            wall_seconds=wall,
            backend=self._backend.name,
            level=self._backend.level,
        )
