"""Runs what the builder describes and tells how it ended. The one place that starts jails.

Several threads may start and wait at once. Each jail has one watching thread that reads the bounded output, keeps the
deadline, samples memory and processor time and, at the end, kills the init of the jail's pid namespace: the kernel
then kills every process in it, and the watcher returns only after that init is gone.

Not promised: bubblewrap reports a command killed by signal n as 128+n, so a program that exits with such a number by
itself reads as signalled. PWD is set inside in addition to the spec's environment.
"""

import json
import math
import os
import resource
import selectors
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from localagent.domain.jailspec import Access, JailLimits, JailResult, JailSpec
from localagent.domain.outcome import Ending
from localagent.errors import CannotEnforce
from localagent.jail import host, mountpoints, seccomp, tree_usage
from localagent.jail.bubblewrap import SYNTHETIC_ETC, Descriptors, bwrap_argv
from localagent.jail.cgroup import Cgroup, CgroupRoot
from localagent.jail.disk_usage import DiskWatch
from localagent.jail.spawner import spawn

LAUNCHER = Path(__file__).with_name("launch.py")
CHANNEL = "{channel}"
SAMPLE_SECONDS = 0.25
CORES = os.cpu_count() or 1
STATUS_LIMIT_BYTES = 1 << 16
END_SECONDS = 5.0
OUTER_PROCESSES = 2  # bubblewrap and its init count as processes of the same uid
SETUP_REMEDY = "run `localagent doctor` to see which layer fails on this machine"


@dataclass(frozen=True, kw_only=True, slots=True)
class Backend:
    """A bubblewrap that was seen to work. `needs` are folders its loader reads; `level` is what was probed with it."""

    program: str
    version: str
    needs: tuple[str, ...] = ()
    cgroup_namespace: bool = True
    seccomp: bool = True
    level: str = "L1"
    cgroups: CgroupRoot | None = None


