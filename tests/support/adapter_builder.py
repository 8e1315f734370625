"""Low-rank adapters for the tiny models, built from their layout so that tests can break each field."""

import hashlib
import random
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from localagent.llm.model.adapter import AdapterFile
from support.gguf_builder import entry, string_entry, tensor
from support.tiny_model import WIDTH

PAIRS = {"blk.0.attn_q.weight": (WIDTH, WIDTH)}


@dataclass
class TinyAdapter:
    """The parts of an adapter. `size`: how far from nothing its second matrices are."""

    pairs: Mapping[str, tuple[int, int]] = field(default_factory=lambda: dict(PAIRS))
    rank: int = 2
    size: float = 0.5
    entries: Sequence[bytes] = (
        string_entry("general.architecture", "llama"),
        string_entry("general.type", "adapter"),
        string_entry("adapter.type", "lora"),
        entry("adapter.lora.alpha", 6, struct.pack("<f", 4.0)),
    )
    more: Sequence[tuple[str, tuple[int, ...], int]] = ()
    without: str = ""

    @property
    def bytes(self) -> bytes:
        dice, infos, data = random.Random(1), [], b""
        halves = [
            (f"{name}.lora_{end}", shape, 0, spread)
            for name, (wide, high) in self.pairs.items()
            for end, shape, spread in (("a", (wide, self.rank), 0.5), ("b", (self.rank, high), self.size))
        ]
        for name, shape, kind, spread in [*halves, *((*m, 0.1) for m in self.more)]:
            if name == self.without:
                continue
            count = 1
            for length in shape:
                count *= length
            infos.append(tensor(name, shape, kind, len(data)))
            letter = "f" if kind == 0 else "e"
            data += struct.pack(f"<{count}{letter}", *(dice.gauss(0.0, spread) for _ in range(count)))
            data += bytes(-len(data) % 32)
        head = b"GGUF" + struct.pack("<IQQ", 3, len(infos), len(self.entries)) + b"".join(self.entries)
        head += b"".join(infos)
        return head + bytes(-len(head) % 32) + data

    def file(self, folder: Path, name: str = "adapter.gguf") -> AdapterFile:
        """Written into a folder, as its record would tell it."""
        raw, path = self.bytes, folder / name
        path.write_bytes(raw)
        path.chmod(0o644)
        return AdapterFile(path=path, bytes=len(raw), sha256=hashlib.sha256(raw).hexdigest(), about={})
