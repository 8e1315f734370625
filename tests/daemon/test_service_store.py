"""The daemon's store: what is accepted stays, what is answered is answered once, what is not yours is not there."""

import hashlib
import json
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localagent.app.cancellation import Stop
from localagent.daemon.processes import worker
from localagent.daemon.processes.configuration import Keeping
from localagent.daemon.store import leases, schema
from localagent.daemon.store.approval_store import approvals_of, judged_of, mark_recorded, standing, untold
from localagent.daemon.store.blobs import Blobs, BlobWriter
from localagent.daemon.store.leases import Lease, LeaseEnded, LeaseLost
from localagent.daemon.store.retention import tidy
from localagent.daemon.store.task_store import ANYBODY, KeyTaken, QuotaReached, Result, Rows, TaskRow
from localagent.domain.edit import digest_of
from localagent.domain.task import Event
from localagent.errors import AnswerIsNo, CannotEnforce, InternalFault, UsageFault
from localagent.protocol.task_order import TaskOrder, TaskState
from localagent.report.text import render_text

DIGEST = "sha256:" + "0" * 64
OF_0_1_0 = Path(__file__).parents[1] / "fixtures" / "0.1.0"
RESULT = Result(report=b"{}", patch=None, proposals=b"[]")


@pytest.fixture
def rows(tmp_path: Path) -> Iterator[Rows]:
    schema.prepare(tmp_path)
    made = Rows(tmp_path)
    yield made
    made.close()


def submit(rows: Rows, uid: int = 1, *, key: str = "", priority: int = 0, seed: int = 0, most: int = 100) -> TaskRow:
    order = TaskOrder(snapshot=DIGEST, priority=priority, seed=seed)
    return rows.submit(uid, order, key=key, state=TaskState.QUEUED, most_open=most, day_seconds=100.0)[0]


def take(rows: Rows) -> Lease:
    lease = leases.take(rows)
    assert lease is not None
    return lease


def state(rows: Rows, task: str) -> TaskState:
    row = rows.find(task, ANYBODY)
    assert row is not None
    return row.state


def test_a_task_is_found_by_its_owner_alone(rows: Rows) -> None:
    mine = submit(rows, 1)
    assert rows.find(mine.id, 1) == mine
    assert rows.find(mine.id, 2) is None
    assert rows.find(mine.id, ANYBODY) == mine
    assert rows.page(2, before="", limit=9) == ()
    assert rows.page(2, before=mine.id, limit=9) == ()
    assert [x.id for x in rows.page(1, before="", limit=9)] == [mine.id]


def test_pages_go_on_where_the_last_one_ended(rows: Rows) -> None:
    ids = [submit(rows).id for _ in range(5)][::-1]
    first = rows.page(1, before="", limit=2)
    assert [x.id for x in first] == ids[:2]
    assert [x.id for x in rows.page(1, before=first[-1].id, limit=9)] == ids[2:]


def test_a_key_gives_the_same_task_and_refuses_another_order(rows: Rows) -> None:
    first = submit(rows, key="k")
    assert submit(rows, key="k").id == first.id
    assert submit(rows, uid=2, key="k").id != first.id
    with pytest.raises(KeyTaken, match="another order"):
        submit(rows, key="k", seed=1)


def test_quotas_of_tasks_and_seconds(rows: Rows) -> None:
    submit(rows, most=1)
    with pytest.raises(QuotaReached, match="1 open tasks, and 1 are allowed"):
        submit(rows, most=1)
    submit(rows, 2, most=1)
    with rows.writing() as database:
        database.execute("INSERT INTO usage VALUES (2, strftime('%Y-%m-%d'), 100)")
    with pytest.raises(QuotaReached, match="100 s a day"):
        submit(rows, 2)


def test_leases_are_fair_between_users_and_by_priority_within(rows: Rows) -> None:
    many = [submit(rows, 1).id for _ in range(3)]
    urgent = submit(rows, 1, priority=5).id
    other = submit(rows, 2, priority=0).id
    taken = [take(rows).task for _ in range(5)]
    assert taken == [urgent, other, *many]
    assert leases.take(rows) is None


