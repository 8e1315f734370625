"""`localagent explain` from the command line."""

import io
import json
from pathlib import Path

import pytest
from support.git_builder import Repo

from localagent.cli.main import main

SHOP = "def price(items, name):\n    return items[name]\n\n\ndef total():\n    return price({}, 'pear')\n"
TRACE = (
    "2026 INFO start\nTraceback (most recent call last):\n"
    "  File \"/srv/shop.py\", line 6, in total\n    return price({}, 'pear')\n"
    "  File \"/srv/shop.py\", line 2, in price\n    return items[name]\nKeyError: 'pear'\n"
)


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    made = Repo(tmp_path / "r")
    made.stage("shop.py", SHOP)
    made.commit("prices")
    return made.folder


def explain(repo: Path, what: str, *more: str) -> int:
    return main(["explain", what, "--repo", str(repo), *more])


@pytest.mark.long
def test_a_log_from_elsewhere(repo: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "app.log"
    log.write_text(TRACE)
    assert explain(repo, str(log)) == 0
    out = capsys.readouterr().out
    assert out.startswith("KeyError: 'pear'\n")
    for line in ("shop.py:2, in price", "shop.py:6, in total", "`items` has no item `name`", "a: prices"):
        assert line in out
    assert explain(repo, str(log), "--json") == 0
    (one,) = json.loads(capsys.readouterr().out)["explanations"]
    assert [(f["path"], f["here"], f["match"]) for f in one["frames"]] == [
        ("shop.py", 6, "exact"),
        ("shop.py", 2, "exact"),
    ]


@pytest.mark.long
def test_standard_input_lines_and_rules(
    repo: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(TRACE.encode())))
    assert explain(repo, "-") == 0
    assert "KeyError" in capsys.readouterr().out
    assert explain(repo, "shop.py:2") == 0
    assert "a call of `price`" in capsys.readouterr().out
    for rule in ("run-text", "bare-except"):
        assert explain(repo, rule) == 0
        assert "why" in capsys.readouterr().out


@pytest.mark.long
@pytest.mark.parametrize(
    ("what", "code", "said"),
    [
        ("nothing", 2, "no file, rule, line or task"),
        ("shop.py:99", 2, "there is no line 99"),
        ("gone.py:1", 2, "no Python file"),
        ("shop.py", 1, "no traceback"),
    ],
)
def test_what_cannot_be_explained(
    repo: Path, what: str, code: int, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(repo)
    assert explain(repo, what) == code
    assert said in capsys.readouterr().err
