"""A landing that was killed on the way can be taken back and done again, with a test beside the patch or without."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from support.evidence_builder import PATCH, keep_proposals, settings_below

from localagent.app import Settings
from localagent.app.evidence.task_evidence import land_recorded
from localagent.app.fix.proposal_test_file import AnswerTest
from localagent.cli.main import main
from localagent.domain.edit import FileChange
from localagent.domain.paths import RepoPath
from localagent.fs.atomic_files import CannotRecord
from localagent.record.audit.entry import AuditKind, Entry
from localagent.record.audit.log import AuditLog
from localagent.record.store import TaskRecord
from localagent.repo import apply_patch

KILLED = 9


def written(name: str) -> AnswerTest:
    change = FileChange(path=RepoPath(name), before=b"", after=b"def test_f():\n    assert 1\n")
    return AnswerTest(change=change, new=True, source="")


def files(repo: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in repo.iterdir()}


def before_applied(stop: Callable[[], None]) -> None:
    real = AuditLog.append

    def append(log: AuditLog, kind: AuditKind, data: dict[str, object]) -> Entry:
        if kind is AuditKind.APPLIED:
            stop()
        return real(log, kind, data)

    AuditLog.append = append  # type: ignore[method-assign, assignment]


def kill(when: str, settings: Settings, record: TaskRecord, test: AnswerTest | None) -> None:
    child = os.fork()
    if child == 0:
        try:
            if when == "landed":
                before_applied(lambda: os._exit(KILLED))
            else:
                apply_patch.commit_landing = lambda _: os._exit(KILLED)  # type: ignore[attr-defined, assignment]
            land_recorded(settings, record, PATCH, Path(record.task.repo), chosen=1, test=test)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == KILLED


@pytest.mark.parametrize("test", [written("test_a.py"), None], ids=["test", "alone"])
@pytest.mark.parametrize("when", ["landed", "renamed"])
def test_what_was_killed_is_taken_back_and_done_again(
    when: str, test: AnswerTest | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings, repo = settings_below(tmp_path, monkeypatch), tmp_path / "repo"
    record, stood = keep_proposals(settings, repo), files(repo)
    kill(when, settings, record, test)
    assert main(["undo", record.id]) == (0 if when == "landed" else 1)  # 1: rolled back, and no more to take back
    assert files(repo) == stood
    land_recorded(settings, record, PATCH, repo, chosen=1, test=test)
    assert files(repo) != stood
    assert main(["undo", record.id]) == 0
    assert files(repo) == stood


@pytest.mark.parametrize("first", [written("test_b.py"), None], ids=["test", "alone"])
def test_the_test_of_an_earlier_landing_is_not_taken_for_that_of_the_killed_one(
    first: AnswerTest | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings, repo = settings_below(tmp_path, monkeypatch), tmp_path / "repo"
    record, stood = keep_proposals(settings, repo), files(repo)
    land_recorded(settings, record, PATCH, repo, chosen=1, test=first)
    assert main(["undo", record.id]) == 0
    kill("landed", settings, record, written("test_a.py"))
    assert main(["apply", record.id, "--choose", "1"]) == 1  # begun and refused: it is already applied
    assert main(["undo", record.id]) == 0
    assert files(repo) == stood


def test_a_journal_that_cannot_be_written_afterwards_leaves_what_undo_takes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings, repo = settings_below(tmp_path, monkeypatch), tmp_path / "repo"
    record, stood = keep_proposals(settings, repo), files(repo)
    monkeypatch.setattr(AuditLog, "append", AuditLog.append)

    def full() -> None:
        raise CannotRecord("no space")

    before_applied(full)
    with pytest.raises(CannotRecord):
        land_recorded(settings, record, PATCH, repo, chosen=1, test=written("test_a.py"))
    assert main(["undo", record.id]) == 0
    assert files(repo) == stood


def test_a_landing_that_was_refused_does_not_hide_the_one_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings, repo = settings_below(tmp_path, monkeypatch), tmp_path / "repo"
    record, stood = keep_proposals(settings, repo), files(repo)
    land_recorded(settings, record, PATCH, repo, chosen=1, test=written("test_a.py"))
    assert main(["apply", record.id, "--choose", "1"]) == 1
    assert main(["undo", record.id]) == 0
    assert files(repo) == stood