def test_an_answer_is_given_once_and_under_the_lease_alone(rows: Rows) -> None:
    task = submit(rows).id
    old = take(rows)
    assert leases.reclaim(rows) == 1  # a new daemon
    new = take(rows)
    assert (new.task, new.attempt) == (task, 1)
    with pytest.raises(LeaseLost):
        leases.finish(rows, old, RESULT, answer=0, reason="late")
    with pytest.raises(LeaseLost):
        leases.append(rows, old, [Event(kind="x", at_seconds=0.0)])
    leases.finish(rows, new, RESULT, answer=0, reason="good")
    with pytest.raises(LeaseLost):
        leases.finish(rows, new, RESULT, answer=1, reason="twice")
    assert leases.settle(rows, new, LeaseEnded.DIED, "gone") is None
    row = rows.find(task, 1)
    assert row is not None
    assert (row.state, row.exit, row.reason, row.interruptions) == (TaskState.DONE, 0, "good", 1)


def test_a_worker_that_dies_twice_fails_the_task(rows: Rows) -> None:
    submit(rows)
    assert leases.settle(rows, take(rows), LeaseEnded.DIED, "signal 9") is TaskState.QUEUED
    second = take(rows)
    assert second.attempt == 2
    assert leases.settle(rows, second, LeaseEnded.DIED, "signal 9") is TaskState.FAILED
    row = rows.find(second.task, 1)
    assert row is not None
    assert row.reason == "signal 9; it was tried 2 times"


def test_cancelling(rows: Rows) -> None:
    waits, runs = submit(rows).id, submit(rows).id
    with rows.writing() as database:
        database.execute("UPDATE tasks SET priority = 9 WHERE id = ?", (runs,))
    lease = take(rows)
    assert rows.cancel(waits) is TaskState.CANCELLED
    assert rows.cancel(runs) is TaskState.RUNNING
    assert leases.cancelled(rows) == {runs}
    assert leases.settle(rows, lease, LeaseEnded.DIED, "whatever") is TaskState.CANCELLED
    assert rows.cancel(runs) is TaskState.CANCELLED


def test_nobody_approves_a_task_of_their_own(rows: Rows) -> None:
    order = TaskOrder(snapshot=DIGEST)
    held, _ = rows.submit(1, order, key="", state=TaskState.HELD, most_open=9, day_seconds=9.0)
    assert leases.take(rows) is None
    assert not rows.approve(held.id, 1)
    assert rows.approve(held.id, 2)
    assert not rows.approve(held.id, 2)
    assert leases.take(rows) is None  # held, until it is on the record
    (approval,) = leases.approvals(rows)
    assert (approval.task, approval.uid, approval.by) == (held.id, 1, 2)
    leases.release(rows, approval)
    assert leases.approvals(rows) == ()
    assert take(rows).task == held.id


def test_an_approved_task_that_was_cancelled_stays_that(rows: Rows) -> None:
    order = TaskOrder(snapshot=DIGEST)
    held, _ = rows.submit(1, order, key="", state=TaskState.HELD, most_open=9, day_seconds=9.0)
    assert rows.approve(held.id, 2)
    (approval,) = leases.approvals(rows)
    assert rows.cancel(held.id) is TaskState.CANCELLED
    leases.release(rows, approval)
    assert (leases.take(rows), leases.approvals(rows)) == (None, ())


