"""`do --from-tests` from end to end: skeletons, bodies by the search or by a scripted model, tests that stay frozen."""

import json
from pathlib import Path
from typing import Any

import pytest
from support.false_model_server import CHAT, completion, false_model_server, status
from support.git_builder import Repo

from localagent.cli.main import main

SPEC = """from shop.extra import shout\n\n\ndef test_shout():\n    assert shout("a") == "A"\n    assert shout("b c") == "B C"\n"""
HARD = "from shop.extra import roman\n\n\ndef test_roman():\n    assert roman(4) == 'IV'\n    assert roman(9) == 'IX'\n"


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repo:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    made = Repo(tmp_path / "r")
    made.stage("shop/__init__.py", "")
    made.stage("tests/test_extra.py", SPEC)
    made.stage("tests/test_roman.py", HARD)
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
    code, told = _do(repo, tmp_path, "--from-tests", "tests/test_extra.py", "--no-model")
    assert (code, told["outcome"]) == (0, "accepted"), told["reason"]
    assert told["agent"]["changed"] == ["shop/extra.py"]
    assert repo.git("status", "--porcelain") == b""
    assert main(["apply", told["task"]]) == 0
    assert "return text.upper()" in (repo.folder / "shop/extra.py").read_text().replace("arg1", "text")


@pytest.mark.long
def test_what_the_search_cannot_fill_is_named_and_proposed(repo: Repo, tmp_path: Path) -> None:
    code, told = _do(repo, tmp_path, "--from-tests", "tests/test_roman.py")
    assert (code, told["outcome"]) == (1, "needs-person")
    assert "still to be written: roman (shop/extra.py:1)" in told["reason"]
    assert not (repo.folder / "shop/extra.py").exists()
    assert main(["apply", told["task"], "--choose", "1"]) == 0
    assert "def roman(" in (repo.folder / "shop/extra.py").read_text()


@pytest.mark.long
def test_a_model_fills_the_skeleton_and_cannot_touch_the_tests(repo: Repo, tmp_path: Path) -> None:
    body = "def roman(number):\n    return 'I' + 'VX'[number // 9]\n"
    left = iter(
        [
            ("edit", {"path": "tests/test_roman.py", "old": "'IV'", "new": "None"}),
            ("replace_function", {"path": "shop/extra.py", "name": "roman", "source": body}),
            ("finish", {"summary": "done"}),
        ]
    )

    def answer(out: Any) -> None:
        name, arguments = next(left)
        status(200, completion(None, (name, json.dumps(arguments)), finish="tool_calls"))(out)

    with false_model_server(answer) as server:
        model = ("--model", f"unix:{server.socket}")
        code, told = _do(repo, tmp_path, "--from-tests", "tests/test_roman.py", *model)
    assert (code, told["outcome"]) == (0, "accepted"), told["reason"]
    first = server.bodies[0]["messages"]
    assert "skeleton" in first[1]["content"]
    assert "def roman(" in json.dumps(first)
    assert "is the specification" in told["agent"]["refused"][0]
    assert CHAT in server.asked


def test_no_model_is_for_tests_as_the_specification(repo: Repo, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["do", "x", "--repo", str(repo.folder), "--no-model"]) == 2
    assert "--no-model" in capsys.readouterr().err
