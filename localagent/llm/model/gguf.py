"""A bounded reader of GGUF headers, run before llama.cpp sees a file.

It proves that the header is well formed: known types, bounded counts and strings, tensors inside the file and apart
from each other, an architecture we allow, one file that refers to no other. It does not judge weights or chat templates
and does not promise that the model is any good, or that llama.cpp can run it.
"""

import os
import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import BinaryIO

from localagent.errors import AnswerIsNo

ARCHITECTURES = frozenset(
    {
        "llama", "llama4", "qwen2", "qwen2moe", "qwen3", "qwen3moe", "phi2", "phi3", "gemma", "gemma2", "gemma3",
        "starcoder", "starcoder2", "codeshell", "deepseek", "deepseek2", "granite", "granitemoe", "gpt2", "gptneox",
        "stablelm", "olmo", "olmo2", "smollm3", "mistral3", "command-r", "internlm2", "exaone", "glm4",
    }
)  # fmt: skip

_CHUNK_BYTES = 1 << 20
_MAX_HEADER_BYTES = 96 << 20
_MAX_KEYS = 4096
_MAX_TENSORS = 65_536
_MAX_KEY_BYTES = 256
_MAX_TENSOR_NAME_BYTES = 128
_MAX_STRING_BYTES = 1 << 20
_MAX_ELEMENTS = 4 << 20
_MAX_DIMENSIONS = 4
_STRING, _ARRAY = 8, 9
MAX_ADAPTER_BYTES = 256 << 20
_MAX_ALPHA = 1024.0
_MAX_RANK = 64
_ADAPTER_TYPES = (0, 1, 8)  # F32, F16, Q8_0
_ADAPTER_KEYS = frozenset(
    {
        "general.type", "general.architecture", "general.name", "general.alignment", "general.file_type",
        "general.quantization_version", "adapter.type", "adapter.lora.alpha",
    }
)  # fmt: skip
_ADAPTED = re.compile(r"(blk\.\d{1,4}\.(?:attn_(?:q|k|v|output)|ffn_(?:gate|up|down))\.weight)\.lora_[ab]")
_SCALARS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<B", 10: "<Q", 11: "<q", 12: "<d"}

# ggml tensor type -> (elements in a block, bytes of a block)
_TENSOR_TYPES = {
    0: (1, 4), 1: (1, 2), 2: (32, 18), 3: (32, 20), 6: (32, 22), 7: (32, 24), 8: (32, 34), 9: (32, 36),
    10: (256, 84), 11: (256, 110), 12: (256, 144), 13: (256, 176), 14: (256, 210), 15: (256, 292),
    16: (256, 66), 17: (256, 74), 18: (256, 98), 19: (256, 50), 20: (32, 18), 21: (256, 110), 22: (256, 82),
    23: (256, 136), 24: (1, 1), 25: (1, 2), 26: (1, 4), 27: (1, 8), 28: (1, 8), 29: (256, 56), 30: (1, 2),
    34: (256, 54), 35: (256, 66), 39: (32, 17),
}  # fmt: skip

Scalar = int | float | bool | str


class GgufFault(AnswerIsNo):
    """The file is not a GGUF we hand to llama.cpp; the message says why."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Tensor:
    """One tensor's place, `start` counted from the beginning of the file; `shape` with its fastest dimension first."""

    name: str
    start: int
    size_bytes: int
    shape: tuple[int, ...] = ()
    kind: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class GgufHeader:
    """What a header said. `scalars` leaves arrays out; `array_lengths` has their lengths."""

    version: int
    architecture: str
    scalars: Mapping[str, Scalar]
    array_lengths: Mapping[str, int]
    tensors: tuple[Tensor, ...]
    data_start: int

    @property
    def context_tokens(self) -> int:
        """Length the model was trained for; 0 if the header does not say."""
        value = self.scalars.get(f"{self.architecture}.context_length", 0)
        return value if isinstance(value, int) else 0

    @property
    def licence(self) -> str:
        """The licence the file claims, or "unknown"."""
        value = self.scalars.get("general.license", "unknown")
        return value if isinstance(value, str) and value else "unknown"


