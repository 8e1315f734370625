"""What a model's process takes when a task asks for all it may ask: the bundled one keeps to its bound."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from localagent.app import Settings
from localagent.app.model_memory import peak_of
from localagent.llm.registry import Registry
from localagent.llm.tune import MOST_MEMORY_BYTES


@pytest.mark.long
@pytest.mark.model
def test_the_bundled_model_as_it_came_keeps_to_its_bound(tmp_path: Path) -> None:
    ours = Settings.from_environ()
    weights = Registry(ours.models_dir, ours.data_dir).verify("").path
    assert weights is not None
    settings = replace(ours, data_dir=tmp_path)
    (tmp_path / "models").mkdir()
    shutil.copy(weights, tmp_path / "models" / weights.name)
    said: list[str] = []
    peak = peak_of("", settings, said.append)
    assert said == []
    assert peak.name == "smollm2-135m-instruct"
    assert peak.weights_bytes < peak.resident_bytes <= MOST_MEMORY_BYTES
    assert peak.resident_bytes <= peak.limit_bytes
