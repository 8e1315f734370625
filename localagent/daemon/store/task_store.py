"""The daemon's store: users, their tasks, events and results, in one database. Every change is one transaction.

Whoever asks says as whom: what is not theirs is not found, by the same statement as what is not there.
"""

import json
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

from localagent.daemon.store.schema import connect, translated
from localagent.domain.edit import digest_of
from localagent.errors import AnswerIsNo, InternalFault
from localagent.protocol.task_order import TaskOrder, TaskState, order_of, pack_order
from localagent.record.store import new_task_id
from localagent.text.strict_json import dump

_MOST_REMEMBERED = 4096  # characters of an order that is kept in memory, parsed
ANYBODY = -1  # whose task it is does not matter: for the daemon's own doings, and for those who may read all


class QuotaReached(AnswerIsNo):
    """A user has as much as one may have; `retry_seconds` is when to ask again."""

    def __init__(self, message: str, *, remedy: str, retry_seconds: int) -> None:
        super().__init__(message, remedy=remedy)
        self.retry_seconds = retry_seconds


class KeyTaken(AnswerIsNo):
    """The idempotency key was used for another order."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskRow:
    """One task as it is kept. Times are seconds since the epoch, None while there is none.

    `confidence`: of its patch or likeliest proposal, None where there is none, or nothing is known.
    """

    seq: int
    id: str
    uid: int
    state: TaskState
    order: TaskOrder
    created_at: float
    started_at: float | None
    finished_at: float | None
    attempts: int
    interruptions: int
    cancel: bool
    exit: int | None
    reason: str
    confidence: Mapping[str, Any] | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredEvent:
    """One event of a task; `seq` counts from 1 without gaps."""

    seq: int
    at: float
    kind: str
    data: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Result:
    """What a finished task left, as JSON bytes. `session`: the events of an instruction, None for a repair."""

    report: bytes
    patch: bytes | None
    proposals: bytes
    session: bytes | None = None


class Rows:
    """One process's door to the database. Safe to use from several threads."""

    def __init__(self, folder: Path) -> None:
        self._database = connect(folder)
        self._lock = threading.RLock()

    def close(self) -> None:
        """No more use after this."""
        with self._lock:
            self._database.close()

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """The connection, for statements that change nothing."""
        with self._lock:
            try:
                yield self._database
            except sqlite3.Error as fault:
                raise _answer(fault) from fault

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction that is committed, and synced, at the end; rolled back on any exception."""
        with self._lock:
            try:
                self._database.execute("BEGIN IMMEDIATE")
                try:
                    yield self._database
                    self._database.execute("COMMIT")
                except BaseException:
                    if self._database.in_transaction:
                        self._database.execute("ROLLBACK")
                    raise
            except sqlite3.Error as fault:
                raise _answer(fault) from fault

    def version(self) -> int:
        """A number that changes when another connection has written."""
        with self.reading() as database:
            return int(database.execute("PRAGMA data_version").fetchone()[0])

    def submit(
        self, uid: int, order: TaskOrder, *, key: str, state: TaskState, most_open: int, day_seconds: float
    ) -> tuple[TaskRow, bool]:
        """A new task, and True; or, for a key that was used for the same order, the task of then, and False."""
        text = dump(pack_order(order)).decode()
        digest = digest_of(text.encode())
        with self.writing() as database:
            database.execute("INSERT OR IGNORE INTO users (uid) VALUES (?)", (uid,))
            if key:
                found = database.execute(
                    "SELECT digest, task FROM idempotency WHERE uid = ? AND key = ?", (uid, key)
                ).fetchone()
                if found is not None:
                    if found["digest"] != digest:
                        raise KeyTaken("this Idempotency-Key was used for another order", remedy="use a new key")
                    return self._one(database, found["task"], uid), False
            self._refuse_more(database, uid, most_open, day_seconds)
            task = new_task_id()
            database.execute(
                "INSERT INTO tasks (id, uid, state, priority, task_order, created_at) VALUES (?, ?, ?, ?, ?, ?)",
                (task, uid, state.value, order.priority, text, time.time()),
            )
            if key:
                database.execute("INSERT INTO idempotency VALUES (?, ?, ?, ?)", (uid, key, digest, task))
            return self._one(database, task, uid), True

    @staticmethod
    def _refuse_more(database: sqlite3.Connection, uid: int, most_open: int, day_seconds: float) -> None:
        count = database.execute(
            "SELECT count(*) FROM tasks WHERE uid = ? AND state IN ('held', 'queued', 'running')", (uid,)
        ).fetchone()[0]
        if count >= most_open:
            raise QuotaReached(
                f"you have {count} open tasks, and {most_open} are allowed",
                remedy="wait for one to end, or cancel one",
                retry_seconds=10,
            )
        spent = database.execute("SELECT seconds FROM usage WHERE uid = ? AND day = ?", (uid, today())).fetchone()
        if spent is not None and spent[0] >= day_seconds:
            raise QuotaReached(
                f"your tasks took {spent[0]:.0f} s today, and {day_seconds:.0f} s a day are allowed",
                remedy="try again tomorrow (UTC), or ask for a larger quota",
                retry_seconds=seconds_to_midnight(),
            )

    @staticmethod
    def _one(database: sqlite3.Connection, task: str, uid: int) -> TaskRow:
        found = database.execute(_FIND, (task, uid, uid)).fetchone()
        if found is None:
            raise InternalFault(f"task {task} went away")
        return _row(found)

    def find(self, task: str, uid: int) -> TaskRow | None:
        """A user's task (anybody's for ANYBODY), None when there is none."""
        with self.reading() as database:
            found = database.execute(_FIND, (task, uid, uid)).fetchone()
            return None if found is None else _row(found)

    def page(self, uid: int, *, before: str, limit: int) -> tuple[TaskRow, ...]:
        """A user's tasks (everybody's for ANYBODY), newest first, those older than task `before` ("": all)."""
        with self.reading() as database:
            last = database.execute(_FIND, (before, uid, uid)).fetchone()
            if last is None and before:
                return ()
            seq = last["seq"] if last is not None else 2**62
            found = database.execute(
                f"SELECT {_COLUMNS} FROM tasks WHERE (uid = ? OR ? = -1) AND seq < ? ORDER BY seq DESC LIMIT ?",  # noqa: S608
                (uid, uid, seq, limit),
            ).fetchall()
            return tuple(map(_row, found))

    def cancel(self, task: str) -> TaskState:
        """Ask that a task ends; its state now: what waits is cancelled at once, what runs soon."""
        with self.writing() as database:
            database.execute(
                "UPDATE tasks SET state = 'cancelled', finished_at = ?, reason = 'cancelled before it ran', cancel = 1"
                " WHERE id = ? AND state IN ('held', 'queued')",
                (time.time(), task),
            )
            database.execute("UPDATE tasks SET cancel = 1 WHERE id = ? AND state = 'running'", (task,))
            found = database.execute("SELECT state FROM tasks WHERE id = ?", (task,)).fetchone()
            return TaskState(found[0])

    def approve(self, task: str, approver: int) -> bool:
        """Take an approval of a held task; False when it is not held, or was approved. Nobody approves one of theirs.

        It stays held until the approval is on the record: `leases.release` lets it into the queue.
        """
        with self.writing() as database:
            done = database.execute(
                "UPDATE tasks SET approved_by = ? WHERE id = ? AND state = 'held' AND uid <> ? AND approved_by IS NULL",
                (approver, task, approver),
            )
            return done.rowcount == 1

    def events(self, task: str, *, after: int, limit: int = 200) -> tuple[StoredEvent, ...]:
        """A task's events after a sequence number, in order."""
        with self.reading() as database:
            found = database.execute(
                "SELECT seq, at, kind, data FROM events WHERE task = ? AND seq > ? ORDER BY seq LIMIT ?",
                (task, after, limit),
            ).fetchall()
            return tuple(StoredEvent(seq=x["seq"], at=x["at"], kind=x["kind"], data=x["data"]) for x in found)

    def last_event(self, task: str) -> int:
        """The sequence number of a task's last event, 0 when there is none."""
        with self.reading() as database:
            found = database.execute("SELECT coalesce(max(seq), 0) FROM events WHERE task = ?", (task,)).fetchone()
            return int(found[0])

    def result(self, task: str) -> Result | None:
        """What a task left, None when it is not done."""
        with self.reading() as database:
            x = database.execute("SELECT * FROM results WHERE task = ?", (task,)).fetchone()
            names = ("report", "patch", "proposals", "session")
            return None if x is None else Result(**{name: x[name] for name in names})

    def counts(self) -> dict[str, int]:
        """Tasks by state, over everybody."""
        with self.reading() as database:
            found = dict(database.execute("SELECT state, count(*) FROM tasks GROUP BY state").fetchall())
        return {state.value: found.get(state.value, 0) for state in TaskState}


