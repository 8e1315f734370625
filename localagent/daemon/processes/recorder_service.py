"""The recorder as a service of its own, under a user of its own: what the daemon's user can add to, it cannot write to.

It listens on a Unix socket. Who connects is asked of the kernel; the first line says whose task the line is for.
At a line's end the head of the journal is signed, where the recorder has a key. Lines are bounded in number and in how
long they may be silent. Not promised: that a worker which was taken over names its own task there, adds no lines of its
own, or leaves a free line for others: it adds, and what it adds is bounded a line; it never alters, nor ends us.
"""

import errno
import json
import logging
import os
import socket
import struct
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from localagent.daemon.http.listen_socket import listening
from localagent.daemon.http.peer_auth import peer_of
from localagent.errors import AnswerIsNo, LocalagentError
from localagent.protocol.task_order import TASK_ID
from localagent.record.audit.log import AuditLog
from localagent.record.audit.remote_log import APPROVED_BY, read_line, serve_line
from localagent.text.strict_json import load

_SECONDS = 20.0
MOST_LINES = 128  # at once, a thread each
FIRST_SECONDS = 60  # may pass until a line says whose it is; the daemon opens one ahead, and another when it is gone
SILENT_SECONDS = 24 * 3600  # may pass between two entries of a task
_WAIT_SECONDS = 0.2  # where no descriptor or thread is to be had
_PASSING = frozenset({errno.ECONNABORTED, errno.EINTR, errno.EPROTO, errno.EAGAIN})
_SCARCE = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
_log = logging.getLogger("localagent.recorder")


class RecorderElsewhere:
    """What `SupervisedProcess` is to a recorder of ours, to one that somebody else starts."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._next: socket.socket | None = None

    def ready(self) -> bool:
        """Whether somebody listens there."""
        if self._next is not None and _hung_up(self._next):
            self.end()
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
    sign: Callable[[], bool],
) -> None:
    """Record for the users `allowed`, until a signal. CannotEnforce for a socket that is not safe to serve.

    `sign` signs the journal's head and answers whether there is a key; what it raises is logged, and signed later.
    """
    os.umask(0o077)
    log = AuditLog(folder)
    with suppress(AnswerIsNo):  # said to whoever asks, again and again, and never written over
        log.ready()
    with listening(path, group, environ) as server:
        tell(f"recording in {log.folder}")
        if not _sign(sign, tell):
            tell("heads are not signed; `localagent key new --state DIR`, as this user, makes a key that signs them")
        free = threading.BoundedSemaphore(MOST_LINES)
        while True:
            line = _accepted(server)
            if line is None:
                continue
            try:
                uid = peer_of(line).uid
            except OSError:
                uid = -1
            if uid not in allowed:
                _log.error("user %s may not record here", uid)
                line.close()
                continue
            _begin(line, log, sign, free)


def _begin(line: socket.socket, log: AuditLog, sign: Callable[[], bool], free: threading.BoundedSemaphore) -> None:
    """A thread for a line; it is closed where there are too many, or none is to be had."""
    if not free.acquire(blocking=False):
        _log.error("%d lines are open: another one is not taken", MOST_LINES)
        line.close()
        return
    try:
        threading.Thread(target=_serve, args=(line, log, sign, free), name="line", daemon=True).start()
    except RuntimeError as fault:
        _log.error("no thread for another line: %s", fault)
        line.close()
        free.release()
        time.sleep(_WAIT_SECONDS)


def _accepted(server: socket.socket) -> socket.socket | None:
    """The next line; None where there is none just now. OSError where the socket itself is gone."""
    try:
        return server.accept()[0]
    except OSError as fault:
        if fault.errno in _SCARCE:
            _log.error("no line can be taken: %s", fault.strerror)
            time.sleep(_WAIT_SECONDS)
        elif fault.errno not in _PASSING:
            raise
        return None


def _hung_up(line: socket.socket) -> bool:
    """Whether the other end closed a line on which it has nothing to say yet."""
    try:
        return not line.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except BlockingIOError:
        return False
    except OSError:
        return True


def _silent_for(line: socket.socket, seconds: int) -> None:
    """From now on a read or a write that waits as long fails with EAGAIN."""
    for option in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
        line.setsockopt(socket.SOL_SOCKET, option, struct.pack("ll", seconds, 0))


def _sign(sign: Callable[[], bool], tell: Callable[[str], None]) -> bool:
    """Whether there is a key. What fails is told: entries count without it, and the next that succeeds covers them."""
    try:
        return sign()
    except LocalagentError as fault:
        tell(f"the journal's head is not signed: {fault}" + (f" ({fault.remedy})" if fault.remedy else ""))
        return True


def _noted(sign: Callable[[], bool]) -> None:
    """At the end of a line, where nobody waits for an answer."""
    _sign(sign, _log.error)


def _serve(line: socket.socket, log: AuditLog, sign: Callable[[], bool], free: threading.BoundedSemaphore) -> None:
    """One line from its first word to its end."""
    try:
        with line:
            line.setblocking(True)
            _silent_for(line, FIRST_SECONDS)
            about, rest = _about(line.fileno())
            if about is not None:
                _silent_for(line, SILENT_SECONDS)
                serve_line(line.detach(), log, about, rest, ended=lambda: _noted(sign))
    except OSError as fault:
        _log.error("a line was given up: %s", fault.strerror or fault)
    finally:
        free.release()


def _about(descriptor: int) -> tuple[dict[str, object] | None, bytes]:
    """Whose task a line is for, and what was read behind it; None where it does not say so."""
    try:
        first, rest = read_line(descriptor, b"")
        about = load(first)
        if not isinstance(about, dict) or set(about) - {APPROVED_BY} != {"ordered_task", "ordered_by"}:
            raise ValueError("not a task")
        users = [user for name, user in about.items() if name != "ordered_task"]
        if not TASK_ID.fullmatch(str(about["ordered_task"])) or any(type(user) is not int for user in users):
            raise ValueError("not a task")
    except (OSError, ValueError, RecursionError):
        return None, b""
    return about, rest
