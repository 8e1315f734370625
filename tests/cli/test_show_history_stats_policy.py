import io
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TypedDict, Unpack

import pytest

from localagent.cli.main import main
from localagent.cli.render import Render
from localagent.domain.confidence import Confidence
from localagent.domain.task import Task, TaskResult, Verdict
from localagent.record.store import TaskRecord, TaskStore

POLICIES = Path(__file__).parents[2] / "policies"


class Counts(TypedDict, total=False):
    """What a task came to, in numbers."""

    enumerated: int
    verified: int
    denied: Mapping[str, int]
    model_tokens: int
    seconds: Mapping[str, float]
    confidence: Confidence


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TaskStore:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return TaskStore(tmp_path / "localagent")


def keep(store: TaskStore, verdict: Verdict, repo: str = "/srv/r", **more: Unpack[Counts]) -> TaskRecord:
    record = store.create(Task(id="", repo=repo))
    record.save_result(
        TaskResult(verdict=verdict, reason="because", exit=0 if verdict is Verdict.ACCEPTED else 1, **more)
    )
    return record


def test_show_takes_the_newest_or_a_prefix(
    store: TaskStore, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    old = keep(store, Verdict.GAVE_UP)
    new = keep(store, Verdict.ACCEPTED)
    assert main(["show"]) == 0
    assert f"Task {new.id}: accepted" in capsys.readouterr().out
    assert main(["show", old.id[-6:], "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["task"] == old.id


def test_show_without_tasks_or_without_a_report(store: TaskStore, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show"]) == 2
    assert "no tasks yet" in capsys.readouterr().err
    record = store.create(Task(id="", repo="/r"))
    assert main(["show", record.id]) == 1
    err = capsys.readouterr().err
    assert "still running, or was killed" in err
    assert str(record.journal_path) in err
    assert main(["show", "99"]) == 2


def test_a_hostile_name_cannot_drive_the_terminal(
    store: TaskStore, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    keep(store, Verdict.GAVE_UP, repo="/srv/\x1b[2Jx\udce9")
    for verb in ("show", "history"):
        assert main([verb]) == 0
        out = capsys.readouterr().out
        assert "\x1b" not in out
        assert "\\x1b[2Jx\\xe9" in out


def test_history_lists_newest_first_and_names_what_is_damaged(
    store: TaskStore, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second, third = (
        keep(store, Verdict.GAVE_UP),
        keep(store, Verdict.ACCEPTED),
        store.create(Task(id="", repo="/r")),
    )
    (second.dir / "report.json").write_bytes(b"{")
    fourth = store.create(Task(id="", repo="/r"))
    (fourth.dir / "task.json").write_bytes(b"")
    assert main(["history", "--json"]) == 0
    captured = capsys.readouterr()
    rows = json.loads(captured.out)
    assert [(r["id"], r["outcome"]) for r in rows] == [
        (third.id, "unfinished"), (second.id, "damaged"), (first.id, "gave-up"),
    ]  # fmt: skip
    assert fourth.id in captured.err
    assert main(["history", "--limit", "1"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1
    assert main(["history", "--limit", "0"]) == 2


def test_history_tells_the_confidence_of_what_was_accepted(
    store: TaskStore, capsys: pytest.CaptureFixture[str]
) -> None:
    keep(store, Verdict.ACCEPTED, confidence=Confidence(probability=0.874, calibrated=True, model="t"))
    keep(store, Verdict.GAVE_UP)
    assert main(["history"]) == 0
    gave_up, accepted = capsys.readouterr().out.splitlines()
    assert " accepted         0.87 " in accepted
    assert "0.87" not in gave_up


def test_stats_sum_up_and_count_only_judged_tasks(store: TaskStore, capsys: pytest.CaptureFixture[str]) -> None:
    keep(
        store,
        Verdict.ACCEPTED,
        enumerated=10,
        verified=4,
        denied={"a": 1, "b": 2},
        model_tokens=7,
        seconds={"search": 1.5},
    )
    keep(store, Verdict.GAVE_UP, enumerated=5, verified=5)
    keep(store, Verdict.AMBIGUOUS)
    keep(store, Verdict.INTERRUPTED)
    assert main(["stats", "--json"]) == 0
    stats = json.loads(capsys.readouterr().out)
    assert stats["tasks"] == 4
    assert stats["success"] == pytest.approx(1 / 3, abs=1e-4)
    assert (stats["candidates_enumerated"], stats["candidates_denied"], stats["candidates_verified"]) == (15, 3, 9)
    assert (stats["model_tokens"], stats["seconds"]) == (7, 1.5)
    assert main(["stats"]) == 0
    assert "33% (1 of 3)" in capsys.readouterr().out


def test_stats_of_nothing(store: TaskStore, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["stats", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["success"] is None


def test_policy_check_lists_every_fault(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad = tmp_path / "p.toml"
    bad.write_text((POLICIES / "default.toml").read_text().replace("max_files = 3", "max_files = 0\nmore = 1"))
    assert main(["policy", "check", str(bad)]) == 2
    err = capsys.readouterr().err
    assert "size.max_files" in err
    assert "size.more: unknown key" in err
    assert main(["policy", "check", str(POLICIES / "strict.toml")]) == 0
    assert "'strict' is right" in capsys.readouterr().out


def test_policy_show_prints_what_check_takes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["policy", "show"]) == 0
    copy = tmp_path / "copy.toml"
    copy.write_text(capsys.readouterr().out)
    assert main(["policy", "check", str(copy)]) == 0
    capsys.readouterr()
    assert main(["policy", "show", "--policy", str(copy), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["name"] == "default"


def test_render_is_given_text_only() -> None:
    out = io.StringIO()
    Render(out=out).line("a\x07b")
    assert out.getvalue() == "a\\x07b\n"


@pytest.mark.long
@pytest.mark.parametrize("args", [("history",), ("history", "--json"), ("show", "ID", "--json"), ("nonsense",)])
def test_a_reader_that_went_away_is_no_fault_of_ours(store: TaskStore, tmp_path: Path, args: tuple[str, ...]) -> None:
    task = keep(store, Verdict.GAVE_UP).id
    args = tuple(task if argument == "ID" else argument for argument in args)
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "localagent", *args],
            cwd=POLICIES.parent,
            env={**os.environ, "XDG_STATE_HOME": str(tmp_path)},
            stdout=writing,
            stderr=subprocess.PIPE,
            check=False,
        )
    finally:
        os.close(writing)
    if args == ("nonsense",):
        assert done.returncode == 2
    else:
        assert (done.returncode, done.stderr) == (130, b"")
    assert not (tmp_path / "localagent" / "faults").exists()