class BubblewrapJail:
    """ports.Jail by bubblewrap."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    @property
    def backend(self) -> str:
        """Name and version."""
        return f"bubblewrap {self._backend.version}"

    @property
    def level(self) -> str:
        """See level.LEVELS."""
        return self._backend.level

    def run(self, spec: JailSpec, *, stdin: bytes = b"") -> JailResult:
        """Run to the end. CannotEnforce when the jail could not be made."""
        return _start(self._backend, spec, stdin=stdin, channel=False).wait()

    def start(self, spec: JailSpec) -> "BubblewrapProcess":
        """Start with a channel; an argv element `{channel}` becomes its descriptor number inside."""
        return _start(self._backend, spec, stdin=b"", channel=True)


def uid_for(spec: JailSpec) -> int | None:
    """The real uid a jail runs as: the owner of its writable binds, else one nobody uses; None when not root."""
    if not host.may_switch_uid():
        return None
    owners = {os.lstat(bind.source).st_uid for bind in spec.binds if bind.access is Access.READ_WRITE}
    if 0 in owners:
        raise CannotEnforce(
            "a writable bind belongs to root, whom a jail never runs as",
            remedy="use a workspace, or give the folder to an unprivileged user (chown)",
        )
    if len(owners) > 1:
        raise CannotEnforce("the writable binds of one jail belong to several users")
    return owners.pop() if owners else host.fresh_uid()


def _memfd(name: str, content: bytes) -> int:
    number = os.memfd_create(name, os.MFD_CLOEXEC)
    view = memoryview(content)
    while view:
        view = view[os.write(number, view) :]
    os.lseek(number, 0, os.SEEK_SET)
    return number


def _process_limit(limits: JailLimits) -> tuple[int, int]:
    count = limits.processes + OUTER_PROCESSES
    return count, count


def _kernel_cpu_seconds(limits: JailLimits) -> int:
    """RLIMIT_CPU: the backstop of one process. A second later than the watcher, who counts the whole tree."""
    return math.ceil(limits.cpu_seconds) + 1


def _rlimits(limits: JailLimits, uid: int | None) -> dict[str, tuple[int, int]]:
    """What the launcher sets. Without a uid of its own processes are limited later, inside (see _Watch)."""
    cpu = _kernel_cpu_seconds(limits)
    return {
        **({} if uid is None else {"RLIMIT_NPROC": _process_limit(limits)}),
        "RLIMIT_CORE": (0, 0),
        "RLIMIT_AS": (limits.address_space_bytes, limits.address_space_bytes),
        "RLIMIT_CPU": (cpu, cpu + 1),
        "RLIMIT_FSIZE": (limits.file_bytes, limits.file_bytes),
        "RLIMIT_NOFILE": (limits.open_files, limits.open_files),
        "RLIMIT_MEMLOCK": (1 << 20, 1 << 20),
        "RLIMIT_MSGQUEUE": (0, 0),
    }


def _hidden(uid: int | None, sources: Sequence[str]) -> tuple[list[str], list[str]]:
    """(folders a stranger's uid cannot pass, sources below them); outermost ones only."""
    if uid is None:
        return [], []
    try:
        blocked = {source: folder for source in sources if (folder := host.blocking_folder(source))}
    except OSError as fault:
        raise CannotEnforce(f"the jail could not be made: {fault}", remedy=SETUP_REMEDY) from fault
    if "/" in blocked.values():
        raise CannotEnforce(
            "the root folder is closed to other users, so no unprivileged jail can start", remedy="chmod o+x /"
        )
    covers = _outermost(set(blocked.values()))
    return covers, _outermost(set(blocked))


def _refuse_closed(uid: int | None, spec: JailSpec) -> None:
    """CannotEnforce when a source itself shows nothing to the uid that the jail will have."""
    if uid is None:
        return
    for bind in spec.binds:
        facts = Path(bind.source).stat()
        wanted = 0o005 if stat.S_ISDIR(facts.st_mode) else 0o004
        if facts.st_uid != uid and facts.st_mode & wanted != wanted:
            raise CannotEnforce(
                f"{bind.source} is closed to the unprivileged user that jails run as",
                remedy=f"open it for reading: chmod -R o+rX {bind.source}",
            )


def _outermost(paths: set[str]) -> list[str]:
    return [path for path in sorted(paths) if not any(path.startswith(other + "/") for other in paths)]


def _start(backend: Backend, spec: JailSpec, *, stdin: bytes, channel: bool) -> "BubblewrapProcess":
    spec = mountpoints.resolved(spec)
    uid = uid_for(spec)
    _refuse_closed(uid, spec)
    covers, sources = _hidden(uid, [*(bind.source for bind in spec.binds), *backend.needs, backend.program])
    cgroup = backend.cgroups.make(spec.limits) if backend.cgroups else None
    passed: list[int] = []  # closed here once the child has them
    kept: list[int] = []
    ours: socket.socket | None = None
    try:
        status_read, status_write = os.pipe2(os.O_CLOEXEC)
        kept.append(status_read)
        passed.append(status_write)
        etc = tuple(_memfd("localagent-etc", content) for _, content in SYNTHETIC_ETC)
        passed += etc
        code = seccomp.program() if backend.seccomp else None
        filter_fd = None if code is None else _memfd("localagent-seccomp", code)
        passed += [] if filter_fd is None else [filter_fd]
        block_read, block_write = os.pipe2(os.O_CLOEXEC)
        passed.append(block_read)
        kept.append(block_write)
        if channel:
            ours, theirs = socket.socketpair()
            number = theirs.detach()
            passed.append(number)
            spec = replace(spec, argv=tuple(str(number) if word == CHANNEL else word for word in spec.argv))
        order = {
            "parent": os.getpid(),
            "status": status_write,
            "cgroups": list(cgroup.procs_files) if cgroup else [],
            "covers": covers,
            "sources": sources,
            "limits": _rlimits(spec.limits, uid),
            "uid": uid,
            "argv": bwrap_argv(
                spec,
                host.system_layout(),
                Descriptors(status=status_write, etc=etc, seccomp=filter_fd, block=block_read),
                program=backend.program,
                cgroup_namespace=backend.cgroup_namespace,
            ),
        }
        order_fd = _memfd("localagent-order", json.dumps(order).encode())
        passed.append(order_fd)
        stdin_fd = _memfd("localagent-stdin", stdin) if stdin else os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        argv = (sys.executable, "-I", "-S", "-B", str(LAUNCHER), str(order_fd))
        try:
            child = spawn(argv, stdin=stdin_fd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, pass_fds=passed)
        finally:
            os.close(stdin_fd)
        kept.clear()
    except OSError as fault:
        if cgroup:
            cgroup.remove()
        if ours is not None:
            ours.close()
        raise CannotEnforce(f"the jail could not be started: {fault}", remedy=SETUP_REMEDY) from fault
    finally:
        for number in (*passed, *kept):
            os.close(number)
    writable = [bind.source for bind in spec.binds if bind.access is Access.READ_WRITE]
    late = uid is None and host.counts_processes_per_namespace()
    pipes = _Pipes(status=status_read, block=block_write, limit_processes_late=late)
    watch = _Watch(spec.limits, child, pipes, cgroup, DiskWatch(writable, spec.limits.tmp_bytes))
    return BubblewrapProcess(backend, watch, ours)


class BubblewrapProcess:
    """ports.JailProcess. `wait` and `kill` may be called from any thread, any number of times."""

    def __init__(
        self,
        backend: Backend,
        watch: "_Watch",
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
        """The outer bubblewrap's process id, for tests and logs."""
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
        return self._result or self._as_result(Ending.COULD_NOT_START, -1, b"", self._fault.encode(), 0.0)

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

    def _as_result(self, ending: Ending, returncode: int, stdout: bytes, stderr: bytes, wall: float) -> JailResult:
        return JailResult(
            ending=ending,
            returncode=returncode,
            stdout=stdout,
            stderr=stderr,
            wall_seconds=wall,
            backend=f"bubblewrap {self._backend.version}",
            level=self._backend.level,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class _End:
    ending: Ending
    returncode: int
    stdout: bytes
    stderr: bytes
    wall_seconds: float
    fault: str


@dataclass(frozen=True, kw_only=True, slots=True)
class _Pipes:
    """Our ends: bubblewrap's reports, and the go-ahead it waits for before it starts the command."""

    status: int
    block: int
    limit_processes_late: bool


class _Watch:
    """The loop of one jail: from start until nothing of it is left."""

    def __init__(
        self,
        limits: JailLimits,
        child: "subprocess.Popen[bytes]",
        pipes: _Pipes,
        cgroup: Cgroup | None,
        disk: DiskWatch,
    ) -> None:
        if child.stdout is None or child.stderr is None:
            raise CannotEnforce("the jail's output is not connected")
        self.pid = child.pid
        self._limits = limits
        self._child = child
        self._pipes = pipes
        self._status = pipes.status
        self._block = pipes.block
        self._wake = -1
        self._disk = disk
        self._cgroup = cgroup
        self._out = {child.stdout.fileno(): bytearray(), child.stderr.fileno(): bytearray()}
        self._order = (child.stdout.fileno(), child.stderr.fileno())
        self._status_text = bytearray()
        self._init_fd = -1
        self._began = time.monotonic()
        self._cpu_seconds = 0.0
        self._sampled = self._began
        self._could = 0.0
        self._wall_seconds = 0.0
        self._next_sample = self._began + self._pause()
        self._ended_by: Ending | None = None

    def run(self, wake: int) -> _End:
        """Watch until nothing is left; a byte on `wake` means: end it now."""
        self._wake = wake
        outer = os.pidfd_open(self.pid)
        try:
            with selectors.DefaultSelector() as selector:
                for number in (*self._order, self._status, self._wake, outer):
                    selector.register(number, selectors.EVENT_READ)
                self._loop(selector, outer)
                self._finish(selector, outer)
        finally:
            if self._child.returncode is None:  # the watching itself failed: leave nothing running
                self._kill_all(outer)
                self._child.returncode = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
            os.close(outer)
            if self._init_fd >= 0:
                os.close(self._init_fd)
            for number in (self._status, self._block):
                if number >= 0:
                    os.close(number)
            for stream in (self._child.stdout, self._child.stderr):
                if stream is not None:
                    stream.close()
        return self._end()

    def _loop(self, selector: selectors.BaseSelector, outer: int) -> None:
        """Until the outer process ends or something has to be ended."""
        while self._ended_by is None:
            now = time.monotonic()
            if now - self._began >= self._limits.wall_seconds:
                self._ended_by = Ending.WALL
                return
            if now >= self._next_sample:
                self._ended_by = self._sample()
                self._next_sample = time.monotonic() + self._pause()
                continue
            timeout = min(self._next_sample, self._began + self._limits.wall_seconds) - now
            ready = {key.fd for key, _ in selector.select(timeout)}
            self._read(selector, ready)
            if self._wake in ready:
                self._ended_by = self._ended_by or Ending.CANCELLED
            if outer in ready:
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
                    self._ended_by = self._ended_by or Ending.OUTPUT
        if self._status in ready:
            piece = os.read(self._status, 1 << 12)
            if not piece or len(self._status_text) > STATUS_LIMIT_BYTES:
                selector.unregister(self._status)
            self._status_text += piece
            self._open_init()

    def _open_init(self) -> None:
        """Hold the jail's init by a descriptor, so that its end can be awaited without a race on its number."""
        pid = self._told("child-pid")
        if self._init_fd < 0 and isinstance(pid, int):
            with suppress(ProcessLookupError):
                self._init_fd = os.pidfd_open(pid)
                if self._pipes.limit_processes_late:
                    resource.prlimit(pid, resource.RLIMIT_NPROC, _process_limit(self._limits))
            with suppress(BrokenPipeError):
                os.write(self._block, b"1")
            os.close(self._block)
            self._block = -1

    def _told(self, key: str) -> object:
        for line in bytes(self._status_text).splitlines():
            with suppress(ValueError):
                value = json.loads(line)
                if isinstance(value, dict) and key in value:
                    return value[key]
        return None

    def _pause(self) -> float:
        """Until the next sample: sooner when all cores together could use up the processor time before that."""
        soonest = (self._limits.cpu_seconds - self._cpu_seconds) / CORES
        return max(SAMPLE_SECONDS / 10, min(SAMPLE_SECONDS, soonest))

    def _could_have_used(self) -> float:
        """The most processor seconds that the tree can have taken by now, given the last sample."""
        return self._cpu_seconds + (time.monotonic() - self._sampled) * CORES

    def _sample(self) -> Ending | None:
        used = tree_usage.usage(self.pid)
        self._cpu_seconds, self._sampled = max(self._cpu_seconds, used.cpu_seconds), time.monotonic()
        if used.cpu_seconds >= self._limits.cpu_seconds:
            return Ending.CPU
        if self._cgroup and self._cgroup.memory_exceeded():
            return Ending.MEMORY
        limit = self._limits.resident_bytes
        if used.resident_bytes > limit and tree_usage.proportional_bytes(self.pid) > limit:
            return Ending.MEMORY
        return Ending.DISK if self._disk.exceeded(self.pid) else None

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
        self._child.returncode = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        self._could = self._could_have_used()
        if waiting:
            self._ended_by = self._ended_by or Ending.CANCELLED
        self._wall_seconds = time.monotonic() - self._began

    def _kill_all(self, outer: int) -> None:
        if self._init_fd < 0:  # not told yet: whatever bubblewrap has below it
            for pid in list(tree_usage.descendants(self.pid))[1:]:
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
        for number in (self._init_fd, outer):
            if number >= 0:
                with suppress(ProcessLookupError):
                    signal.pidfd_send_signal(number, signal.SIGKILL)

    def _end(self) -> _End:
        told = self._told("exit-code")
        stdout, stderr = (bytes(self._out[number]) for number in self._order)
        killed_for_memory = False
        if self._cgroup:
            killed_for_memory = self._cgroup.memory_exceeded()
            self._cgroup.remove()
        ending, returncode, fault = Ending.EXITED, -1, ""
        if self._ended_by is not None:
            ending = self._ended_by
        elif isinstance(told, int):
            returncode = told
            if killed_for_memory and told != 0:
                ending = Ending.MEMORY
            elif told == 128 + signal.SIGXCPU and self._could >= _kernel_cpu_seconds(self._limits):
                ending = Ending.CPU
            elif 128 < told < 128 + signal.NSIG:
                ending = Ending.SIGNALLED
        elif killed_for_memory:
            ending = Ending.MEMORY
        else:
            ending = Ending.COULD_NOT_START
            fault = self._start_fault(stderr)
        return _End(
            ending=ending,
            returncode=returncode,
            stdout=stdout,
            stderr=stderr,
            wall_seconds=self._wall_seconds,
            fault=fault,
        )

    def _start_fault(self, stderr: bytes) -> str:
        """Why there is no jail, or "" when there was one and only the command could not be executed in it."""
        told = self._told("launch-fault")
        if told is not None:
            return str(told)
        text = stderr.decode(errors="replace").strip()
        if text.startswith("bwrap: execvp") or "Can't chdir" in text:
            return ""
        return text or f"bubblewrap ended with {self._child.returncode} before the command started"
