"""The recorder as a service of its own, under a user of its own: what the daemon's user can add to, it cannot write to.

It listens on a Unix socket. Who connects is asked of the kernel; the first line says whose task the line is for.
Not promised: that a worker which was taken over names its own task there, or adds no lines of its own. It adds, and
what it adds is bounded a line; it never alters.
"""

import json
import logging
import os
import socket
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from localagent.daemon.service.listening import listening
from localagent.daemon.service.roles import peer_of
from localagent.errors import AnswerIsNo
from localagent.record.audit.log import AuditLog
from localagent.record.audit.recorded import APPROVED_BY, read_line, serve_line
from localagent.record.jsontext import load
from localagent.wire.service.order import TASK_ID

_SECONDS = 20.0
_log = logging.getLogger("localagent.recorder")


class RecorderElsewhere:
    """What `KeptProcess` is to a recorder of ours, to one that somebody else starts."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._next: socket.socket | None = None

    def ready(self) -> bool:
        """Whether somebody listens there."""
        if self._next is None:
            line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
            line.settimeout(_SECONDS)
            try:
                line.connect(str(self._path))
            except OSError as fault:
                line.close()
                _log.error("no recorder at %s: %s; nothing is begun", self._path, fault.strerror or fault)
                return False
            line.settimeout(None)
            self._next = line
        return True

    def line(self, about: Mapping[str, object]) -> int | None:
        """A descriptor for one worker, which the caller closes; None where there is none just now."""
        if not self.ready() or self._next is None:
            return None
        with self._next as line:
            self._next = None
            try:
                line.sendall(json.dumps(dict(about)).encode() + b"\n")
            except OSError:
                return None
            return os.dup(line.fileno())

    def step(self) -> None:
        """Nothing is kept running here."""

    def end(self) -> None:
        """It goes on without us."""
        if self._next is not None:
            self._next.close()
            self._next = None


def serve_recorder(
    folder: Path,
    path: Path | None,
    group: str,
    allowed: frozenset[int],
    environ: Mapping[str, str],
    tell: Callable[[str], None],
) -> None:
    """Record for the users `allowed`, until a signal. CannotEnforce for a socket that is not safe to serve."""
    os.umask(0o077)
    log = AuditLog(folder)
    with suppress(AnswerIsNo):  # said to whoever asks, again and again, and never written over
        log.ready()
    with listening(path, group, environ) as server:
        tell(f"recording in {log.folder}")
        while True:
            line, _ = server.accept()
            try:
                uid = peer_of(line).uid
            except OSError:
                uid = -1
            if uid not in allowed:
                _log.error("user %s may not record here", uid)
                line.close()
                continue
            threading.Thread(target=_serve, args=(line.detach(), log), name="line", daemon=True).start()


def _serve(descriptor: int, log: AuditLog) -> None:
    """The first line, then what a worker says."""
    try:
        first, rest = read_line(descriptor, b"")
        about = load(first)
        if not isinstance(about, dict) or set(about) - {APPROVED_BY} != {"ordered_task", "ordered_by"}:
            raise ValueError("not a task")
        users = [user for name, user in about.items() if name != "ordered_task"]
        if not TASK_ID.fullmatch(str(about["ordered_task"])) or any(type(user) is not int for user in users):
            raise ValueError("not a task")
    except (OSError, ValueError, RecursionError):
        os.close(descriptor)
        return
    serve_line(descriptor, log, about, rest)
