"""One forked child after another runs collected tests; what it sends is believed as far as it is well-formed.

The kernel's word on how a child ended decides about the test that was running; a record never turns that into a pass.
"""

from __future__ import annotations

import faulthandler
import os
import signal
from time import monotonic as _monotonic
from time import sleep as _sleep
from typing import Any, Callable, Dict, List, Optional, Tuple

from . import child_limits
from .code_swap import CannotSwap, SwapIndex
from .failures import dumped_frames, plain
from .json_frames import Reader, WireClosed, WireFault, WireTimeout, send
from .line_trace import LineTracer
from .pytest_plugin import SessionPlugin
from .test_runner import EXIT_HUNG, CpuTimer, run_items

_SLICE_SECONDS = 0.05
_TELL_SECONDS = 0.3
_STATUS_PATIENCE_SECONDS = 0.25
_WALL_AFTER_HANG_SECONDS = 2.0
_DUMP_BYTES = 1 << 16
_exit = os._exit
_getpid = os.getpid

Results = List[Dict[str, Any]]
Order = List[Tuple[int, float]]


class Forks:
    """Forks children of this process, which has collected `items`. `held` is how much data it holds, in bytes."""

    def __init__(
        self, root: str, items: List[Any], plugin: SessionPlugin, index: Optional[SwapIndex], held: int
    ) -> None:
        self.root, self.items, self.plugin, self.index = root, items, plugin, index
        self._held = held

    def enter(self, fds: List[int], memory_bytes: int) -> None:
        """What a child does first: `fds` are not its business."""
        child_limits.guard_child()
        for fd in fds:
            os.close(fd)
        os.setsid()
        child_limits.limit_data(memory_bytes, self._held)

    def run(
        self, request: Dict[str, Any], order: Order, give_up_at: float, tell: Callable[[Dict[str, Any]], None], fd: int
    ) -> Tuple[Results, bool]:
        """Results of one child, and whether it came to its end. What ended the child has a result too.

        `tell` gets the results as they come; `fd` is the descriptor that the child may not have.
        """
        token = os.urandom(8).hex()
        read_fd, write_fd = os.pipe()
        crash_fd, dump_fd = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                faulthandler.enable(dump_fd, all_threads=False)
                self._child(request, order, [read_fd, crash_fd, fd], write_fd, token)
            finally:
                _exit(96)
        os.close(write_fd)
        os.close(dump_fd)
        heard = _Heard(pid, read_fd, token, request, order, give_up_at)
        heard.listen(tell)
        os.close(read_fd)
        told_enough = heard.finished or heard.why  # else how it ended is told by its status, which may take a moment
        status = end_child(pid, patience_seconds=0.0 if told_enough else _STATUS_PATIENCE_SECONDS)
        if not heard.finished and heard.started is not None:
            record = _unfinished(heard.started, heard.why, status)
            if record["failure"]["type"] == "Crash":
                record["failure"]["frames"] = dumped_frames(self.root, _read_pipe(crash_fd))
            heard.results.append(record)
            tell(record)
        os.close(crash_fd)
        return heard.results, heard.finished

    def _child(self, request: Dict[str, Any], order: Order, closed: List[int], fd: int, token: str) -> None:
        self.enter(closed, int(request["memory_bytes"]))
        me = _getpid()

        def tell(message: Dict[str, Any]) -> None:
            if _getpid() != me:
                _exit(0)  # a fork of the test came back out of it
            message["t"] = token
            send(fd, message)

        try:
            for swap in request["swap"] or ():
                if self.index is None:
                    raise CannotSwap("the session was not opened for swaps")
                self.index.apply(swap)
        except CannotSwap as refusal:
            tell({"k": "cannot-swap", "why": str(refusal)})
            _exit(0)
        watch = CpuTimer(self.root, tell)
        watch.tracer = LineTracer(self.root) if request["trace"] else None
        whole = run_items(
            self.plugin,
            self.items,
            order,
            watch,
            stop_on_bad=bool(request["stop_on_bad"]),
            grace_tests=int(request["grace_tests"]),
        )
        if not whole:
            tell({"k": "end"})
        _exit(0)


