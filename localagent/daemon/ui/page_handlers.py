"""Handlers for the web page: the queue, one task, the style sheet. They read, for whoever asks, what is theirs to see.

A page is put together in a thread with a connection of its own, one at a time, so that looks by others do not wait.
"""

from collections.abc import Awaitable, Callable
from functools import wraps

from starlette.requests import Request
from starlette.responses import Response

from localagent.daemon.http.peer_auth import PeerRole
from localagent.daemon.http.request_context import (
    RequestContext,
    context_of,
    peer_of,
    require,
    roles,
    task_of,
    threaded,
)
from localagent.daemon.http.responses import fault_answer
from localagent.daemon.store.task_store import ANYBODY, TaskRow
from localagent.daemon.ui.page_headers import HEADERS, ROOT, Renewal
from localagent.daemon.ui.pages import queue_page, task_page
from localagent.daemon.ui.queries import counts, story
from localagent.daemon.ui.style import STYLE
from localagent.errors import AnswerIsNo, LocalagentError, UsageFault
from localagent.protocol.task_order import TASK_ID
from localagent.report.html import render
from localagent.text.visible_text import shortened

PAGE = 50
QUEUE_SECONDS, TASK_SECONDS = 5, 3
_SEE = {PeerRole.READ_ALL, PeerRole.APPROVE}  # who may see that others have tasks; what came of them takes the first
Handler = Callable[[Request], Awaitable[Response]]


def _for_people(handler: Handler) -> Handler:
    """Refusals as a page, with their status, for whoever asks for HTML."""

    @wraps(handler)
    async def answer_page(request: Request) -> Response:
        try:
            return await handler(request)
        except (AnswerIsNo, UsageFault) as fault:
            if "text/html" not in request.headers.get("accept", ""):
                raise
            return _refusal(request, fault)

    return answer_page


def _refusal(request: Request, fault: LocalagentError) -> Response:
    plain = fault_answer(fault)
    keep = {name: plain.headers[name] for name in ("retry-after", "connection") if name in plain.headers}
    page = render("ui_refusal.html", title="localagent", root=ROOT, who=_who(request), renewal=None, fault=fault)
    return Response(page, plain.status_code, {**HEADERS, **keep}, "text/html; charset=utf-8")


def _who(request: Request) -> str:
    named = ", ".join(sorted(roles(request))) or "no roles"
    return f"{context_of(request).known.version} · user {peer_of(request).uid} ({named})"


def _query_parameters(request: Request, known: set[str]) -> dict[str, str]:
    asked = dict(request.query_params)
    if odd := sorted(set(asked) - known):
        raise UsageFault(f"unknown parameters: {shortened(', '.join(odd), 80)!r}")
    return asked


def _answer(page: bytes, seconds: int) -> Response:
    more = {"refresh": str(seconds)} if seconds else {}
    return Response(page, 200, {**HEADERS, **more}, "text/html; charset=utf-8")


@_for_people
async def ui_queue(request: Request) -> Response:
    """The queue as a web page."""
    asked = _query_parameters(request, {"before", "all", "still"})
    before, everybody = asked.get("before", ""), asked.get("all", "0") == "1"
    if before and not TASK_ID.fullmatch(before):
        raise UsageFault("before: the id of a task")
    if everybody and not roles(request) & _SEE:
        require(request, PeerRole.READ_ALL)
    desk, peer = context_of(request), peer_of(request)
    whose = ANYBODY if everybody else peer.uid
    seconds = 0 if before or asked.get("still") == "1" else QUEUE_SECONDS
    query = "&".join(x for x, asked_for in (("all=1", everybody), ("still=1", seconds)) if asked_for)
    renewal = None if before else Renewal(seconds=seconds, link=f"{ROOT}?{query}" if query else ROOT)

    def made() -> bytes:
        rows = desk.pages.page(whose, before=before, limit=PAGE)
        older = f"{ROOT}?{'all=1&' if everybody else ''}before={rows[-1].id}" if len(rows) == PAGE else ""
        return queue_page(
            rows,
            counts(desk.pages, whose),
            who=_who(request),
            uid=peer.uid,
            renewal=renewal,
            older=older,
            everybody=everybody,
        )

    return _answer(await _in_turn(desk, made), seconds)


@_for_people
async def ui_task(request: Request) -> Response:
    """One task as a web page: timeline, candidates, patch, evidence."""
    asked = _query_parameters(request, {"still"})
    row, _ = task_of(request, PeerRole.READ_ALL)
    desk, uid = context_of(request), peer_of(request).uid
    seconds = 0 if row.state.over or asked.get("still") == "1" else TASK_SECONDS
    here = f"{ROOT}tasks/{row.id}"
    renewal = None if row.state.over else Renewal(seconds=seconds, link=f"{here}?still=1" if seconds else here)

    def made() -> bytes:
        return _task(desk, row, who=_who(request), uid=uid, renewal=renewal)

    return _answer(await _in_turn(desk, made), seconds)


def _task(desk: RequestContext, row: TaskRow, *, who: str, uid: int, renewal: Renewal | None) -> bytes:
    return task_page(row, story(desk.pages, row.id), who=who, uid=uid, renewal=renewal)


async def _in_turn(desk: RequestContext, made: Callable[[], bytes]) -> bytes:
    async with desk.page_turn:
        return await threaded(made)


async def ui_style(request: Request) -> Response:
    """The style sheet of the web page."""
    del request
    return Response(STYLE, 200, {**HEADERS}, "text/css; charset=utf-8")
