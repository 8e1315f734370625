"""Who works on which task: a lease is taken, kept, settled. Acceptance happens under the lease, once, or not at all.

A worker that lost its lease (its daemon was killed, another took over) can write nothing any more: every statement of
its asks for the lease's token in the same transaction.
"""

import secrets
import sqlite3
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from localagent.daemon.store.approval_store import ReviewedPatch, keep_judged
from localagent.daemon.store.task_store import Result, Rows, today
from localagent.domain.task import Event
from localagent.errors import AnswerIsNo
from localagent.protocol.task_order import TaskState
from localagent.text.strict_json import dump

MOST_ATTEMPTS = 2
MOST_INTERRUPTIONS = 1000  # how often a daemon may be killed over one task until it is given up
MOST_EVENT_BYTES = 64 << 10
MOST_EVENTS = 20_000
_FAIR = """
    SELECT id FROM tasks AS t JOIN users AS u USING (uid) WHERE state = 'queued'
    ORDER BY (SELECT count(*) FROM tasks AS r WHERE r.uid = t.uid AND r.state = 'running'),
             u.served_at, u.uid, t.priority DESC, t.seq
    LIMIT 1
"""


class LeaseLost(AnswerIsNo):
    """Somebody else answers for the task now: nothing was written."""


class LeaseEnded(StrEnum):
    """Why a worker gave back a task without an answer."""

    DIED = "died"  # by itself: counts as an attempt
    STOPPED = "stopped"  # because the daemon ends: does not count
    CANCELLED = "cancelled"


@dataclass(frozen=True, kw_only=True, slots=True)
class Lease:
    """The right to answer for a task. `attempt` counts from 1."""

    task: str
    token: str
    uid: int
    attempt: int


@dataclass(frozen=True, kw_only=True, slots=True)
class LeaseApproval:
    """A held task that somebody approved, which is not on the record yet."""

    task: str
    uid: int
    by: int


def approvals(rows: Rows) -> tuple[LeaseApproval, ...]:
    """Approvals that were taken and keep their tasks held until they are on the record."""
    with rows.reading() as database:
        found = database.execute(
            "SELECT id, uid, approved_by FROM tasks WHERE state = 'held' AND approved_by IS NOT NULL ORDER BY seq"
        ).fetchall()
        return tuple(LeaseApproval(task=x["id"], uid=x["uid"], by=x["approved_by"]) for x in found)


def release(rows: Rows, approval: LeaseApproval) -> None:
    """Let an approved task into the queue; one that was cancelled meanwhile stays that."""
    with rows.writing() as database:
        database.execute(
            "UPDATE tasks SET state = 'queued' WHERE id = ? AND state = 'held' AND approved_by = ?",
            (approval.task, approval.by),
        )


def waiting(rows: Rows) -> bool:
    """Whether any task is queued."""
    with rows.reading() as database:
        return database.execute("SELECT 1 FROM tasks WHERE state = 'queued' LIMIT 1").fetchone() is not None


def take(rows: Rows) -> Lease | None:
    """The next task, fairly: of whom least runs, then who was served longest ago; within a user by priority and age."""
    if not waiting(rows):
        return None
    with rows.writing() as database:
        found = database.execute(_FAIR).fetchone()
        if found is None:
            return None
        task, token, now = str(found["id"]), secrets.token_hex(16), time.time()
        database.execute(
            "UPDATE tasks SET state = 'running', started_at = ?, attempts = attempts + 1 WHERE id = ?", (now, task)
        )
        database.execute("INSERT INTO leases VALUES (?, ?, ?)", (task, token, now))
        row = database.execute("SELECT uid, attempts FROM tasks WHERE id = ?", (task,)).fetchone()
        database.execute("UPDATE users SET served_at = ? WHERE uid = ?", (now, row["uid"]))
        return Lease(task=task, token=token, uid=row["uid"], attempt=row["attempts"])


def append(rows: Rows, lease: Lease, events: Sequence[Event]) -> None:
    """Keep events of the work; LeaseLost when it is not ours any more. Past a bound a task's events are not kept."""
    with rows.writing() as database:
        _require_lease(database, lease)
        _append(database, lease.task, events)


def finish(
    rows: Rows,
    lease: Lease,
    result: Result,
    *,
    answer: int,
    reason: str,
    judged: Sequence[ReviewedPatch] = (),
    confidence: Mapping[str, Any] | None = None,
) -> None:
    """The task's answer, once: LeaseLost, and nothing written, when the lease is gone.

    `confidence` is that of its patch or likeliest proposal.
    """
    with rows.writing() as database:
        _require_lease(database, lease)
        database.execute(
            "INSERT INTO results VALUES (?, ?, ?, ?, ?)",
            (lease.task, result.report, result.patch, result.proposals, result.session),
        )
        keep_judged(database, lease.task, judged)
        if confidence is not None:
            database.execute("UPDATE tasks SET confidence = ? WHERE id = ?", (dump(confidence).decode(), lease.task))
        _end(database, lease.task, TaskState.DONE, answer, reason)


