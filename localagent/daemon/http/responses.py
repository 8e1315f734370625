"""Answers of the front: JSON, one shape for all faults, one 404 for what is not there and what is not yours."""

import math
from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from localagent.daemon.store.schema import StoreBusy, StoreFull
from localagent.daemon.store.task_store import KeyTaken, QuotaReached, TaskRow
from localagent.errors import AnswerIsNo, InternalFault, LocalagentError, UsageFault
from localagent.protocol.task_order import pack_order
from localagent.text.strict_json import dump

HEADERS = {"cache-control": "no-store", "x-content-type-options": "nosniff"}


class RequestRefused(AnswerIsNo):
    """An answer with a status of its own."""

    def __init__(self, status: int, kind: str, message: str, *, remedy: str = "", retry_seconds: float = 0) -> None:
        super().__init__(message, remedy=remedy)
        self.status, self.kind, self.retry_seconds = status, kind, retry_seconds


def nothing() -> RequestRefused:
    """The only answer to what is not there, is not the asker's, or is not even a name."""
    return RequestRefused(404, "not-found", "there is no such thing here, or it is not yours")


def answer(value: object, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """JSON."""
    return Response(dump(value), status, {**HEADERS, **(headers or {})}, "application/json")


def raw(data: bytes, media: str, *, headers: Mapping[str, str] | None = None) -> Response:
    """Bytes as they are."""
    return Response(data, 200, {**HEADERS, **(headers or {})}, media)


def fault_answer(fault: LocalagentError) -> Response:
    """A fault as status and JSON; what is our own doing keeps its details to itself."""
    status, kind, retry = _status(fault)
    faults = list(fault.faults) if isinstance(fault, UsageFault) else [str(fault)]
    if status == 500:
        faults = ["the daemon has a fault; its log says which"]
    headers = {"retry-after": str(max(1, math.ceil(retry)))} if retry else {}
    if status in (408, 411, 413, 414, 431):
        headers["connection"] = "close"  # what comes next on this connection may be the rest of what was refused
    body = {"error": {"kind": kind, "faults": faults, "remedy": "" if status == 500 else fault.remedy}}
    return answer(body, status=status, headers=headers)


def _status(fault: LocalagentError) -> tuple[int, str, float]:
    match fault:
        case RequestRefused():
            return fault.status, fault.kind, fault.retry_seconds
        case QuotaReached():
            return 429, "quota", fault.retry_seconds
        case StoreFull():
            return 507, "full", 60
        case StoreBusy():
            return 503, "busy", 1
        case KeyTaken():
            return 422, "key-taken", 0
        case UsageFault():
            return 400, "usage", 0
        case InternalFault():
            return 500, "internal", 0
        case AnswerIsNo():
            return 409, "no", 0
    return 500, "internal", 0


def task_json(row: TaskRow, *, owner: bool) -> dict[str, Any]:
    """A task as clients see it. Numbers that count everybody's tasks stay inside."""
    shown: dict[str, Any] = {
        "id": row.id,
        "state": row.state.value,
        "created_at": round(row.created_at, 3),
        "started_at": row.started_at and round(row.started_at, 3),
        "finished_at": row.finished_at and round(row.finished_at, 3),
        "attempts": row.attempts,
        "cancelling": row.cancel and not row.state.over,
        "exit": row.exit,
        "reason": row.reason,
        "confidence": row.confidence and dict(row.confidence),
        "order": pack_order(row.order),
    }
    return shown if owner else {**shown, "uid": row.uid}
