import json
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localagent.domain.edit import FileChange, Patch
from localagent.domain.guard import Guard, guard_of
from localagent.domain.paths import RepoPath
from localagent.domain.task import Budget, Choosing, Task, TaskResult, Verdict
from localagent.errors import UsageFault
from localagent.fs.atomic_files import CannotRecord, RecordDamaged
from localagent.record.store import TaskStore, new_task_id

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

TASK = Task(
    id="",
    repo="/srv/caf\udce9",
    tests=("tests/a b.py::test['\n\udcff]",),
    checks=("make test",),
    text="mend it",
    python="/usr/bin/python3",
    seed=7,
    budget=Budget(max_candidates=50, max_seconds=12.5, jobs=2),
)
PATCH = Patch(
    changes=(
        FileChange(path=RepoPath("a/\udce9.py"), before=b"\xff\x00x\r\n", after=b"\xffy"),
        FileChange(path=RepoPath("b.py"), before=b"", after=b"1\n"),
    )
)


@pytest.fixture
def store(tmp_path: Path) -> TaskStore:
    return TaskStore(tmp_path / "state")


def test_what_was_kept_comes_back(store: TaskStore) -> None:
    record = store.create(TASK)
    record.save_patch(PATCH)
    saved = record.save_result(
        TaskResult(verdict=Verdict.ACCEPTED, reason="all pass", exit=0, patch=PATCH), diff=b"--- a/\xe9\n"
    )
    again = store.open(record.id)
    assert again.task == replace(TASK, id=record.id)
    assert again.patch() == PATCH
    assert again.result_json() == json.loads(json.dumps(saved))
    assert saved["patch"].encode("utf-8", "surrogateescape") == b"--- a/\xe9\n"


@pytest.mark.parametrize("choosing", Choosing)
def test_how_a_task_chooses_comes_back(store: TaskStore, choosing: Choosing) -> None:
    record = store.create(replace(TASK, choosing=choosing))
    assert store.open(record.id).task.choosing is choosing


@pytest.mark.parametrize("guard", [Guard(), guard_of(["none"], 120.0), guard_of(["tests", "-k x"], 7.5)])
def test_the_guard_of_a_task_comes_back(store: TaskStore, guard: Guard) -> None:
    record = store.create(replace(TASK, guard=guard))
    assert store.open(record.id).task.guard == guard
    assert ("guard" in json.loads((record.dir / "task.json").read_text())) is (guard != Guard())  # older ones have none


def test_the_confidence_that_a_task_asks_for_comes_back(store: TaskStore) -> None:
    for share in (0.0, 0.95, 1.0):
        record = store.create(replace(TASK, min_confidence=share))
        assert store.open(record.id).task.min_confidence == share
        assert ("min_confidence" in json.loads((record.dir / "task.json").read_text())) is (share > 0)


def test_only_the_user_can_enter(store: TaskStore) -> None:
    record = store.create(TASK)
    record.save_patch(PATCH)
    assert record.dir.stat().st_mode & 0o777 == 0o700
    assert all(p.stat().st_mode & 0o777 == 0o600 for p in record.dir.iterdir())


def test_making_a_store_touches_nothing(tmp_path: Path) -> None:
    store = TaskStore(tmp_path / "state")
    assert store.list() == ()
    assert store.latest() is None
    assert list(tmp_path.iterdir()) == []


def test_ids_sort_by_time_and_differ() -> None:
    ids = [new_task_id() for _ in range(200)]
    assert [i[:22] for i in ids] == sorted(i[:22] for i in ids)
    assert len(set(ids)) == 200


def test_newest_first(store: TaskStore) -> None:
    ids = [store.create(TASK).id for _ in range(3)]
    assert [r.id for r in store.list()] == sorted(ids, reverse=True)
    newest = store.latest()
    assert newest is not None
    assert newest.id == max(ids)


def test_opened_by_prefix_or_by_its_random_end(store: TaskStore) -> None:
    one = store.create(TASK)
    two = store.create(TASK)
    assert store.open(one.id[-6:]).id == one.id
    assert store.open(two.id[:-2]).id == two.id
    with pytest.raises(UsageFault, match="names 2 tasks"):
        store.open(one.id[:6])
    with pytest.raises(UsageFault, match="no task 'zz'"):
        store.open("zz")
    with pytest.raises(UsageFault, match="no task ''"):
        store.open("")
    with pytest.raises(UsageFault, match="no task"):
        store.open("../../etc")


@pytest.mark.parametrize(
    "damage",
    [
        b"",
        b"{",
        b"[]",
        b"{}",
        b"\xff",
        b'{"schema":1}' * 2,
        b"[" * 100_000,
        b'{"a":NaN}',
        b'{"a":1,"a":2}',
    ],
)
def test_a_damaged_task_is_named_and_the_others_still_listed(store: TaskStore, damage: bytes) -> None:
    good = store.create(TASK)
    bad = store.create(TASK)
    (bad.dir / "task.json").write_bytes(damage)
    listing = store.scan()
    assert [r.id for r in listing.records] == [good.id]
    assert len(listing.faults) == 1
    assert bad.id in listing.faults[0]
    with pytest.raises(RecordDamaged):
        store.open(bad.id)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("seed", True),
        ("seed", "1"),
        ("tests", "x"),
        ("tests", [1]),
        ("repo", None),
        ("id", "other"),
        ("schema", "x/2"),
        ("choosing", "x"),
        ("guard", "none"),
        ("guard", ["none", "x"]),
        ("guard_seconds", 0),
        ("guard_seconds", True),
        ("guard_seconds", "9"),
        ("min_confidence", 1.5),
        ("min_confidence", -0.1),
        ("min_confidence", True),
        ("min_confidence", "0.9"),
    ],
)
def test_a_task_file_with_a_wrong_value_is_damaged(store: TaskStore, key: str, value: object) -> None:
    record = store.create(TASK)
    path = record.dir / "task.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), key: value}))
    with pytest.raises(RecordDamaged):
        store.open(record.id)