def settle(rows: Rows, lease: Lease, how: LeaseEnded, why: str) -> TaskState | None:
    """What becomes of a task whose worker is gone; None when it had been answered, or is somebody else's now."""
    with rows.writing() as database:
        if database.execute(_HELD, (lease.task, lease.token)).fetchone() is None:
            return None
        return _given_back(database, lease.task, how, why)


def reclaim(rows: Rows) -> int:
    """Take back every lease of daemons before this one; how many. Only the holder of the folder's lock calls this."""
    with rows.writing() as database:
        held = [x["task"] for x in database.execute("SELECT task FROM leases").fetchall()]
        held += [
            x["id"]
            for x in database.execute(
                "SELECT id FROM tasks WHERE state = 'running' AND id NOT IN (SELECT task FROM leases)"
            ).fetchall()
        ]
        for task in held:
            _given_back(database, task, LeaseEnded.STOPPED, "the daemon ended while it ran")
        return len(held)


def cancelled(rows: Rows) -> frozenset[str]:
    """The running tasks that somebody wants ended."""
    with rows.reading() as database:
        return frozenset(
            x["id"] for x in database.execute("SELECT id FROM tasks WHERE state = 'running' AND cancel = 1").fetchall()
        )


_HELD = "SELECT since FROM leases WHERE task = ? AND token = ?"


def _require_lease(database: sqlite3.Connection, lease: Lease) -> None:
    if database.execute(_HELD, (lease.task, lease.token)).fetchone() is None:
        raise LeaseLost(f"task {lease.task} is not this worker's any more")


def _append(database: sqlite3.Connection, task: str, events: Sequence[Event]) -> None:
    last = database.execute("SELECT coalesce(max(seq), 0) FROM events WHERE task = ?", (task,)).fetchone()[0]
    for number, event in enumerate(events, last + 1):
        if number > MOST_EVENTS and event.kind not in ("stage", "attempt"):
            return
        data = dump(event.data)
        if len(data) > MOST_EVENT_BYTES:
            data = dump({"left_out": f"{len(data)} bytes"})
        database.execute(
            "INSERT INTO events VALUES (?, ?, ?, ?, ?)",
            (task, number, round(event.at_seconds, 6), event.kind, data.decode().rstrip("\n")),
        )


def _given_back(database: sqlite3.Connection, task: str, how: LeaseEnded, why: str) -> TaskState:
    row = database.execute("SELECT attempts, interruptions, cancel FROM tasks WHERE id = ?", (task,)).fetchone()
    if how is LeaseEnded.CANCELLED or row["cancel"]:
        return _end(database, task, TaskState.CANCELLED, 130, "cancelled while it ran; nothing was accepted")
    if how is LeaseEnded.STOPPED:
        spent = row["interruptions"] + 1 >= MOST_INTERRUPTIONS
        counted = "attempts = attempts - 1, interruptions = interruptions + 1"
    else:
        spent = row["attempts"] >= MOST_ATTEMPTS
        counted = "interruptions = interruptions"
    if spent:
        return _end(database, task, TaskState.FAILED, 3, f"{why}; it was tried {row['attempts']} times")
    if how is LeaseEnded.DIED:
        _charge(database, task)
    _append(database, task, (Event(kind="attempt", at_seconds=0.0, data={"again": True, "why": why}),))
    database.execute(f"UPDATE tasks SET state = 'queued', {counted} WHERE id = ?", (task,))  # noqa: S608 - constants
    database.execute("DELETE FROM leases WHERE task = ?", (task,))
    return TaskState.QUEUED


def _end(database: sqlite3.Connection, task: str, state: TaskState, answer: int, reason: str) -> TaskState:
    _charge(database, task)
    database.execute(
        "UPDATE tasks SET state = ?, finished_at = ?, exit = ?, reason = ? WHERE id = ?",
        (state.value, time.time(), answer, reason[:4096], task),
    )
    database.execute("DELETE FROM leases WHERE task = ?", (task,))
    return state


def _charge(database: sqlite3.Connection, task: str) -> None:
    """The seconds since the task was leased count for its user's day; what a daemon's end cost does not."""
    row = database.execute(
        "SELECT uid, since FROM tasks JOIN leases ON leases.task = tasks.id WHERE id = ?", (task,)
    ).fetchone()
    if row is not None:
        spent = max(0.0, time.time() - row["since"])
        database.execute(
            "INSERT INTO usage VALUES (?, ?, ?)"
            " ON CONFLICT (uid, day) DO UPDATE SET seconds = seconds + excluded.seconds",
            (row["uid"], today(), spent),
        )
