"""`reject`: the reason is kept with the task and on the record; `stats` tells what was predicted beside what stayed."""

import json
from pathlib import Path

import pytest

from localagent.cli.main import main
from localagent.domain.confidence import Confidence
from localagent.domain.edit import Candidate, FileChange, Patch
from localagent.domain.paths import RepoPath
from localagent.domain.task import Task, TaskResult, Verdict
from localagent.record.store import TaskRecord, TaskStore

PATCH = Patch(changes=(FileChange(path=RepoPath("a.py"), before=b"a = 1\n", after=b"a = 2\n"),))
DIFF = b"--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-a = 1\n+a = 2\n"


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    root = tmp_path / "repo"
    root.mkdir()
    (root / "a.py").write_bytes(b"a = 1\n")
    return root


def task(tmp_path: Path, repo: Path) -> TaskRecord:
    return TaskStore(tmp_path / "state" / "localagent").create(Task(id="", repo=str(repo)))


def accepted(tmp_path: Path, repo: Path, probability: float) -> TaskRecord:
    record = task(tmp_path, repo)
    record.save_patch(PATCH)
    confidence = Confidence(probability=probability, calibrated=True, model="t")
    result = TaskResult(verdict=Verdict.ACCEPTED, reason="", exit=0, patch=PATCH, confidence=confidence)
    record.save_result(result, diff=DIFF)
    return record


def proposed(tmp_path: Path, repo: Path) -> TaskRecord:
    record = task(tmp_path, repo)
    record.save_proposal(1, PATCH)
    candidate = Candidate(number=1, patch=PATCH, edits=(), cost=0.0)
    result = TaskResult(verdict=Verdict.LOW_CONFIDENCE, reason="", exit=1, proposals=(candidate,))
    record.save_result(result, proposed=[DIFF])
    return record


def test_proposals_are_rejected_with_a_reason(repo: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record = proposed(tmp_path, repo)
    assert main(["reject", record.id, "--reason", "neither is what was meant", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rejected"] is True
    assert record.rejection() == "neither is what was meant"
    assert (repo / "a.py").read_bytes() == b"a = 1\n"
    lines = [line for path in (tmp_path / "state").rglob("audit*/*.jsonl") for line in path.read_text().splitlines()]
    told = [json.loads(line) for line in lines if '"rejected"' in line]
    assert [one["data"]["task"] for one in told] == [record.id]
    assert "meant" not in json.dumps(told)  # the journal holds a digest of the words


def test_without_id_the_newest_task_of_the_repository_is_meant(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(repo)
    earlier, record = proposed(tmp_path, repo), proposed(tmp_path, repo)
    assert main(["reject", "--reason", "wrong"]) == 0
    assert record.id in capsys.readouterr().out
    assert (earlier.rejection(), record.rejection()) == (None, "wrong")


def test_nothing_is_rejected_that_is_not_there_or_applied(
    repo: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    empty = task(tmp_path, repo)
    assert main(["reject", empty.id, "--reason", "x"]) == 1
    assert "no patch and no proposals" in capsys.readouterr().err
    record = accepted(tmp_path, repo, 0.9)
    assert main(["apply", record.id]) == 0
    assert main(["reject", record.id, "--reason", "x"]) == 1
    assert "undo" in capsys.readouterr().err
    assert main(["reject", record.id, "--reason", "  "]) == 2


def test_stats_tell_what_was_predicted_beside_what_was_kept(
    repo: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    taken_back, rejected, kept = (accepted(tmp_path, repo, p) for p in (0.6, 0.7, 0.95))
    accepted(tmp_path, repo, 0.99)  # nobody has said anything of it
    assert main(["apply", taken_back.id]) == 0
    assert main(["undo", taken_back.id]) == 0
    assert main(["reject", rejected.id, "--reason", "wrong place"]) == 0
    assert main(["apply", kept.id]) == 0
    capsys.readouterr()
    assert main(["stats", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["confidence"] == {"settled": 3, "predicted": 2.25, "kept": 1}
    assert main(["stats"]) == 0
    assert "2.2 of 3 accepted patches predicted right, 1 kept" in capsys.readouterr().out


def test_a_damaged_rejection_does_not_end_stats(repo: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record = accepted(tmp_path, repo, 0.9)
    (record.dir / "rejection.json").write_text("[]")
    assert main(["stats", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["confidence"] is None
