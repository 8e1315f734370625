"""`do --review-model`: a proven patch is read by a second model, which may stop it and lets nothing through."""

import json
from pathlib import Path
from typing import Any

import pytest
from support.false_model_server import CHAT, calls_by_role, false_model_server
from support.git_builder import Repo

from localagent.cli.main import main

SOURCE = "def total(items):\n    return sum(items)\n"
TEST = "from shop import total\n\n\ndef test_total():\n    assert total([1, 2]) == 3\n"
Calls = list[tuple[str, dict[str, Any]]]
WEAK = "from shop import mean\n\n\ndef test_mean():\n    assert mean([3]) == 3\n"
ADD: Calls = [
    ("edit", {"path": "shop.py", "old": SOURCE, "new": SOURCE + "\n\ndef mean(items):\n    return sum(items)\n"}),
    ("create", {"path": "tests/test_mean.py", "content": WEAK}),
    ("finish", {"summary": "done"}),
]
STRONG = "\n\ndef test_two():\n    assert mean([1, 3]) == 2\n"
MEAN = "mean(items):\n    return sum(items) / len(items)"
MEND: Calls = [
    ("edit", {"path": "shop.py", "old": "mean(items):\n    return sum(items)", "new": MEAN}),
    ("edit", {"path": "tests/test_mean.py", "old": "== 3\n", "new": f"== 3\n{STRONG}"}),
    ("finish", {"summary": "mended"}),
]
OBJECT = ("object", {"reason": "mean([1, 3]) is 4, not 2", "path": "shop.py", "line": 6})
APPROVE = ("approve", {"reason": "mean divides by the number of items"})


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repo:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    made = Repo(tmp_path / "r")
    for name, data in (
        ("shop.py", SOURCE),
        ("tests/test_total.py", TEST),
        ("pyproject.toml", '[tool.pytest.ini_options]\npythonpath = ["."]\n'),
    ):
        made.stage(name, data)
    made.commit()
    return made


def _do(
    repo: Repo, tmp_path: Path, worker: Calls, reviewer: Calls, *more: str
) -> tuple[int, dict[str, Any], list[Any]]:
    report = tmp_path / "report.json"
    with false_model_server() as server:
        server.answers[CHAT] = calls_by_role(lambda: server.bodies, implementer=worker, reviewer=reviewer)
        words = ["do", "add a function mean to shop.py", "--repo", str(repo.folder), "--model", f"unix:{server.socket}"]
        code = main([*words, "--report", str(report), "--trust", "auto", "--assume", *more])
        return code, json.loads(report.read_text()), list(server.bodies)


@pytest.mark.long
def test_an_objection_goes_back_and_what_is_mended_is_accepted(
    repo: Repo, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    more = ("--roles", "reviewer,implementer")
    code, told, bodies = _do(repo, tmp_path, [*ADD, *MEND], [OBJECT, APPROVE], *more)
    assert (code, told["outcome"]) == (0, "accepted"), told["reason"]
    assert [r["answer"] for r in told["agent"]["reviews"]] == ["object", "approve"]
    assert told["agent"]["roles"] == ["implementer", "reviewer"]
    reviews = [b for b in bodies if b["metadata"]["role"] == "reviewer"]
    assert [len(b["messages"]) for b in reviews] == [2, 2]  # a fresh conversation each time
    assert "def mean" in reviews[0]["messages"][1]["content"]
    worker = [b for b in bodies if b["metadata"]["role"] == "implementer"]
    assert "shop.py:6: mean([1, 3]) is 4, not 2" in worker[3]["messages"][-1]["content"]
    shown = capsys.readouterr().err
    assert "review by bot, a model's words and no proof: approve: mean divides" in shown
    assert main(["session", "export", told["task"], "--format", "markdown"]) == 0
    assert "**Reviewer (bot, a model): object**" in capsys.readouterr().out


def test_a_review_model_that_does_not_answer_is_told_and_nothing_is_asked(
    repo: Repo, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["do", "add a function mean to shop.py", "--repo", str(repo.folder), "--trust", "auto", "--assume"]
    with false_model_server() as server:
        more = ["--model", f"unix:{server.socket}", "--review-model", f"unix:{tmp_path}/none"]
        assert (main([*words, *more]), server.bodies) == (1, [])
    assert f"no model server answers at unix:{tmp_path}/none" in capsys.readouterr().err


def test_roles_that_review_nothing_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for more, says in (
        (["--roles", "reviewer", "--model", "unix:x"], "without implementer nothing is changed"),
        (
            ["--daemon", str(tmp_path / "s"), "--review-model", "unix:x"],
            "the daemon asks a model for nothing but",
        ),
        (["--roles", "implementer,reviewer"], "the reviewer needs --model or --review-model"),
        (["--roles", "implementer,king", "--model", "unix:x"], "'king' is none; known: planner, tester, implementer"),
        (["--roles", "tester,implementer"], "the tester needs --model"),
    ):
        assert main(["do", "x", "--repo", str(tmp_path), *more]) == 2
        assert says in capsys.readouterr().err
