"""Texts read whole by the real model in the real jail; and by children that do not answer."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.model_replay import READY, ReplayJail

from localagent.jail.launcher.runner import NamespaceJail
from localagent.llm.model.registry import ModelFile
from localagent.llm.scoring.decoder import ModelDecoder
from localagent.llm.scoring.scorer import ModelScorer
from localagent.llm.scoring.text_likelihood import MAX_TEXT_BYTES, ModelReader

HEAD = b"def total(prices):\n    result = 0\n    for price in prices:\n        result "
GOOD, ODD = HEAD + b"+= price\n    return result\n", HEAD + b"+= result\n    return price\n"


@pytest.fixture(scope="module")
def reader(bundled_model: ModelFile, jail: NamespaceJail) -> Iterator[ModelReader]:
    scorer = ModelScorer(bundled_model, jail, threads=1)
    yield ModelReader(ModelDecoder(scorer))
    scorer.close()


@pytest.mark.long
def test_what_people_write_is_likelier(reader: ModelReader) -> None:
    told = reader.likelihoods([GOOD, ODD], timeout_seconds=60.0)
    assert told is not None
    assert 0.0 >= told[0] > told[1] + 3.0


def test_only_what_follows_the_shared_beginning_counts(reader: ModelReader) -> None:
    alone = reader.likelihoods([GOOD, ODD], timeout_seconds=60.0)
    third = reader.likelihoods([GOOD, ODD, GOOD + b"\n"], timeout_seconds=60.0)
    assert alone is not None
    assert third is not None
    assert third[0] - third[1] == pytest.approx(alone[0] - alone[1], abs=0.5)
    assert reader.likelihoods([GOOD, GOOD], timeout_seconds=60.0) == [0.0, 0.0]


def test_what_cannot_be_read_is_not_known(reader: ModelReader) -> None:
    assert reader.likelihoods([], timeout_seconds=60.0) is None
    assert reader.likelihoods([b"x" * (MAX_TEXT_BYTES + 1)], timeout_seconds=60.0) is None
    assert reader.likelihoods([b"a b c " * 2500, b"a"], timeout_seconds=60.0) is None  # longer than the context


def test_a_model_that_ends_tells_nothing(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(b"GGUF")
    model = ModelFile(name="m", path=path, bytes=4, sha256="0" * 64, licence="MIT")
    scorer = ModelScorer(model, ReplayJail(READY, None), threads=1)
    assert ModelReader(ModelDecoder(scorer)).likelihoods([b"a", b"b"], timeout_seconds=5.0) is None
    assert "dropped" in scorer.warning
    scorer.close()
