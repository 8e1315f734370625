"""Handlers for what the daemon says of itself: alive, ready, which version, models, policy, numbers."""

import time
from dataclasses import asdict
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from localagent.daemon.http.peer_auth import PeerRole
from localagent.daemon.http.request_context import RequestContext, context_of, peer_of, require, roles, threaded
from localagent.daemon.http.responses import answer, raw, task_json
from localagent.daemon.store.task_store import ANYBODY
from localagent.daemon.ui import queries
from localagent.errors import AnswerIsNo, UsageFault
from localagent.protocol.task_order import TaskState
from localagent.text.visible_text import shortened

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)


async def health(request: Request) -> Response:
    """The front answers."""
    del request
    return answer({"ok": True})


async def readiness(request: Request) -> Response:
    """Whether new tasks are taken."""
    desk = context_of(request)
    try:
        desk.require_disk_space()
        desk.reads.version()
    except AnswerIsNo as no:
        return answer({"ready": False, "why": str(no)}, status=503)
    return answer({"ready": True})


async def version(request: Request) -> Response:
    """Which localagent this is, who asks, and what they may do."""
    desk = context_of(request)
    return answer(
        {
            "version": desk.known.version,
            "api": 1,
            "uid": peer_of(request).uid,
            "roles": sorted(roles(request)),
            "network_denied": desk.known.network_denied,
        }
    )


async def models(request: Request) -> Response:
    """The models an order may name; `chat_models` are those for instructions, the first where none is named."""
    desk = context_of(request)
    chat = [{"name": one.name, "max_tokens": one.max_tokens} for one in desk.configuration.chat_models]
    return answer({"models": list(desk.known.models), "chat_models": chat})


async def activity(request: Request) -> Response:
    """What goes on: tasks by state, what runs and how fast, the asker's own or, with the role, everybody's."""
    asked = dict(request.query_params)
    if odd := sorted(set(asked) - {"all"}):
        raise UsageFault(f"unknown parameters: {shortened(', '.join(odd), 80)!r}")
    everybody = asked.get("all", "0") == "1"
    if everybody:
        require(request, PeerRole.READ_ALL)
    desk, uid = context_of(request), peer_of(request).uid
    async with desk.page_turn:
        return answer(await threaded(_activity, desk, uid, ANYBODY if everybody else uid))


def _activity(desk: RequestContext, uid: int, whose: int) -> dict[str, Any]:
    running = []
    for name in queries.running(desk.pages, whose):
        row = desk.pages.find(name, whose)
        if row is not None and row.state is TaskState.RUNNING:
            pace = asdict(queries.pace(desk.pages, name))
            running.append({**task_json(row, owner=row.uid == uid), "pace": pace})
    return {
        "at": round(time.time(), 3),
        "everybody": whose == ANYBODY,
        "tasks": queries.counts(desk.pages, whose),
        "running": running,
        "workers": desk.configuration.workers,
        "models": [m["name"] for m in desk.known.models if m["installed"] and m["default"]],
    }


async def policy(request: Request) -> Response:
    """The policy that every task of this daemon is under, and the limits."""
    desk = context_of(request)
    limits = desk.configuration
    return answer(
        {
            **desk.known.policy,
            "limits": {
                "task_seconds": limits.task_seconds,
                "jobs": limits.jobs,
                "open_tasks": limits.quota.open_tasks,
                "stored_bytes": limits.quota.stored_bytes,
                "seconds_a_day": limits.quota.seconds_a_day,
                "held_until_approved": limits.hold,
            },
            "interpreters": [name for name, _ in limits.interpreters],
        }
    )


async def metrics(request: Request) -> Response:
    """Numbers over everybody, as Prometheus reads them: for those who may read all."""
    require(request, PeerRole.READ_ALL)
    return raw(_prometheus(context_of(request)).encode(), "text/plain; version=0.0.4")


def _prometheus(desk: RequestContext) -> str:
    counts = desk.reads.counts()
    lines = ["# TYPE localagent_tasks gauge"]
    lines += [f'localagent_tasks{{state="{state}"}} {counts[state]}' for state in TaskState]
    lines += ["# TYPE localagent_requests_total counter"]
    lines += [
        f'localagent_requests_total{{route="{r}",status="{s}"}} {n}' for (r, s), n in sorted(desk.requests.items())
    ]
    lines += ["# TYPE localagent_request_seconds histogram"]
    for route, seconds in sorted(desk.seconds.items()):
        total = 0.0
        for bucket, count in zip((*BUCKETS, "+Inf"), seconds[: len(BUCKETS) + 1], strict=True):
            total += count
            lines.append(f'localagent_request_seconds_bucket{{route="{route}",le="{bucket}"}} {total:.0f}')
        lines.append(f'localagent_request_seconds_sum{{route="{route}"}} {seconds[-1]:.6f}')
        lines.append(f'localagent_request_seconds_count{{route="{route}"}} {total:.0f}')
    refused = desk.door.refused
    lines += ["# TYPE localagent_refused_total counter"]
    lines += [f'localagent_refused_total{{why="{why}"}} {refused[why]}' for why in ("connections", "rate", "slow")]
    gauges = {
        "connections": desk.door.connections.total(),
        "followers": desk.watch.followers,
        "free_bytes": desk.free_bytes(),
        "workers_allowed": desk.configuration.workers,
        "up_seconds": round(time.time() - desk.started_at, 1),
    }
    for name, value in gauges.items():
        lines += [f"# TYPE localagent_{name} gauge", f"localagent_{name} {value}"]
    return "\n".join(lines) + "\n"


def measured(desk: RequestContext, route: str, status: int, seconds: float) -> None:
    """Count one request."""
    desk.requests[route, status] += 1
    row = desk.seconds.setdefault(route, [0.0] * (len(BUCKETS) + 2))
    place = next((n for n, bucket in enumerate(BUCKETS) if seconds <= bucket), len(BUCKETS))
    row[place] += 1
    row[-1] += seconds