class _Heard:
    """What came from one child so far."""

    def __init__(self, pid: int, fd: int, token: str, request: Dict[str, Any], order: Order, give_up_at: float) -> None:
        self._pid, self._token, self._give_up_at = pid, token, give_up_at
        self._reader = Reader(fd)
        self._allowed = {index for index, _cpu in order}
        wall_seconds = float(request["wall_seconds"])
        after_hang = order[0][1] < float(request["cpu_seconds"])
        self._each = min(wall_seconds, _WALL_AFTER_HANG_SECONDS) if after_hang else wall_seconds
        self._deadline = _monotonic() + wall_seconds
        self.results: Results = []
        self.started: Optional[int] = None
        self.why = ""
        self.finished = False

    def listen(self, tell: Callable[[Dict[str, Any]], None]) -> None:
        """Until the child has run everything, is gone, out of time, or sends what it should not."""
        while not self.finished and self.why != "garbage":
            now = _monotonic()
            if now >= min(self._deadline, self._give_up_at) and not self._late(now):
                return
            try:
                record = self._reader.receive(min(self._deadline, self._give_up_at, now + _SLICE_SECONDS))
            except WireTimeout:
                if _gone(self._pid):
                    return
                continue
            except WireClosed:
                return
            except WireFault:
                self.why = "garbage"
                return
            self._take(record, tell)

    def _late(self, now: float) -> bool:
        """Out of time: let the child say once where it stands; False when that was done or nobody waits."""
        if self.why == "time" or now >= self._give_up_at:
            self.why = "time"
            return False
        self.why, self._deadline = "time", now + _TELL_SECONDS
        _signal(self._pid, signal.SIGPROF)  # its handler tells where it stands
        return True

    def _take(self, record: Dict[str, Any], tell: Callable[[Dict[str, Any]], None]) -> None:
        kind = record.get("k") if record.pop("t", None) == self._token else None
        if kind == "start" and self.started is None and record.get("i") in self._allowed:
            self.started = record["i"]
            self._deadline = _monotonic() + self._each
        elif kind == "done" and record.get("i") == self.started and self.started is not None:
            self._allowed.discard(self.started)
            self.started = None
            self.results.append(record)
            tell(record)
            self.finished = not self._allowed
        elif kind == "cannot-swap":
            tell({"k": "cannot-swap", "why": str(record.get("why"))[:500]})
            self.finished = True
        elif kind == "end" and self.started is None:
            self.finished = True
        else:
            self.why = "garbage"


def _gone(pid: int) -> bool:
    """True when the child ended; it stays reapable."""
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return True


def end_child(pid: int, patience_seconds: float = _STATUS_PATIENCE_SECONDS) -> int:
    """Kill (harmless when it ended) and reap; the wait status, or -1 when somebody else reaped it.

    A child that may be about to end by itself is given `patience_seconds`, so that the status tells how.
    """
    if patience_seconds:
        patience = _monotonic() + patience_seconds
        while not _gone(pid) and _monotonic() < patience:
            _sleep(0.0005)
    _signal(-pid, signal.SIGKILL)
    _signal(pid, signal.SIGKILL)
    try:
        return os.waitpid(pid, 0)[1]
    except OSError:
        return -1


def _signal(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except OSError:
        return


def _read_pipe(fd: int) -> str:
    """What a pipe holds now, whoever may still write to it."""
    os.set_blocking(fd, False)
    try:
        return os.read(fd, _DUMP_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""


def _unfinished(index: int, why: str, status: int) -> Dict[str, Any]:
    """The result of a test that ended its child, by what the kernel says of the child."""
    outcome = "error"
    if why == "garbage":
        failure = plain("Garbage", "wrote into the descriptor that carries its results")
    elif why == "time":
        outcome, failure = "timed-out", plain("TimeLimit", "did not finish in its wall time")
    elif status >= 0 and os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        if number in child_limits.exit_signals():
            outcome, failure = "timed-out", plain("TimeLimit", "did not finish in its CPU time")
        else:
            failure = plain("Crash", "ended the interpreter by signal %d" % number)
    else:
        code = os.WEXITSTATUS(status) if status >= 0 else -1
        failure = plain("InterpreterExit", "ended the interpreter with status %d" % code)
        if code == EXIT_HUNG:
            outcome, failure = "timed-out", plain("TimeLimit", "did not finish in its CPU time")
    return {"k": "done", "i": index, "outcome": outcome, "seconds": 0.0, "failure": failure, "lines": None}
