"""`do` with the bundled model, which cannot write: it ends by itself, says so, and nothing is changed."""

import json
from pathlib import Path

import pytest
from support.git_builder import Repo

from localagent.cli.main import main
from localagent.llm.model.registry import ModelFile


@pytest.mark.model
@pytest.mark.long
def test_a_model_that_cannot_write_ends_within_its_budget(
    bundled_model: ModelFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    repo = Repo(tmp_path / "r")
    repo.stage("shop.py", "def label(name):\n    return name.strip()\n")
    repo.stage("test_shop.py", "from shop import label\n\n\ndef test_label():\n    assert label(' a ') == 'a'\n")
    repo.commit()
    report = tmp_path / "report.json"
    code = main(
        [
            "do", "add a function shout", "--repo", str(repo.folder), "--model", bundled_model.name, "--trust", "auto",
            "--assume", "--max-steps", "2", "--max-seconds", "240", "--report", str(report),
        ]
    )  # fmt: skip
    told = json.loads(report.read_text())
    assert (code, told["outcome"]) == (1, "gave-up"), told
    assert told["model"]["name"] == bundled_model.name
    assert not repo.git("status", "--porcelain")
    assert any("far too small to write" in text for text in told["warnings"])
    assert "far too small to write" in capsys.readouterr().err
    assert told["agent"]["steps"] <= 2
