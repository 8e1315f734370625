"""Every endpoint once: the routes and the OpenAPI document are both made of this table."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from localagent.daemon.http import approval_handlers, status_handlers, task_handlers
from localagent.daemon.http.openapi_schemas import SCHEMAS
from localagent.daemon.http.peer_auth import PeerRole
from localagent.daemon.http.request_context import (
    RequestContext,
    content_length,
    context_of,
    digest_of_path,
    json_body,
    peer_of,
    pieces,
    require,
    threaded,
)
from localagent.daemon.http.responses import HEADERS, answer, nothing
from localagent.daemon.store.blobs import BlobWriter
from localagent.daemon.ui import page_handlers
from localagent.errors import UsageFault
from localagent.protocol.snapshot_manifest import MAX_FILE_BYTES
from localagent.protocol.task_order import DIGEST

# Handlers for contents: whether somebody has uploaded them, which are missing, taking them.

MOST_ASKED = 10_000
_GATHER_BYTES = 1 << 20


async def has_blob(request: Request) -> Response:
    """Whether the asker has uploaded a content."""
    size = context_of(request).seen.size(peer_of(request).uid, digest_of_path(request))
    if size is None:
        raise nothing()
    return Response(None, 200, {**HEADERS, "x-size": str(size)})


async def missing_blobs(request: Request) -> Response:
    """Which of some contents the asker has not uploaded."""
    require(request, PeerRole.SUBMIT)
    found = await json_body(request)
    digests = found.get("digests") if isinstance(found, dict) and set(found) == {"digests"} else None
    if not isinstance(digests, list) or len(digests) > MOST_ASKED:
        raise UsageFault(f"an object with one list `digests` of at most {MOST_ASKED}")
    if not all(isinstance(digest, str) and DIGEST.fullmatch(digest) for digest in digests):
        raise UsageFault("digests: each is sha256:<64 hexadecimal digits>")
    desk = context_of(request)
    return answer({"missing": list(await threaded(desk.blobs.missing, peer_of(request).uid, digests))})


async def put_blob(request: Request) -> Response:
    """Take a content: 201, or 200 when the asker had uploaded it before. On the disk before it is answered."""
    require(request, PeerRole.SUBMIT)
    digest, desk, uid = digest_of_path(request), context_of(request), peer_of(request).uid
    size = content_length(request, MAX_FILE_BYTES)
    desk.require_disk_space()
    writer = await threaded(
        lambda: desk.blobs.writer(uid, digest, size, most_bytes=desk.configuration.quota.stored_bytes)
    )
    try:
        gathered = bytearray()
        async for piece in pieces(request):
            gathered += piece
            if len(gathered) >= _GATHER_BYTES:
                await threaded(writer.write, bytes(gathered))
                gathered.clear()
        new = await threaded(_keep, desk, uid, writer, bytes(gathered))
    finally:
        writer.abort()
    return answer({"digest": digest, "size": size}, status=201 if new else 200)


def _keep(desk: RequestContext, uid: int, writer: BlobWriter, rest: bytes) -> bool:
    writer.write(rest)
    return desk.blobs.keep(uid, writer)


Handler = Callable[[Request], Awaitable[Response]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Endpoint:
    """`answers` maps each status beside the general faults to what it means."""

    method: str
    path: str
    handler: Handler
    answers: dict[int, str]
    role: PeerRole | None = None
    body: str = ""
    media: str = "application/json"
    parameters: tuple[tuple[str, str, str], ...] = ()

    @property
    def summary(self) -> str:
        """The first sentence of the handler's docstring."""
        return (self.handler.__doc__ or "").split("\n")[0]


async def openapi(request: Request) -> Response:
    """This document."""
    return answer(request.app.state.openapi)


