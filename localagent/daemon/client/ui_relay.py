"""`localagent ui`: the daemon's web page for a browser of the invoking user, over a loopback port of this process.

What may pass: GET of the page's own paths, from a connection of the same user (the kernel's word), to the one host name
that only the printed address has, with the cookie that this address gave out once. The daemon sees the invoking user,
as over the socket. Read-only: nothing else is passed on, and no header of the browser's is.
"""

import asyncio
import hmac
import os
import secrets
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from starlette.responses import Response
from starlette.types import Receive, Scope, Send
from uvicorn import Config, Server
from uvicorn.protocols.http.h11_impl import H11Protocol

from localagent.daemon.client.ui_loopback import loopback_ports, owner
from localagent.daemon.ui.page_headers import HEADERS, ROOT
from localagent.errors import LocalagentError
from localagent.protocol.http_client import Client, HttpResponse

COOKIE = "localagent-ui"
_MOST_HEADER_BYTES = 16 << 10
_TARGET_BYTES = 2 << 10
_CONNECTIONS = 64
_PASSED_BACK = ("content-type", "refresh", "retry-after")


@dataclass(slots=True, kw_only=True)
class Entrance:
    """Who is let in. `label` makes a host name of our own: cookies know no ports, and no other origin can be it."""

    port: int
    label: str = field(default_factory=lambda: "la-" + secrets.token_hex(8))
    cookie: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    token: str = field(default_factory=lambda: secrets.token_urlsafe(32))  # "" once it was used

    @property
    def host(self) -> str:
        """The one value of the Host header that is answered."""
        return f"{self.label}.localhost:{self.port}"

    @property
    def address(self) -> str:
        """What is opened in a browser, once."""
        return f"http://{self.host}/enter/{self.token}"

    def enter(self, token: str) -> bool:
        """Whether that was the token, for the first time."""
        good = bool(self.token) and hmac.compare_digest(token.encode("utf-8", "replace"), self.token.encode())
        if good:
            self.token = ""
        return good

    def inside(self, cookies: str) -> bool:
        """Whether one of the cookies is ours."""
        values = [part.strip().partition("=") for part in cookies.split(";")]
        found = [value for name, _, value in values if name == COOKIE]
        return any(hmac.compare_digest(v.encode("utf-8", "replace"), self.cookie.encode()) for v in found)


