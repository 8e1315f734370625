"""Killing the daemon, its front and its workers at random moments: nothing accepted is lost, nothing answered twice."""

import os
import random
import signal
import sqlite3
import time
from collections.abc import Callable
from contextlib import suppress

import pytest
from support.service_builder import Served, ordered, served, uploaded

from localagent.daemon.store import schema
from localagent.daemon.store.task_store import ANYBODY
from localagent.protocol.http_client import Client, DaemonGone, DaemonRefuses
from localagent.protocol.task_order import TaskState

# ends soon, with an answer: there is nothing that a test could tell
FILES = {"a.py": "x = 1\n"}


def order_until_taken(daemon: Served, key: str) -> str:
    """As a client does: the same key again and again, until there is an answer."""
    while True:
        client = Client(daemon.socket)
        with suppress(DaemonGone, DaemonRefuses):
            body = {"snapshot": "", "use_model": False, "seed": len(key)}
            task = with_key(client, body, key)
            client.close()
            return task
        client.close()
        if daemon.process is None or daemon.process.poll() is not None:
            daemon.start()
        time.sleep(0.05)


def with_key(client: Client, body: dict[str, object], key: str) -> str:
    order = {**body, "snapshot": uploaded(client, FILES)}
    return str(client.post("/v1/tasks", order, headers={"idempotency-key": key}).json()["id"])


def kill_something(daemon: Served, dice: random.Random) -> str:
    """The first process, the front, or a worker; the daemon is started again where it is gone."""
    assert daemon.process is not None
    what = dice.choice(["daemon", "front", "worker"])
    if what == "daemon":
        daemon.kill()
    else:
        victim = None
        with suppress(StopIteration, OSError):
            victim = daemon.front() if what == "front" else daemon.worker()
        if victim:
            with suppress(ProcessLookupError):
                os.kill(victim, signal.SIGKILL)
        else:
            what = "daemon"  # none of them there just now
            daemon.kill()
    if daemon.process.poll() is not None:
        daemon.start(wait=False)
    return what


def check(daemon: Served, accepted: dict[str, str]) -> list[str]:
    """Whole, and every accepted task in exactly one state; those that are over."""
    with sqlite3.connect(daemon.state / schema.FILE_NAME) as database:
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert database.execute("PRAGMA foreign_key_check").fetchall() == []
        assert database.execute("SELECT count(*) FROM tasks").fetchone()[0] == len(set(accepted.values()))
        odd = "SELECT id FROM tasks WHERE (state = 'done') <> (id IN (SELECT task FROM results))"
        assert database.execute(odd).fetchall() == []
        odd = "SELECT id FROM tasks WHERE (state = 'running') <> (id IN (SELECT task FROM leases))"
        assert database.execute(odd).fetchall() == []
    with daemon.rows() as rows:
        found = {row.id: row for row in rows.page(ANYBODY, before="", limit=10_000)}
        assert set(found) == set(accepted.values())
        return [task for task, row in found.items() if row.state.over]


def storm(tasks: int, kills: int, seed: int, *, told: Callable[[int, int], None] = lambda _kills, _tasks: None) -> int:
    """So many kills over a queue of `tasks` that is filled again when half of it is done; how many tasks there were."""
    dice = random.Random(seed)
    with served(workers=2, requests_a_second=10_000, burst=100_000) as daemon:
        accepted: dict[str, str] = {}

        def fill(wanted: int) -> int:
            killed = 0
            for _ in range(wanted):
                key = f"key-{len(accepted)}"
                accepted[key] = order_until_taken(daemon, key)
                if dice.random() < 0.5:
                    kill_something(daemon, dice)
                    killed += 1
            return killed

        done = 0
        fill(tasks)
        while done < kills:
            time.sleep(dice.random() * dice.choice([0.02, 0.2, 1.5]))
            kill_something(daemon, dice)
            done += 1
            over = len(check(daemon, accepted))
            if over > len(accepted) - (tasks + 1) // 2:
                done += fill(tasks - (len(accepted) - over))
            told(done, len(accepted))
        for key, task in accepted.items():
            assert order_until_taken(daemon, key) == task  # the same key, the same task, however often it was killed
        while len(check(daemon, accepted)) < len(accepted):
            time.sleep(0.2)
            assert daemon.process is not None
            assert daemon.process.poll() is None, daemon.log()
        with daemon.rows() as rows:
            rowed = [rows.find(task, ANYBODY) for task in accepted.values()]
        for row in rowed:
            assert row is not None
            fine = row.state is TaskState.DONE and row.exit == 1
            died = row.state is TaskState.FAILED and row.attempts == 2  # its workers were killed twice
            assert fine or died, row
        return len(accepted)


@pytest.mark.long
def test_a_small_queue_through_a_few_kills() -> None:
    storm(tasks=3, kills=5, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_a_queue_through_many_kills(seed: int) -> None:
    storm(tasks=12, kills=60, seed=seed)


@pytest.mark.long
def test_a_worker_of_a_killed_daemon_ends_with_it() -> None:
    """Before it has an answer: by itself it would give one, for its lease is still good."""
    with served() as daemon:
        task = ordered(daemon.client(), {"test_a.py": "import time\n\n\ndef test_a():\n    time.sleep(300)\n"})["id"]
        while (worker := daemon.worker()) is None:
            time.sleep(0.02)
        front = daemon.front()
        daemon.kill()
        while alive(worker) or alive(front):
            time.sleep(0.05)
        with daemon.rows() as rows:
            row = rows.find(task, ANYBODY)
            assert row is not None
            assert row.state is TaskState.RUNNING


def alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as facts:  # noqa: PTH123
            return facts.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