_WORD = {
    202: "not on the record yet",
    403: "one's own, or an account that the policy does not name",
    409: "another patch, or one that nobody may, or need, approve",
}
_OVER = {200: "as asked", 409: "not in that state"}
ENDPOINTS = (
    Endpoint(method="GET", path="/healthz", handler=status_handlers.health, answers={200: "alive"}),
    Endpoint(method="GET", path="/readyz", handler=status_handlers.readiness, answers={200: "ready", 503: "not ready"}),
    Endpoint(method="GET", path="/version", handler=status_handlers.version, answers={200: "as asked"}),
    Endpoint(
        method="GET",
        path="/metrics",
        handler=status_handlers.metrics,
        role=PeerRole.READ_ALL,
        media="text/plain",
        answers={200: "as asked"},
    ),
    Endpoint(method="GET", path="/v1/openapi.json", handler=openapi, answers={200: "as asked"}),
    Endpoint(method="GET", path="/v1/models", handler=status_handlers.models, answers={200: "as asked"}),
    Endpoint(
        method="GET",
        path="/v1/activity",
        handler=status_handlers.activity,
        parameters=(("query", "all", "1: everybody's, with the role read-all"),),
        answers={200: "as asked"},
    ),
    Endpoint(method="GET", path="/v1/policy", handler=status_handlers.policy, answers={200: "as asked"}),
    Endpoint(
        method="POST",
        path="/v1/blobs/missing",
        handler=missing_blobs,
        role=PeerRole.SUBMIT,
        body="Digests",
        answers={200: "as asked"},
    ),
    Endpoint(method="HEAD", path="/v1/blobs/{digest}", handler=has_blob, answers={200: "uploaded"}),
    Endpoint(
        method="PUT",
        path="/v1/blobs/{digest}",
        handler=put_blob,
        role=PeerRole.SUBMIT,
        body="bytes",
        answers={201: "kept", 200: "was kept before", 507: "no room"},
    ),
    Endpoint(
        method="POST",
        path="/v1/tasks",
        handler=task_handlers.submit,
        role=PeerRole.SUBMIT,
        body="Order",
        parameters=(("header", "Idempotency-Key", "the same key and order give the same task"),),
        answers={
            201: "accepted, and on the disk",
            200: "was accepted before, under this key",
            409: "contents of the snapshot are missing",
            422: "the key was used for another order",
            507: "no room",
        },
    ),
    Endpoint(
        method="GET",
        path="/v1/tasks",
        handler=task_handlers.listing,
        parameters=(
            ("query", "limit", "1 to 200"),
            ("query", "before", "the last id of the page before"),
            ("query", "all", "1: everybody's, with the role read-all or approve"),
        ),
        answers={200: "as asked"},
    ),
    Endpoint(method="GET", path="/v1/tasks/{task}", handler=task_handlers.look, answers={200: "as asked"}),
    Endpoint(
        method="GET",
        path="/v1/tasks/{task}/events",
        handler=task_handlers.events,
        media="text/event-stream",
        parameters=(("header", "Last-Event-ID", "go on after this event"),),
        answers={200: "`event` for each event, `end` with the task when it is over"},
    ),
    Endpoint(
        method="POST",
        path="/v1/tasks/{task}/cancel",
        handler=task_handlers.cancel,
        answers={202: "it ends soon", 200: "it is over"},
    ),
    Endpoint(
        method="POST",
        path="/v1/tasks/{task}/approve",
        handler=task_handlers.approve,
        role=PeerRole.APPROVE,
        answers={200: "in the queue", 202: "held until it is on the record", 409: "not held"},
    ),
    Endpoint(method="GET", path="/v1/tasks/{task}/report", handler=task_handlers.report, answers=_OVER),
    Endpoint(
        method="GET",
        path="/v1/tasks/{task}/patch",
        handler=task_handlers.patch,
        parameters=(("query", "format", "json or diff"),),
        answers=_OVER,
    ),
    Endpoint(method="GET", path="/v1/tasks/{task}/proposals", handler=task_handlers.proposals, answers=_OVER),
    Endpoint(method="GET", path="/v1/tasks/{task}/session", handler=task_handlers.session, answers=_OVER),
    Endpoint(
        method="GET",
        path="/v1/tasks/{task}/approvals",
        handler=approval_handlers.waiting_patches,
        answers={200: "as asked"},
    ),
    Endpoint(
        method="POST",
        path="/v1/tasks/{task}/approvals",
        handler=approval_handlers.approve_patch,
        role=PeerRole.APPROVE,
        body="Word",
        answers={**_WORD, 200: "it counts"},
    ),
    Endpoint(
        method="POST",
        path="/v1/tasks/{task}/approvals/withdraw",
        handler=approval_handlers.withdraw_patch,
        role=PeerRole.APPROVE,
        body="Word",
        answers={**_WORD, 200: "it counts no more"},
    ),
    Endpoint(
        method="GET",
        path="/v1/approvals",
        handler=approval_handlers.effective_approvals,
        parameters=(("query", "patch", "the diff's digest"), ("query", "change", "of what it makes of the files")),
        answers={200: "as asked"},
    ),
    Endpoint(
        method="GET",
        path="/ui/",
        handler=page_handlers.ui_queue,
        media="text/html",
        parameters=(
            ("query", "before", "the last id of the page before"),
            ("query", "all", "1: everybody's, with the role read-all or approve"),
            ("query", "still", "1: the page does not renew itself"),
        ),
        answers={200: "as asked"},
    ),
    Endpoint(
        method="GET",
        path="/ui/tasks/{task}",
        handler=page_handlers.ui_task,
        media="text/html",
        parameters=(("query", "still", "1: the page does not renew itself"),),
        answers={200: "as asked"},
    ),
    Endpoint(
        method="GET", path="/ui/style.css", handler=page_handlers.ui_style, media="text/css", answers={200: "as asked"}
    ),
)


def routes() -> list[Route]:
    """For starlette. Only the methods of the table: no HEAD beside GET."""
    made = []
    for endpoint in ENDPOINTS:
        route = Route(endpoint.path, endpoint.handler, methods=[endpoint.method])
        route.methods = {endpoint.method}
        made.append(route)
    return made


def document(version: str) -> dict[str, Any]:
    """OpenAPI 3.1."""
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in ENDPOINTS:
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = _operation(endpoint)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "localagent",
            "version": version,
            "description": "HTTP/1.1 over a Unix socket. Who asks is who connected; there are no tokens.",
        },
        "paths": paths,
        "components": {"schemas": SCHEMAS},
    }


def _operation(endpoint: Endpoint) -> dict[str, Any]:
    fault = {"application/json": {"schema": {"$ref": "#/components/schemas/Fault"}}}
    answers: dict[str, Any] = {}
    for status, text in endpoint.answers.items():
        content = {endpoint.media: {}} if status < 400 and endpoint.method != "HEAD" else fault
        answers[str(status)] = {"description": text, "content": content}
    answers["default"] = {"description": "a fault, one shape for all", "content": fault}
    made: dict[str, Any] = {
        "operationId": endpoint.handler.__name__,
        "summary": endpoint.summary,
        "responses": answers,
        "parameters": [
            {"in": "path", "name": name[1:-1], "required": True, "schema": {"type": "string"}}
            for name in endpoint.path.split("/")
            if name.startswith("{")
        ]
        + [
            {"in": place, "name": name, "description": text, "schema": {"type": "string"}}
            for place, name, text in endpoint.parameters
        ],
    }
    if endpoint.role is not None:
        made["x-role"] = endpoint.role.value
    if endpoint.body == "bytes":
        made["requestBody"] = {"required": True, "content": {"application/octet-stream": {}}}
    elif endpoint.body:
        schema = {"$ref": f"#/components/schemas/{endpoint.body}"}
        made["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
    return made
