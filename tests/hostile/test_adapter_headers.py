"""Adapters that lie: each is refused with its own reason, before llama.cpp sees it."""

import random
import struct
from pathlib import Path

import pytest
from support.adapter_builder import TinyAdapter
from support.gguf_builder import entry, string_entry
from support.tiny_model import QWEN, WIDTH, tiny_model

from localagent.llm.model import gguf
from localagent.llm.model.gguf import GgufFault, GgufHeader, read_adapter, read_header

GOOD = TinyAdapter()


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> GgufHeader:
    model = tiny_model(tmp_path_factory.mktemp("base"), QWEN)
    assert model.path is not None
    with model.path.open("rb") as stream:
        return read_header(stream)


def read(tmp: Path, data: bytes, base: GgufHeader) -> GgufHeader:
    path = tmp / "a.gguf"
    path.write_bytes(data)
    with path.open("rb") as stream:
        return read_adapter(stream, base)


def told(key: str, value: bytes) -> TinyAdapter:
    """The good one with another entry in the place of one of the same key, or beside the others."""
    rest = [e for e in GOOD.entries if not e[8:].startswith(key.encode())]
    return TinyAdapter(entries=[*rest, value])


CASES = {
    "a model": (told("general.type", string_entry("general.type", "model")), "is a 'model', not an adapter"),
    "no type": (TinyAdapter(entries=[e for e in GOOD.entries if b"general.type" not in e]), "not an adapter"),
    "another architecture": (
        told("general.architecture", string_entry("general.architecture", "qwen2")),
        "is for 'qwen2', the model is 'llama'",
    ),
    "not low-rank": (told("adapter.type", string_entry("adapter.type", "control")), "not low-rank"),
    "alpha is nothing": (told("adapter.lora.alpha", entry("adapter.lora.alpha", 6, struct.pack("<f", 0.0))), "alpha"),
    "alpha is no number": (
        told("adapter.lora.alpha", entry("adapter.lora.alpha", 6, struct.pack("<f", float("nan")))),
        "alpha",
    ),
    "alpha without end": (
        told("adapter.lora.alpha", entry("adapter.lora.alpha", 6, struct.pack("<f", float("inf")))),
        "alpha",
    ),
    "a whole number": (told("adapter.lora.alpha", entry("adapter.lora.alpha", 4, struct.pack("<I", 4))), "alpha"),
    "a template": (
        TinyAdapter(entries=[*GOOD.entries, string_entry("tokenizer.chat_template", "{{ x }}")]),
        "says nothing of tokenizer.chat_template",
    ),
    "tokens that switch it on": (
        TinyAdapter(entries=[*GOOD.entries, entry("adapter.alora.invocation_tokens", 9, struct.pack("<IQI", 4, 1, 7))]),
        "says nothing of adapter.alora.invocation_tokens",
    ),
    "half a pair": (TinyAdapter(without="blk.0.attn_q.weight.lora_b"), "lacks its other half"),
    "a block that is not there": (TinyAdapter(pairs={"blk.7.attn_q.weight": (WIDTH, WIDTH)}), "the model has no"),
    "the vocabulary": (TinyAdapter(pairs={"token_embd.weight": (WIDTH, 9)}), "none that an adapter may hold"),
    "a norm": (TinyAdapter(more=[("blk.0.attn_norm.weight", (WIDTH,), 0)]), "none that an adapter may hold"),
    "another width": (TinyAdapter(pairs={"blk.0.attn_q.weight": (WIDTH * 2, WIDTH)}), "does not fit"),
    "another height": (TinyAdapter(pairs={"blk.0.attn_q.weight": (WIDTH, WIDTH * 2)}), "does not fit"),
    "a rank too high": (TinyAdapter(rank=65), "does not fit"),
}


def test_a_sound_adapter_is_read(tmp_path: Path, base: GgufHeader) -> None:
    header = read(tmp_path, GOOD.bytes, base)
    assert {t.name: t.shape for t in header.tensors} == {
        "blk.0.attn_q.weight.lora_a": (WIDTH, 2),
        "blk.0.attn_q.weight.lora_b": (2, WIDTH),
    }


@pytest.mark.parametrize("name", CASES)
def test_a_lie_is_refused_with_its_reason(name: str, tmp_path: Path, base: GgufHeader) -> None:
    adapter, reason = CASES[name]
    with pytest.raises(GgufFault, match=reason):
        read(tmp_path, adapter.bytes, base)


def test_an_adapter_is_no_model(tmp_path: Path) -> None:
    path = tmp_path / "a.gguf"
    path.write_bytes(GOOD.bytes)
    with path.open("rb") as stream, pytest.raises(GgufFault, match="is a 'adapter', not a model"):
        read_header(stream)


def test_one_that_is_too_large_is_refused(tmp_path: Path, base: GgufHeader, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gguf, "MAX_ADAPTER_BYTES", 100)
    with pytest.raises(GgufFault, match="larger than 100 bytes"):
        read(tmp_path, GOOD.bytes, base)


@pytest.mark.long
def test_mutants_are_refused_or_sound(tmp_path: Path, base: GgufHeader) -> None:
    shapes = {t.name: t.shape for t in base.tensors}
    dice, good, refused = random.Random(5), GOOD.bytes, 0
    for _ in range(400):
        data = bytearray(good)
        for _ in range(dice.randrange(1, 4)):
            data[dice.randrange(600)] = dice.randrange(256)
        try:
            header = read(tmp_path, bytes(data), base)
        except GgufFault:
            refused += 1
            continue
        for half in header.tensors:
            weight = shapes[half.name[: -len(".lora_a")]]
            assert half.shape in ((weight[0], 2), (2, weight[1]))
    assert refused > 100
