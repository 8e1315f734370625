"""One long-lived thread that has every jail started, by one launcher process (launcher_main.py) kept ready below ours.

`PR_SET_PDEATHSIG` is bound to the thread that forked: were a pool thread to start the launcher and end, the kernel
would end it and every jail. A process that was forked from ours gets a spawner, and a launcher, of its own.
"""

import json
import os
import queue
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any

END_SECONDS = 5.0
LAUNCHER = Path(__file__).with_name("launcher_main.py")


@dataclass(frozen=True, kw_only=True, slots=True)
class Child:
    """A started process, child of the launcher, and our ends of its output; its number stands until it is reaped."""

    pid: int
    stdout: int
    stderr: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Start:
    """What to start: descriptors keep their numbers; nothing else of ours is there, and the environment is empty."""

    order: int
    stdin: int
    passed: tuple[int, ...]


class Spawner:
    """Has children started and waited for, by a launcher that one thread, which lives as long as the process, began."""

    def __init__(self) -> None:
        self._wanted: queue.SimpleQueue[tuple[int, Future[subprocess.Popen[bytes]]]] = queue.SimpleQueue()
        self._launcher: subprocess.Popen[bytes] | None = None
        self._orders: socket.socket | None = None
        self._one_at_a_time = threading.Lock()
        threading.Thread(target=self._serve, name="localagent-spawner", daemon=True).start()

    def start(self, start: Start) -> Child:
        """Start a child; OSError when it cannot be."""
        with self._one_at_a_time:
            return self._started(start)

    def reap(self, pid: int) -> int | None:
        """Give the number of an ended child free: its wait status, or None when that is not to be had."""
        with self._one_at_a_time:
            if self._orders is None:
                return None
            try:
                told = self._request(self._orders, json.dumps({"reap": pid}).encode(), ()).get("status")
            except OSError:  # the launcher was killed, and its children with it
                return None
            return told if isinstance(told, int) else None

    def _serve(self) -> None:
        while True:
            orders, future = self._wanted.get()
            try:
                future.set_result(_launch(orders))
            except (OSError, ValueError, subprocess.SubprocessError) as fault:
                future.set_exception(fault)

    def _started(self, start: Start) -> Child:
        out_read, out_write = os.pipe2(os.O_CLOEXEC)
        err_read, err_write = os.pipe2(os.O_CLOEXEC)
        try:
            sent = (start.order, start.stdin, out_write, err_write, *start.passed)
            pid = self._order(sent, (0, 1, 2, *start.passed))
        except BaseException:
            os.close(out_read)
            os.close(err_read)
            raise
        finally:
            os.close(out_write)
            os.close(err_write)
        return Child(pid=pid, stdout=out_read, stderr=err_read)

    def _order(self, sent: Sequence[int], numbers: Sequence[int]) -> int:
        """Send descriptors with the numbers they shall have; the process that the launcher made."""
        text = json.dumps({"numbers": numbers}).encode()
        try:
            told = self._request(self._ready(), text, sent)
        except (BrokenPipeError, ConnectionError):  # it was killed since: another one
            told = self._request(self._ready(), text, sent)
        if "pid" not in told:
            raise OSError(told["fault"])
        return int(told["pid"])

    def _request(self, orders: socket.socket, text: bytes, sent: Sequence[int]) -> dict[str, Any]:
        """The answer to one message. Cut short (Ctrl-C), the launcher is ended: a late answer is nobody's answer."""
        try:
            socket.send_fds(orders, [text], list(sent))
            answer = orders.recv(1 << 12)
            if not answer:
                raise ConnectionResetError("the launcher ended before it had answered")
            return dict(json.loads(answer))
        except BaseException:
            self._end()
            raise

    def _ready(self) -> socket.socket:
        if self._orders is None:
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            future: Future[subprocess.Popen[bytes]] = Future()
            with theirs:
                self._wanted.put((theirs.fileno(), future))
                try:
                    self._launcher = future.result()
                except BaseException:
                    ours.close()
                    raise
            self._orders = ours
        return self._orders

    def _end(self) -> None:
        if self._orders is not None:
            self._orders.close()
            self._orders = None
        if self._launcher is not None:
            self._launcher.terminate()  # it clears up first
            try:
                self._launcher.wait(END_SECONDS)
            except subprocess.TimeoutExpired:
                self._launcher.kill()
                self._launcher.wait()
            self._launcher = None


def _launch(orders: int) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        (sys.executable, "-I", "-S", "-B", str(LAUNCHER), str(orders), str(os.getpid())),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=(orders,),
        cwd="/",
        env={},
        start_new_session=True,
    )


_lock = threading.Lock()
_spawners: dict[int, Spawner] = {}


def _spawner() -> Spawner:
    with _lock:
        spawner = _spawners.get(os.getpid())
        if spawner is None:
            spawner = _spawners[os.getpid()] = Spawner()
        return spawner


def spawn(order: int, *, stdin: int, passed: Sequence[int]) -> Child:
    """Have the order (a descriptor of JSON, see launch.carry_out) carried out in a child of the launcher."""
    return _spawner().start(Start(order=order, stdin=stdin, passed=tuple(passed)))


def reap(child: Child) -> int | None:
    """Once it has ended, its exit code, -n for a signal; None when nobody can tell. Its number is free afterwards."""
    status = _spawner().reap(child.pid)
    return None if status is None else os.waitstatus_to_exitcode(status)
