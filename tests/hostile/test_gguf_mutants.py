"""Mutants of the real model's file: refused, or still what acceptance promises; and no mutant takes the product down.

The weights of a mutant are a hole of zeros in a sparse file: what is tried is what the header makes the reader, and
llama.cpp behind it, believe.
"""

import hashlib
import random
import struct
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.gguf_builder import judged

from localagent.app import Settings
from localagent.domain.edit import Edit, Splice
from localagent.domain.paths import RepoPath
from localagent.errors import LocalagentError
from localagent.jail.api import open_jail
from localagent.llm.model.gguf import GgufFault, GgufHeader, read_header
from localagent.llm.model.registry import ModelFile, Registry
from localagent.llm.scoring.scorer import ModelScorer

pytestmark = pytest.mark.model

MUTANTS = 330
ORDINARY = 30
LOADED = 6
NUMBERS = (0, 1, 2, 31, 255, 1 << 16, (1 << 31) - 1, 1 << 31, 1 << 32, 1 << 40, 1 << 63, (1 << 64) - 1)


@pytest.fixture(scope="module")
def real() -> tuple[bytes, int, GgufHeader]:
    """The header's bytes, the file's size, what the reader says of it."""
    try:
        model = Registry(Path(__file__).resolve().parents[2] / "models", Settings.from_environ().data_dir).verify("")
    except LocalagentError as no:
        pytest.fail(f"this test needs the bundled model: {no}; {no.remedy}")
    assert model.path is not None
    with model.path.open("rb") as stream:
        header = read_header(stream)
        stream.seek(0)
        return stream.read(header.data_start), model.bytes, header


def mutant(head: bytes, tensors: int, rng: random.Random) -> bytes:
    """One to four changes: mostly where counts, keys and types stand (the beginning) and where tensors do (the end)."""
    data = bytearray(head)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        near = rng.choice((64, 2000, 2000, len(data)))
        at = rng.randrange(min(near, len(data))) if rng.random() < 0.6 else len(data) - 1 - rng.randrange(60 * tensors)
        kind = rng.randrange(6)
        if kind == 0:
            data[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            data[at : at + 8] = struct.pack("<Q", rng.choice(NUMBERS))
        elif kind == 2:
            data[at : at + 4] = struct.pack("<I", rng.choice(NUMBERS) & 0xFFFFFFFF)
        elif kind == 3:
            del data[at : at + rng.randrange(1, 64)]
        elif kind == 4:
            data[at:at] = data[at : at + rng.randrange(1, 64)]
        else:
            data[at : at + 16] = rng.randbytes(16)
    return bytes(data)


def written(path: Path, head: bytes, size: int) -> Path:
    with path.open("wb") as stream:
        stream.write(head)
        stream.truncate(max(size, len(head)))
    return path


def accepted(folder: Path, real: tuple[bytes, int, GgufHeader], numbers: range) -> Iterator[Path]:
    """Mutants that the reader takes. Each was judged: nothing of it lies outside the file or is of an unknown kind."""
    head, size, header = real
    for number in numbers:
        made = mutant(head, len(header.tensors), random.Random(number))
        path = written(folder / f"{number}.gguf", made, size)
        with path.open("rb") as stream:
            try:
                found = read_header(stream)
            except GgufFault:
                path.unlink()
                continue
        judged(found, path.stat().st_size)
        yield path


@pytest.mark.long
def test_the_unharmed_header_is_accepted(tmp_path: Path, real: tuple[bytes, int, GgufHeader]) -> None:
    with written(tmp_path / "m.gguf", real[0], real[1]).open("rb") as stream:
        assert read_header(stream) == real[2]


@pytest.mark.long
def test_mutants_of_the_real_header_are_refused_or_sound(tmp_path: Path, real: tuple[bytes, int, GgufHeader]) -> None:
    assert len(list(accepted(tmp_path, real, range(ORDINARY)))) < ORDINARY


@pytest.mark.slow
def test_no_mutant_takes_the_product_down(tmp_path: Path, real: tuple[bytes, int, GgufHeader]) -> None:
    """330 mutants; those the reader takes are given to llama.cpp in the child: an answer or a warning, and soon."""
    taken = list(accepted(tmp_path, real, range(1000, 1000 + MUTANTS)))
    assert len(taken) < MUTANTS / 2
    jail = open_jail()
    edit = Edit(
        path=RepoPath("a.py"), splices=(Splice(start=4, end=5, text=b"2"),), operator="x", line=1, end_line=1, prior=0.0
    )
    told = []
    for path in taken[:: max(1, len(taken) // LOADED)]:
        with path.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
        model = ModelFile(name="mutant", path=path, bytes=path.stat().st_size, sha256=digest, licence="x")
        scorer = ModelScorer(model, jail, threads=1)
        scores = scorer.score(b"x = 1\n", "", [edit], timeout_seconds=90)
        assert scores[0] is None or scores[0] <= 0.0
        told.append(scorer.warning or "answered")
        scorer.close()
        deadline = time.monotonic() + 30
        while scorer._process is not None and time.monotonic() < deadline:
            time.sleep(0.05)
        assert scorer._process is None
    assert told
