"""The daemon's first process: holds the lock, the socket and the pool; starts the front and keeps it running.

It reads nothing that a client sent. When it is killed, the front and the workers see the end of a pipe and end.
"""

import fcntl
import os
import select
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from localagent.app.evidence.task_evidence import open_signer
from localagent.app.policies import open_policy
from localagent.app.settings import Settings
from localagent.daemon.http.listen_socket import listening
from localagent.daemon.processes.configuration import Configuration, load_configuration
from localagent.daemon.processes.spawn import start_process
from localagent.daemon.processes.systemd import Notify
from localagent.daemon.processes.worker_pool import DaemonWorkers, Terms
from localagent.daemon.store import schema
from localagent.daemon.store.blobs import Blobs
from localagent.daemon.store.leases import reclaim
from localagent.daemon.store.retention import tidy
from localagent.daemon.store.task_store import Rows
from localagent.domain.chat import PREFIX
from localagent.errors import AnswerIsNo, CannotEnforce, InternalFault, UsageFault
from localagent.fs.atomic_files import open_lock
from localagent.llm.model.registry import Registry

LOCK_NAME = "daemon.lock"
STEP_SECONDS = 0.1
TIDY_SECONDS = 600.0
SILENT_SECONDS = 20.0  # without a beat of the front, until it counts as hung
START_SECONDS = 60.0
FRONT_RESTARTS = 5  # within a minute; more is a fault that restarting does not mend


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
    recorder: Path | None = None


def serve(request: ServeRequest, settings: Settings, tell: Callable[[str], None]) -> int:
    """Serve until SIGTERM or SIGINT; 0. UsageFault or CannotEnforce before anything is served."""
    configuration = load_configuration(request.configuration)
    models = _models(request, settings)
    _refuse_unknown(configuration, models)
    open_signer(settings)  # one that cannot be opened would end each task; nothing is kept of it here
    with _closed_to_others(), _locked(request.folder):
        schema.prepare(request.folder)
        with listening(request.socket_path, request.group, request.environ) as server:
            rows = Rows(request.folder)
            again = reclaim(rows)
            blobs = Blobs(request.folder, rows)
            blobs.sweep()
            if again:
                tell(f"{again} tasks of an earlier daemon go back into the queue")
            daemon = Daemon(request, settings, configuration, rows, server, models)
            try:
                return daemon.run(blobs, tell)
            finally:
                rows.close()


def _models(request: ServeRequest, settings: Settings) -> list[dict[str, Any]]:
    """The models that orders may name; UsageFault when the policy that they would run under is wrong."""
    open_policy(settings, request.policy)
    return [
        {
            "name": model.name,
            "sha256": model.sha256,
            "bytes": model.bytes,
            "licence": model.licence,
            "default": model.default,
            "installed": model.path is not None,
        }
        for model in Registry(settings.models_dir, settings.data_dir).list()
    ]


def _refuse_unknown(configuration: Configuration, models: list[dict[str, Any]]) -> None:
    """UsageFault for a chat model that is neither a socket nor registered here; a socket may come later."""
    installed = {model["name"] for model in models if model["installed"]}
    odd = [one for one in configuration.chat_models if not one.model.startswith(PREFIX) and one.model not in installed]
    if odd:
        faults = [f"chat_model {one.name}: no model {one.model!r} is registered here" for one in odd]
        raise UsageFault(faults, remedy="`localagent model list` names those that are; `localagent model add FILE`")


class Daemon:
    """One run of the daemon."""

    def __init__(
        self,
        request: ServeRequest,
        settings: Settings,
        configuration: Configuration,
        rows: Rows,
        server: socket.socket,
        models: list[dict[str, Any]],
    ) -> None:
        self._request, self._configuration, self._settings = request, configuration, settings
        self._rows, self._server, self._models = rows, server, models
        terms = Terms(
            workers=request.workers or configuration.workers,
            configuration=request.configuration,
            policy=request.policy,
            recorder=request.recorder,
        )
        self._pool = DaemonWorkers(rows, request.folder, settings, terms)
        opened = open_policy(settings, request.policy)
        self._policy, self._people = str(opened.path), opened.policy.approvals.people
        self._notify = Notify(request.environ)
        self._front: subprocess.Popen[bytes] | None = None
        self._parent = self._beat = -1
        self._beat_at = 0.0
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
            "policy": self._policy,
            "people": self._people,
            "models": self._models,
            "workers": self._request.workers or self._configuration.workers,
            "socket": self._server.fileno(),
            "parent": hear,
            "beat": beat,
        }
        try:
            self._front = start_process(
                "http.app", order, (self._server.fileno(), hear, beat), self._settings.cache_dir.parent
            )
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
        number = open_lock(folder / LOCK_NAME)
    except OSError as fault:
        raise CannotEnforce(f"{folder}: {fault.strerror or fault}", remedy="name a folder with --state") from fault
    try:
        try:
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CannotEnforce(f"another daemon works in {folder}", remedy="end it first, or name a folder") from None
        yield
    finally:
        os.close(number)
