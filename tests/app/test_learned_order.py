"""Which learned order a task goes by: the user's own before the bundled one, and that one only if switched on."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from localagent.app import Settings
from localagent.app.fix.learned_order import REGISTERED, open_order
from localagent.errors import UsageFault
from localagent.repair.ordering.ranker import Ranker, knows_nothing, load_ranker, ranker_json

ROOT = Path(__file__).resolve().parents[2]


def ranker(name: str) -> str:
    models = {"with_model": knows_nothing(with_model=True), "without_model": knows_nothing(with_model=False)}
    return ranker_json(Ranker(name=name, **models), {})


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    models = tmp_path / "models"
    models.mkdir()
    shutil.copy(ROOT / "models" / "order.json", models)
    (models / "ranker.json").write_text(ranker("bundled"))
    return replace(Settings.from_environ({"HOME": str(tmp_path)}), models_dir=models, data_dir=tmp_path / "data")


def switch(settings: Settings, learned: float) -> None:
    (settings.models_dir / "order.json").write_text(f'{{"learned": {learned}}}')


def test_the_bundled_order_counts_as_far_as_its_switch_says(settings: Settings) -> None:
    switch(settings, 0.0)
    assert open_order(settings)[1] is None
    switch(settings, 0.5)
    weights, found = open_order(settings)
    assert found is not None
    assert (found.name, weights.learned) == ("bundled", 0.5)
    (settings.models_dir / "ranker.json").unlink()
    assert open_order(settings)[1] is None


def test_the_users_own_comes_first(settings: Settings) -> None:
    switch(settings, 0.0)
    own = settings.data_dir / REGISTERED
    own.parent.mkdir(parents=True)
    own.write_text(ranker("own"))
    weights, found = open_order(settings)
    assert found is not None
    assert (found.name, weights.learned) == ("own", 1.0)
    own.write_text("{}")
    with pytest.raises(UsageFault, match="expected schema 1"):
        open_order(settings)


def test_the_bundled_files_are_right() -> None:
    settings = Settings.from_environ({"HOME": "/nonexistent"})
    assert load_ranker(settings.models_dir / "ranker.json") is not None
    open_order(settings)
