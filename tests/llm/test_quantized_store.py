"""The record of a tuned model: what is written is read back, and whatever is not whole serves nobody."""

import hashlib
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localagent.llm.model import quantized_store
from localagent.llm.model.quantized_store import (
    AS_IT_IS,
    Tuned,
    load,
    machine,
    record_path,
    serving,
    stands,
    text,
    tuned_on_another_machine,
    weights_path,
)
from localagent.llm.model.registry import ModelFile

SOURCE = "a" * 64
WEIGHTS = b"GGUF rewritten"


def record(**changed: object) -> Tuned:
    values: dict[str, object] = {
        "source_sha256": SOURCE,
        "machine": machine(),
        "form": "BF16",
        "bytes": len(WEIGHTS),
        "sha256": "b" * 64,
        "rates": {AS_IT_IS: 100.0, "BF16": 250.0},
        "agreement": {AS_IT_IS: 1.0, "BF16": 0.99},
        "failed": {},
    }
    return Tuned(**{**values, **changed})  # type: ignore[arg-type]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    quantized_store.folder(tmp_path).mkdir(parents=True)
    weights_path(tmp_path, SOURCE).write_bytes(WEIGHTS)
    record_path(tmp_path, SOURCE).write_text(text(record()))
    return tmp_path


@pytest.fixture
def model(tmp_path: Path) -> ModelFile:
    path = tmp_path / "registered.gguf"
    path.write_bytes(b"GGUF")
    return ModelFile(name="m", path=path, bytes=4, sha256=SOURCE, licence="MIT", quantization="Q4_1")


def test_the_rewritten_file_serves_for_the_registered_one(data: Path, model: ModelFile) -> None:
    found = serving(model, data)
    assert (found.path, found.bytes, found.sha256) == (weights_path(data, SOURCE), len(WEIGHTS), "b" * 64)
    assert (found.name, found.registered_sha256) == ("m", SOURCE)
    assert found.quantization == "BF16, rewritten from Q4_1"
    assert record().faster == 2.5


@pytest.mark.parametrize(
    "spoil",
    [
        lambda data: weights_path(data, SOURCE).write_bytes(WEIGHTS + b"more"),
        lambda data: weights_path(data, SOURCE).unlink(),
        lambda data: record_path(data, SOURCE).unlink(),
        lambda data: record_path(data, SOURCE).write_text("{"),
        lambda data: record_path(data, SOURCE).write_text("[" * 60_000),
        lambda data: record_path(data, SOURCE).write_text(text(record(machine="another"))),
        lambda data: record_path(data, SOURCE).write_text(text(record(source_sha256="c" * 64))),
        lambda data: record_path(data, SOURCE).write_text(text(record(form=AS_IT_IS))),
        lambda data: record_path(data, SOURCE).write_text(text(record(rates={"BF16": "fast"}))),
        lambda data: record_path(data, SOURCE).write_text(text(record()).replace('"form"', '"farm"')),
    ],
)
def test_whatever_is_not_whole_leaves_the_model_as_it_is(data: Path, model: ModelFile, spoil: object) -> None:
    assert callable(spoil)
    spoil(data)
    assert serving(model, data) is model


def test_a_record_stands_while_it_is_complete_and_its_file_is_the_measured_one(data: Path, model: ModelFile) -> None:
    right = record(sha256=hashlib.sha256(WEIGHTS).hexdigest())
    assert stands(right, model, data)
    assert not stands(record(), model, data)
    assert not stands(record(sha256=right.sha256, failed={"Q8_0": "the disk is full"}), model, data)
    assert stands(record(form=AS_IT_IS), model, data)
    weights_path(data, SOURCE).unlink()
    assert not stands(right, model, data)


def test_a_record_of_another_machine_says_that_tuning_was_lost(data: Path) -> None:
    place = record_path(data, SOURCE)
    assert not tuned_on_another_machine(data, SOURCE)
    place.write_text(text(record(machine="another")))
    assert tuned_on_another_machine(data, SOURCE)
    assert load(data, SOURCE) is None
    place.write_text(text(record(machine="another", form=AS_IT_IS)))  # nothing was lost with that one
    assert not tuned_on_another_machine(data, SOURCE)
    place.write_text(text(record(machine="another", source_sha256="c" * 64)))
    assert not tuned_on_another_machine(data, SOURCE)
    place.unlink()
    assert not tuned_on_another_machine(data, SOURCE)


@pytest.mark.long
@given(
    form=st.text(max_size=10),
    size=st.integers(0, 1 << 60),
    rates=st.dictionaries(st.text(max_size=5), st.floats(0, 1e9), max_size=4),
)
def test_a_record_reads_back_as_it_was_written(
    form: str, size: int, rates: dict[str, float], tmp_path_factory: pytest.TempPathFactory
) -> None:
    data = tmp_path_factory.mktemp("data")
    made = record(form=form, bytes=size, rates=rates)
    quantized_store.folder(data).mkdir(parents=True)
    record_path(data, SOURCE).write_text(text(made))
    assert load(data, SOURCE) == made
    assert json.loads(text(made))["schema"] == 2


def test_a_record_of_before_memory_was_measured_still_serves(data: Path, model: ModelFile) -> None:
    table = json.loads(text(record(memory={"BF16": 1})))
    del table["memory"]
    record_path(data, SOURCE).write_text(json.dumps({**table, "schema": 1}))
    assert load(data, SOURCE) == record()
    record_path(data, SOURCE).write_text(json.dumps({**table, "memory": {"BF16": "much"}}))
    assert load(data, SOURCE) is None
