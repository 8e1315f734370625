"""HTTP/1.1 over the daemon's Unix socket, as a client speaks it: h11 on a socket, bounded answers, no network ever.

The daemon is not trusted more than it must be: who owns the socket is asked of the kernel before anything is sent, and
what it answers is data. Not promised: anything about the answers' content; callers parse.
"""

import json
import math
import os
import pwd
import socket
import struct
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import h11

from localagent.errors import AnswerIsNo, CannotEnforce, InternalFault, LocalagentError, UsageFault

DEFAULT_SOCKET = Path("/run/localagent/daemon.sock")
OWNER = "localagent"
ANSWER_SECONDS = 120.0
SILENT_SECONDS = 60.0  # an event stream says something every fifteen
MOST_ANSWER_BYTES = 256 << 20
_MOST_LINE_BYTES = 1 << 20
_CREDENTIALS = struct.Struct("3i")
_PIECE = 64 << 10


_LOOK = "`systemctl status localagent` says how the daemon is; ask again when it is there"
_LOG = "its log says more (`journalctl -u localagent`); ask whoever keeps the daemon"
_LATER = "ask again later"
_REMEDIES = {  # for refusals that bring none, by kind
    "rate": "ask less often",
    "ending": "ask again when it was started anew",
    "busy": _LATER,
    "full": "free space where the daemon keeps its state, or ask whoever keeps it",
    "quota": "wait for a task of yours to end, or cancel one: `localagent tasks list`",
    "not-found": "`localagent tasks list` shows what is yours",
    "missing": "order again: what is missing is uploaded then",
    "large": "leave large files out of the repository's snapshot",
    "state": "`localagent tasks show ID` says how the task stands",
    "internal": _LOG,
}
OTHER_VERSION = "is it a localagent of another version? Bring daemon and client to the same one"


class DaemonGone(CannotEnforce):
    """Nobody answers at the socket, or the connection broke: what became of the last request is not known."""

    def __init__(self, message: str, *, remedy: str = _LOOK) -> None:
        super().__init__(message, remedy=remedy)


class DaemonRefuses(AnswerIsNo):
    """An answer of status 4xx or 5xx. `kind` and `status` as the daemon gave them."""

    def __init__(self, message: str, *, remedy: str, status: int, kind: str, retry_seconds: int) -> None:
        super().__init__(message, remedy=remedy)
        self.status, self.kind, self.retry_seconds = status, kind, retry_seconds


