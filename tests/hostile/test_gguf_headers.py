"""Headers that lie: each is refused with its own reason, and no mutation gets past the reader wrongly."""

import os
import random
import struct
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.gguf_builder import TinyGguf, entry, judged, string_entry, tensor, text

from localagent.llm.model.gguf import GgufFault, GgufHeader, read_header

GOOD = TinyGguf().bytes


def read(tmp: Path, data: bytes) -> GgufHeader:
    path = tmp / "m.gguf"
    path.write_bytes(data)
    with path.open("rb") as stream:
        return read_header(stream)


def test_a_sound_header_is_read(tmp_path: Path) -> None:
    header = read(tmp_path, GOOD)
    assert (header.version, header.architecture, header.licence) == (3, "llama", "apache-2.0")
    assert header.context_tokens == 512
    assert header.array_lengths == {"tokenizer.ggml.tokens": 2, "tokenizer.ggml.scores": 2}
    assert [(t.name, t.size_bytes) for t in header.tensors] == [("token_embd.weight", 256), ("output.weight", 68)]
    assert max(t.start + t.size_bytes for t in header.tensors) == len(GOOD)


def with_entry(extra: bytes) -> bytes:
    tiny = TinyGguf()
    tiny.entries.append(extra)
    return tiny.bytes


def with_tensors(*tensors: bytes) -> bytes:
    return TinyGguf(tensors=list(tensors)).bytes


HUGE = struct.pack("<Q", 1 << 62)

CASES = {
    "empty file": (b"", "magic bytes are missing"),
    "other magic": (TinyGguf(magic=b"GGML").bytes, "magic bytes are missing"),
    "old version": (TinyGguf(version=1).bytes, "version 1 is not"),
    "big-endian version": (TinyGguf(version=3 << 24).bytes, "is not 2 or 3"),
    "no tensors": (TinyGguf(tensor_count=0).bytes, "0 tensors"),
    "endless tensors": (TinyGguf(tensor_count=1 << 60).bytes, "tensors, not between"),
    "endless keys": (TinyGguf(entry_count=1 << 60).bytes, "metadata keys, not between"),
    "more keys than there are": (TinyGguf(entry_count=400).bytes, ""),
    "key too long": (with_entry(struct.pack("<Q", 300) + b"k" * 300), "a metadata key is 300 bytes long"),
    "key of 4 exabytes": (with_entry(HUGE), "a metadata key is 4611686018427387904 bytes long"),
    "key with newline": (with_entry(entry("a\nb", 4, bytes(4))), "empty or not plain ASCII"),
    "empty key": (with_entry(entry("", 4, bytes(4))), "empty or not plain ASCII"),
    "key twice": (with_entry(string_entry("general.license", "mit")), "general.license appears twice"),
    "key not UTF-8": (with_entry(entry(b"\xff\xfe", 4, bytes(4))), "is not UTF-8"),
    "unknown value type": (with_entry(entry("k", 13, bytes(8))), "unknown type 13"),
    "text of 4 exabytes": (with_entry(entry("k", 8, HUGE)), "the text of k is 4611686018427387904 bytes long"),
    "boolean of 2": (with_entry(entry("k", 7, b"\x02")), "boolean of value 2"),
    "array of 2^62": (with_entry(entry("k", 9, struct.pack("<I", 4) + HUGE)), "4611686018427387904 elements"),
    "nested array": (with_entry(entry("k", 9, struct.pack("<IQ", 9, 1))), "unknown or nested type 9"),
    "array text too long": (with_entry(entry("k", 9, struct.pack("<IQ", 8, 1) + HUGE)), "a text in the array k"),
    "array past the end": (with_entry(entry("k", 9, struct.pack("<IQ", 10, 4 << 20))), "ends inside its header"),
    "unknown architecture": (
        TinyGguf(entries=[string_entry("general.architecture", "trojan")]).bytes,
        "architecture 'trojan' is not one of those allowed",
    ),
    "no architecture": (TinyGguf(entries=[string_entry("general.name", "x")]).bytes, "architecture None"),
    "architecture is a number": (
        TinyGguf(entries=[entry("general.architecture", 4, bytes(4))]).bytes,
        "architecture 0 is not",
    ),
    "split": (with_entry(entry("split.count", 2, struct.pack("<H", 3))), "split over several files"),
    "adapter": (with_entry(string_entry("general.type", "adapter")), "is a 'adapter', not a model"),
    "alignment 0": (with_entry(entry("general.alignment", 4, bytes(4))), "alignment 0 is not"),
    "alignment 48": (with_entry(entry("general.alignment", 4, struct.pack("<I", 48))), "alignment 48 is not"),
    "alignment of 2^31": (with_entry(entry("general.alignment", 4, struct.pack("<I", 1 << 31))), "is not a power"),
    "alignment is text": (with_entry(string_entry("general.alignment", "32")), "alignment '32' is not"),
    "tensor after the file": (with_tensors(tensor("t", (32, 2), 0, 1 << 40)), "ends after the file"),
    "tensor one row too many": (with_tensors(tensor("t", (32, 3), 0, 0)), "ends after the file"),
    "tensors overlap": (with_tensors(tensor("a", (32,), 0, 0), tensor("b", (32,), 0, 64)), "overlaps the one before"),
    "tensor not aligned": (with_tensors(tensor("t", (32,), 0, 4)), "not aligned to 32 bytes"),
    "tensor twice": (with_tensors(tensor("t", (8,), 0, 0), tensor("t", (8,), 0, 32)), "the same name"),
    "tensor of unknown type": (with_tensors(tensor("t", (32,), 4, 0)), "unknown type 4"),
    "tensor of rank 0": (with_tensors(tensor("t", (), 0, 0)), "0 dimensions"),
    "tensor of rank 2^31": (with_tensors(text("t") + struct.pack("<I", 1 << 31)), "2147483648 dimensions"),
    "tensor of size 0": (with_tensors(tensor("t", (32, 0), 0, 0)), "impossible shape"),
    "tensor that wraps around": (with_tensors(tensor("t", (1 << 32, 1 << 32), 0, 0)), "impossible shape"),
    "half a block": (with_tensors(tensor("t", (33,), 8, 0)), "rows of 33, not a multiple of 32"),
    "name too long": (with_tensors(tensor("t" * 200, (8,), 0, 0)), "a tensor's name is 200 bytes long"),
}  # fmt: skip


