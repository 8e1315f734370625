"""Keeps one interpreter alive in a jail and gives it one step after the other; the host's partner for kept sessions.

This process alone holds the host's channel. The interpreter and what it starts belong to the same user, so this process
is not dumpable: nobody can take its descriptors or look into it. They can kill it; then the session is over. Every step
gets pipes of its own, so what an earlier step left running can write where nobody reads any more, but not into a later
step's output. Not promised: that code which wants to cannot lie about its own step's status, or write on purpose into
the descriptors of another process of its own session.
"""

from __future__ import annotations

import base64
import os
import select
import signal
import sys
import time
from typing import Any, Dict, List, Optional, Tuple

from . import child_limits
from .json_frames import Reader, WireClosed, WireFault, WireTimeout, send
from .repl_languages import BashInterpreter, InterpreterProcess, PythonInterpreter

GRACE_SECONDS = 2.0  # from SIGINT until what does not end is killed
PIECE_BYTES = 1 << 16
DRAIN_PIECES = 64
KINDS = {"python": PythonInterpreter, "bash": BashInterpreter}


class ReplStep:
    """One step: its pipes, what came out of them, how it ended ("" while it runs)."""

    def __init__(self, order: Dict[str, Any], streams: Tuple[List[int], List[int]]) -> None:
        self.number = int(order["n"])
        self.code = str(order["code"])
        self.output_bytes = int(order["output_bytes"])
        self.deadline = time.monotonic() + float(order["wall_seconds"])
        self.kill_at: Optional[float] = None
        self.stopped_for = ""
        self.status = -1
        self.taken: List[bytearray] = [bytearray(), bytearray()]
        self.reading, self.writing = streams

    def take(self, which: int) -> bool:
        """Read what is there now; False when nothing was. Beyond the bound it is thrown away."""
        try:
            piece = os.read(self.reading[which], PIECE_BYTES)
        except BlockingIOError:
            return False
        room = self.output_bytes - len(self.taken[0]) - len(self.taken[1])
        self.taken[which] += piece[: max(0, room)]
        if len(piece) > room and not self.stopped_for:
            self.stopped_for = "output"
        return bool(piece)

    def drain(self) -> None:
        """What was written before the end, no more than the pipes hold."""
        for which in (0, 1):
            for _ in range(DRAIN_PIECES):
                if not self.take(which):
                    break

    def close(self) -> None:
        """Whoever still writes there gets EPIPE."""
        for number in (*self.reading, *self.writing):
            os.close(number)


class Steps:
    """The loop of one session."""

    def __init__(self, channel: int) -> None:
        self._channel = channel
        self._reader = Reader(channel)
        opening = self._reader.receive()
        self._nonce = str(opening["nonce"])
        self._interpreter: InterpreterProcess = KINDS[opening["language"]](opening["argv"], opening["cwd"])
        self._answer({"how": "open"})

    def main(self) -> None:
        """Until the host goes away or the interpreter is gone."""
        alive = True
        while alive:
            order = self._reader.receive()
            if order.get("op") != "step":
                continue  # an interrupt that came after the end of its step
            number = int(order["n"])
            step = ReplStep(order, self._interpreter.streams(number))
            try:
                alive = self._run(step)
            finally:
                step.close()
                self._interpreter.over(number)
            self._answer(
                {
                    "n": step.number,
                    "how": step.stopped_for or "done",
                    "status": step.status,
                    "alive": alive,
                    "stdout": base64.b64encode(bytes(step.taken[0])).decode("ascii"),
                    "stderr": base64.b64encode(bytes(step.taken[1])).decode("ascii"),
                }
            )

    def _answer(self, message: Dict[str, Any]) -> None:
        send(self._channel, dict(message, nonce=self._nonce))

    def _run(self, step: ReplStep) -> bool:
        """False when the interpreter is gone afterwards."""
        if not self._interpreter.begin(step.number, step.code, step.writing):
            return self._gone(step)
        while True:
            now = time.monotonic()
            if step.kill_at is None and (step.stopped_for or now >= step.deadline):
                step.stopped_for = step.stopped_for or "wall"
                step.kill_at = now + GRACE_SECONDS
                self._interpreter.interrupt(step.number)
            if step.kill_at is not None and now >= step.kill_at:
                self._interpreter.kill()
                step.drain()
                return self._gone(step)
            waiting = [self._channel, self._interpreter.control, *step.reading]
            until = step.deadline if step.kill_at is None else step.kill_at
            ready = select.select(waiting, [], [], max(0.0, min(until - now, 0.5)))[0]
            for which in (0, 1):
                if step.reading[which] in ready:
                    step.take(which)
            if self._channel in ready:
                self._heed(step)
            status = self._interpreter.ended(step.number, ready)
            if status is not None:
                step.status = status
                step.drain()
                return True
            if self._interpreter.gone():
                step.drain()
                return self._gone(step)

    def _heed(self, step: ReplStep) -> None:
        """The host says something while a step runs: that it is to be interrupted."""
        try:
            order = self._reader.receive(time.monotonic())
        except WireTimeout:
            return
        if order.get("op") == "interrupt" and order.get("n") == step.number and not step.stopped_for:
            step.stopped_for = "interrupted"

    def _gone(self, step: ReplStep) -> bool:
        self._interpreter.kill()
        step.status = self._interpreter.exit_status
        step.stopped_for = step.stopped_for or "died"
        return False


def main(arguments: List[str]) -> None:
    """`arguments[0]` is the channel's descriptor."""
    channel = int(arguments[0])
    os.set_inheritable(channel, False)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    child_limits.guard_supervisor()
    try:
        Steps(channel).main()
    except (OSError, KeyError, ValueError, WireClosed, WireFault) as fault:
        sys.stderr.write("the session's worker ended: %s\n" % fault)
        sys.stderr.flush()
        os._exit(93)
    os._exit(0)
