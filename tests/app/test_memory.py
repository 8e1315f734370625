"""What a model's process takes when a task asks for all it may ask: the bundled one keeps to its bound."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from localagent.app import Settings
from localagent.app.models import memory
from localagent.app.models.memory import Peak, peak_of
from localagent.app.models.tuning import reference_edits
from localagent.llm.model.quantization_benchmark import MOST_MEMORY_BYTES, ReferenceEdits
from localagent.llm.model.registry import Registry
from localagent.llm.writing.sample_client import ModelSampler

pytestmark = pytest.mark.model


def peak_as_it_came(tmp_path: Path) -> Peak:
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
    assert peak.resident_bytes <= peak.limit_bytes
    return peak


@pytest.mark.slow
def test_the_bundled_model_as_it_came_keeps_to_its_bound(tmp_path: Path) -> None:
    peak = peak_as_it_came(tmp_path)
    assert peak.weights_bytes < peak.resident_bytes <= MOST_MEMORY_BYTES


@pytest.mark.long
def test_the_first_of_what_a_task_may_ask_is_far_below_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One edit, and one answer to a short question: what is loaded counts, not what fills its contexts."""

    def one(settings: Settings) -> ReferenceEdits:
        reference = reference_edits(settings)
        return replace(reference, edits=reference.edits[:1])

    monkeypatch.setattr(memory, "reference_edits", one)
    monkeypatch.setattr(memory, "_ANSWERS", 1)
    monkeypatch.setattr(memory, "_ANSWER_TOKENS", 4)
    monkeypatch.setattr(ModelSampler, "path_tokens", 40)
    peak = peak_as_it_came(tmp_path)
    assert peak.weights_bytes < peak.resident_bytes <= MOST_MEMORY_BYTES * 9 // 10
