"""Builds small GGUF files from their layout, so that tests can break each field; judges what the reader accepted."""

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field

from localagent.llm.model.gguf import ARCHITECTURES, GgufHeader


def text(value: str | bytes) -> bytes:
    """A GGUF string."""
    data = value.encode() if isinstance(value, str) else value
    return struct.pack("<Q", len(data)) + data


def entry(key: str | bytes, kind: int, value: bytes) -> bytes:
    """A metadata entry with its value already packed."""
    return text(key) + struct.pack("<I", kind) + value


def string_entry(key: str, value: str) -> bytes:
    return entry(key, 8, text(value))


def tensor(name: str | bytes, shape: Sequence[int], kind: int, offset: int) -> bytes:
    """A tensor's info."""
    return text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, kind, offset)


@dataclass
class TinyGguf:
    """The parts of a file; `bytes` joins them."""

    magic: bytes = b"GGUF"
    version: int = 3
    entries: list[bytes] = field(
        default_factory=lambda: [
            string_entry("general.architecture", "llama"),
            string_entry("general.license", "apache-2.0"),
            entry("llama.context_length", 4, struct.pack("<I", 512)),
            entry("general.quantized", 7, b"\x01"),
            entry("tokenizer.ggml.tokens", 9, struct.pack("<IQ", 8, 2) + text("a") + text("b")),
            entry("tokenizer.ggml.scores", 9, struct.pack("<IQ", 6, 2) + struct.pack("<2f", 0.0, -1.0)),
        ]
    )
    tensors: list[bytes] = field(
        default_factory=lambda: [tensor("token_embd.weight", (32, 2), 0, 0), tensor("output.weight", (32, 2), 8, 256)]
    )
    entry_count: int | None = None
    tensor_count: int | None = None
    data: bytes = bytes(256 + 68)

    @property
    def bytes(self) -> bytes:
        tensors = len(self.tensors) if self.tensor_count is None else self.tensor_count
        entries = len(self.entries) if self.entry_count is None else self.entry_count
        head = self.magic + struct.pack("<IQQ", self.version, tensors, entries)
        head += b"".join(self.entries) + b"".join(self.tensors)
        return head + bytes(-len(head) % 32) + self.data


def judged(header: GgufHeader, size: int) -> None:
    """What acceptance promises, whatever bytes were mutated."""
    assert header.version in (2, 3)
    assert header.architecture in ARCHITECTURES
    assert len({t.name for t in header.tensors}) == len(header.tensors) > 0
    end = header.data_start
    for placed in header.tensors:
        assert placed.start >= end
        assert placed.size_bytes > 0
        end = placed.start + placed.size_bytes
    assert end <= size