def test_an_altered_patch_is_refused(store: TaskStore) -> None:
    record = store.create(TASK)
    record.save_patch(PATCH)
    path = record.dir / "patch.json"
    whole = json.loads(path.read_text())
    for change in ("before", "after", "before_digest", "after_digest", "path"):
        altered = json.loads(json.dumps(whole))
        altered["changes"][1][change] = "Zm9v"
        path.write_text(json.dumps(altered))
        with pytest.raises(RecordDamaged, match=r"patch\.json"):
            record.patch()
    for wrong in ({**whole, "digest": "sha256:0"}, {**whole, "more": 1}, {**whole, "changes": whole["changes"][::-1]}):
        path.write_text(json.dumps(wrong))
        with pytest.raises(RecordDamaged):
            record.patch()


def test_a_path_that_leaves_the_repository_is_refused(store: TaskStore) -> None:
    record = store.create(TASK)
    record.save_patch(PATCH)
    path = record.dir / "patch.json"
    path.write_text(path.read_text().replace("b.py", "../b.py"))
    with pytest.raises(RecordDamaged, match="not a path inside"):
        record.patch()


def test_absent_files_are_an_answer(store: TaskStore) -> None:
    record = store.create(TASK)
    assert record.patch() is None
    assert record.result_json() is None


def test_the_report_of_another_task_is_not_taken(store: TaskStore) -> None:
    one, two = store.create(TASK), store.create(TASK)
    one.save_result(TaskResult(verdict=Verdict.GAVE_UP, reason="", exit=1))
    (two.dir / "report.json").write_bytes((one.dir / "report.json").read_bytes())
    with pytest.raises(RecordDamaged, match="is not the report of task"):
        two.result_json()


def test_a_full_disk_is_a_typed_answer_and_leaves_the_old_file(
    store: TaskStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = store.create(TASK)
    record.save_patch(PATCH)
    before = sorted(p.name for p in record.dir.iterdir())

    def full(_descriptor: int, _data: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(CannotRecord, match="No space left") as caught:
        record.save_patch(Patch(changes=()))
    monkeypatch.undo()
    assert "free space" in caught.value.remedy
    assert caught.value.exit_code == 1
    assert record.patch() == PATCH
    assert sorted(p.name for p in record.dir.iterdir()) == before


def test_a_state_directory_that_cannot_be_is_a_typed_answer(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file")
    with pytest.raises(CannotRecord, match="cannot keep tasks"):
        TaskStore(tmp_path / "state").create(TASK)


def test_killed_while_writing_leaves_nothing_half(store: TaskStore) -> None:
    """A child that is killed inside the write: the old file stands, whole."""
    record = store.create(TASK)
    record.save_patch(PATCH)
    child = os.fork()
    if child == 0:
        real = os.write

        def cut(descriptor: int, data: "ReadableBuffer") -> int:
            real(descriptor, bytes(data)[:10])
            os.kill(os.getpid(), 9)
            return 0

        os.write = cut
        record.save_patch(Patch(changes=()))
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.WTERMSIG(status) == 9
    assert record.patch() == PATCH
    assert store.open(record.id).task.repo == TASK.repo


def test_a_link_or_a_pipe_in_the_store_is_not_followed(store: TaskStore, tmp_path: Path) -> None:
    record = store.create(TASK)
    (tmp_path / "elsewhere").write_text("{}")
    (record.dir / "patch.json").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(RecordDamaged, match="cannot read"):
        record.patch()
    os.mkfifo(record.dir / "report.json")
    with pytest.raises(RecordDamaged, match="not a regular file"):
        record.result_json()


def test_a_sparse_giant_is_not_read(store: TaskStore) -> None:
    record = store.create(TASK)
    with (record.dir / "report.json").open("wb") as out:
        out.truncate(1 << 30)
    with pytest.raises(RecordDamaged, match="larger than"):
        record.result_json()


@pytest.mark.long
@settings(deadline=None, max_examples=40)
@given(
    before=st.binary(max_size=200),
    after=st.binary(max_size=200),
    name=st.binary(min_size=1, max_size=20).filter(lambda b: not {0, 47} & set(b) and b not in (b".", b"..")),
)
def test_any_patch_round_trips(
    tmp_path_factory: pytest.TempPathFactory, before: bytes, after: bytes, name: bytes
) -> None:
    record = TaskStore(tmp_path_factory.mktemp("state")).create(TASK)
    path = RepoPath(name.decode("utf-8", "surrogateescape"))
    patch = Patch(changes=(FileChange(path=path, before=before, after=after),))
    record.save_patch(patch)
    assert record.patch() == patch
