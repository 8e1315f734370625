"""A jail below the level that policy or sandbox ask for: every verb that runs code ends with 4 and runs nothing."""

from dataclasses import replace
from pathlib import Path

import pytest
from support.sarif_builder import log, result, run

from localagent.app.jail_level import least_level
from localagent.app.settings import Settings
from localagent.cli import main
from localagent.errors import CannotEnforce
from localagent.jail.backends.level import Layer
from localagent.jail.launcher import runner
from localagent.jail.probe import selection
from localagent.policy.load import load_policy


@pytest.fixture
def weak(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """A machine whose jail reaches L1; the list holds what was started all the same."""
    found = replace(selection.find_backend(), level="L1", layers=frozenset({Layer.NAMESPACES, Layer.SECCOMP}))
    started: list[object] = []

    def start(*words: object, **_: object) -> None:
        started.append(words)
        raise AssertionError("a jail was started")

    monkeypatch.setattr(selection, "find_backend", lambda *_, **__: found)
    monkeypatch.setattr(runner, "start", start)
    return started


def test_the_default_asks_for_a_bounded_number_of_processes() -> None:
    settings = Settings.from_environ()
    assert least_level(settings) == "L2"
    assert least_level(settings, load_policy(settings.policies_dir / "strict.toml")) == "L3"


def test_a_profile_may_ask_for_more_than_the_policy(tmp_path: Path) -> None:
    settings = Settings.from_environ()
    text = (settings.sandbox_dir / "quick.toml").read_text()
    (tmp_path / "quick.toml").write_text(text.replace('minimum_level = "L2"', 'minimum_level = "L4"'))
    assert least_level(replace(settings, sandbox_dir=tmp_path)) == "L4"


@pytest.mark.parametrize(
    "argv",
    [
        ("jail", "run", "--policy", "strict", "--", "true"),
        ("jail", "run", "--policy", "strict", "--gate", "-c", "eval(input())"),
    ],
)
def test_a_package_makes_no_jail_where_the_policy_denies_it(
    monkeypatch: pytest.MonkeyPatch, argv: tuple[str, ...]
) -> None:
    asked: list[bool] = []

    def find(*_: object, allow_third_party: bool = True) -> None:
        asked.append(allow_third_party)
        raise CannotEnforce("none")

    monkeypatch.setattr(selection, "find_backend", find)
    assert main.main(argv) == 4
    assert asked == [False]


@pytest.mark.long
@pytest.mark.parametrize(
    "argv",
    [
        ("jail", "run", "--", "true"),
        ("jail", "run", "--backend", "bubblewrap", "--", "true"),
        ("fix", "--repo", "REPO", "--no-model"),
        ("fix", "--repo", "REPO", "--no-model", "--check", "true"),
        ("remediate", "--sarif", "REPO/in.sarif", "--repo", "REPO", "--check", "true"),
    ],
)
def test_nothing_runs_below_the_least_level(
    weak: list[object], capsys: pytest.CaptureFixture[str], tmp_path: Path, argv: tuple[str, ...]
) -> None:
    (tmp_path / "test_a.py").write_text("def test_a():\n    assert False\n")
    (tmp_path / "a.py").write_text("def f(a, b):\n    return not a in b\n")
    (tmp_path / "in.sarif").write_bytes(log(run(result("E713", line=2))))
    code = main.main([word.replace("REPO", str(tmp_path)) for word in argv])
    told = capsys.readouterr()
    text = told.out + told.err
    assert code == 4, text
    assert "reaches level L1, and L2 is asked for: process-limit missing" in text
    assert "Linux 5.14" in text
    assert weak == []


def test_a_model_is_not_tuned_below_the_least_level(
    weak: list[object], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from localagent.app.models import tuning
    from localagent.llm.model.registry import ModelFile, Registry

    found = ModelFile(name="m", path=tmp_path / "m", bytes=1, sha256="0" * 64, licence="MIT")
    monkeypatch.setattr(Registry, "verify", lambda *_: found)
    with pytest.raises(CannotEnforce, match="process-limit missing"):
        tuning.tune_model("", Settings.from_environ(), lambda _: None)
    assert weak == []
