"""What every handler of the front works with: the store, who asks, what they may do, and reading of bodies."""

import asyncio
import os
import re
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from starlette.requests import ClientDisconnect, Request

from localagent.daemon.http.event_notifier import EventNotifier
from localagent.daemon.http.peer_auth import Grant, Peer, PeerRole, roles_of
from localagent.daemon.http.rate_limits import ConnectionLimiter
from localagent.daemon.http.responses import RequestRefused, nothing
from localagent.daemon.processes.configuration import Configuration
from localagent.daemon.store.blobs import Blobs
from localagent.daemon.store.task_store import ANYBODY, Rows, TaskRow
from localagent.errors import UsageFault
from localagent.protocol.task_order import DIGEST, TASK_ID
from localagent.text.strict_json import load

MOST_JSON_BYTES = 1 << 20
MOST_DEPTH = 16
_OUTSIDE = re.compile(rb'"(?:[^"\\]|\\.)*+"?|[^\[\]{}"]', re.DOTALL)
_T = TypeVar("_T")


@dataclass(frozen=True, kw_only=True, slots=True)
class ServiceFacts:
    """What the daemon tells about itself: names only, no path. `people` may approve patches, by its policy."""

    version: str
    policy: dict[str, Any]
    models: tuple[dict[str, Any], ...]
    network_denied: bool
    people: tuple[str, ...]


@dataclass(slots=True, kw_only=True)
class RequestContext:
    """One front's. `reads` and `seen` are the event loop's, `writes` and `blobs` threads': no write delays a look.

    `pages` is a thread's that puts a web page together, one at a time.
    """

    folder: Path
    configuration: Configuration
    grants: tuple[Grant, ...]
    known: ServiceFacts
    reads: Rows
    writes: Rows
    pages: Rows
    blobs: Blobs
    seen: Blobs
    door: ConnectionLimiter
    watch: EventNotifier
    draining: bool = False
    page_turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    requests: Counter[tuple[str, int]] = field(default_factory=Counter)
    seconds: dict[str, list[float]] = field(default_factory=dict)
    started_at: float = field(default_factory=time.time)

    def free_bytes(self) -> int:
        """Room where the store is."""
        facts = os.statvfs(self.folder)
        return facts.f_bavail * facts.f_frsize

    def require_disk_space(self) -> None:
        """Refused (507) when less than the reserve is free, 503 when the daemon ends."""
        if self.draining:
            raise RequestRefused(503, "ending", "the daemon is ending: nothing new is taken", retry_seconds=5)
        if self.free_bytes() < self.configuration.reserve_bytes:
            raise RequestRefused(
                507,
                "full",
                "the daemon's disk is nearly full: nothing new is taken, and what there is goes on",
                remedy="free space where the daemon keeps its state",
                retry_seconds=60,
            )


def context_of(request: Request) -> RequestContext:
    """The front's desk."""
    found: RequestContext = request.app.state.desk
    return found


def peer_of(request: Request) -> Peer:
    """Who asks, by the kernel's word."""
    found: Peer = request.scope["state"]["peer"]
    return found


def roles(request: Request) -> frozenset[PeerRole]:
    """What they may do."""
    return roles_of(peer_of(request), context_of(request).grants)


def require(request: Request, role: PeerRole) -> None:
    """Refused (403) without a role. Only for what does not tell whether something exists."""
    if role not in roles(request):
        raise RequestRefused(
            403,
            "role",
            f"user {peer_of(request).uid} may not do this here: it takes the role {role}",
            remedy="ask whoever keeps the daemon's settings, or join the group of the socket",
        )


def task_of(request: Request, *others: PeerRole) -> tuple[TaskRow, bool]:
    """The task that the path names, and whether it is the asker's own; the one 404 for everything else.

    `others` are the roles that reach tasks of other users too.
    """
    name = request.path_params["task"]
    peer, mine = peer_of(request), roles(request)
    whose = ANYBODY if mine & set(others) else peer.uid
    row = context_of(request).reads.find(name, whose) if TASK_ID.fullmatch(name) else None
    if row is None:
        raise nothing()
    return row, row.uid == peer.uid


def digest_of_path(request: Request) -> str:
    """The digest that the path names; the one 404 when it is none."""
    name: str = request.path_params["digest"]
    if not DIGEST.fullmatch(name):
        raise nothing()
    return name


def content_length(request: Request, most: int) -> int:
    """What the body's header says, refused before a byte of it is read where it is too much or not said."""
    if "transfer-encoding" in request.headers:
        raise RequestRefused(411, "length", "bodies come with Content-Length, not in chunks")
    text = request.headers.get("content-length", "")
    if not (text.isascii() and text.isdigit()):
        raise RequestRefused(411, "length", "Content-Length is missing")
    if len(text) > 15 or int(text) > most:
        raise RequestRefused(413, "large", f"the body is larger than {most} bytes")
    return int(text)


async def pieces(request: Request) -> AsyncIterator[bytes]:
    """The body as it comes."""
    try:
        async for piece in request.stream():
            yield piece
    except ClientDisconnect:
        raise RequestRefused(408, "gone", "the client went away in the middle of the body") from None


async def json_body(request: Request, most: int = MOST_JSON_BYTES) -> Any:
    """The body as JSON: bounded in size before it is read and in depth before it is parsed."""
    content_length(request, most)
    if request.headers.get("content-type", "").split(";")[0].strip().lower() != "application/json":
        raise RequestRefused(415, "media", "the body is JSON: Content-Type: application/json")
    data = b"".join([piece async for piece in pieces(request)])
    if depth_of(data) > MOST_DEPTH:
        raise UsageFault(f"the body is nested more than {MOST_DEPTH} deep")
    try:
        return load(data)
    except ValueError as fault:
        raise UsageFault(f"the body is not JSON: {fault}") from None


def depth_of(data: bytes) -> int:
    """How deep brackets are nested outside strings; JSON that is wrong may give any number."""
    depth = most = 0
    for one in _OUTSIDE.sub(b"", data):
        depth += 1 if one in b"[{" else -1
        most = max(most, depth)
    return most


async def threaded(act: Callable[..., _T], *args: Any) -> _T:
    """Something that may wait for the disk, away from the event loop."""
    return await asyncio.get_running_loop().run_in_executor(None, lambda: act(*args))
