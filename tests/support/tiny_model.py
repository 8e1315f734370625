"""Whole models of random weights, in the vocabulary and with the template of a given family.

They say nothing sensible; llama.cpp loads and runs them like any other, special tokens included. `tiny_model` has a few
thousand weights, `wide_model` as many as its shape says, four bits each.
"""

import hashlib
import math
import random
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from localagent.llm.model.registry import ModelFile
from support.gguf_builder import entry, string_entry, tensor, text

WIDTH, INNER, HEADS = 32, 64, 2
_NORMAL, _UNKNOWN, _CONTROL, _BYTE = 1, 2, 3, 6


@dataclass(frozen=True, kw_only=True)
class Family:
    """`specials` begin with the token that ends a text. `pieces`: a vocabulary of pieces, as CodeLlama's."""

    name: str
    specials: tuple[str, ...]
    template: str = ""
    pieces: bool = False


CHATML_ENDS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
QWEN = Family(name="qwen", specials=(*CHATML_ENDS, "<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"))
STARCODER = Family(name="starcoder", specials=("<|endoftext|>", "<fim_prefix>", "<fim_suffix>", "<fim_middle>"))
DEEPSEEK = Family(
    name="deepseek",
    specials=("<｜end▁of▁sentence｜>", "<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>"),  # noqa: RUF001
)
GRANITE = Family(
    name="granite",
    specials=(
        "<|end_of_text|>",
        "<fim_prefix>",
        "<fim_suffix>",
        "<fim_middle>",
        "<|start_of_role|>",
        "<|end_of_role|>",
    ),
    template=(
        "{% for m in messages %}{{ '<|start_of_role|>' + m.role + '<|end_of_role|>' + m.content + '<|end_of_text|>' }}"
        "{{ '\n' }}{% endfor %}"
        "{% if add_generation_prompt %}{{ '<|start_of_role|>assistant<|end_of_role|>' }}{% endif %}"
    ),
)
CODESTRAL = Family(
    name="codestral",
    specials=("</s>", "[PREFIX]", "[SUFFIX]", "[INST]", "[/INST]"),
    template=(
        "{{ bos_token }}{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no system') }}"
        "{% elif m.role == 'user' %}{{ '[INST]' + m.content + '[/INST]' }}"
        "{% else %}{{ m.content + eos_token }}{% endif %}{% endfor %}"
    ),
)
CODELLAMA = Family(name="codellama", specials=("</s>", "▁<PRE>", "▁<SUF>", "▁<MID>"), pieces=True)
FAMILIES = (QWEN, STARCODER, DEEPSEEK, GRANITE, CODESTRAL, CODELLAMA)


def _letters() -> list[str]:
    """The 256 bytes as byte-level vocabularies spell them."""
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    odd = [byte for byte in range(256) if byte not in plain]
    return [chr(byte) if byte in plain else chr(256 + odd.index(byte)) for byte in range(256)]


def _strings(values: Sequence[str]) -> bytes:
    return struct.pack("<IQ", 8, len(values)) + b"".join(text(value) for value in values)


def _vocabulary(family: Family, words: int = 0) -> tuple[int, list[bytes]]:
    """How many tokens, at least `words` of them, and their entries."""
    if family.pieces:
        tokens = ["<unk>", *family.specials, *(f"<0x{byte:02X}>" for byte in range(256)), "▁"]
        kinds = [_UNKNOWN, *[_CONTROL] * len(family.specials), *[_BYTE] * 256, _NORMAL]
    else:
        tokens = [*family.specials, *_letters(), "ab"]
        kinds = [*[_CONTROL] * len(family.specials), *[_NORMAL] * 257]
    more = max(0, words - len(tokens))
    tokens, kinds = [*tokens, *(f"<{k:06}>" for k in range(more))], [*kinds, *[_NORMAL] * more]
    first = 1 if family.pieces else 0
    entries = [
        string_entry("tokenizer.ggml.model", "llama" if family.pieces else "gpt2"),
        string_entry("tokenizer.ggml.pre", "default"),
        entry("tokenizer.ggml.tokens", 9, _strings(tokens)),
        entry("tokenizer.ggml.token_type", 9, struct.pack(f"<IQ{len(kinds)}i", 5, len(kinds), *kinds)),
        entry("tokenizer.ggml.scores", 9, struct.pack(f"<IQ{len(kinds)}f", 6, len(kinds), *[0.0] * len(kinds))),
        entry("tokenizer.ggml.merges", 9, _strings(["a b"])),
        entry("tokenizer.ggml.bos_token_id", 4, struct.pack("<I", first)),
        entry("tokenizer.ggml.eos_token_id", 4, struct.pack("<I", first)),
        entry("tokenizer.ggml.add_bos_token", 7, b"\0"),
    ]
    if family.template:
        entries.append(string_entry("tokenizer.chat_template", family.template))
    return len(tokens), entries