def retrying(act: Callable[[], None], faults: Sequence[type[AnswerIsNo]], *, seconds: float) -> None:
    """Do what must not be lost while there is no room for it: again and again, then once more and for good."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            return act()
        except AnswerIsNo as no:
            if not isinstance(no, tuple(faults)):
                raise
            time.sleep(0.5)
    return act()


def today() -> str:
    """The day that quotas count, UTC."""
    return f"{datetime.now(UTC):%Y-%m-%d}"


def seconds_to_midnight() -> int:
    """Until quotas count anew, UTC."""
    now = datetime.now(UTC)
    return 86400 - (now.hour * 3600 + now.minute * 60 + now.second)


_COLUMNS = (
    "seq, id, uid, state, task_order, created_at, started_at, finished_at,"
    " attempts, interruptions, cancel, exit, reason, confidence"
)
_FIND = f"SELECT {_COLUMNS} FROM tasks WHERE id = ? AND (uid = ? OR ? = -1)"  # noqa: S608 - a constant


def _row(x: sqlite3.Row) -> TaskRow:
    values: dict[str, Any] = dict(x)
    values["state"] = TaskState(values["state"])
    values["cancel"] = bool(values["cancel"])
    told = values["confidence"]
    values["confidence"] = None if told is None else json.loads(told)
    text = values.pop("task_order")
    values["order"] = _cached_order(text) if len(text) <= _MOST_REMEMBERED else order_of(json.loads(text))
    return TaskRow(**values)


@lru_cache(maxsize=2048)
def _cached_order(text: str) -> TaskOrder:
    """An order never changes: looking at a task again and again need not read it again."""
    return order_of(json.loads(text))


def _answer(fault: sqlite3.Error) -> Exception:
    return translated(fault) or InternalFault(f"the daemon's database: {fault}")
