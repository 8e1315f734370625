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
from typing import Any

import h11
from starlette.datastructures import State
from starlette.exceptions import HTTPException
from starlette.routing import Router
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn import Config, Server
from uvicorn.protocols.http.h11_impl import H11Protocol

from localagent import __version__
from localagent.daemon.http.endpoints import document, routes
from localagent.daemon.http.event_notifier import EventNotifier
from localagent.daemon.http.peer_auth import Grant, Peer, PeerRole, peer_of
from localagent.daemon.http.rate_limits import (
    BODY_BYTES_A_SECOND,
    BODY_SECONDS,
    HEAD_SECONDS,
    IDLE_SECONDS,
    MOST_HEADER_BYTES,
    ConnectionLimiter,
    head_fault,
)
from localagent.daemon.http.request_context import RequestContext, ServiceFacts
from localagent.daemon.http.responses import RequestRefused, fault_answer, nothing
from localagent.daemon.http.status_handlers import measured
from localagent.daemon.processes.configuration import load_configuration
from localagent.daemon.processes.logs import log_to_stderr
from localagent.daemon.store.blobs import Blobs
from localagent.daemon.store.task_store import Rows
from localagent.errors import InternalFault, LocalagentError

# One connection of the front: uvicorn's HTTP/1.1 by h11, with the peer's identity and without patience for the slow.
#
# Websockets and upgrades are not spoken. A connection whose peer the kernel does not name is dropped.

_BUSY = b"HTTP/1.1 429 Too Many Requests\r\nretry-after: 1\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
_SLOW = b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


class Connection(H11Protocol):
    """`door` is set by `connection_class`. `app_state` of each request has the `peer`."""

    door: ConnectionLimiter
    all: "set[Connection]"

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self._peer: Peer | None = None
        self._inside = False
        self._head_since: float | None = None
        self._body_since: float | None = None
        self._body_bytes = 0
        self._active_at = self.loop.time()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Who it is, and whether there is room for one more of theirs."""
        super().connection_made(transport)
        try:
            self._peer = _peer(transport)
        except OSError:
            transport.abort()
            return
        self._inside = self.door.enter(self._peer.uid)
        if not self._inside:
            transport.write(_BUSY)
            transport.close()
            return
        self.app_state = {**self.app_state, "peer": self._peer}
        self.all.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Makes room again."""
        self.all.discard(self)
        if self._inside and self._peer is not None:
            self._inside = False
            self.door.leave(self._peer.uid)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Bytes of a client; those of one that is on its way out are dropped."""
        if self.transport.is_closing():
            return
        self._active_at = self.loop.time()
        super().data_received(data)
        self._look()

    def on_response_complete(self) -> None:
        """The next request's clock starts with its own first byte."""
        self._active_at = self.loop.time()
        super().on_response_complete()
        self._look()

    def _look(self) -> None:
        """What the client owes us, and since when."""
        now, state = self.loop.time(), self.conn.their_state
        if state is h11.IDLE and self.conn.trailing_data[0]:
            self._head_since = self._head_since or now
        else:
            self._head_since = None
        if state is h11.SEND_BODY and self._body_since is None:
            self._body_since = now
            length = next((v for n, v in self.headers if n == b"content-length"), b"0")
            self._body_bytes = int(length) if length.isdigit() and len(length) < 12 else 0
        elif state is not h11.SEND_BODY:
            self._body_since = None

    def overdue(self, now: float) -> bool:
        """Whether the client has kept us waiting for longer than it may."""
        if self._head_since is not None:
            return now - self._head_since > HEAD_SECONDS
        if self._body_since is not None:
            return now - self._body_since > BODY_SECONDS + self._body_bytes / BODY_BYTES_A_SECOND
        answering = self.cycle is not None and not self.cycle.response_complete
        return not answering and now - self._active_at > IDLE_SECONDS

    def drop(self) -> None:
        """End it; a client in the middle of a request is told why."""
        answered = self.cycle is not None and self.cycle.response_started and not self.cycle.response_complete
        if (self._head_since is not None or self._body_since is not None) and not answered:
            self.transport.write(_SLOW)
        if self.cycle is not None:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        self.transport.close()


def _peer(transport: asyncio.Transport) -> Peer:
    """The kernel's word on the other end, asked through a duplicate: the transport keeps its own socket to itself."""
    number = transport.get_extra_info("socket").fileno()
    with socket.socket(fileno=os.dup(number)) as own:
        return peer_of(own)


def connection_class(door: ConnectionLimiter) -> type[Connection]:
    """The class that uvicorn makes connections of, bound to a door."""
    return type("BoundConnection", (Connection,), {"door": door, "all": set()})


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
