"""Handlers for tasks: submit, list, look, follow, cancel, approve, fetch what came of them."""

import asyncio
from collections.abc import AsyncIterator

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from localagent.daemon.http.peer_auth import PeerRole
from localagent.daemon.http.request_context import (
    RequestContext,
    context_of,
    json_body,
    peer_of,
    require,
    roles,
    task_of,
    threaded,
)
from localagent.daemon.http.responses import HEADERS, RequestRefused, answer, nothing, raw, task_json
from localagent.daemon.store.task_store import ANYBODY, Result, StoredEvent, TaskRow
from localagent.errors import UsageFault
from localagent.protocol.snapshot_manifest import manifest_of
from localagent.protocol.task_order import IDEMPOTENCY_KEY, TASK_ID, TaskOrder, TaskState, order_of
from localagent.recipes.instruction import RECIPES, recipe_of
from localagent.text.strict_json import dump, load
from localagent.text.visible_text import shortened

MOST_ORDER_BYTES = 1 << 20
MOST_PAGE = 200
KEEP_ALIVE_SECONDS = 15.0
RECORD_SECONDS = 5.0  # until an approval that is not on the record is answered all the same


async def submit(request: Request) -> Response:
    """Take a task; 201, or 200 for a key that was used for the same order. On the disk before it is answered."""
    require(request, PeerRole.SUBMIT)
    desk = context_of(request)
    key = request.headers.get("idempotency-key", "")
    if key and not IDEMPOTENCY_KEY.fullmatch(key):
        raise UsageFault("Idempotency-Key: 1 to 128 visible ASCII characters")
    order = order_of(await json_body(request, MOST_ORDER_BYTES))
    desk.require_disk_space()
    row, new = await threaded(_submit, desk, peer_of(request).uid, order, key)
    location = {"location": f"/v1/tasks/{row.id}"}
    return answer(task_json(row, owner=True), status=201 if new else 200, headers=location)


def _submit(desk: RequestContext, uid: int, order: TaskOrder, key: str) -> tuple[TaskRow, bool]:
    configuration = desk.configuration
    faults = []
    if order.max_seconds > configuration.task_seconds:
        faults.append(f"max_seconds: at most {configuration.task_seconds:.0f} here")
    if order.python and order.python not in dict(configuration.interpreters):
        faults.append(f"python: no interpreter {order.python!r} here")
    faults += _model_faults(desk, order)
    if faults:
        raise UsageFault(faults)
    if missing := desk.blobs.missing(uid, [order.snapshot]):
        raise RequestRefused(
            409, "missing", f"not uploaded: {missing[0]}", remedy="upload the manifest, then order again"
        )
    manifest = manifest_of(desk.blobs.read(uid, order.snapshot))
    if manifest.total_bytes > configuration.quota.stored_bytes:
        raise UsageFault(f"the snapshot holds more than {configuration.quota.stored_bytes:,} bytes when laid out")
    desk.blobs.require_quota(uid, 0, configuration.quota.stored_bytes)
    desk.blobs.missing(uid, manifest.contents)  # counts as used from now on
    if lacking := desk.blobs.sizes(uid, manifest.contents):
        raise RequestRefused(
            409, "missing", f"{len(lacking)} contents of the snapshot were not uploaded, or with another size"
        )
    return desk.writes.submit(
        uid,
        order,
        key=key,
        state=TaskState.HELD if configuration.hold else TaskState.QUEUED,
        most_open=configuration.quota.open_tasks,
        day_seconds=configuration.quota.seconds_a_day,
    )


def _model_faults(desk: RequestContext, order: TaskOrder) -> list[str]:
    """What is wrong with the model of an order. RequestRefused for an instruction that nobody here can carry out."""
    if not order.instruction:
        known = not order.model or order.model in {model["name"] for model in desk.known.models}
        return [] if known else [f"model: no model {order.model!r} here; /v1/models names them"]
    model = desk.configuration.chat_model(order.model) if order.use_model else None
    if order.model and model is None:
        return [f"model: no chat model {order.model!r} here; /v1/models names them"]
    if model is None and recipe_of(order.instruction) is None:
        raise RequestRefused(
            409,
            "no-model",
            f"no model that writes is asked or configured here, and this is none of the instructions that need no "
            f"model: {'; '.join(RECIPES)}",
            remedy="say it in one of these ways; or ask whoever keeps the daemon for a [[chat_model]]",
        )
    return []


async def listing(request: Request) -> Response:
    """The asker's tasks, newest first; everybody's with `all=1` and the role."""
    asked = request.query_params
    if odd := sorted(set(asked) - {"limit", "before", "all"}):
        raise UsageFault(f"unknown parameters: {shortened(', '.join(odd), 80)!r}")
    limit, before = asked.get("limit", "50"), asked.get("before", "")
    if not (limit.isascii() and limit.isdigit() and len(limit) < 4 and 1 <= int(limit) <= MOST_PAGE):
        raise UsageFault(f"limit: 1 to {MOST_PAGE}")
    if before and not TASK_ID.fullmatch(before):
        raise UsageFault("before: the id of a task")
    everybody = asked.get("all", "0") == "1"
    if everybody and not roles(request) & {PeerRole.READ_ALL, PeerRole.APPROVE}:
        require(request, PeerRole.READ_ALL)
    uid = peer_of(request).uid
    rows = context_of(request).reads.page(ANYBODY if everybody else uid, before=before, limit=int(limit))
    shown = [task_json(row, owner=row.uid == uid) for row in rows]
    return answer({"tasks": shown, "next": shown[-1]["id"] if len(shown) == int(limit) else None})


