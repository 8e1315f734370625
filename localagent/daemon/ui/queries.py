"""What the web page and `localagent top` read of the database: bounded, however much a task has left there.

Whose task it is has been decided before: nothing here asks.
"""

import json
from dataclasses import dataclass
from typing import Any

from localagent.daemon.store.task_store import Rows
from localagent.protocol.task_order import TaskState

MOST_REPORT_BYTES = 2 << 20
MOST_TOLD = 300  # events that tell the story
MOST_CANDIDATES = 120
_NEWEST = 400
_QUIET = ("started", "checked", "progress", "ranked")


@dataclass(frozen=True, kw_only=True, slots=True)
class TimelineEvent:
    """An event: seconds since its stage's clock began, its kind, what it said."""

    seq: int
    at: float
    kind: str
    data: dict[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class Story:
    """What one task did. `checked` are the plausible candidates and the newest others, in order, of `checked_all`."""

    told: tuple[TimelineEvent, ...]
    checked: tuple[TimelineEvent, ...]
    checked_all: int
    report: dict[str, Any] | None
    report_bytes: int


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskPace:
    """How far a task is: its newest stage, candidates checked, plausible, open, and how many a second lately."""

    stage: str
    verified: int
    plausible: int
    open: int
    a_second: float


def story(rows: Rows, task: str) -> Story:
    """Everything the page shows of a task."""
    marks = ",".join("?" * len(_QUIET))
    with rows.reading() as database:
        told = database.execute(
            f"SELECT seq, at, kind, data FROM events WHERE task = ? AND kind NOT IN ({marks})"  # noqa: S608
            " ORDER BY seq LIMIT ?",
            (task, *_QUIET, MOST_TOLD),
        ).fetchall()
        count = database.execute("SELECT count(*) FROM events WHERE task = ? AND kind = 'checked'", (task,)).fetchone()[
            0
        ]
        checked = database.execute(
            "SELECT * FROM (SELECT seq, at, kind, data FROM events WHERE task = ? AND kind = 'checked'"
            " ORDER BY instr(data, '\"plausible\":true') > 0 DESC, seq DESC LIMIT ?) ORDER BY seq",
            (task, MOST_CANDIDATES),
        ).fetchall()
        found = database.execute(
            "SELECT length(report) AS size, CASE WHEN length(report) <= ? THEN report END AS report"
            " FROM results WHERE task = ?",
            (MOST_REPORT_BYTES, task),
        ).fetchone()
    report = None if found is None or found["report"] is None else json.loads(found["report"])
    return Story(
        told=tuple(map(_timeline_event, told)),
        checked=tuple(map(_timeline_event, checked)),
        checked_all=count,
        report=report if isinstance(report, dict) else None,
        report_bytes=0 if found is None else found["size"],
    )


def _timeline_event(x: Any) -> TimelineEvent:
    data = json.loads(x["data"])
    return TimelineEvent(seq=x["seq"], at=x["at"], kind=x["kind"], data=data if isinstance(data, dict) else {})


def pace(rows: Rows, task: str) -> TaskPace:
    """From the newest events of a task."""
    with rows.reading() as database:
        stage = database.execute(
            "SELECT data FROM events WHERE task = ? AND kind = 'stage' ORDER BY seq DESC LIMIT 1", (task,)
        ).fetchone()
        newest = database.execute(
            "SELECT * FROM (SELECT at, kind, data FROM events WHERE task = ? ORDER BY seq DESC LIMIT ?)"
            " WHERE kind = 'progress'",
            (task, _NEWEST),
        ).fetchall()
    steps = [(x["at"], json.loads(x["data"])) for x in newest]
    now = steps[0][1] if steps else {}
    a_second = 0.0
    if len(steps) > 1 and steps[0][0] > steps[-1][0]:
        a_second = (int(now["verified"]) - int(steps[-1][1]["verified"])) / (steps[0][0] - steps[-1][0])
    return TaskPace(
        stage=str(json.loads(stage["data"]).get("stage", "")) if stage is not None else "",
        verified=int(now.get("verified", 0)),
        plausible=int(now.get("plausible", 0)),
        open=int(now.get("open", 0)),
        a_second=max(0.0, round(a_second, 1)),
    )


def counts(rows: Rows, uid: int) -> dict[str, int]:
    """A user's tasks (everybody's for ANYBODY) by state."""
    with rows.reading() as database:
        found = dict(
            database.execute(
                "SELECT state, count(*) FROM tasks WHERE uid = ? OR ? = -1 GROUP BY state", (uid, uid)
            ).fetchall()
        )
    return {state.value: found.get(state.value, 0) for state in TaskState}


def running(rows: Rows, uid: int, *, limit: int = 64) -> tuple[str, ...]:
    """The ids of a user's running tasks (everybody's for ANYBODY), the oldest first."""
    with rows.reading() as database:
        found = database.execute(
            "SELECT id FROM tasks WHERE state = 'running' AND (uid = ? OR ? = -1) ORDER BY seq LIMIT ?",
            (uid, uid, limit),
        ).fetchall()
        return tuple(str(x["id"]) for x in found)
