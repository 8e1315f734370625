"""One long-lived thread that starts every child of this process.

`PR_SET_PDEATHSIG` is bound to the thread that forked: were a pool thread to start a warm worker and end, the kernel
would kill the worker. A process that was forked from ours gets a spawner of its own.
"""

import os
import queue
import subprocess
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Start:
    """What to start: never through a shell, with an empty environment, in a session of its own."""

    argv: tuple[str, ...]
    stdin: int
    stdout: int
    stderr: int
    pass_fds: tuple[int, ...]


class Spawner:
    """Starts children from one thread that lives as long as the process."""

    def __init__(self) -> None:
        self._requests: queue.SimpleQueue[tuple[Start, Future[subprocess.Popen[bytes]]]] = queue.SimpleQueue()
        threading.Thread(target=self._serve, name="localagent-spawner", daemon=True).start()

    def start(self, start: Start) -> "subprocess.Popen[bytes]":
        """Start a child; raises OSError as Popen does."""
        future: Future[subprocess.Popen[bytes]] = Future()
        self._requests.put((start, future))
        return future.result()

    def _serve(self) -> None:
        while True:
            start, future = self._requests.get()
            try:
                future.set_result(_popen(start))
            except (OSError, ValueError, subprocess.SubprocessError) as fault:
                future.set_exception(fault)


def _popen(start: Start) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        start.argv,
        stdin=start.stdin,
        stdout=start.stdout,
        stderr=start.stderr,
        pass_fds=start.pass_fds,
        close_fds=True,
        cwd="/",
        env={},
        start_new_session=True,
    )


_lock = threading.Lock()
_spawners: dict[int, Spawner] = {}


def spawn(
    argv: Sequence[str], *, stdin: int, stdout: int, stderr: int, pass_fds: Sequence[int]
) -> "subprocess.Popen[bytes]":
    """Start a child from this process's spawner thread."""
    with _lock:
        spawner = _spawners.get(os.getpid())
        if spawner is None:
            spawner = _spawners[os.getpid()] = Spawner()
    return spawner.start(Start(argv=tuple(argv), stdin=stdin, stdout=stdout, stderr=stderr, pass_fds=tuple(pass_fds)))
