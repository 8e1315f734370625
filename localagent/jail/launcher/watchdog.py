"""The loop of one jail: reads the bounded output, keeps the deadline, samples memory, processor time and disk.

At the end it kills the init of the jail's pid namespace: the kernel then kills every process in it, and the loop
returns only after that init is gone. Knows nothing of the backend but its reports.
"""

import os
import resource
import select
import selectors
import signal
import time
from contextlib import suppress
from dataclasses import dataclass

from localagent.domain.jailspec import JailLimits
from localagent.domain.outcome import JailOutcome
from localagent.jail.launcher.spawner import Child, reap
from localagent.jail.launcher.status_protocol import Exit, Reports
from localagent.jail.limits import process_usage
from localagent.jail.limits.cgroup import Cgroup
from localagent.jail.limits.disk_usage import DiskWatch
from localagent.jail.limits.rlimits import kernel_cpu_seconds, process_limit, process_limit_within

SAMPLE_SECONDS = 0.25
CORES = os.cpu_count() or 1
END_SECONDS = 5.0


@dataclass(frozen=True, kw_only=True, slots=True)
class JailEnd:
    """How it ended. `fault` says why there was no jail; "" when there was one."""

    ending: JailOutcome
    returncode: int
    stdout: bytes
    stderr: bytes
    wall_seconds: float
    fault: str


@dataclass(frozen=True, kw_only=True, slots=True)
class HostPipes:
    """Our ends: the backend's reports, and the go-ahead its init waits for before it starts the command."""

    status: int
    block: int
    limit_processes_late: bool


