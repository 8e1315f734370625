"""Whole models of a few thousand random weights, in the vocabulary and with the template of a given family.

They say nothing sensible; llama.cpp loads and runs them like any other, special tokens included.
"""

import hashlib
import random
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gguf_builder import entry, string_entry, tensor, text

from localagent.llm.registry import ModelFile

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


def _vocabulary(family: Family) -> tuple[int, list[bytes]]:
    if family.pieces:
        tokens = ["<unk>", *family.specials, *(f"<0x{byte:02X}>" for byte in range(256)), "▁"]
        kinds = [_UNKNOWN, *[_CONTROL] * len(family.specials), *[_BYTE] * 256, _NORMAL]
    else:
        tokens = [*family.specials, *_letters(), "ab"]
        kinds = [*[_CONTROL] * len(family.specials), *[_NORMAL] * 257]
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


def tiny_model(folder: Path, family: Family, *, seed: int = 0, context: int = 1536) -> ModelFile:
    """A file of the family, made in a folder, as the registry would know it."""
    words, vocabulary = _vocabulary(family)
    numbers = {
        "context_length": context, "embedding_length": WIDTH, "block_count": 1, "feed_forward_length": INNER,
        "attention.head_count": HEADS, "attention.head_count_kv": HEADS, "rope.dimension_count": WIDTH // HEADS,
    }  # fmt: skip
    entries = [
        string_entry("general.architecture", "llama"),
        string_entry("general.name", family.name),
        *(entry(f"llama.{key}", 4, struct.pack("<I", value)) for key, value in numbers.items()),
        entry("llama.attention.layer_norm_rms_epsilon", 6, struct.pack("<f", 1e-5)),
        *vocabulary,
    ]
    shapes: dict[str, tuple[int, ...]] = {"token_embd.weight": (WIDTH, words), "output_norm.weight": (WIDTH,)}
    shapes |= {f"blk.0.{n}_norm.weight": (WIDTH,) for n in ("attn", "ffn")}
    shapes |= {f"blk.0.attn_{n}.weight": (WIDTH, WIDTH) for n in ("q", "k", "v", "output")}
    shapes |= {"blk.0.ffn_gate.weight": (WIDTH, INNER), "blk.0.ffn_up.weight": (WIDTH, INNER)}
    shapes |= {"blk.0.ffn_down.weight": (INNER, WIDTH), "output.weight": (WIDTH, words)}
    dice, infos, data = random.Random(seed), [], b""
    for name, shape in shapes.items():
        count = shape[0] * (shape[1] if len(shape) > 1 else 1)
        infos.append(tensor(name, shape, 0, len(data)))
        data += struct.pack(f"<{count}f", *(dice.gauss(0.0, 0.4) for _ in range(count)))
        data += bytes(-len(data) % 32)
    head = b"GGUF" + struct.pack("<IQQ", 3, len(infos), len(entries)) + b"".join(entries) + b"".join(infos)
    raw = head + bytes(-len(head) % 32) + data
    path = folder / f"{family.name}-{seed}.gguf"
    path.write_bytes(raw)
    path.chmod(0o644)
    return ModelFile(
        name=family.name, path=path, bytes=len(raw), sha256=hashlib.sha256(raw).hexdigest(), licence="none"
    )
