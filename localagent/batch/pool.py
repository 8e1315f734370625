"""Worker processes, each in a session of its own, ended as a whole, and by the kernel when their parent ends.

A worker's jails end with it: its launcher, and the kernel behind it, see to that. Not promised: order of ending.
"""

import contextlib
import os
import select
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass

from localagent.errors import CannotEnforce


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkerEnded:
    """A worker that is gone. `code` is -n for a signal; `late`: it was ended for the time."""

    number: int
    code: int
    late: bool
    seconds: float


@dataclass(slots=True)
class _Worker:
    process: "subprocess.Popen[bytes]"
    handle: int
    began: float
    deadline: float
    late: bool = False


class BatchPool:
    """At most `jobs` workers. It belongs to the thread that made it, which the workers do not outlive."""

    def __init__(self, jobs: int, *, passed: Sequence[int] = ()) -> None:
        self._jobs = jobs
        self._passed = tuple(passed)
        self._workers: dict[int, _Worker] = {}

    @property
    def free(self) -> bool:
        """Whether one more may start."""
        return len(self._workers) < self._jobs

    @property
    def busy(self) -> tuple[int, ...]:
        """The numbers that are worked on."""
        return tuple(self._workers)

    def start(self, number: int, argv: Sequence[str], *, seconds: float) -> None:
        """Start a worker with so much time. CannotEnforce where the system starts none."""
        try:
            process = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=self._passed,
                cwd="/",
                start_new_session=True,
            )
        except OSError as fault:
            raise CannotEnforce(f"no worker starts: {fault}", remedy="see limits on processes and memory") from fault
        now = time.monotonic()
        self._workers[number] = _Worker(process, os.pidfd_open(process.pid), now, now + seconds)

    def running_seconds(self) -> float:
        """Seconds that the present workers have spent, together."""
        now = time.monotonic()
        return sum(now - worker.began for worker in self._workers.values())

    def wait(self, seconds: float) -> list[WorkerEnded]:
        """Those that ended, or were ended for their time, within so many seconds."""
        until = time.monotonic() + seconds
        while self._workers:
            now = time.monotonic()
            for worker in self._workers.values():
                if now >= worker.deadline and not worker.late:
                    worker.late = True
                    signal.pidfd_send_signal(worker.handle, signal.SIGKILL)
            handles = {worker.handle: number for number, worker in self._workers.items()}
            nearest = min(w.deadline if not w.late else now + 1.0 for w in self._workers.values())
            ready = select.select(list(handles), [], [], max(0.0, min(until, nearest) - now))[0]
            if ready or time.monotonic() >= until:
                return [self._buried(handles[handle]) for handle in ready]
        return []

    def end(self) -> None:
        """End every worker now."""
        for worker in self._workers.values():
            signal.pidfd_send_signal(worker.handle, signal.SIGKILL)
        for number in self.busy:
            self._buried(number)

    def _buried(self, number: int) -> WorkerEnded:
        """Reap one that has ended; first what is left of its session, while its number cannot be another's."""
        worker = self._workers.pop(number)
        os.waitid(os.P_PIDFD, worker.handle, os.WEXITED | os.WNOWAIT)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(worker.process.pid, signal.SIGKILL)
        code = worker.process.wait()
        os.close(worker.handle)
        return WorkerEnded(number=number, code=code, late=worker.late, seconds=time.monotonic() - worker.began)