@dataclass(frozen=True, kw_only=True)
class Shape:
    """The sizes of a model of the llama family."""

    width: int
    inner: int
    heads: int
    kv_heads: int
    layers: int = 1
    words: int = 0
    context: int = 1536


def _head(family: Family, shape: Shape, infos: Sequence[bytes], vocabulary: Sequence[bytes]) -> bytes:
    """The file up to its tensors."""
    numbers = {
        "context_length": shape.context, "embedding_length": shape.width, "block_count": shape.layers,
        "feed_forward_length": shape.inner, "attention.head_count": shape.heads,
        "attention.head_count_kv": shape.kv_heads, "rope.dimension_count": shape.width // shape.heads,
    }  # fmt: skip
    entries = [
        string_entry("general.architecture", "llama"),
        string_entry("general.name", family.name),
        *(entry(f"llama.{key}", 4, struct.pack("<I", value)) for key, value in numbers.items()),
        entry("llama.attention.layer_norm_rms_epsilon", 6, struct.pack("<f", 1e-5)),
        *vocabulary,
    ]
    head = b"GGUF" + struct.pack("<IQQ", 3, len(infos), len(entries)) + b"".join(entries) + b"".join(infos)
    return head + bytes(-len(head) % 32)


def shapes(shape: Shape, words: int) -> dict[str, tuple[int, ...]]:
    """Every tensor by its name."""
    width, inner = shape.width, shape.inner
    narrow = width // shape.heads * shape.kv_heads
    found: dict[str, tuple[int, ...]] = {"token_embd.weight": (width, words), "output_norm.weight": (width,)}
    for k in range(shape.layers):
        found |= {f"blk.{k}.{n}_norm.weight": (width,) for n in ("attn", "ffn")}
        found |= {f"blk.{k}.attn_{n}.weight": (width, width) for n in ("q", "output")}
        found |= {f"blk.{k}.attn_{n}.weight": (width, narrow) for n in ("k", "v")}
        found |= {f"blk.{k}.ffn_{n}.weight": (width, inner) for n in ("gate", "up")}
        found |= {f"blk.{k}.ffn_down.weight": (inner, width)}
    return found | {"output.weight": (width, words)}


def wide_model(folder: Path, family: Family, shape: Shape) -> ModelFile:
    """A file of a shape, its matrices in Q4_0, its weights one random stretch over and over."""
    words, vocabulary = _vocabulary(family, shape.words)
    infos, pieces, at = [], list[tuple[int, bytes]](), 0
    dice = random.Random(0)
    row = b"".join(struct.pack("<e", 0.004) + dice.randbytes(16) for _ in range(1 << 13))
    ones = struct.pack("<f", 1.0) * shape.width
    for name, sizes in shapes(shape, words).items():
        plain = len(sizes) == 1
        size = 4 * sizes[0] if plain else math.prod(sizes) // 32 * 18
        infos.append(tensor(name, sizes, 0 if plain else 2, at))
        pieces.append((size, ones if plain else row))
        at += size + -size % 32
    path = folder / f"{family.name}-wide.gguf"
    with path.open("wb") as out:
        out.write(_head(family, shape, infos, vocabulary))
        for size, stretch in pieces:
            for _ in range(size // len(stretch)):
                out.write(stretch)
            out.write(stretch[: size % len(stretch)] + bytes(-size % 32))
    path.chmod(0o644)
    with path.open("rb") as made:
        digest = hashlib.file_digest(made, "sha256").hexdigest()
    return ModelFile(name=family.name, path=path, bytes=path.stat().st_size, sha256=digest, licence="none")


def tiny_model(folder: Path, family: Family, *, seed: int = 0, context: int = 1536) -> ModelFile:
    """A file of the family, made in a folder, as the registry would know it."""
    words, vocabulary = _vocabulary(family)
    shape = Shape(width=WIDTH, inner=INNER, heads=HEADS, kv_heads=HEADS, context=context)
    dice, infos, data = random.Random(seed), [], b""
    for name, sizes in shapes(shape, words).items():
        count = math.prod(sizes)
        infos.append(tensor(name, sizes, 0, len(data)))
        data += struct.pack(f"<{count}f", *(dice.gauss(0.0, 0.4) for _ in range(count)))
        data += bytes(-len(data) % 32)
    raw = _head(family, shape, infos, vocabulary) + data
    path = folder / f"{family.name}-{seed}.gguf"
    path.write_bytes(raw)
    path.chmod(0o644)
    return ModelFile(
        name=family.name, path=path, bytes=len(raw), sha256=hashlib.sha256(raw).hexdigest(), licence="none"
    )
