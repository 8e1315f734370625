"""What is kept how long: finished tasks for some days and so many a user, contents until nobody used them for a while.

Nothing of a task that is not over is ever removed, nor any content of a user who has such a task.
"""

import time

from localagent.daemon.processes.configuration import Keeping
from localagent.daemon.store.blobs import Blobs
from localagent.daemon.store.task_store import Rows, today

_DAY_SECONDS = 86400.0
_MANY = 200  # rows in one transaction, so that nobody waits long


def tidy(rows: Rows, blobs: Blobs, keeping: Keeping) -> tuple[int, int]:
    """Remove what is past its time; how many tasks and how many contents went."""
    tasks = _old_tasks(rows, keeping)
    digests = _unused(rows, keeping)
    for start in range(0, len(digests), _MANY):
        blobs.forget(digests[start : start + _MANY])
    with rows.writing() as database:
        database.execute("DELETE FROM usage WHERE day < ?", (today(),))
    return tasks, len(digests)


def _old_tasks(rows: Rows, keeping: Keeping) -> int:
    gone = 0
    while True:
        with rows.writing() as database:
            done = database.execute(
                "DELETE FROM tasks WHERE seq IN ("
                " SELECT seq FROM (SELECT seq, finished_at, row_number() OVER (PARTITION BY uid ORDER BY seq DESC) AS n"
                "  FROM tasks WHERE state IN ('done', 'failed', 'cancelled'))"
                " WHERE finished_at < ? OR n > ? LIMIT ?)",
                (time.time() - keeping.task_days * _DAY_SECONDS, keeping.tasks, _MANY),
            ).rowcount
        gone += done
        if done < _MANY:
            return gone


def _unused(rows: Rows, keeping: Keeping) -> list[tuple[int, str]]:
    """Rows go first: a content without a row is only space, a row without a content would be a lie."""
    with rows.writing() as database:
        found = database.execute(
            "DELETE FROM blobs WHERE touched_at < ? AND uid NOT IN"
            " (SELECT uid FROM tasks WHERE state IN ('held', 'queued', 'running')) RETURNING uid, digest",
            (time.time() - keeping.blob_days * _DAY_SECONDS,),
        )
        return [(int(x[0]), str(x[1])) for x in found.fetchall()]