class _Cursor:
    """Reads forward through a file in chunks, never past its end or the header bound."""

    def __init__(self, stream: BinaryIO, file_bytes: int) -> None:
        self._stream = stream
        self._limit = min(file_bytes, _MAX_HEADER_BYTES)
        self._file_bytes = file_bytes
        self._buffer = b""
        self._base = 0
        self._at = 0

    @property
    def offset(self) -> int:
        return self._base + self._at

    def take(self, count: int) -> bytes:
        if self._at + count > len(self._buffer):
            self._fill(count)
        piece = self._buffer[self._at : self._at + count]
        self._at += count
        return piece

    def skip(self, count: int) -> None:
        if self._at + count <= len(self._buffer):
            self._at += count
            return
        while count:
            step = min(count, _CHUNK_BYTES)
            self.take(step)
            count -= step

    def number(self, form: str) -> int:
        return int(struct.unpack(form, self.take(struct.calcsize(form)))[0])

    def string(self, limit_bytes: int, what: str) -> str:
        length = self.number("<Q")
        if length > limit_bytes:
            raise GgufFault(f"{what} is {length} bytes long, more than {limit_bytes}")
        try:
            return self.take(length).decode("utf-8")
        except UnicodeDecodeError:
            raise GgufFault(f"{what} is not UTF-8") from None

    def _fill(self, count: int) -> None:
        if self.offset + count > self._limit:
            reason = "ends inside its header" if self._limit == self._file_bytes else "has a header larger than allowed"
            raise GgufFault(f"the file {reason}")
        rest = self._buffer[self._at :]
        more = self._stream.read(max(count - len(rest), _CHUNK_BYTES))
        self._base, self._buffer, self._at = self.offset, rest + more, 0
        if len(self._buffer) < count:
            raise GgufFault("the file ends inside its header")


def read_header(stream: BinaryIO) -> GgufHeader:
    """Parse a model's header in an open regular file from its beginning. Raises GgufFault and nothing but OSError."""
    return _read(stream, "model")


def read_adapter(stream: BinaryIO, base: GgufHeader) -> GgufHeader:
    """Parse the header of a low-rank adapter for one model. Raises GgufFault and nothing else but OSError.

    Nothing but pairs of small matrices for the known projections of blocks that the model has, in its own shapes:
    no tokenizer, no template, no tokens that switch it on.
    """
    if os.fstat(stream.fileno()).st_size > MAX_ADAPTER_BYTES:
        raise GgufFault(f"the adapter is larger than {MAX_ADAPTER_BYTES} bytes")
    header = _read(stream, "adapter")
    if header.architecture != base.architecture:
        raise GgufFault(f"the adapter is for {header.architecture!r}, the model is {base.architecture!r}")
    more = sorted({*header.scalars, *header.array_lengths} - _ADAPTER_KEYS)
    if more:
        raise GgufFault(f"an adapter says nothing of {more[0]}")
    alpha = header.scalars.get("adapter.lora.alpha")
    if header.scalars.get("adapter.type") != "lora" or not isinstance(alpha, float) or not 0.0 < alpha <= _MAX_ALPHA:
        raise GgufFault("the adapter is not low-rank, or its alpha is not a number between 0 and 1024")
    shapes = {tensor.name: tensor.shape for tensor in base.tensors}
    halves = {tensor.name: tensor for tensor in header.tensors}
    for name, half in halves.items():
        found = _ADAPTED.fullmatch(name)
        if found is None or half.kind not in _ADAPTER_TYPES or len(half.shape) != 2:
            raise GgufFault(f"tensor {name!r} is none that an adapter may hold")
        down, up = halves.get(f"{found[1]}.lora_a"), halves.get(f"{found[1]}.lora_b")
        weight = shapes.get(found[1])
        if down is None or up is None or weight is None or len(weight) != 2:
            raise GgufFault(f"tensor {name!r} lacks its other half, or the model has no {found[1]}")
        rank = down.shape[1]
        if not rank <= _MAX_RANK or (down.shape, up.shape) != ((weight[0], rank), (rank, weight[1])):
            raise GgufFault(f"tensor {name!r} does not fit {found[1]} of the model")
    return header