async def look(request: Request) -> Response:
    """One task."""
    row, owner = task_of(request, PeerRole.READ_ALL, PeerRole.APPROVE)
    return answer(task_json(row, owner=owner))


async def cancel(request: Request) -> Response:
    """Ask that a task ends: 202 while it runs, 200 when it is over."""
    row, owner = task_of(request, PeerRole.ADMIN)
    desk = context_of(request)
    await threaded(desk.writes.cancel, row.id)
    now = desk.reads.find(row.id, ANYBODY)
    if now is None:
        raise nothing()
    return answer(task_json(now, owner=owner), status=200 if now.state.over else 202)


async def approve(request: Request) -> Response:
    """Let a task run that is held: 200 once that is on the record, 202 while the recorder is waited for."""
    row, owner = task_of(request, PeerRole.APPROVE)
    require(request, PeerRole.APPROVE)
    if owner:
        raise RequestRefused(403, "own", "nobody approves a task of their own")
    if not await threaded(context_of(request).writes.approve, row.id, peer_of(request).uid):
        held = row.state is TaskState.HELD
        why = "the task was approved already, or cancelled" if held else f"the task is {row.state}, not held"
        raise RequestRefused(409, "state", why)
    until = asyncio.get_running_loop().time() + RECORD_SECONDS
    while (now := context_of(request).reads.find(row.id, ANYBODY)) is not None and now.state is TaskState.HELD:
        if asyncio.get_running_loop().time() > until:
            break
        await asyncio.sleep(0.05)
    if now is None:
        raise nothing()
    return answer(task_json(now, owner=owner), status=202 if now.state is TaskState.HELD else 200)


async def report(request: Request) -> Response:
    """The report of a task that is done."""
    return raw((await _result(request)).report, "application/json")


async def patch(request: Request) -> Response:
    """The accepted patch: as JSON with both sides of every file, or with `format=diff` as a unified diff."""
    result = await _result(request)
    if result.patch is None:
        raise RequestRefused(404, "no-patch", "the task has no accepted patch; its report says why")
    form = request.query_params.get("format", "json")
    if form == "diff":
        text = str(load(result.report).get("patch") or "")
        return raw(text.encode("utf-8", "surrogateescape"), "text/x-diff")
    if form != "json":
        raise UsageFault("format: json or diff")
    return raw(result.patch, "application/json")


async def proposals(request: Request) -> Response:
    """The patches among which a person has to choose; an empty list mostly."""
    return raw((await _result(request)).proposals, "application/json")


async def session(request: Request) -> Response:
    """What an instruction's model said and what was done, event by event; refused for a task that was a repair."""
    found = (await _result(request)).session
    if found is None:
        raise RequestRefused(404, "no-session", "no session was kept: the task is a repair, or it was too long")
    return raw(found, "application/json")


async def _result(request: Request) -> Result:
    row, _ = task_of(request, PeerRole.READ_ALL)
    result = context_of(request).reads.result(row.id)
    if result is None:
        raise RequestRefused(409, "state", f"the task is {row.state}: there is no report")
    return result


async def events(request: Request) -> Response:
    """What happens, as it happens: server-sent events, from after Last-Event-ID on, until the task is over."""
    row, _ = task_of(request, PeerRole.READ_ALL)
    last = request.headers.get("last-event-id", "0")
    if not (last.isascii() and last.isdigit() and len(last) < 10):
        raise UsageFault("Last-Event-ID: the number of an event")
    return StreamingResponse(_stream(context_of(request), row.id, int(last)), 200, HEADERS, "text/event-stream")


async def _stream(desk: RequestContext, task: str, after: int) -> AsyncIterator[bytes]:
    desk.watch.follow(task)
    try:
        while not desk.watch.ending.is_set():
            changed = desk.watch.change(task)
            row = desk.reads.find(task, ANYBODY)  # before the events, so that an end comes after all of them
            found = desk.reads.events(task, after=after)
            for event in found:
                after = event.seq
                yield _framed(event)
            if row is None:
                return
            if row.state.over and not found:
                yield _end_event(row)
                return
            if not found:
                try:
                    await asyncio.wait_for(changed.wait(), KEEP_ALIVE_SECONDS)
                except TimeoutError:
                    yield b": still here\n\n"
    finally:
        desk.watch.leave(task)


def _framed(event: StoredEvent) -> bytes:
    """Data is ASCII JSON on one line, and kinds are our own words: neither can hold a line break."""
    data = f'{{"kind":{dump(event.kind).decode().strip()},"at_seconds":{event.at},"data":{event.data}}}'
    return f"id: {event.seq}\nevent: event\ndata: {data}\n\n".encode()


def _end_event(row: TaskRow) -> bytes:
    return b"event: end\ndata: " + dump(task_json(row, owner=True)).strip() + b"\n\n"
