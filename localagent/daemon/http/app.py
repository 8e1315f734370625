"""The front: the one process that speaks HTTP. It starts nothing, opens no network, and never works on a task.

Handed a listening Unix socket by its parent, told to end by the end of a pipe. A seccomp filter forbids it every socket
but Unix ones and every other program, for good, before the first byte of a client is read.
"""

import asyncio
import errno
import gc
import importlib
import json
import logging
import os
import signal
import socket
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from starlette.datastructures import State
from starlette.exceptions import HTTPException
from starlette.routing import Router
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn import Config, Server

from localagent import __version__
from localagent.daemon.http.connection import Connection, connection_class
from localagent.daemon.http.endpoints import document, routes
from localagent.daemon.http.event_notifier import EventNotifier
from localagent.daemon.http.peer_auth import Grant, PeerRole
from localagent.daemon.http.rate_limits import MOST_HEADER_BYTES, ConnectionLimiter, head_fault
from localagent.daemon.http.request_context import RequestContext, ServiceFacts
from localagent.daemon.http.responses import RequestRefused, fault_answer, nothing
from localagent.daemon.http.status_handlers import measured
from localagent.daemon.processes.configuration import load_configuration
from localagent.daemon.processes.logs import log_to_stderr
from localagent.daemon.store.blobs import Blobs
from localagent.daemon.store.task_store import Rows
from localagent.errors import InternalFault, LocalagentError

BEAT_SECONDS = 1.0
DRAIN_SECONDS = 5
_log = logging.getLogger("localagent.front")


def deny_network() -> bool:
    """Forbid this process, for good, other sockets than Unix ones and starting programs. False without libseccomp."""
    try:
        library = importlib.import_module("pyseccomp")
    except (ImportError, RuntimeError, OSError, AttributeError):
        return False
    rules = library.SyscallFilter(library.ALLOW)
    for call in ("socket", "socketpair"):
        rules.add_rule(library.ERRNO(errno.EAFNOSUPPORT), call, library.Arg(0, library.NE, int(socket.AF_UNIX)))
    for call in ("execve", "execveat", "ptrace", "process_vm_writev", "process_vm_readv"):
        rules.add_rule(library.ERRNO(errno.EPERM), call)
    rules.add_rule(library.ERRNO(errno.ENOSYS), "io_uring_setup")  # opens sockets without a call of that name
    rules.load()
    return True


class RequestGuard:
    """Around all routes: what is refused by its header alone, how often somebody may ask, one shape for all faults."""

    def __init__(self, app: ASGIApp, desk: RequestContext) -> None:
        self._app, self._desk = app, desk
        self.state = State({"desk": desk, "openapi": document(desk.known.version)})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI; nothing but HTTP is spoken."""
        if scope["type"] != "http":
            return
        began, status = time.perf_counter(), 0
        inner: Scope = {**scope, "app": self}

        async def counted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            self._refuse(scope)
            await self._app(inner, receive, counted)
        except HTTPException as fault:
            await fault_answer(_METHOD if fault.status_code == 405 else nothing())(scope, receive, counted)
        except LocalagentError as fault:
            await self._send_fault(fault, scope, receive, counted, status)
        except Exception as bug:  # noqa: BLE001 - the front end: 500 for the client, everything in the log
            _log.exception("a fault of the front")
            await self._send_fault(InternalFault(repr(bug)), scope, receive, counted, status)
        finally:
            # by its pattern: no name of anything gets into the numbers
            measured(self._desk, getattr(inner.get("route"), "path", "none"), status, time.perf_counter() - began)

    @staticmethod
    async def _send_fault(fault: LocalagentError, scope: Scope, receive: Receive, send: Send, status: int) -> None:
        if isinstance(fault, InternalFault):
            _log.error("a fault of the front: %s", fault)
        if not status:
            await fault_answer(fault)(scope, receive, send)

    def _refuse(self, scope: Scope) -> None:
        headers = scope["headers"]
        if fault := head_fault(scope["raw_path"] + scope["query_string"], headers):
            raise RequestRefused(fault[0], "header", fault[1])
        if wait := self._desk.door.ask(scope["state"]["peer"].uid):
            raise RequestRefused(429, "rate", "too many requests at once", retry_seconds=wait)


_METHOD = RequestRefused(405, "method", "not with this method")


def application(desk: RequestContext) -> RequestGuard:
    """The routes inside their guard."""
    return RequestGuard(Router(routes=routes(), redirect_slashes=False), desk)


def grants_of(configured: tuple[Grant, ...], facts: os.stat_result | None) -> tuple[Grant, ...]:
    """What the settings grant; without that, the socket's own user and group may submit."""
    if configured or facts is None:
        return configured
    whose = Grant(uids=frozenset((facts.st_uid,)), gids=frozenset((facts.st_gid,)), roles=frozenset((PeerRole.SUBMIT,)))
    return (whose,)