def _read(stream: BinaryIO, what: str) -> GgufHeader:
    file_bytes = os.fstat(stream.fileno()).st_size
    stream.seek(0)
    cursor = _Cursor(stream, file_bytes)
    if file_bytes < 24 or cursor.take(4) != b"GGUF":
        raise GgufFault("not a GGUF file: the magic bytes are missing")
    version = cursor.number("<I")
    if version not in (2, 3):
        raise GgufFault(f"GGUF version {version} is not 2 or 3")
    tensor_count, key_count = cursor.number("<Q"), cursor.number("<Q")
    if not 0 < tensor_count <= _MAX_TENSORS:
        raise GgufFault(f"{tensor_count} tensors, not between 1 and {_MAX_TENSORS}")
    if not 0 < key_count <= _MAX_KEYS:
        raise GgufFault(f"{key_count} metadata keys, not between 1 and {_MAX_KEYS}")
    scalars, lengths = _metadata(cursor, key_count)
    architecture = _architecture(scalars, what)
    alignment = scalars.get("general.alignment", 32)
    if isinstance(alignment, bool) or not isinstance(alignment, int) or not _good_alignment(alignment):
        raise GgufFault(f"alignment {alignment!r} is not a power of two between 8 and 65536")
    infos = [_tensor_info(cursor) for _ in range(tensor_count)]
    data_start = -(-cursor.offset // alignment) * alignment
    tensors = _placed(infos, data_start, alignment, file_bytes)
    return GgufHeader(
        version=version, architecture=architecture, scalars=scalars, array_lengths=lengths, tensors=tensors,
        data_start=data_start,
    )  # fmt: skip


def _good_alignment(value: int) -> bool:
    return 8 <= value <= 65536 and value & (value - 1) == 0


def _metadata(cursor: _Cursor, count: int) -> tuple[dict[str, Scalar], dict[str, int]]:
    scalars: dict[str, Scalar] = {}
    lengths: dict[str, int] = {}
    for _ in range(count):
        key = cursor.string(_MAX_KEY_BYTES, "a metadata key")
        if not key or not key.isascii() or not key.isprintable():
            raise GgufFault("a metadata key is empty or not plain ASCII")
        if key in scalars or key in lengths:
            raise GgufFault(f"metadata key {key} appears twice")
        kind = cursor.number("<I")
        if kind == _ARRAY:
            lengths[key] = _skip_array(cursor, key)
        else:
            scalars[key] = _scalar(cursor, kind, key)
    return scalars, lengths


def _scalar(cursor: _Cursor, kind: int, key: str) -> Scalar:
    if kind == _STRING:
        return cursor.string(_MAX_STRING_BYTES, f"the text of {key}")
    form = _SCALARS.get(kind)
    if form is None:
        raise GgufFault(f"metadata key {key} has the unknown type {kind}")
    value = struct.unpack(form, cursor.take(struct.calcsize(form)))[0]
    if kind == 7:
        if value > 1:
            raise GgufFault(f"metadata key {key} is a boolean of value {value}")
        return bool(value)
    return float(value) if kind in (6, 12) else int(value)


def _skip_array(cursor: _Cursor, key: str) -> int:
    kind, length = cursor.number("<I"), cursor.number("<Q")
    if length > _MAX_ELEMENTS:
        raise GgufFault(f"the array {key} has {length} elements, more than {_MAX_ELEMENTS}")
    if kind == _STRING:
        for _ in range(length):
            size = cursor.number("<Q")
            if size > _MAX_STRING_BYTES:
                raise GgufFault(f"a text in the array {key} is {size} bytes long, more than {_MAX_STRING_BYTES}")
            cursor.skip(size)
    elif kind in _SCALARS:
        cursor.skip(length * struct.calcsize(_SCALARS[kind]))
    else:
        raise GgufFault(f"the array {key} has the unknown or nested type {kind}")
    return length


def _architecture(scalars: Mapping[str, Scalar], what: str) -> str:
    architecture = scalars.get("general.architecture")
    if not isinstance(architecture, str) or architecture not in ARCHITECTURES:
        raise GgufFault(f"architecture {architecture!r} is not one of those allowed")
    if scalars.get("split.count", 1) not in (0, 1):
        raise GgufFault("the model is split over several files; join them first")
    kind = scalars.get("general.type", "model")
    if kind != what:
        raise GgufFault(f"the file is a {kind!r}, not {'a' if what == 'model' else 'an'} {what}")
    return architecture


def _tensor_info(cursor: _Cursor) -> Tensor:
    """`start` is counted from the beginning of the data section."""
    name = cursor.string(_MAX_TENSOR_NAME_BYTES, "a tensor's name")
    rank = cursor.number("<I")
    if not 1 <= rank <= _MAX_DIMENSIONS:
        raise GgufFault(f"tensor {name!r} has {rank} dimensions, not between 1 and {_MAX_DIMENSIONS}")
    shape = [cursor.number("<Q") for _ in range(rank)]
    kind, offset = cursor.number("<I"), cursor.number("<Q")
    if kind not in _TENSOR_TYPES:
        raise GgufFault(f"tensor {name!r} has the unknown type {kind}")
    block, block_bytes = _TENSOR_TYPES[kind]
    elements = 1
    for size in shape:
        elements *= size
        if not 0 < elements < 1 << 48:
            raise GgufFault(f"tensor {name!r} has an impossible shape {shape}")
    if shape[0] % block:
        raise GgufFault(f"tensor {name!r} has rows of {shape[0]}, not a multiple of {block}")
    size_bytes = elements // block * block_bytes
    return Tensor(name=name, start=offset, size_bytes=size_bytes, shape=tuple(shape), kind=kind)


def _placed(infos: list[Tensor], data_start: int, alignment: int, file_bytes: int) -> tuple[Tensor, ...]:
    if len({info.name for info in infos}) != len(infos):
        raise GgufFault("two tensors have the same name")
    end = 0
    tensors: list[Tensor] = []
    for info in sorted(infos, key=lambda info: info.start):
        if info.start % alignment:
            raise GgufFault(f"tensor {info.name!r} is not aligned to {alignment} bytes")
        if info.start < end:
            raise GgufFault(f"tensor {info.name!r} overlaps the one before it")
        end = info.start + info.size_bytes
        if data_start + end > file_bytes:
            raise GgufFault(f"tensor {info.name!r} ends after the file")
        tensors.append(replace(info, start=data_start + info.start))
    return tuple(tensors)
