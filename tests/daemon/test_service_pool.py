"""The pool where the database takes nothing: no lease is forgotten, no process is signalled after it was reaped."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from localagent.app import Settings, data_root
from localagent.daemon.processes import worker_pool
from localagent.daemon.processes.worker_pool import DaemonWorkers, Terms
from localagent.daemon.store import leases, schema
from localagent.daemon.store.schema import StoreFull
from localagent.daemon.store.task_store import ANYBODY, Rows
from localagent.protocol.task_order import TaskOrder, TaskState
from localagent.record.audit.verify_chain import check_audit


@pytest.fixture
def rows(tmp_path: Path) -> Iterator[Rows]:
    schema.prepare(tmp_path)
    made = Rows(tmp_path)
    yield made
    made.close()


def pool_of(rows: Rows, folder: Path) -> DaemonWorkers:
    environ = {"HOME": str(folder), "TMPDIR": str(folder)}
    configuration = data_root() / "systemd" / "daemon.toml"
    terms = Terms(workers=1, configuration=configuration, policy=data_root() / "policies" / "default.toml")
    made = DaemonWorkers(rows, folder, Settings.from_environ(environ), terms)
    made.sweep()
    return made


def submit(rows: Rows) -> str:
    """Its snapshot was never uploaded: a worker ends soon, without an answer."""
    order = TaskOrder(snapshot="sha256:" + "0" * 64)
    return rows.submit(1, order, key="", state=TaskState.QUEUED, most_open=9, day_seconds=9.0)[0].id


@pytest.mark.long
def test_a_lease_that_cannot_be_given_back_now_is_given_back_later(
    rows: Rows, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task, workers = submit(rows), pool_of(rows, tmp_path)
    full = True

    def settle(*args: object) -> object:
        if full:
            raise StoreFull("no room")
        return leases.settle(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(worker_pool, "settle", settle)
    workers.step()
    for _ in range(3):  # once it has ended, and again and again
        with pytest.raises(StoreFull):
            until_it_raises(workers)
    row = rows.find(task, ANYBODY)
    assert row is not None
    assert row.state is TaskState.RUNNING
    full = False
    while not ended(rows, task):
        workers.step()
        time.sleep(0.02)
    row = rows.find(task, ANYBODY)
    assert row is not None
    assert (row.state, row.attempts) == (TaskState.FAILED, 2)
    assert workers.empty
    assert list((tmp_path / "work").iterdir()) == []


@pytest.mark.long
def test_an_approval_is_on_the_record_before_its_task_may_run(
    rows: Rows, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workers, head = pool_of(rows, tmp_path), tmp_path / "audit" / "head.json"
    order = TaskOrder(snapshot="sha256:" + "0" * 64)
    first, second = (
        rows.submit(1, order, key="", state=TaskState.HELD, most_open=9, day_seconds=9.0)[0].id for _ in range(2)
    )
    try:
        assert rows.approve(first, 4711)
        stepped_until(workers, lambda: state(rows, first) is not TaskState.HELD)
        entry = check_audit(tmp_path / "audit").entries[0]
        assert (entry.kind, dict(entry.data)) == (
            "approved",
            {"what": "task", "by": 4711, "approved_by": 4711, "ordered_by": 1, "ordered_task": first},
        )
        stepped_until(workers, lambda: state(rows, first).over and workers.empty)
        kept = head.read_bytes()
        head.write_bytes(b"{}")
        monkeypatch.setattr(worker_pool, "RECORD_SECONDS", 1)
        assert rows.approve(second, 4711)
        for _ in range(3):
            workers.step()
        assert state(rows, second) is TaskState.HELD
        head.write_bytes(kept)
        stepped_until(workers, lambda: state(rows, second) is not TaskState.HELD)
        told = [e.data["ordered_task"] for e in check_audit(tmp_path / "audit").entries if e.kind == "approved"]
        assert told == [first, second]
    finally:
        workers.end()


def state(rows: Rows, task: str) -> TaskState:
    row = rows.find(task, ANYBODY)
    assert row is not None
    return row.state


def stepped_until(workers: DaemonWorkers, done: Callable[[], bool]) -> None:
    while not done():
        workers.step()
        time.sleep(0.02)


def until_it_raises(workers: DaemonWorkers) -> None:
    while True:
        workers.step()
        time.sleep(0.02)


def ended(rows: Rows, task: str) -> bool:
    row = rows.find(task, ANYBODY)
    return row is not None and row.state.over


def test_a_worker_that_cannot_be_started_counts_as_an_attempt(
    rows: Rows, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task, workers = submit(rows), pool_of(rows, tmp_path)

    def start_process(*_: object) -> None:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(worker_pool, "start_process", start_process)
    workers.step()
    workers.step()
    row = rows.find(task, ANYBODY)
    assert row is not None
    assert row.state is TaskState.FAILED
    assert "could not be started" in row.reason
    assert list((tmp_path / "work").iterdir()) == []


@pytest.mark.long
def test_telling_a_worker_that_is_gone_already_is_no_fault(rows: Rows, tmp_path: Path) -> None:
    task, workers = submit(rows), pool_of(rows, tmp_path)
    workers.step()
    time.sleep(3.0)  # it has ended, and nobody has looked
    workers.stop()
    workers.step()
    row = rows.find(task, ANYBODY)
    assert row is not None
    assert row.state in (TaskState.QUEUED, TaskState.RUNNING)
    workers.drain()
    workers.end()
    assert workers.empty
