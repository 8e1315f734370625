"""`do` with the bundled model, which cannot write: it ends by itself, says so, and nothing is changed."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from support.git_builder import Repo

from localagent.agent.approval import Trust
from localagent.agent.limits import Limits
from localagent.app import Settings
from localagent.app.agent.chat_model import open_chat_model, weaknesses
from localagent.app.agent.model_profile import ToolFormat, keep_profile, last_profile, profile_path
from localagent.app.agent.request import DoRequest
from localagent.app.agent.run import run_do
from localagent.app.agent.session_run import Frontend
from localagent.app.cancellation import Stop
from localagent.cli.main import main
from localagent.jail.api import NamespaceJail
from localagent.llm.chat.gguf_model import GgufModel
from localagent.llm.model.registry import ModelFile
from localagent.repair.search.event_fanout import combined


@pytest.mark.model
@pytest.mark.long
def test_a_model_that_cannot_write_ends_within_its_budget(
    bundled_model: ModelFile,
    jail: NamespaceJail,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The bundled one is refused at once; put to work all the same, it ends by itself, and nothing is changed."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    repo = Repo(tmp_path / "r")
    repo.stage("shop.py", "def label(name):\n    return name.strip()\n")
    repo.stage("test_shop.py", "from shop import label\n\n\ndef test_label():\n    assert label(' a ') == 'a'\n")
    repo.commit()
    assert main(["do", "add a function shout", "--repo", str(repo.folder), "--model", bundled_model.name]) == 1
    said = capsys.readouterr().err
    assert "far too small to write" in said
    assert "localagent do --from-tests" in said
    assert not (tmp_path / "state/localagent/tasks").exists()
    settings = Settings.from_environ()
    request = DoRequest(
        instruction="add a function shout", repo=repo.folder, model=bundled_model.name, trust=Trust.AUTO, assume=True,
        limits=Limits(steps=2, seconds=240.0),
    )  # fmt: skip
    with open_chat_model(bundled_model.name, settings, lambda: jail, Stop()) as model:
        ended = run_do(request, settings, Frontend(sink=combined(()), model=model))
    assert (ended.exit, ended.report["outcome"]) == (1, "gave-up"), ended.report
    assert ended.report["model"]["name"] == bundled_model.name
    assert not repo.git("status", "--porcelain")
    assert ended.report["agent"]["steps"] <= 2


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
