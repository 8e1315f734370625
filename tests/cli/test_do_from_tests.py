"""`do --from-tests` from end to end: skeletons, bodies by the search or by a scripted model, tests that stay frozen."""

import json
from pathlib import Path
from typing import Any

import pytest
from support.false_model_server import calls_in_turn, false_model_server
from support.git_builder import Repo

from localagent.cli.main import main

EASY = 'def test_shout():\n    assert shout("a") == "A"\n    assert shout("b c") == "B C"\n'
HARD = "def test_roman():\n    assert roman(4) == 'IV'\n    assert roman(9) == 'IX'\n"


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repo:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    made = Repo(tmp_path / "r")
    made.stage("tests/test_extra.py", f"from texts.extra import shout\n\n\n{EASY}")
    made.stage("tests/test_both.py", f"from texts.extra import roman, shout\n\n\n{EASY}\n\n{HARD}")
    made.stage("pyproject.toml", '[tool.pytest.ini_options]\npythonpath = ["."]\n')
    made.commit()
    return made


def _do(repo: Repo, tmp_path: Path, *more: str) -> tuple[int, dict[str, Any]]:
    report = tmp_path / "report.json"
    words = ["do", "--repo", str(repo.folder), "--report", str(report), "--quiet", "--trust", "auto", "--assume"]
    code = main([*words, *more])
    return code, json.loads(report.read_text())


@pytest.mark.long
def test_the_search_fills_a_missing_module(repo: Repo, tmp_path: Path) -> None:
    code, told = _do(repo, tmp_path, "--from-tests", "tests/test_extra.py")
    assert (code, told["outcome"]) == (0, "accepted"), told["reason"]
    assert (sorted(told["agent"]["changed"]), told["agent"]["claim"]) == (
        ["texts/__init__.py", "texts/extra.py"],
        "fixes",
    )
    assert "tests outside the specification fail as before" in told["reason"]
    assert not repo.git("status", "--porcelain")
    assert main(["apply", told["task"]]) == 0
    assert ".upper()" in (repo.folder / "texts/extra.py").read_text()


@pytest.mark.slow
def test_what_the_search_cannot_fill_is_named_and_a_model_goes_on(repo: Repo, tmp_path: Path) -> None:
    code, told = _do(repo, tmp_path, "--from-tests", "tests/test_both.py")
    assert (code, told["outcome"]) == (1, "gave-up")
    assert "still to be written: roman (texts/extra.py:1)" in told["reason"]
    assert "shout" not in told["reason"].partition("still to be written")[2].partition(";")[0]
    assert main(["apply", told["task"]]) == 1
    out = tmp_path / "x.patch"
    assert main(["session", "export", told["task"], "--format", "patch", "--out", str(out)]) == 0
    assert b".upper()" in out.read_bytes()

    body = "def roman(arg1):\n    return 'I' + 'VX'[arg1 // 9]\n"
    calls = [
        ("edit", {"path": "tests/test_both.py", "old": "'IV'", "new": "None"}),
        ("replace_function", {"path": "texts/extra.py", "name": "roman", "source": body}),
        ("finish", {"summary": "done"}),
    ]
    report = tmp_path / "resumed.json"
    with false_model_server(calls_in_turn(calls)) as server:
        model = ["--model", f"unix:{server.socket}", "--report", str(report), "--quiet"]
        assert main(["session", "resume", told["task"], *model]) == 0
    shown = json.dumps(server.bodies[0]["messages"])
    assert "NotImplementedError" in shown
    assert "skeleton of texts.extra: roman, shout" in shown
    told = json.loads(report.read_text())
    assert sorted(told["agent"]["changed"]) == ["texts/__init__.py", "texts/extra.py"]
    assert "is one of the tests that this change is held against" in told["agent"]["refused"][0]


def test_a_specification_that_is_not_there_is_a_wrong_use(repo: Repo, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["do", "--repo", str(repo.folder), "--from-tests", "tests/test_none.py"]) == 2
    assert "tests/test_none.py: no such file" in capsys.readouterr().err
    assert main(["do", "--repo", str(repo.folder), "--from-tests", "."]) == 2
