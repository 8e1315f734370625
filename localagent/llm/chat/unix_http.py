"""One bounded HTTP/1.1 exchange over a Unix socket: h11, a deadline, a cancellation seen within a tenth of a second.

Whatever the other end does becomes a `ChatFailure`, carried out of here by `NoReply`. Redirects are not followed, and
no other kind of socket is ever opened. Who listens at the socket is the choice of whoever named it.
"""

import select
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h11

from localagent.domain.chat import ChatFailure, ChatFault
from localagent.text.visible_text import one_line

MOST_BODY_BYTES = 32 << 20
_MOST_HEAD_BYTES = 64 << 10
_GLANCE_SECONDS = 0.1
_PIECE = 64 << 10


class RequestFailed(Exception):  # noqa: N818 - an answer of ours, on its way out
    """There is no reply; says why."""

    def __init__(self, fault: ChatFault, reason: str) -> None:
        super().__init__(reason)
        self.failure = ChatFailure(fault=fault, reason=one_line(reason))


@dataclass(frozen=True, slots=True)
class Patience:
    """How long to wait, and for whom. `until` is of the monotonic clock."""

    until: float
    cancelled: threading.Event | None = None

    def check(self) -> float:
        """Seconds that are left; NoReply when there are none, or nobody wants the answer."""
        if self.cancelled is not None and self.cancelled.is_set():
            raise RequestFailed(ChatFault.CANCELLED, "cancelled")
        left = self.until - time.monotonic()
        if left <= 0.0:
            raise RequestFailed(ChatFault.TIMED_OUT, "the model server did not finish in the time that there was")
        return left

    def wait(self, connection: socket.socket, *, writable: bool = False) -> None:
        """Until the socket is ready."""
        while True:
            span = min(_GLANCE_SECONDS, self.check())
            ready = select.select([] if writable else [connection], [connection] if writable else [], [], span)
            if ready[0] or ready[1]:
                return


@dataclass(frozen=True, kw_only=True, slots=True)
class Response:
    """The head of an answer, and its body as it comes: MOST_BODY_BYTES at most."""

    status: int
    content_type: str
    pieces: Iterator[bytes]

    def body(self) -> bytes:
        """All of it."""
        return b"".join(self.pieces)


@contextmanager
def exchange(path: Path, method: str, target: str, body: bytes | None, patience: Patience) -> Iterator[Response]:
    """Ask once, on a connection of its own. NoReply inside and out for whatever does not come."""
    connection = _connected(path, patience)
    try:
        http = h11.Connection(h11.CLIENT, max_incomplete_event_size=_MOST_HEAD_BYTES)
        _send(connection, http, _request(method, target, body), patience)
        head = _next(connection, http, patience)
        while isinstance(head, h11.InformationalResponse):
            head = _next(connection, http, patience)
        if not isinstance(head, h11.Response):
            raise RequestFailed(ChatFault.BROKEN_OFF, "the model server closed the connection without an answer")
        kind = dict(head.headers).get(b"content-type", b"").decode("latin-1").lower()
        yield Response(status=head.status_code, content_type=kind, pieces=_pieces(connection, http, patience))
    finally:
        connection.close()


def _connected(path: Path, patience: Patience) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    connection.setblocking(False)
    while True:
        try:
            connection.connect(str(path))
        except BlockingIOError:  # its backlog is full
            try:
                patience.check()
            except RequestFailed:
                connection.close()
                raise
            time.sleep(_GLANCE_SECONDS)
        except (OSError, ValueError) as fault:
            connection.close()
            why = getattr(fault, "strerror", None) or str(fault)
            raise RequestFailed(ChatFault.UNREACHABLE, f"cannot connect to {path}: {why}") from None
        else:
            return connection


def _request(method: str, target: str, body: bytes | None) -> list[Any]:
    fields = {"host": "localhost", "connection": "close", "accept": "application/json, text/event-stream"}
    more: Mapping[str, str] = (
        {} if body is None else {"content-type": "application/json", "content-length": str(len(body))}
    )
    head = h11.Request(method=method, target=target, headers=list({**fields, **more}.items()))
    return [head, *([h11.Data(data=body)] if body else []), h11.EndOfMessage()]


def _send(connection: socket.socket, http: h11.Connection, events: list[Any], patience: Patience) -> None:
    """A server that refuses early closes its end; what it said before is read by whoever called."""
    data = memoryview(b"".join(http.send(event) or b"" for event in events))
    while data:
        patience.wait(connection, writable=True)
        try:
            data = data[connection.send(data[:_PIECE]) :]
        except BlockingIOError:
            continue
        except OSError:
            return


def _next(connection: socket.socket, http: h11.Connection, patience: Patience) -> Any:
    try:
        while (event := http.next_event()) is h11.NEED_DATA:
            patience.wait(connection)
            with suppress(BlockingIOError):
                http.receive_data(connection.recv(_PIECE))
    except h11.RemoteProtocolError as fault:
        if http.their_state is h11.ERROR and http.trailing_data == (b"", True):
            raise RequestFailed(ChatFault.BROKEN_OFF, f"the model server closed the connection: {fault}") from None
        raise RequestFailed(ChatFault.MALFORMED, f"the model server does not speak HTTP/1.1: {fault}") from None
    except OSError as fault:
        raise RequestFailed(ChatFault.BROKEN_OFF, f"the model server broke off: {fault.strerror or fault}") from None
    return event


def _pieces(connection: socket.socket, http: h11.Connection, patience: Patience) -> Iterator[bytes]:
    size = 0
    while isinstance(event := _next(connection, http, patience), h11.Data):
        size += len(event.data)
        if size > MOST_BODY_BYTES:
            raise RequestFailed(
                ChatFault.MALFORMED, f"the model server's answer is larger than {MOST_BODY_BYTES} bytes"
            )
        patience.check()
        yield bytes(event.data)
