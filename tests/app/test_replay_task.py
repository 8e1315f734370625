"""The record's patch verified again: what passes, what fails, what the guard says; records that cannot be replayed."""

from pathlib import Path
from typing import Any

import pytest

from localagent.app.cancellation import Stop
from localagent.app.evidence.replay_task import NotThatTree, PatchCheck, Reverified, _request, _reverified, patch_then
from localagent.app.policies import open_policy
from localagent.app.settings import Settings
from localagent.domain.edit import FileChange, Patch
from localagent.domain.guard import Guard, GuardScope
from localagent.domain.paths import RepoPath
from localagent.domain.task import Budget, Snapshot, Task
from localagent.errors import AnswerIsNo
from localagent.fs.atomic_files import RecordDamaged
from localagent.record.store import TaskRecord, TaskStore
from localagent.repair.search.event_fanout import combined

BEFORE = b"def add(a, b):\n    return a - b\n"
GOAL = b"from adder import add\n\n\ndef test_add():\n    assert add(2, 3) == 5\n"
OTHERS = b"from adder import add\n\n\ndef test_nought():\n    assert add(0, 0) == 0\n"


def patch(after: bytes) -> Patch:
    return Patch(changes=(FileChange(path=RepoPath("adder.py"), before=BEFORE, after=after),))


def facts(found: Patch | None, **more: Any) -> dict[str, Any]:
    return {
        "outcome": "accepted",
        "patch": None if found is None else found.digest,
        "asked": {"backend": "", "use_model": False, "model": "", "ways": []},
        "threads": 0,
        **more,
    }


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings.from_environ({"HOME": str(tmp_path)})


@pytest.fixture
def record(tmp_path: Path, settings: Settings) -> TaskRecord:
    repo = tmp_path / "repo"
    (repo / "tests").mkdir(parents=True)
    (repo / "pyproject.toml").write_text('[tool.pytest.ini_options]\npythonpath = ["."]\n')
    for name, text in {"adder.py": BEFORE, "tests/test_goal.py": GOAL, "tests/test_others.py": OTHERS}.items():
        (repo / name).write_bytes(text)
    budget = Budget(max_candidates=10, max_seconds=60)
    return TaskStore(settings.state_dir).create(
        Task(id="", repo=str(repo), tests=("tests/test_goal.py",), budget=budget, guard=Guard(scope=GuardScope.SUITE))
    )


def reverified(record: TaskRecord, settings: Settings, found: Patch | None) -> Reverified:
    if found is not None:
        record.save_patch(found)
    policy = open_policy(settings).policy
    sink, seen = combined(()), list[Snapshot]()
    told = _reverified(record, facts(found), record.task, settings, policy, sink, Stop(), seen.append)
    assert len(seen) == (found is not None)
    return told


def test_without_a_patch_nothing_runs(record: TaskRecord, settings: Settings) -> None:
    assert reverified(record, settings, None) == Reverified(check=PatchCheck.NO_PATCH)


@pytest.mark.long
def test_a_patch_passes_again(record: TaskRecord, settings: Settings) -> None:
    assert reverified(record, settings, patch(b"def add(a, b):\n    return a + b\n")).check is PatchCheck.PASSES


@pytest.mark.long
@pytest.mark.parametrize(
    ("after", "why"),
    [
        (b"def add(a, b):\n    return a * b\n", "test_goal"),
        (b"def add(a, b):\n    return 5\n", "test_others"),  # the goal passes: the guard says no
    ],
)
def test_a_patch_that_fails_says_why(record: TaskRecord, settings: Settings, after: bytes, why: str) -> None:
    told = reverified(record, settings, patch(after))
    assert told.check is PatchCheck.FAILS
    assert why in "; ".join(told.reasons)


def test_another_tree_is_refused_before_anything_runs(record: TaskRecord, settings: Settings) -> None:
    def refused(_: Snapshot) -> None:
        raise NotThatTree("another one")

    found = patch(b"def add(a, b):\n    return a + b\n")
    record.save_patch(found)
    policy = open_policy(settings).policy
    with pytest.raises(NotThatTree):
        _reverified(record, facts(found), record.task, settings, policy, combined(()), Stop(), refused)


def test_the_patch_is_the_one_that_the_facts_name(record: TaskRecord) -> None:
    right, wrong = patch(b"def add(a, b):\n    return a + b\n"), patch(b"x = 1\n")
    record.save_proposal(1, right)
    assert patch_then(record, facts(None, proposals=[{"patch": right.digest}])) == right
    record.save_patch(wrong)
    with pytest.raises(RecordDamaged, match="does not hold the patch"):
        patch_then(record, facts(right))


def test_a_record_with_a_removed_way_of_writing_cannot_be_run_again(record: TaskRecord) -> None:
    asked = facts(None)
    assert _request(record.task, asked).ways == ()
    asked["asked"]["ways"] = ["line", "span"]
    with pytest.raises(AnswerIsNo, match="'line' was removed"):
        _request(record.task, asked)
