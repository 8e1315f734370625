"""One connection of the front: uvicorn's HTTP/1.1 by h11, with the peer's identity and without patience for the slow.

Websockets and upgrades are not spoken. A connection whose peer the kernel does not name is dropped.
"""

import asyncio
import os
import socket
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from localagent.daemon.http.peer_auth import Peer, peer_of
from localagent.daemon.http.rate_limits import (
    BODY_BYTES_A_SECOND,
    BODY_SECONDS,
    HEAD_SECONDS,
    IDLE_SECONDS,
    ConnectionLimiter,
)

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
