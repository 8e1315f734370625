"""The daemon's first process: holds the lock, the socket and the pool; starts the front and keeps it running.

It reads nothing that a client sent. When it is killed, the front and the workers see the end of a pipe and end.
"""

import fcntl
import grp
import os
import select
import signal
import socket
import stat
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from localagent import __version__
from localagent.app.settings import Settings
from localagent.daemon.service import schema
from localagent.daemon.service.blobs import Blobs
from localagent.daemon.service.configuration import Configuration, load_configuration
from localagent.daemon.service.leases import reclaim
from localagent.daemon.service.pool import Pool, Terms, start_process
from localagent.daemon.service.retention import tidy
from localagent.daemon.service.rows import Rows
from localagent.daemon.service.systemd import Notify, handed_socket
from localagent.domain.edit import digest_of
from localagent.errors import AnswerIsNo, CannotEnforce, InternalFault
from localagent.llm.registry import Registry
from localagent.policy.load import parse_policy

LOCK_NAME = "daemon.lock"
BACKLOG = 1024
STEP_SECONDS = 0.1
TIDY_SECONDS = 600.0
SILENT_SECONDS = 20.0  # without a beat of the front, until it counts as hung
START_SECONDS = 60.0
FRONT_RESTARTS = 5  # within a minute; more is a fault that restarting does not mend
_MOST_POLICY_BYTES = 1 << 20


@dataclass(frozen=True, kw_only=True, slots=True)
class ServeRequest:
    """What `localagent serve` was asked. `socket_path` None takes the socket that systemd hands over."""

    folder: Path
    configuration: Path
    policy: Path
    socket_path: Path | None
    group: str
    workers: int | None
    environ: Mapping[str, str]


def serve(request: ServeRequest, settings: Settings, tell: Callable[[str], None]) -> int:
    """Serve until SIGTERM or SIGINT; 0. UsageFault or CannotEnforce before anything is served."""
    configuration = load_configuration(request.configuration)
    known = _known(request, settings)
    with _closed_to_others(), _locked(request.folder):
        schema.prepare(request.folder)
        with _listening(request) as server:
            rows = Rows(request.folder)
            again = reclaim(rows)
            blobs = Blobs(request.folder, rows)
            blobs.sweep()
            if again:
                tell(f"{again} tasks of an earlier daemon go back into the queue")
            daemon = Daemon(request, settings, configuration, rows, server, known)
            try:
                return daemon.run(blobs, tell)
            finally:
                rows.close()


def _known(request: ServeRequest, settings: Settings) -> dict[str, Any]:
    try:
        with request.policy.open("rb") as stream:
            data = stream.read(_MOST_POLICY_BYTES)
    except OSError as fault:
        raise CannotEnforce(f"{request.policy}: {fault.strerror}", remedy="name a policy with --policy") from fault
    parse_policy(data, str(request.policy))
    models = Registry(settings.models_dir, settings.data_dir).list()
    return {
        "version": __version__,
        "policy": {"digest": digest_of(data), "text": data.decode()},
        "models": [
            {
                "name": model.name,
                "sha256": model.sha256,
                "bytes": model.bytes,
                "licence": model.licence,
                "default": model.default,
                "installed": model.path is not None,
            }
            for model in models
        ],
    }