def test_events_are_numbered_without_gaps_and_bounded(rows: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    submit(rows)
    lease = take(rows)
    monkeypatch.setattr(leases, "MOST_EVENTS", 3)
    leases.append(rows, lease, [Event(kind="a", at_seconds=0.5, data={"x": 1})] * 2)
    leases.append(rows, lease, [Event(kind="b", at_seconds=1.0, data={"x": "y" * 70_000})] * 2)
    found = rows.events(lease.task, after=0)
    assert [(x.seq, x.kind) for x in found] == [(1, "a"), (2, "a"), (3, "b")]
    assert found[2].data == '{"left_out":"70009 bytes"}'
    assert [x.seq for x in rows.events(lease.task, after=2)] == [3]


def put(blobs: Blobs, writer: BlobWriter, data: bytes) -> None:
    try:
        writer.write(data)
        blobs.keep(1, writer)
    finally:
        writer.abort()


def fill(rows: Rows) -> None:
    for seed in range(10_000):
        submit(rows, seed=seed, most=10**9)


def upload(blobs: Blobs, uid: int, data: bytes, *, most: int = 10**6) -> str:
    digest = "sha256:" + hashlib.sha256(data).hexdigest()
    writer = blobs.writer(uid, digest, len(data), most_bytes=most)
    try:
        writer.write(data)
        blobs.keep(uid, writer)
    finally:
        writer.abort()
    return digest


def test_a_digest_is_no_capability(rows: Rows, tmp_path: Path) -> None:
    blobs = Blobs(tmp_path, rows)
    digest = upload(blobs, 1, b"secret")
    assert blobs.read(1, digest) == b"secret"
    assert blobs.size(2, digest) is None
    assert blobs.missing(2, [digest, digest]) == (digest,)
    assert blobs.missing(1, [digest]) == ()
    assert blobs.sizes(1, {digest: 6}) == []
    assert blobs.sizes(1, {digest: 7}) == [digest]
    with pytest.raises(AnswerIsNo, match="was not uploaded"):
        blobs.read(2, digest)


def test_what_is_not_as_announced_leaves_nothing(rows: Rows, tmp_path: Path) -> None:
    blobs = Blobs(tmp_path, rows)
    for data, size, reason in (
        (b"abc", 3, "do not have the digest"),
        (b"abc", 2, "more bytes came"),
        (b"", 1, "digest"),
    ):
        writer = blobs.writer(1, DIGEST, size, most_bytes=9)
        with pytest.raises(UsageFault, match=reason):
            put(blobs, writer, data)
    assert [p for p in (tmp_path / "blobs").rglob("*") if p.is_file()] == []
    with pytest.raises(QuotaReached, match="9 are allowed"):
        blobs.writer(1, DIGEST, 10, most_bytes=9)


def test_uploads_that_began_together_do_not_pass_the_quota_together(rows: Rows, tmp_path: Path) -> None:
    blobs = Blobs(tmp_path, rows)
    texts = [b"a" * 6, b"b" * 6]
    writers = [blobs.writer(1, digest_of(text), 6, most_bytes=9) for text in texts]
    put(blobs, writers[0], texts[0])
    with pytest.raises(QuotaReached, match="you keep 6 bytes, and 9 are allowed"):
        put(blobs, writers[1], texts[1])
    assert len(list(blobs.files())) == 1
    again = blobs.writer(1, digest_of(texts[0]), 3 + 3, most_bytes=12)
    put(blobs, again, texts[0])  # what is there already takes up no more


def test_what_one_attempt_says_is_bounded_in_all(rows: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "MOST_TOLD_BYTES", 300)
    task = submit(rows).id
    lease = take(rows)
    sink = worker.StoreSink(rows, lease, Stop())
    for number in range(9):
        sink.emit(Event(kind="checked", at_seconds=number, data={"edit": "x" * 80}))
    sink.emit(Event(kind="stage", at_seconds=9, data={"stage": "record", "why": "y" * 300}))
    sink.flush()
    assert [event.kind for event in rows.events(task, after=0)] == ["checked"] * 3 + ["stage"]


def test_what_tasks_left_counts_as_kept(rows: Rows, tmp_path: Path) -> None:
    blobs = Blobs(tmp_path, rows)
    task = submit(rows, 1)
    leases.finish(rows, take(rows), Result(report=b"r" * 5, patch=b"p" * 3, proposals=b"x"), answer=0, reason="")
    blobs.require_quota(1, 0, 9)
    blobs.require_quota(2, 9, 9)
    with pytest.raises(QuotaReached, match=r"keep 9 bytes"):
        blobs.require_quota(1, 1, 9)
    with rows.writing() as database:
        database.execute("DELETE FROM tasks WHERE id = ?", (task.id,))
    blobs.require_quota(1, 9, 9)


def test_an_altered_blob_is_not_given_out(rows: Rows, tmp_path: Path) -> None:
    blobs = Blobs(tmp_path, rows)
    digest = upload(blobs, 1, b"secret")
    (tmp_path / "blobs" / "1" / digest[7:9] / digest[7:]).write_bytes(b"SECRET")
    with pytest.raises(InternalFault, match="was altered"):
        blobs.read(1, digest)


def test_what_a_cut_short_upload_left_is_swept(rows: Rows, tmp_path: Path) -> None:
    blobs = Blobs(tmp_path, rows)
    kept, orphan = upload(blobs, 1, b"kept"), upload(blobs, 1, b"orphan")
    with rows.writing() as database:
        database.execute("DELETE FROM blobs WHERE digest = ?", (orphan,))
    blobs.writer(1, DIGEST, 3, most_bytes=9).write(b"ab")
    blobs.sweep()
    assert list(blobs.files()) == [(1, kept)]
    assert [p.name for p in (tmp_path / "blobs").rglob("*") if p.is_file()] == [kept[7:]]


def test_retention_keeps_what_is_needed(rows: Rows, tmp_path: Path) -> None:
    blobs = Blobs(tmp_path, rows)
    upload(blobs, 1, b"of a user with an open task")
    upload(blobs, 2, b"unused")
    young = upload(blobs, 2, b"used just now")
    done = [submit(rows, 2).id for _ in range(3)]
    for _ in done:
        leases.finish(rows, take(rows), RESULT, answer=0, reason="")
    open_task = submit(rows, 1).id
    with rows.writing() as database:
        database.execute("UPDATE blobs SET touched_at = 0 WHERE digest <> ?", (young,))
        database.execute("UPDATE tasks SET finished_at = 0 WHERE id = ?", (done[2],))
    gone = tidy(rows, blobs, Keeping(task_days=1, tasks=2, blob_days=1))
    assert gone == (2, 1)
    assert [x.id for x in rows.page(ANYBODY, before="", limit=9)] == [open_task, done[1]]
    assert rows.result(done[0]) is None
    assert len(list(blobs.files())) == 2


def test_a_full_store_refuses_and_keeps(rows: Rows) -> None:
    kept = submit(rows).id
    with rows.writing() as database:
        pages = database.execute("PRAGMA page_count").fetchone()[0]
    with rows.reading() as database:
        database.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(schema.StoreFull, match="no room"):
        fill(rows)
    assert state(rows, kept) is TaskState.QUEUED
    with rows.reading() as database:
        database.execute(f"PRAGMA max_page_count = {pages * 100}")
    assert submit(rows, most=10**9).state is TaskState.QUEUED


def test_an_unsound_database_is_refused(tmp_path: Path) -> None:
    schema.prepare(tmp_path)
    with sqlite3.connect(tmp_path / schema.FILE_NAME) as database:
        database.execute("INSERT INTO leases VALUES ('none', 't', 0)")
    with pytest.raises(CannotEnforce, match="names a missing tasks"):
        schema.prepare(tmp_path)
    with sqlite3.connect(tmp_path / schema.FILE_NAME) as database:
        database.execute("PRAGMA user_version = 99")
    with pytest.raises(CannotEnforce, match="newer localagent"):
        schema.prepare(tmp_path)
    for path in tmp_path.iterdir():
        path.unlink()
    (tmp_path / schema.FILE_NAME).write_bytes(b"no database" * 1000)
    with pytest.raises(CannotEnforce, match="not a database"):
        schema.prepare(tmp_path)


def test_the_database_of_0_1_0_is_brought_up_to_date(tmp_path: Path) -> None:
    """What that version's own code wrote: before there was a confidence, with each state a task can be in."""
    with sqlite3.connect(tmp_path / schema.FILE_NAME) as database:
        database.executescript((OF_0_1_0 / "daemon.sql").read_text())
        assert database.execute("PRAGMA user_version").fetchone()[0] == 2
    assert schema.prepare(tmp_path) == len(schema.MIGRATIONS)
    rows = Rows(tmp_path)
    gone, held, queued, running, done = rows.page(1000, before="", limit=9)
    states = (TaskState.CANCELLED, TaskState.HELD, TaskState.QUEUED, TaskState.RUNNING, TaskState.DONE)
    assert tuple(row.state for row in (gone, held, queued, running, done)) == states
    assert {row.confidence for row in (gone, held, queued, running, done)} == {None}
    assert (done.exit, done.reason, done.order.seed, queued.order.seed) == (0, "accepted: < -> >", 0, 2)
    assert [event.kind for event in rows.events(done.id, after=0)][:2] == ["stage", "accepted"]
    result = rows.result(done.id)
    assert result is not None
    assert "accepted: the patch makes every failing test pass" in render_text(json.loads(result.report))
    assert [(one.number, one.verdict) for one in judged_of(rows, done.id)] == [
        (0, "needs-person"), (1, "needs-person"), (2, "allowed")
    ]  # fmt: skip
    assert [(word.who, word.recorded) for word in approvals_of(rows, done.id)] == [("anna", True), ("ben", False)]
    (counting,) = standing(rows, "sha256:" + "0" * 64, "sha256:" + "a" * 64, 1000)
    assert (counting.who, counting.reason) == ("anna", "read it")
    (waiting,) = untold(rows)
    mark_recorded(rows, waiting)
    assert [word.recorded for word in approvals_of(rows, done.id)] == [True, True]
    assert leases.reclaim(rows) == 1  # of the daemon that was ended by the upgrade
    assert state(rows, running.id) is TaskState.QUEUED
    lease = take(rows)
    assert lease.task == running.id
    confidence = {"probability": 0.62, "calibrated": False, "model": "t"}
    leases.finish(rows, lease, RESULT, answer=0, reason="", confidence=confidence)
    found = rows.find(running.id, 1000)
    assert found is not None
    assert found.confidence == confidence
    rows.close()


def test_the_database_is_the_daemon_s_alone(tmp_path: Path) -> None:
    assert schema.prepare(tmp_path) == len(schema.MIGRATIONS)
    assert (tmp_path / schema.FILE_NAME).stat().st_mode & 0o777 == 0o600


STEPS = st.lists(st.sampled_from(["submit", "take", "finish", "die", "stop", "cancel", "reclaim"]), max_size=40)


@pytest.mark.long
@settings(max_examples=25, deadline=None)
@given(steps=STEPS, choices=st.randoms(use_true_random=False))
def test_no_task_is_lost_or_answered_twice(
    tmp_path_factory: pytest.TempPathFactory, steps: list[str], choices: object
) -> None:
    """Whatever happens in whatever order, an accepted task is waiting, running under one lease, or over, once."""
    folder = tmp_path_factory.mktemp("law")
    schema.prepare(folder)
    rows = Rows(folder)
    held: list[Lease] = []
    accepted: list[str] = []
    answered: list[str] = []
    pick = choices.choice  # type: ignore[attr-defined]
    for step in steps:
        if step == "submit":
            accepted.append(submit(rows, pick([1, 2])).id)
        elif step == "take" and (lease := leases.take(rows)):
            held.append(lease)
        elif step == "reclaim":
            leases.reclaim(rows)
        elif step == "cancel" and accepted:
            rows.cancel(pick(accepted))
        elif held:
            lease = pick(held)
            try:
                if step == "finish":
                    leases.finish(rows, lease, RESULT, answer=0, reason="")
                    answered.append(lease.task)
                elif step in ("die", "stop"):
                    leases.settle(rows, lease, LeaseEnded.DIED if step == "die" else LeaseEnded.STOPPED, "gone")
            except LeaseLost:
                pass
        with rows.reading() as database:
            running = {x[0] for x in database.execute("SELECT id FROM tasks WHERE state = 'running'")}
            leased = [x[0] for x in database.execute("SELECT task FROM leases")]
            results = {x[0] for x in database.execute("SELECT task FROM results")}
            done = {x[0] for x in database.execute("SELECT id FROM tasks WHERE state = 'done'")}
        assert sorted(leased) == sorted(running)
        assert results == done == set(answered)
        assert len(answered) == len(set(answered))
        assert {x.id for x in rows.page(ANYBODY, before="", limit=1000)} == set(accepted)
    rows.close()


def test_usage_counts_the_seconds_of_a_task(rows: Rows) -> None:
    submit(rows)
    lease = take(rows)
    with rows.writing() as database:
        database.execute("UPDATE leases SET since = ?", (time.time() - 40,))
    leases.finish(rows, lease, RESULT, answer=0, reason="")
    with rows.reading() as database:
        assert database.execute("SELECT seconds FROM usage WHERE uid = 1").fetchone()[0] >= 40
