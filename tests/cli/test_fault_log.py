"""A fault of ours: one line for the user, a log in the state directory, and no token in it."""

from pathlib import Path

import pytest

from localagent.app.settings import Settings
from localagent.cli import history
from localagent.cli.main import main

TOKEN = "ghp_" + "9f8e7d6c5b4a39281706f5e4d3c2b1a09f8e"


def test_what_looks_like_a_token_is_in_no_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))

    def fails(*_: object) -> int:
        raise KeyError(f"\udcff line with {TOKEN}")

    monkeypatch.setattr(history, "run", fails)
    assert main(["history"]) == 3
    err = capsys.readouterr().err
    assert "it may quote your code" in err
    (log,) = (Settings.from_environ().state_dir / "faults").iterdir()
    text = log.read_text(encoding="utf-8")
    assert "KeyError" in text
    assert "in fails" in text
    assert TOKEN not in text
