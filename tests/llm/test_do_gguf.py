"""`do` with the bundled model, which cannot write: it ends by itself, says so, and nothing is changed."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from support.git_builder import Repo

from localagent.app import Settings
from localagent.app.agent.chat_model import open_chat_model, weaknesses
from localagent.app.agent.model_profile import ToolFormat, keep_profile, last_profile, profile_path
from localagent.app.cancellation import Stop
from localagent.cli.main import main
from localagent.jail.api import NamespaceJail
from localagent.llm.chat.gguf_model import GgufModel
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


@pytest.mark.model
@pytest.mark.slow
def test_the_bundled_model_is_measured_not_fit_and_asked_in_the_format_it_called_best(
    bundled_model: ModelFile, jail: NamespaceJail, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = Settings.from_environ()
    path = profile_path(settings, f"sha256:{bundled_model.sha256}")
    assert path is not None
    try:
        assert main(["model", "qualify", bundled_model.name, "--seed", "1", "--json", "--quiet"]) == 1
        told = json.loads(capsys.readouterr().out)
        assert told["fitness"] == "unfit"
        assert told["skills"] == {}  # nothing more was asked of it
        profile = last_profile(settings, told["digest"])
        assert profile is not None
        keep_profile(replace(profile, dialect=ToolFormat.OWN.value), settings)
        with open_chat_model(bundled_model.name, settings, lambda: jail, Stop()) as model:
            assert isinstance(model, GgufModel)
            assert "better in localagent's own format" in model.dialect.native_fault
            assert any("it was not fit to change code" in text for text in weaknesses(model, settings))
    finally:
        path.unlink(missing_ok=True)
