"""`apply` and `undo` from the command line down to the bytes."""

import json
from pathlib import Path

import pytest

from localagent.cli.main import main
from localagent.domain.edit import Candidate, Edit, FileChange, Patch, Splice
from localagent.domain.paths import RepoPath
from localagent.domain.task import Task, TaskResult, Verdict
from localagent.record.store import TaskRecord, TaskStore
from localagent.repo.diff.write_diff import unified_diff


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    root = tmp_path / "repo"
    root.mkdir()
    (root / "a.py").write_bytes(b"a = 1\n")
    return root


def keep_task(tmp_path: Path, repo: Path, before: bytes = b"a = 1\n", after: bytes | None = b"a = 2\n") -> TaskRecord:
    record = TaskStore(tmp_path / "state" / "localagent").create(Task(id="", repo=str(repo)))
    if after is not None:
        record.save_patch(Patch(changes=(FileChange(path=RepoPath("a.py"), before=before, after=after),)))
    return record


def test_apply_then_undo(repo: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record = keep_task(tmp_path, repo)
    assert main(["apply", record.id]) == 0
    assert (repo / "a.py").read_bytes() == b"a = 2\n"
    assert "changed a.py" in capsys.readouterr().out
    assert main(["undo", record.id]) == 0
    assert (repo / "a.py").read_bytes() == b"a = 1\n"
    assert "restored a.py" in capsys.readouterr().out
    assert sorted(p.name for p in repo.iterdir()) == ["a.py"]


def test_a_patch_that_git_took_back_is_neither_stuck_nor_lost(
    repo: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record = keep_task(tmp_path, repo)
    for verb in ("undo", "apply"):
        assert main(["apply", record.id]) == 0
        (repo / "a.py").write_bytes(b"a = 1\n")
        assert main([verb, record.id]) == 0
    assert (repo / "a.py").read_bytes() == b"a = 2\n"
    assert f"task {record.id} is no longer applied" in capsys.readouterr().out


def test_the_task_with_a_patch_is_named_where_the_newest_has_none(
    repo: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(repo)
    meant, newest = keep_task(tmp_path, repo), keep_task(tmp_path, repo, after=None)
    for given, named in (([], True), ([newest.id], False)):
        assert main(["apply", *given]) == 1
        err = capsys.readouterr().err
        assert f"task {newest.id} has no accepted patch" in err
        assert (f"localagent apply {meant.id}" in err) is named


def test_json(repo: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record = keep_task(tmp_path, repo)
    assert main(["apply", record.id, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "task": record.id,
        "repo": str(repo),
        "applied": True,
        "files": ["a.py"],
    }
    assert main(["undo", record.id, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["undone"] is True


def test_without_id_only_tasks_of_this_repository_are_meant(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other"
    for folder in (repo, other):
        (folder / ".git").mkdir(parents=True)
    (other / "a.py").write_bytes(b"a = 1\n")
    ours = keep_task(tmp_path, repo)
    theirs = keep_task(tmp_path, other)
    assert main(["apply", theirs.id]) == 0
    monkeypatch.chdir(repo)
    assert main(["undo"]) == 1
    assert f"no patch is applied to {repo}" in capsys.readouterr().err
    assert main(["apply"]) == 0
    assert (repo / "a.py").read_bytes() == b"a = 2\n"
    assert main(["show"]) == 1
    assert ours.id in capsys.readouterr().err
    plain = tmp_path / "plain"
    plain.mkdir()
    keep_task(tmp_path, plain)
    monkeypatch.chdir(plain)
    assert main(["undo"]) == 1  # never another folder's, where this one has tasks
    assert f"no patch is applied to {plain}" in capsys.readouterr().err
    monkeypatch.chdir(tmp_path)
    assert main(["undo"]) == 0
    assert f"not in a git repository: the last patch applied, {theirs.id}, is of {other}" in capsys.readouterr().err


def test_undo_without_id_takes_the_latest_applied_one_back(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    first = keep_task(tmp_path, repo)
    second = keep_task(tmp_path, repo, b"a = 2\n", b"a = 3\n")
    keep_task(tmp_path, repo, b"a = 3\n", b"a = 4\n")  # never applied
    assert main(["apply", first.id]) == 0
    assert main(["apply", second.id]) == 0
    assert main(["undo"]) == 0
    assert (repo / "a.py").read_bytes() == b"a = 2\n"
    assert main(["undo"]) == 0
    assert (repo / "a.py").read_bytes() == b"a = 1\n"
    assert main(["undo"]) == 1


def test_undoing_the_earlier_of_two_names_the_file(
    repo: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = keep_task(tmp_path, repo)
    second = keep_task(tmp_path, repo, b"a = 2\n", b"a = 3\n")
    main(["apply", first.id])
    main(["apply", second.id])
    assert main(["undo", first.id]) == 1
    assert "'a.py' was changed since" in capsys.readouterr().err
    assert (repo / "a.py").read_bytes() == b"a = 3\n"


def test_apply_refuses_another_tree(repo: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record = keep_task(tmp_path, repo)
    (repo / "a.py").write_bytes(b"mine\n")
    assert main(["apply", record.id]) == 1
    said = capsys.readouterr().err
    assert "'a.py' is not what the patch was made for" in said
    assert "what to do" in said
    assert (repo / "a.py").read_bytes() == b"mine\n"


def test_apply_of_a_task_without_patch(repo: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record = keep_task(tmp_path, repo, after=None)
    assert main(["apply", record.id]) == 1
    assert "no accepted patch" in capsys.readouterr().err


def test_a_task_with_one_accepted_patch_has_nothing_to_choose_from(
    repo: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record = keep_task(tmp_path, repo)
    assert main(["apply", record.id, "--choose", "1"]) == 1
    assert f"no proposals: `localagent apply {record.id}` writes it" in capsys.readouterr().err


def test_apply_of_an_unknown_task_is_a_usage_fault(repo: Path) -> None:
    assert main(["apply", "nothing"]) == 2
    assert main(["undo", "nothing"]) == 2


def test_apply_when_the_repository_is_gone(repo: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record = keep_task(tmp_path, repo)
    (repo / "a.py").unlink()
    repo.rmdir()
    assert main(["apply", record.id]) == 1
    assert "cannot enter" in capsys.readouterr().err


def keep_proposals(tmp_path: Path, repo: Path) -> TaskRecord:
    record = keep_task(tmp_path, repo, after=None)
    path, change = RepoPath("a.py"), b"a = 1\n"
    made = []
    for number, after in enumerate((b"a = 2\n", b"a = 3\n"), 1):
        patch = Patch(changes=(FileChange(path=path, before=change, after=after),))
        record.save_proposal(number, patch)
        splice = Splice(start=4, end=5, text=after[4:5])
        edit = Edit(path=path, splices=(splice,), operator="digit", line=1, end_line=1, prior=0, note=f"n{number}")
        made.append(Candidate(number=number, patch=patch, edits=(edit,), cost=0.0))
    result = TaskResult(verdict=Verdict.NEEDS_PERSON, reason="two", exit=1, proposals=tuple(made))
    record.save_result(result, proposed=[unified_diff(c.patch) for c in made])
    return record


def test_a_person_takes_one_of_the_proposals(repo: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record = keep_proposals(tmp_path, repo)
    assert main(["show", record.id]) == 0
    shown = capsys.readouterr().out
    assert "1. a.py:1 n1" in shown
    assert "+a = 3" in shown
    assert main(["apply", record.id, "--choose", "2"]) == 0
    assert (repo / "a.py").read_bytes() == b"a = 3\n"
    assert main(["undo", record.id]) == 0
    assert (repo / "a.py").read_bytes() == b"a = 1\n"


@pytest.mark.parametrize(
    ("argv", "said"),
    [((), "has no accepted patch"), (("--choose", "3"), "no proposal 3"), (("--choose", "-1"), "no proposal -1")],
)
def test_no_proposal_is_taken_unasked(
    argv: tuple[str, ...], said: str, repo: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record = keep_proposals(tmp_path, repo)
    assert main(["apply", record.id, *argv]) == 1
    heard = capsys.readouterr().err
    assert said in heard
    assert "--choose 1|2 applies one" in heard
    assert (repo / "a.py").read_bytes() == b"a = 1\n"