@dataclass(frozen=True, kw_only=True, slots=True)
class HttpResponse:
    """A whole answer."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        """The body; InternalFault when it is not what the daemon of this version says."""
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError) as fault:
            raise InternalFault(f"the daemon's answer is not JSON: {fault}") from fault


@dataclass(frozen=True, kw_only=True, slots=True)
class ServerEvent:
    """One server-sent event; `id` is 0 where it had none."""

    id: int
    kind: str
    data: str


@dataclass(slots=True)
class Client:
    """One daemon. A connection is kept between requests and made anew when it is gone. One thread's alone.

    `until` (of the monotonic clock) ends every waiting, however slowly something comes. An answer larger than
    `most_bytes` is a fault. `own`: whether a daemon that runs as this very user will do.
    """

    path: Path
    until: float = math.inf
    most_bytes: int = MOST_ANSWER_BYTES
    own: bool = True
    _socket: socket.socket | None = field(default=None, init=False)
    _http: h11.Connection | None = field(default=None, init=False)
    _silent_seconds: float = field(default=ANSWER_SECONDS, init=False)

    def close(self) -> None:
        """End the connection."""
        if self._socket is not None:
            self._socket.close()
        self._socket = self._http = None

    def interrupt(self) -> None:
        """From another thread: what is being waited for ends with DaemonGone, and nothing further is asked."""
        self.until = -math.inf
        connection = self._socket
        if connection is not None:
            with suppress(OSError):  # it has ended already
                connection.shutdown(socket.SHUT_RDWR)

    def get(self, target: str) -> HttpResponse:
        """DaemonRefuses for every status from 400 on."""
        return self.request("GET", target)

    def post(self, target: str, value: object, *, headers: Mapping[str, str] | None = None) -> HttpResponse:
        """With a JSON body."""
        more = {"content-type": "application/json", **(headers or {})}
        return self.request("POST", target, body=json.dumps(value).encode(), headers=more)

    def put(self, target: str, body: bytes) -> HttpResponse:
        """With bytes."""
        return self.request("PUT", target, body=body, headers={"content-type": "application/octet-stream"})

    def request(
        self, method: str, target: str, *, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> HttpResponse:
        """One request and its whole answer. DaemonGone when there is none; it is not sent twice."""
        answer = self._whole(self._sent(method, target, body, headers or {}))
        if answer.status >= 400:
            raise refusal(answer)
        return answer

    def look(self, target: str, *, headers: Mapping[str, str]) -> HttpResponse:
        """The whole answer to a GET, whatever its status."""
        return self._whole(self._sent("GET", target, None, headers))

    def stream(self, target: str, *, after: int) -> Iterator[ServerEvent]:
        """Server-sent events from after a number on, until the daemon ends the stream. DaemonGone when it breaks."""
        head = {"accept": "text/event-stream", "last-event-id": str(after)}
        response = self._sent("GET", target, None, head)
        if response.status_code != 200:
            raise refusal(self._whole(response))
        try:
            self._silent_seconds = SILENT_SECONDS
            yield from _events(self._pieces())
        finally:
            self.close()

    def _connected(self) -> socket.socket:
        self._silent_seconds = ANSWER_SECONDS
        if self._socket is None:
            self._socket, self._http = connect(self.path, self._patience(), own=self.own), h11.Connection(h11.CLIENT)
        self._socket.settimeout(self._patience())
        return self._socket

    def _patience(self) -> float:
        """Seconds to wait for the next piece. DaemonGone when there are none."""
        left = self.until - time.monotonic()
        if left <= 0:
            raise DaemonGone(f"the daemon at {self.path} did not answer in the time that there was")
        return min(self._silent_seconds, left)

    def _sent(self, method: str, target: str, body: bytes | None, headers: Mapping[str, str]) -> h11.Response:
        fields = {"host": "localagent", **headers}
        if body is not None:
            fields["content-length"] = str(len(body))
        if self._http is not None and _was_closed(self._socket):
            self.close()  # kept for too long; nothing was sent on it yet
        connection = self._connected()
        http = self._http
        assert http is not None
        request = h11.Request(method=method, target=target, headers=list(fields.items()))
        pieces = [
            http.send(request),
            *((http.send(h11.Data(data=body)),) if body else ()),
            http.send(h11.EndOfMessage()),
        ]
        try:
            for piece in pieces:
                connection.settimeout(self._patience())
                connection.sendall(piece or b"")
        except TimeoutError as fault:
            self.close()
            raise DaemonGone(f"the daemon at {self.path} takes no more bytes") from fault
        except OSError:
            pass  # it may have refused by the header alone, and said so before it closed: that is read below
        try:
            return self._head()
        except DaemonGone:
            self.close()
            raise

    def _head(self) -> h11.Response:
        while True:
            event = self._next()
            if isinstance(event, h11.Response):
                return event
            if not isinstance(event, h11.InformationalResponse):
                raise DaemonGone(f"the daemon at {self.path} ended the connection without an answer")

    def _next(self) -> Any:
        connection, http = self._socket, self._http
        if connection is None or http is None:
            raise DaemonGone(f"no connection to the daemon at {self.path}")
        try:
            while (event := http.next_event()) is h11.NEED_DATA:
                connection.settimeout(self._patience())
                http.receive_data(connection.recv(_PIECE))
        except h11.RemoteProtocolError as fault:
            raise DaemonGone(f"the daemon at {self.path} broke off: {fault}") from fault
        except OSError as fault:
            raise DaemonGone(f"the daemon at {self.path} broke off: {fault.strerror or fault}") from fault
        return event

    def _pieces(self) -> Iterator[bytes]:
        while True:
            event = self._next()
            if isinstance(event, h11.Data):
                yield bytes(event.data)
            else:
                return

    def _whole(self, response: h11.Response) -> HttpResponse:
        body = bytearray()
        try:
            for piece in self._pieces():
                body += piece
                if len(body) > self.most_bytes:
                    raise InternalFault("the daemon's answer is larger than anything it should say")
        except LocalagentError:
            self.close()
            raise
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in response.headers}
        http = self._http
        if http is not None and http.our_state is h11.DONE and http.their_state is h11.DONE:
            http.start_next_cycle()
        else:
            self.close()
        return HttpResponse(status=response.status_code, headers=headers, body=bytes(body))


def _started_by(path: Path) -> str:
    command = "systemctl start localagent.socket" if path == DEFAULT_SOCKET else f"localagent serve --socket {path}"
    return f"`{command}`"


def connect(path: Path, seconds: float = ANSWER_SECONDS, *, own: bool = True) -> socket.socket:
    """A connection to the daemon. DaemonGone with the reason when nobody listens; CannotEnforce for a stranger.

    With `own` False also for a daemon that runs as this user, who could make it say anything; root's will do.
    """
    client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    client.settimeout(seconds)
    try:
        client.connect(str(path.absolute()))
        data = client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    except FileNotFoundError:
        client.close()
        raise DaemonGone(
            f"there is no daemon at {path}",
            remedy=f"start it ({_started_by(path)}), or run without --daemon",
        ) from None
    except ConnectionRefusedError:
        client.close()
        raise DaemonGone(f"nobody listens at {path}: the daemon ended", remedy="start it again") from None
    except PermissionError:
        client.close()
        raise CannotEnforce(
            f"you may not use the daemon at {path}", remedy="join the group that the socket belongs to (`ls -l` it)"
        ) from None
    except OSError as fault:
        client.close()
        raise DaemonGone(f"no connection to the daemon at {path}: {fault.strerror or fault}") from fault
    uid = int(_CREDENTIALS.unpack(data)[1])
    if uid not in _trusted():
        client.close()
        raise CannotEnforce(
            f"the daemon at {path} is user {uid}, who is neither root, {OWNER} nor you: nothing was sent to it",
            remedy=f"name the machine's own socket ({DEFAULT_SOCKET}), or ask who put this one there",
        )
    if not own and uid == os.geteuid() != 0:
        client.close()
        raise CannotEnforce(
            f"the daemon at {path} runs as you: what it says of approvals would be your own word",
            remedy=f"use the machine's daemon, which runs as {OWNER}",
        )
    return client


def _trusted() -> set[int]:
    found = {0, os.geteuid()}
    with suppress(KeyError):
        found.add(pwd.getpwnam(OWNER).pw_uid)
    return found


def _was_closed(connection: socket.socket | None) -> bool:
    """Whether the other end has closed a connection that owes us nothing."""
    if connection is None:
        return True
    connection.setblocking(False)
    try:
        return connection.recv(1, socket.MSG_PEEK) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


def refusal(answer: HttpResponse) -> LocalagentError:
    """A refusing answer as an exception of ours."""
    try:
        error = json.loads(answer.body)["error"]
        faults = [str(fault) for fault in error["faults"]]
        kind, remedy = str(error["kind"]), str(error["remedy"])
    except (ValueError, KeyError, TypeError, RecursionError):
        faults, kind, remedy = [f"status {answer.status}"], "", OTHER_VERSION
    if kind == "usage":
        return UsageFault([f"the daemon: {fault}" for fault in faults], remedy=remedy)
    told = answer.headers.get("retry-after", "")
    retry = int(told) if told.isascii() and told.isdigit() and len(told) < 7 else 0
    remedy = remedy or _REMEDIES.get(kind, _LOG if answer.status >= 500 else OTHER_VERSION)
    return DaemonRefuses(
        f"the daemon refuses: {'; '.join(faults)}",
        remedy=f"{remedy} (in {retry} s)" if retry and kind in ("rate", "ending", "busy") else remedy,
        status=answer.status,
        kind=kind,
        retry_seconds=retry,
    )


def wait_after(no: DaemonRefuses, *, until: float, most: float) -> bool:
    """Wait as long as a refusal says, when that is at most `most` seconds and ends before `until`; whether to retry."""
    if not 0 < no.retry_seconds <= most or time.monotonic() + no.retry_seconds > until:
        return False
    time.sleep(no.retry_seconds)
    return True


def _events(pieces: Iterator[bytes]) -> Iterator[ServerEvent]:
    """Lines of a stream put together; InternalFault for a line longer than any the daemon writes."""
    rest = b""
    number, kind, data = 0, "message", ""
    for piece in pieces:
        *lines, rest = (rest + piece).split(b"\n")
        if len(rest) > _MOST_LINE_BYTES:
            raise InternalFault("the daemon's stream has a line longer than any it should have")
        for line in lines:
            name, _, value = line.decode("utf-8", "replace").partition(":")
            value = value.removeprefix(" ")
            if not line:
                if data:
                    yield ServerEvent(id=number, kind=kind, data=data)
                number, kind, data = 0, "message", ""
            elif name == "id" and value.isascii() and value.isdigit():
                number = int(value)
            elif name == "event":
                kind = value
            elif name == "data":
                data += value
                if len(data) > _MOST_LINE_BYTES:
                    raise InternalFault("the daemon's stream has an event larger than any it should have")