@pytest.mark.parametrize(("data", "reason"), CASES.values(), ids=CASES)
def test_a_lying_header_is_refused_for_its_reason(tmp_path: Path, data: bytes, reason: str) -> None:
    with pytest.raises(GgufFault) as refused:
        read(tmp_path, data)
    assert reason in str(refused.value)


def survives(tmp: Path, data: bytes) -> bool:
    try:
        header = read(tmp, data)
    except GgufFault:
        return False
    judged(header, len(data))
    return True


@pytest.mark.long
def test_mutated_headers_are_refused_or_still_sound(tmp_path: Path) -> None:
    """600 mutations of a sound header: flipped bytes, replaced numbers, removed and doubled stretches."""
    rng = random.Random(7)
    header_bytes = len(GOOD) - 324
    refused = 0
    for _ in range(600):
        data = bytearray(GOOD)
        for _ in range(rng.choice((1, 1, 2, 5))):
            at = rng.randrange(header_bytes)
            kind = rng.randrange(4)
            if kind == 0:
                data[at] ^= 1 << rng.randrange(8)
            elif kind == 1:
                data[at : at + 8] = struct.pack("<Q", rng.choice((0, 1, 255, 1 << 31, 1 << 32, 1 << 63, (1 << 64) - 1)))
            elif kind == 2:
                del data[at : at + rng.randrange(1, 40)]
            else:
                data[at:at] = data[at : at + rng.randrange(1, 40)]
        refused += not survives(tmp_path, bytes(data))
    assert refused > 400


@pytest.mark.long
@settings(max_examples=150, deadline=None)
@given(cut=st.integers(min_value=0, max_value=len(GOOD) - 1))
def test_every_truncation_is_refused(tmp_path_factory: pytest.TempPathFactory, cut: int) -> None:
    assert not survives(tmp_path_factory.getbasetemp(), GOOD[:cut])


@pytest.mark.long
@settings(max_examples=150, deadline=None)
@given(tail=st.binary(max_size=400))
def test_noise_after_the_magic_is_refused_or_sound(tmp_path_factory: pytest.TempPathFactory, tail: bytes) -> None:
    survives(tmp_path_factory.getbasetemp(), b"GGUF\x03\0\0\0" + tail)


@pytest.mark.long
def test_a_header_that_never_ends_is_bounded(tmp_path: Path) -> None:
    """A sparse file of many gigabytes whose one array claims to fill it is refused before much is read."""
    tiny = TinyGguf(entries=[entry("k", 9, struct.pack("<IQ", 8, 4 << 20))], data=b"")
    path = tmp_path / "sparse.gguf"
    path.write_bytes(tiny.bytes)
    os.truncate(path, 8 << 30)
    with path.open("rb") as stream, pytest.raises(GgufFault):
        read_header(stream)
    tiny = TinyGguf(
        entries=[entry("k", 9, struct.pack("<IQ", 8, 200) + (struct.pack("<Q", 1 << 20) + bytes(1 << 20)) * 97)]
    )
    path.write_bytes(tiny.bytes)
    os.truncate(path, 8 << 30)
    with path.open("rb") as stream, pytest.raises(GgufFault, match="header larger than allowed"):
        read_header(stream)