class Relay:
    """ASGI. `fetch` asks the daemon for a target of the page; `asked_at` is when somebody was last let in."""

    def __init__(self, entrance: Entrance, fetch: Callable[[str], HttpResponse], clock: Callable[[], float]) -> None:
        self._entrance, self._fetch, self._clock = entrance, fetch, clock
        self.asked_at = clock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Nothing but HTTP is spoken."""
        if scope["type"] == "http":
            await (await self._answer(scope))(scope, receive, send)

    async def _answer(self, scope: Scope) -> Response:
        headers: dict[str, str] = {}
        for name, value in scope["headers"]:
            key = name.decode("latin-1")
            joined = f"{headers[key]}; {value.decode('latin-1')}" if key in headers else value.decode("latin-1")
            headers[key] = joined  # a second Host makes the first one wrong
        path = scope["raw_path"].decode("latin-1")
        if no := self._refusal(scope["method"], path, headers):
            return no
        if path.startswith("/enter/"):
            return self._entered(path.removeprefix("/enter/"))
        if not self._entrance.inside(headers.get("cookie", "")):
            return plain_text(403, "This page is for whoever opened the address that `localagent ui` printed.")
        self.asked_at = self._clock()
        if path == "/":
            return redirect_to(ROOT)
        if not path.startswith(ROOT):
            return plain_text(404, "There is no such page.")
        query = scope["query_string"].decode("latin-1")
        return await self._passed(f"{path}?{query}" if query else path)

    def _refusal(self, method: str, path: str, headers: Mapping[str, str]) -> Response | None:
        if headers.get("host") != self._entrance.host:
            return plain_text(421, "Not this host.")
        if method != "GET":
            return plain_text(405, "This page is read-only.")
        if headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            return plain_text(403, "Another site sent you here: paste the address into the browser yourself.")
        if len(path) > _TARGET_BYTES or not path.isascii() or any(ord(x) < 33 for x in path):
            return plain_text(414, "That is no address of this page.")
        return None

    def _entered(self, token: str) -> Response:
        if not self._entrance.enter(token):
            return plain_text(403, "This address was used already, or is not the right one: run `localagent ui` again.")
        cookie = f"{COOKIE}={self._entrance.cookie}; Path=/; HttpOnly; SameSite=Strict"
        return redirect_to(ROOT, {"set-cookie": cookie})

    async def _passed(self, target: str) -> Response:
        try:
            found = await asyncio.get_running_loop().run_in_executor(None, self._fetch, target)
        except LocalagentError as fault:
            return plain_text(502, f"{fault}\n{fault.remedy}")
        kept = {name: found.headers[name] for name in _PASSED_BACK if name in found.headers}
        return Response(found.body, found.status, {**HEADERS, **kept})


def plain_text(status: int, text: str) -> Response:
    """A few words, as plain text."""
    return Response(f"{text}\n", status, {**HEADERS}, "text/plain; charset=utf-8")


def redirect_to(path: str, more: Mapping[str, str] | None = None) -> Response:
    """To another page of ours."""
    return Response(None, 303, {**HEADERS, "location": path, **(more or {})})


class OwnConnection(H11Protocol):
    """A connection of another user is dropped before a byte of it is read."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Asks the kernel's table whose it is."""
        super().connection_made(transport)
        own: socket.socket = transport.get_extra_info("socket")
        with socket.socket(fileno=os.dup(own.fileno())) as asked:
            if owner(asked) != os.getuid():
                transport.abort()

    def data_received(self, data: bytes) -> None:
        """Bytes of one that is on its way out are dropped."""
        if not self.transport.is_closing():
            super().data_received(data)


def fetching(path: Path) -> Callable[[str], HttpResponse]:
    """Asks the daemon at a socket, as this user, on a connection of its own each time."""

    def fetch(target: str) -> HttpResponse:
        client = Client(path)
        try:
            return client.look(target, headers={"accept": "text/html"})
        finally:
            client.close()

    return fetch


def serve_page(path: Path, port: int, idle_seconds: float, tell: Callable[[str], None]) -> None:
    """Until interrupted, or nobody looked for so long; `tell` is told the address. DaemonGone without a daemon."""
    fetch = fetching(path)
    fetch(f"{ROOT}style.css")  # nobody there, or a stranger, is said at once
    servers = loopback_ports(port)
    try:
        asyncio.run(_serve(fetch, servers, idle_seconds, tell))
    finally:
        for server in servers:
            server.close()


async def _serve(
    fetch: Callable[[str], HttpResponse], servers: list[socket.socket], idle_seconds: float, tell: Callable[[str], None]
) -> None:
    loop = asyncio.get_running_loop()
    entrance = Entrance(port=servers[0].getsockname()[1])
    relay = Relay(entrance, fetch, loop.time)
    options: dict[str, Any] = {"ws": "none", "lifespan": "off", "log_config": None, "access_log": False}
    options |= {"server_header": False, "date_header": False, "proxy_headers": False}
    options |= {"limit_concurrency": _CONNECTIONS, "h11_max_incomplete_event_size": _MOST_HEADER_BYTES}
    server = Server(Config(relay, http=OwnConnection, timeout_graceful_shutdown=1, **options))

    async def ends() -> None:
        while not server.started:
            await asyncio.sleep(0.01)
        tell(entrance.address)
        while loop.time() - relay.asked_at < idle_seconds:
            await asyncio.sleep(1.0)
        server.should_exit = True

    beside = asyncio.create_task(ends())
    try:
        await server.serve(sockets=servers)
    finally:
        beside.cancel()