class Front:
    """One front over one listening socket. `serve` returns when the pipe from the parent ends, or after SIGTERM."""

    def __init__(self, desk: RequestContext, server: socket.socket, parent: int, beat: int) -> None:
        self._desk, self._socket, self._parent, self._beat = desk, server, parent, beat
        self._kind = connection_class(desk.door)

    async def serve(self) -> None:
        """Answer until told to end."""
        config = Config(
            application(self._desk),
            http=self._kind,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            date_header=False,
            proxy_headers=False,
            h11_max_incomplete_event_size=MOST_HEADER_BYTES,
            timeout_keep_alive=3600,  # ours is shorter, and counts what a client does
            timeout_graceful_shutdown=DRAIN_SECONDS,
        )
        server = Server(config)
        loop = asyncio.get_running_loop()
        loop.add_reader(self._parent, self._end, server)
        beside = [asyncio.create_task(x) for x in (self._desk.watch.run(), self._sweep(), self._beats(server))]
        try:
            await server.serve(sockets=[self._socket])
        finally:
            loop.remove_reader(self._parent)
            for task in beside:
                task.cancel()

    def _end(self, server: Server) -> None:
        """The parent wrote `d` (drain: answer, take nothing new), or is gone."""
        if os.read(self._parent, 1) == b"d":
            self._desk.draining = True
            return
        self._desk.watch.end()
        server.should_exit = True
        asyncio.get_running_loop().remove_reader(self._parent)

    async def _beats(self, server: Server) -> None:
        while not server.started:
            await asyncio.sleep(0.01)
        gc.collect()
        gc.freeze()  # modules and routes are there for good: later collections need not look at them
        while True:
            with suppress(OSError):
                os.write(self._beat, b".")
            if server.should_exit:  # by a signal: followers must not keep it
                self._desk.watch.end()
            await asyncio.sleep(BEAT_SECONDS)

    async def _sweep(self) -> None:
        """Every second: end what keeps us waiting."""
        connections: set[Connection] = self._kind.all
        while True:
            await asyncio.sleep(1.0)
            now = asyncio.get_running_loop().time()
            for connection in [x for x in connections if x.overdue(now)]:
                self._desk.door.refused["slow"] += 1
                connection.drop()
            self._desk.door.forget_quiet()


def main(argument: str) -> int:
    """The process: `argument` is JSON as `serve` makes it; `socket`, `parent` and `beat` are descriptors."""
    order = json.loads(argument)
    log_to_stderr()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent says when
    denied = deny_network()
    folder = Path(order["folder"])
    configuration = replace(load_configuration(Path(order["configuration"])), workers=int(order["workers"]))
    reads, writes = Rows(folder), Rows(folder)
    server = socket.socket(fileno=int(order["socket"]))
    server.setblocking(False)
    name = server.getsockname()
    facts = os.stat(name) if isinstance(name, str) and name.startswith("/") and os.path.exists(name) else None  # noqa: PTH110, PTH116
    desk = RequestContext(
        folder=folder,
        configuration=configuration,
        grants=grants_of(configuration.grants, facts),
        known=ServiceFacts(
            version=__version__,
            policy={"text": Path(order["policy"]).read_text(encoding="utf-8")},
            models=tuple(order["models"]),
            network_denied=denied,
            people=tuple(order["people"]),
        ),
        reads=reads,
        writes=writes,
        pages=Rows(folder),
        blobs=Blobs(folder, writes),
        seen=Blobs(folder, reads),
        door=ConnectionLimiter(configuration.rates),
        watch=EventNotifier(reads),
    )
    asyncio.run(Front(desk, server, int(order["parent"]), int(order["beat"])).serve())
    return 0
