"""What a model's process is given: counted from headers of any size, and enough for one that is loaded."""

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from support.model_replay import READY, ReplayJail
from support.tiny_model import QWEN, Shape, shapes, wide_model

from localagent.domain.jailspec import JailSpec
from localagent.jail.api import NamespaceJail
from localagent.llm.model import memory_estimate as needs_module
from localagent.llm.model.gguf import GgufHeader, Scalar, Tensor
from localagent.llm.model.memory_estimate import MOST_PATH_TOKENS, Needs, needs_of, needs_of_file
from localagent.llm.model.registry import ModelFile
from localagent.llm.process.batched_sampling import Draw
from localagent.llm.process.protocol import CONTEXT_TOKENS
from localagent.llm.process.shared_prefix import BRANCH_CELLS
from localagent.llm.scoring.scorer import ModelScorer
from localagent.llm.writing.sample_client import ModelSampler, text_prompt
from localagent.ports import JailProcess

EIGHT = Shape(width=4096, inner=14336, heads=32, kv_heads=8, layers=32, words=128_256, context=131_072)
THIRTY_TWO = Shape(width=5120, inner=27648, heads=40, kv_heads=8, layers=64, words=152_064, context=32_768)
SMALL = Shape(width=576, inner=1536, heads=9, kv_heads=3, layers=30, words=49_152, context=8192)


def header_of(shape: Shape, **told: Scalar) -> tuple[GgufHeader, int]:
    """A header with all tensors in Q4_0, and how large its file is."""
    tensors, at = [], 1 << 20
    for name, sizes in shapes(shape, shape.words).items():
        size = math.prod(sizes) // 32 * 18
        tensors.append(Tensor(name=name, start=at, size_bytes=size, shape=sizes, kind=2))
        at += size
    scalars: dict[str, Scalar] = {
        "llama.context_length": shape.context, "llama.attention.head_count": shape.heads, **told,
    }  # fmt: skip
    header = GgufHeader(
        version=3, architecture="llama", scalars=scalars, array_lengths={}, tensors=tuple(tensors), data_start=1 << 20
    )
    return header, at


def test_large_models_get_memory_for_their_weights_and_long_texts() -> None:
    for shape, weights_gib, each in ((EIGHT, 4.2, 131_072), (THIRTY_TWO, 17.1, 262_144)):
        found = needs_of(*header_of(shape))
        assert found.weights_bytes == pytest.approx(weights_gib * (1 << 30), rel=0.03)
        assert found.path_tokens == MOST_PATH_TOKENS
        assert found.branch_cells == MOST_PATH_TOKENS // 2
        assert found.cache_bytes == (CONTEXT_TOKENS + MOST_PATH_TOKENS + MOST_PATH_TOKENS // 2) * each
        assert found.weights_bytes * 1.2 < found.resident_bytes < found.weights_bytes * 2
        assert found.address_space_bytes > 2 * found.resident_bytes * 0.9
        assert found.load_seconds >= found.weights_bytes / 50e6  # a slow disk


def test_the_bundled_models_shape_stays_small() -> None:
    found = needs_of(*header_of(SMALL))
    assert (found.path_tokens, found.branch_cells) == (CONTEXT_TOKENS, BRANCH_CELLS)
    assert found.cache_bytes == (2 * CONTEXT_TOKENS + BRANCH_CELLS) * 23_040
    mends = needs_of(*header_of(SMALL), mends=True)
    assert mends.cache_bytes == found.cache_bytes + CONTEXT_TOKENS * 23_040
    assert found.used_bytes < 300 << 20
    assert found.resident_bytes < 500 << 20


def test_one_model_reads_as_much_in_any_quantization() -> None:
    header, size = header_of(EIGHT)
    assert needs_of(header, size).path_tokens == needs_of(header, 4 * size).path_tokens


def test_no_text_is_longer_than_the_model_was_trained_for() -> None:
    header, size = header_of(replace(EIGHT, context=2048))
    assert needs_of(header, size).path_tokens == 2048
    header, size = header_of(replace(EIGHT, context=512))
    assert needs_of(header, size).path_tokens == 512


@pytest.mark.parametrize(
    "told",
    [
        {"llama.attention.head_count": -5},
        {"llama.attention.head_count": 1 << 60},
        {"llama.attention.key_length": 1 << 60, "llama.attention.value_length": 1 << 60},
        {"llama.context_length": 1 << 60},
        {"llama.context_length": -1},
        {"llama.block_count": 1 << 60},
    ],
)
def test_a_header_claims_no_more_than_a_few_times_its_file(told: dict[str, Scalar]) -> None:
    for shape in (SMALL, EIGHT):
        header, size = header_of(shape, **told)
        latent = replace(header, tensors=tuple(t for t in header.tensors if ".attn_k." not in t.name))
        for one in (header, latent):
            found = needs_of(one, size)
            assert 0 < found.path_tokens <= MOST_PATH_TOKENS
            assert 0 <= found.cache_bytes <= max(2 * size, 1 << 30)
            assert size < found.resident_bytes <= 4 * size + (2 << 30)


def test_a_file_without_a_header_gets_the_least(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(b"not a model")
    assert needs_of_file(path) == Needs(weights_bytes=11)


def test_a_model_that_does_not_fit_into_memory_is_refused_before_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(b"x" * 1000)
    model = ModelFile(name="m", path=path, bytes=1000, sha256="0" * 64, licence="MIT")
    monkeypatch.setattr(needs_module, "free_bytes", lambda: 100 << 20)
    jail = ReplayJail(READY)
    scorer = ModelScorer(model, jail, threads=1)
    assert not scorer.ready(20)
    assert "needs 0.2 GiB of memory, of which 0.1 GiB are free" in scorer.warning
    assert jail.started == []
    hosted = ModelScorer(model, jail, threads=1, hosted=True)  # whoever holds the child has the memory
    assert hosted.ready(20)
    hosted.close()


class Watched:
    """A jail that remembers what was asked of it."""

    def __init__(self, jail: NamespaceJail) -> None:
        self._jail = jail
        self.spec: JailSpec | None = None

    def start(self, spec: JailSpec) -> JailProcess:
        self.spec = spec
        return self._jail.start(spec)


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModelFile]:
    """Some 470 million weights: more than the memory that was once given to any model."""
    shape = Shape(width=2048, inner=5632, heads=16, kv_heads=2, layers=10, words=16_000, context=8192)
    model = wide_model(tmp_path_factory.mktemp("wide"), QWEN, shape)
    yield model
    assert model.path is not None
    model.path.unlink()


@pytest.mark.slow
def test_a_larger_model_loads_and_answers_long_prompts_within_its_limit(wide: ModelFile, jail: NamespaceJail) -> None:
    watched = Watched(jail)
    scorer = ModelScorer(wide, watched, threads=1)
    assert scorer.ready(scorer.load_limit_seconds), scorer.warning
    assert scorer.path_tokens > CONTEXT_TOKENS
    long = "x = 1\n" * 350  # a token a byte
    answer = ModelSampler(scorer).draw(text_prompt(long), Draw(seeds=(1, 2), most_tokens=4), timeout_seconds=300)
    assert (len(answer.drawn), answer.refused, scorer.warning) == (2, "", "")
    assert watched.spec is not None
    needs = needs_of_file(wide.path) if wide.path is not None else Needs()
    assert watched.spec.limits.resident_bytes == needs.resident_bytes
    assert wide.bytes < scorer.resident_bytes < needs.resident_bytes
    scorer.close()