class Daemon:
    """One run of the daemon."""

    def __init__(
        self,
        request: ServeRequest,
        settings: Settings,
        configuration: Configuration,
        rows: Rows,
        server: socket.socket,
        known: dict[str, Any],
    ) -> None:
        self._request, self._configuration = request, configuration
        self._rows, self._server, self._known = rows, server, known
        terms = Terms(
            workers=request.workers or configuration.workers, configuration=request.configuration, policy=request.policy
        )
        self._pool = Pool(rows, request.folder, settings, terms)
        self._notify = Notify(request.environ)
        self._front: subprocess.Popen[bytes] | None = None
        self._parent = self._beat = -1
        self._beat_at = self._front_at = 0.0
        self._restarts: list[float] = []
        self._asked = False

    def run(self, blobs: Blobs, tell: Callable[[str], None]) -> int:
        """The whole life: start, steps, drain, end."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._ask)
        self._pool.sweep()
        self._start_front()
        try:
            self._await_front()
            self._notify.say("READY=1", "STATUS=serving")
            tell(f"serving on {self._server.getsockname() or 'a socket without a name'}")
            tidied = 0.0
            while not self._asked:
                self._step()
                if time.monotonic() - tidied > TIDY_SECONDS:
                    tidied = time.monotonic()
                    with suppress(AnswerIsNo):  # no room to write what would make room: the next time
                        tidy(self._rows, blobs, self._configuration.keeping)
            self._drain(tell)
        finally:
            self._notify.say("STOPPING=1")
            self._pool.end()
            self._end_front()
        return 0

    def _ask(self, *_: object) -> None:
        self._asked = True

    def _step(self) -> None:
        """A tenth of a second, or less when the front beats."""
        if select.select([self._beat], [], [], STEP_SECONDS)[0] and os.read(self._beat, 4096):
            self._beat_at = time.monotonic()
            if self._notify.watchdog_seconds:
                self._notify.say("WATCHDOG=1")
        with suppress(AnswerIsNo):  # no room, or somebody else writes: the next time
            self._pool.step()
        hung = time.monotonic() - self._beat_at > SILENT_SECONDS
        if self._front is not None and (self._front.poll() is not None or hung):
            self._restart_front()

    def _drain(self, tell: Callable[[str], None]) -> None:
        """Answer, take nothing new, let what runs end; what does not end in time goes back into the queue."""
        self._notify.say("STOPPING=1", "STATUS=draining")
        with suppress(OSError):
            os.write(self._parent, b"d")
        self._pool.drain()
        self._asked = False  # a second signal ends the waiting
        until = time.monotonic() + self._configuration.drain_seconds
        if not self._pool.empty:
            tell("ending: running tasks have a while to end; once more ends them at once")
        while not self._pool.empty and not self._asked and time.monotonic() < until:
            self._step()
        self._pool.stop()
        until = time.monotonic() + 15.0
        while not self._pool.empty and time.monotonic() < until:
            self._step()

    def _start_front(self) -> None:
        hear, self._parent = os.pipe2(os.O_CLOEXEC)
        self._beat, beat = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        order: dict[str, object] = {
            "folder": str(self._request.folder),
            "configuration": str(self._request.configuration),
            "known": self._known,
            "socket": self._server.fileno(),
            "parent": hear,
            "beat": beat,
        }
        try:
            self._front = start_process("front", order, (self._server.fileno(), hear, beat))
        except OSError as fault:
            raise CannotEnforce(f"the front could not be started: {fault.strerror}") from fault
        finally:
            os.close(hear)
            os.close(beat)
        self._beat_at = time.monotonic()

    def _await_front(self) -> None:
        """Its first beat says that it serves."""
        ready = select.select([self._beat], [], [], START_SECONDS)[0]
        if not ready or not os.read(self._beat, 1):
            raise InternalFault("the front did not start; what it said is above")

    def _restart_front(self) -> None:
        now = time.monotonic()
        self._restarts = [at for at in self._restarts if now - at < 60.0] + [now]
        if len(self._restarts) > FRONT_RESTARTS:
            raise InternalFault("the front ends again and again; what it said is above")
        self._end_front()
        self._start_front()

    def _end_front(self) -> None:
        if self._front is None:
            return
        os.close(self._parent)  # which it sees
        try:
            self._front.wait(timeout=10.0)
        except subprocess.TimeoutExpired:
            self._front.kill()
            self._front.wait()
        os.close(self._beat)
        self._front = None


@contextmanager
def _closed_to_others() -> Iterator[None]:
    """Whatever is made, by this process or its children, is for nobody else unless it says so."""
    before = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(before)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """The folder, made where it is missing, the daemon's alone, and nobody else's as long as this lasts."""
    try:
        if not folder.is_dir():
            folder.mkdir(mode=0o711, parents=True)
            folder.chmod(0o711)
        facts = folder.stat()
        if facts.st_uid != os.geteuid() or facts.st_mode & 0o022:
            raise CannotEnforce(
                f"{folder} is not this user's alone to write to", remedy=f"chown it, and chmod go-w {folder}"
            )
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        number = os.open(folder / LOCK_NAME, flags, 0o600)
    except OSError as fault:
        raise CannotEnforce(f"{folder}: {fault.strerror}", remedy="name a folder with --state") from fault
    try:
        try:
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CannotEnforce(f"another daemon works in {folder}", remedy="end it first, or name a folder") from None
        yield
    finally:
        os.close(number)


@contextmanager
def _listening(request: ServeRequest) -> Iterator[socket.socket]:
    """The socket to serve: systemd's, or one made at the path and removed at the end."""
    handed = handed_socket(request.environ)
    if handed is not None:
        if request.socket_path is not None:
            handed.close()
            raise CannotEnforce("systemd handed a socket over, and --socket names another", remedy="leave one away")
        with handed:
            yield handed
        return
    if request.socket_path is None:
        raise CannotEnforce("no socket was handed over by systemd", remedy="name one: localagent serve --socket PATH")
    server = bound(request.socket_path, request.group)
    inode = request.socket_path.lstat().st_ino
    try:
        with server:
            yield server
    finally:
        with suppress(OSError):
            if request.socket_path.lstat().st_ino == inode:
                request.socket_path.unlink()


def bound(path: Path, group: str) -> socket.socket:
    """A listening socket at `path`, mode 0660, in a folder that nobody else can write to; a stale one is replaced."""
    path = path.absolute()
    try:
        facts = path.parent.stat()
    except OSError as fault:
        raise CannotEnforce(f"{path.parent}: {fault.strerror}", remedy="make that folder first") from fault
    if facts.st_uid not in (0, os.geteuid()) or facts.st_mode & 0o022:
        raise CannotEnforce(
            f"{path.parent} is open to other users: one of them could put a socket in place of ours",
            remedy="name a path in a folder that only you can write to",
        )
    with suppress(FileNotFoundError):
        if not stat.S_ISSOCK(path.lstat().st_mode):
            raise CannotEnforce(f"{path} is there, and no socket", remedy="name another path")
        path.unlink()
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    before = os.umask(0o177)  # for nobody else until the group is right
    try:
        server.bind(str(path))
        if group:
            os.chown(path, -1, grp.getgrnam(group).gr_gid, follow_symlinks=False)
        path.chmod(0o660)
        server.listen(BACKLOG)
    except (OSError, KeyError) as fault:
        server.close()
        raise CannotEnforce(f"no socket at {path}: {fault}", remedy="name another path or group") from fault
    finally:
        os.umask(before)
    return server