class Watchdog:
    """The loop of one jail: from start until nothing of it is left."""

    def __init__(
        self,
        limits: JailLimits,
        child: Child,
        pipes: HostPipes,
        reports: Reports,
        cgroup: Cgroup | None,
        disk: DiskWatch,
    ) -> None:
        self.pid = child.pid
        self._limits = limits
        self._child = child
        self._returncode: int | None = None
        self._reaped = False
        self._pipes = pipes
        self._reports = reports
        self._status = pipes.status
        self._block = pipes.block
        self._wake = -1
        self._disk = disk
        self._cgroup = cgroup
        self._out = {child.stdout: bytearray(), child.stderr: bytearray()}
        self._order = (child.stdout, child.stderr)
        self._init_fd = -1
        self._began = time.monotonic()
        self._cpu_seconds = 0.0
        self._sampled = self._began
        self._could = 0.0
        self._wall_seconds = 0.0
        self._next_sample = self._began + self._pause()
        self._next_disk = self._began + disk.seconds_to_limit()
        self._ended_by: JailOutcome | None = None

    def run(self, wake: int) -> JailEnd:
        """Watch until nothing is left; a byte on `wake` means: end it now."""
        try:
            self._watch(wake)
            return self._end()
        finally:
            self._reports.close()

    def _watch(self, wake: int) -> None:
        self._wake = wake
        outer = os.pidfd_open(self.pid)
        try:
            with selectors.DefaultSelector() as selector:
                for number in (*self._order, self._status, self._wake, outer):
                    selector.register(number, selectors.EVENT_READ)
                self._loop(selector, outer)
                self._finish(selector, outer)
        finally:
            if not self._reaped:  # the watching itself failed: leave nothing running
                self._kill_all(outer)
                self._reap(outer)
            os.close(outer)
            if self._init_fd >= 0:
                os.close(self._init_fd)
            for number in (self._status, self._block, *self._order):
                if number >= 0:
                    os.close(number)

    def _loop(self, selector: selectors.BaseSelector, outer: int) -> None:
        """Until the outer process ends or something has to be ended."""
        while self._ended_by is None:
            now = time.monotonic()
            if now - self._began >= self._limits.wall_seconds:
                self._ended_by = JailOutcome.WALL
                return
            if now >= self._next_sample:
                self._ended_by = self._sample()
                self._next_sample = time.monotonic() + self._pause()
                continue
            if now >= self._next_disk:
                self._ended_by = JailOutcome.DISK if self._disk.exceeded(self.pid) else None
                self._next_disk = time.monotonic() + self._disk.seconds_to_limit()
                continue
            timeout = min(self._next_sample, self._next_disk, self._began + self._limits.wall_seconds) - now
            ready = {key.fd for key, _ in selector.select(timeout)}
            self._read(selector, ready)
            if self._wake in ready:
                self._ended_by = self._ended_by or JailOutcome.CANCELLED
            if outer in ready or self._reports.over():
                return

    def _read(self, selector: selectors.BaseSelector, ready: set[int]) -> None:
        for number, taken in self._out.items():
            if number in ready:
                piece = os.read(number, 1 << 16)
                if not piece:
                    selector.unregister(number)
                room = self._limits.output_bytes - sum(len(kept) for kept in self._out.values())
                taken.extend(piece[: max(0, room)])
                if len(piece) > room:
                    self._ended_by = self._ended_by or JailOutcome.OUTPUT
        if self._status in ready:
            piece = os.read(self._status, 1 << 12)
            if not piece:
                selector.unregister(self._status)
            self._reports.take(piece)
            self._open_init()

    def _open_init(self) -> None:
        """Hold the jail's init by a descriptor, so that its end can be awaited without a race on its number."""
        pid = self._reports.init_pid(self.pid)
        if self._block >= 0 and pid is not None:  # one that is gone already is told to go on once, too
            with suppress(ProcessLookupError):
                self._init_fd = os.pidfd_open(pid)
                if self._pipes.limit_processes_late:
                    resource.prlimit(pid, resource.RLIMIT_NPROC, process_limit_within(self._limits))
            with suppress(BrokenPipeError):
                os.write(self._block, b"1")
            os.close(self._block)
            self._block = -1

    def _pause(self) -> float:
        """Until the next sample: sooner when all cores together could use up the processor time before that."""
        soonest = (self._limits.cpu_seconds - self._cpu_seconds) / CORES
        return max(SAMPLE_SECONDS / 10, min(SAMPLE_SECONDS, soonest))

    def _could_have_used(self) -> float:
        """The most processor seconds that the tree can have taken by now, given the last sample."""
        return self._cpu_seconds + (time.monotonic() - self._sampled) * CORES

    def _sample(self) -> JailOutcome | None:
        used = process_usage.usage(self.pid)
        self._cpu_seconds, self._sampled = max(self._cpu_seconds, used.cpu_seconds), time.monotonic()
        if used.cpu_seconds >= self._limits.cpu_seconds:
            return JailOutcome.CPU
        if self._cgroup and self._cgroup.memory_exceeded():
            return JailOutcome.MEMORY
        limit = self._limits.resident_bytes
        if used.resident_bytes > limit and process_usage.proportional_bytes(self.pid) > limit:
            return JailOutcome.MEMORY
        if used.processes > process_limit(self._limits)[0]:  # where the kernel does not bound them
            return JailOutcome.PROCESSES
        self._next_disk = min(self._next_disk, self._sampled + SAMPLE_SECONDS)  # others may have freed as much
        return None

    def _finish(self, selector: selectors.BaseSelector, outer: int) -> None:
        """Kill what is left, wait until it is gone, take what it had written."""
        self._kill_all(outer)
        deadline = time.monotonic() + END_SECONDS
        waiting = {outer} | ({self._init_fd} if self._init_fd >= 0 else set())
        if self._init_fd >= 0:
            selector.register(self._init_fd, selectors.EVENT_READ)
        selector.unregister(self._wake)
        open_streams = set(self._order)
        while (waiting or open_streams) and time.monotonic() < deadline:
            registered = set(selector.get_map())
            open_streams &= registered
            if not (waiting or open_streams):
                break
            ready = {key.fd for key, _ in selector.select(0.1)}
            self._read(selector, ready)
            for number in waiting & ready:
                selector.unregister(number)
            waiting -= ready
        self._reap(outer)
        self._drain_status()
        self._could = self._could_have_used()
        if waiting:
            self._ended_by = self._ended_by or JailOutcome.CANCELLED
        self._wall_seconds = time.monotonic() - self._began

    def _reap(self, outer: int) -> None:
        """Wait for the killed outer process and give its number free."""
        select.select([outer], [], [])
        self._returncode = reap(self._child)
        self._reaped = True

    def _drain_status(self) -> None:
        """Take the last reports, which may have come together with the end."""
        os.set_blocking(self._status, False)
        with suppress(BlockingIOError):  # somebody still holds the other end: all that was said was read
            while piece := os.read(self._status, 1 << 12):
                self._reports.take(piece)

    def _kill_all(self, outer: int) -> None:
        if self._cgroup:
            self._cgroup.kill()
        if self._init_fd < 0:  # not told yet: whatever the outer process has below it
            for pid in list(process_usage.descendants(self.pid))[1:]:
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
        for number in (self._init_fd, outer):
            if number >= 0:
                with suppress(ProcessLookupError):
                    signal.pidfd_send_signal(number, signal.SIGKILL)

    def _end(self) -> JailEnd:
        stdout, stderr = (bytes(self._out[number]) for number in self._order)
        killed_for_memory = False
        if self._cgroup:
            killed_for_memory = self._cgroup.memory_exceeded()
            self._cgroup.remove()
        told, fault = self._reports.exit(), ""
        if self._ended_by is not None:
            ending = self._ended_by
        elif told is not None:
            ending = self._outcome_of(told, killed_for_memory=killed_for_memory)
        elif killed_for_memory:
            ending = JailOutcome.MEMORY
        else:
            ending = JailOutcome.COULD_NOT_START
            fault = self._reports.start_fault(stderr, self._returncode or 0)
            stderr += self._reports.remark()
        return JailEnd(
            ending=ending,
            returncode=told.returncode if told is not None and self._ended_by is None else -1,
            stdout=stdout,
            stderr=stderr,
            wall_seconds=self._wall_seconds,
            fault=fault,
        )

    def _outcome_of(self, told: Exit, *, killed_for_memory: bool) -> JailOutcome:
        """The ending of a command that came to its end by itself, as far as we saw."""
        if killed_for_memory and told.returncode != 0:
            return JailOutcome.MEMORY
        if told.signal == signal.SIGXCPU and self._could >= kernel_cpu_seconds(self._limits):
            return JailOutcome.CPU
        return JailOutcome.SIGNALLED if told.signal else JailOutcome.EXITED
