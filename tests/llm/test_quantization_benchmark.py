"""Measuring formats of a model: what is kept, what is refused, and the real thing once."""

import fcntl
import hashlib
import os
import socket
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from support.gguf_builder import TinyGguf

from localagent.app import Settings
from localagent.app.models.tuning import reference_edits
from localagent.domain.edit import digest_of
from localagent.domain.jailspec import JailResult, JailSpec
from localagent.domain.outcome import JailOutcome
from localagent.errors import AnswerIsNo, CannotEnforce
from localagent.jail.api import NamespaceJail
from localagent.llm.model import quantization_benchmark as tuning
from localagent.llm.model import quantized_store
from localagent.llm.model.quantization_benchmark import (
    MOST_MEMORY_BYTES,
    Measured,
    ReferenceEdits,
    rank_correlation,
    tune,
)
from localagent.llm.model.quantized_store import AS_IT_IS, Tuned, load, serving, spare_of, stands, weights_path
from localagent.llm.model.registry import ModelFile
from localagent.llm.process.protocol import TARGET, pack, receive_first
from localagent.llm.scoring.scorer import ModelScorer

TINY = TinyGguf().bytes
WRITTEN = {"kind": "written", "type": "x"}


Found = tuple[Sequence[float | None], float] | tuple[Sequence[float | None], float, int]


class Writer:
    """A requantizing child that answers as it is told, after writing what it is told."""

    backend = level = "played"

    def __init__(self, content: bytes, answer: bytes | None) -> None:
        self._content, self._answer = content, answer
        self.channel, self._theirs = socket.socketpair()
        self.specs: list[JailSpec] = []

    alive = True

    def run(self, spec: JailSpec, *, stdin: bytes = b"") -> JailResult:
        raise AssertionError("never")

    def start(self, spec: JailSpec) -> "Writer":
        made = Writer(self._content, self._answer)
        self.specs.append(spec)
        made.specs = self.specs
        threading.Thread(target=made.play, daemon=True).start()
        return made

    def play(self) -> None:
        receive_first(self._theirs, "requantize")
        (target,) = (bind.source for bind in self.specs[-1].binds if bind.target == TARGET)
        Path(target).write_bytes(self._content)
        if self._answer is not None:
            self._theirs.sendall(self._answer)
        self._theirs.close()

    def kill(self) -> JailResult:
        return JailResult(
            ending=JailOutcome.EXITED, returncode=0, stdout=b"", stderr=b"", wall_seconds=0, backend="", level=""
        )

    wait = kill


@pytest.fixture
def model(tmp_path: Path) -> ModelFile:
    path = tmp_path / "m.gguf"
    path.write_bytes(TINY)
    digest = hashlib.sha256(TINY).hexdigest()
    return ModelFile(name="m", path=path, bytes=len(TINY), sha256=digest, licence="MIT", quantization="Q4_1")


ORDER = [-0.1 * k for k in range(100)]
REFERENCE = ReferenceEdits(source=b"x = 1\n", edits=())


@contextmanager
def measured(
    monkeypatch: pytest.MonkeyPatch,
    found: Mapping[str, Found],
) -> Iterator[None]:
    """Measures are given: by the quantization of the file that would be loaded."""
    with monkeypatch.context() as patch:
        patch.setattr(tuning, "_measured", lambda made, _jail, _reference: Measured(*found[made.quantization]))
        yield


def outcome(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    model: ModelFile,
    found: Mapping[str, Found],
    writer: Writer,
) -> tuple[Tuned, list[str]]:
    said: list[str] = []
    with measured(monkeypatch, found):
        return tune(model, tmp_path, writer, REFERENCE, said.append), said


def test_the_fastest_that_agrees_is_kept_and_serves(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, model: ModelFile
) -> None:
    found = {
        "Q4_1": (ORDER, 100.0),
        "BF16": ([1.1 * v for v in ORDER], 180.0),
        "Q8_0": (ORDER, 200.0),
        "Q4_0": (ORDER[::-1], 400.0),
    }
    best, said = outcome(monkeypatch, tmp_path, model, found, Writer(TINY, pack(WRITTEN)))
    assert (best.form, best.agreement["BF16"], best.rates) == (
        "Q8_0", 1.0, {AS_IT_IS: 100.0, "BF16": 180.0, "Q8_0": 200.0, "Q4_0": 400.0},
    )  # fmt: skip
    assert "below 0.97: not used" in said[-1]
    assert load(tmp_path, model.sha256) == best
    assert weights_path(tmp_path, model.sha256).read_bytes() == TINY
    assert serving(model, tmp_path).quantization == "Q8_0, rewritten from Q4_1"
    assert sorted(p.suffix for p in weights_path(tmp_path, model.sha256).parent.iterdir()) == ["", ".gguf", ".json"]


def test_a_gain_too_small_to_matter_leaves_the_model_as_it_is(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, model: ModelFile
) -> None:
    found = {"Q4_1": (ORDER, 100.0), **dict.fromkeys(("BF16", "Q8_0", "Q4_0"), (ORDER, 105.0))}
    weights_path(tmp_path, model.sha256).parent.mkdir(parents=True)
    weights_path(tmp_path, model.sha256).write_bytes(b"of an earlier time")
    best, _ = outcome(monkeypatch, tmp_path, model, found, Writer(TINY, pack(WRITTEN)))
    assert best.form == AS_IT_IS
    assert load(tmp_path, model.sha256) == best
    assert not weights_path(tmp_path, model.sha256).exists()
    assert serving(model, tmp_path) is model


def test_no_format_is_used_whose_process_takes_too_much(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, model: ModelFile
) -> None:
    found = {
        "Q4_1": (ORDER, 100.0, 300_000_000),
        "BF16": (ORDER, 400.0, MOST_MEMORY_BYTES + 1),
        "Q8_0": (ORDER, 200.0, MOST_MEMORY_BYTES),
        "Q4_0": (ORDER, 90.0, 200_000_000),
    }
    best, said = outcome(monkeypatch, tmp_path, model, found, Writer(TINY, pack(WRITTEN)))
    assert best.form == "Q8_0"
    assert best.memory == {AS_IT_IS: 300_000_000, **{form: found[form][2] for form in ("BF16", "Q8_0", "Q4_0")}}
    assert "more than 450 MB: not used" in said[1]
    assert load(tmp_path, model.sha256) == best
    with measured(monkeypatch, found):
        writer = Writer(TINY, pack(WRITTEN))
        more = tune(model, tmp_path, writer, REFERENCE, lambda _line: None, memory_bytes=500_000_000)
    assert more.form == "BF16"
    large = {form: (ORDER, rate, 900_000_000) for form, (_, rate, _) in found.items()}
    best, _ = outcome(monkeypatch, tmp_path, model, large, Writer(TINY, pack(WRITTEN)))
    assert best.form == "BF16"  # as it is it takes as much


@pytest.mark.parametrize(
    ("content", "answer", "why"),
    [
        (b"no model", pack(WRITTEN), "magic bytes are missing"),
        (TINY[:40], pack(WRITTEN), "not usable"),
        (TINY * 5, pack(WRITTEN), "wrote more than"),
        (TINY, pack({"kind": "refused", "why": "the disk is full"}), "the disk is full"),
        (TINY, None, "ended"),
        (TINY, b"\xff\xff\xff\xff....", "larger than"),
    ],
)
def test_what_a_child_did_not_write_well_is_not_used(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, model: ModelFile, content: bytes, answer: bytes | None, why: str
) -> None:
    found = {"Q4_1": (ORDER, 100.0)}
    best, said = outcome(monkeypatch, tmp_path, model, found, Writer(content, answer))
    assert best.form == AS_IT_IS
    assert all("not usable" in line and why in line for line in said[1:]), said
    assert len(said) == 4
    assert set(best.failed) == {"BF16", "Q8_0", "Q4_0"}
    assert not stands(best, model, tmp_path)  # asked again, it measures again


def test_the_child_may_write_four_times_the_model_and_no_more(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, model: ModelFile
) -> None:
    writer = Writer(TINY, None)
    outcome(monkeypatch, tmp_path, model, {"Q4_1": (ORDER, 100.0)}, writer)
    assert {spec.limits.file_bytes for spec in writer.specs} == {4 * len(TINY)}
    for spec in writer.specs:
        assert [bind.target for bind in spec.binds if bind.access.value == "rw"] == [TARGET]
        assert spec.limits.tmp_bytes == 4 * len(TINY)


def test_what_a_killed_one_left_goes_away_and_two_at_once_are_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, model: ModelFile
) -> None:
    place = quantized_store.folder(tmp_path)
    (place / ".tuning-old").mkdir(parents=True)
    (place / ".tuning-old" / "BF16.gguf").write_bytes(TINY)
    outcome(monkeypatch, tmp_path, model, {"Q4_1": (ORDER, 100.0)}, Writer(TINY, None))
    assert sorted(p.name for p in place.iterdir()) == [f"{model.sha256}.json", "lock"]
    with (place / "lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(AnswerIsNo, match="another process is measuring"):
            tune(model, tmp_path, Writer(b"", None), REFERENCE, lambda _line: None)


def test_no_room_for_rewritten_weights_is_an_answer(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, model: ModelFile
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(tuning, "copied", full)
        best, _ = outcome(patch, tmp_path, model, {"Q4_1": (ORDER, 100.0)}, Writer(TINY, pack(WRITTEN)))
        assert best.form == AS_IT_IS
        assert "No space left on device" in best.failed["BF16"]
    monkeypatch.setattr(tuning, "_keep", full)
    with pytest.raises(AnswerIsNo, match="No space left on device") as no:
        outcome(monkeypatch, tmp_path, model, {"Q4_1": (ORDER, 100.0)}, Writer(TINY, None))
    assert "make room" in no.value.remedy
    assert sorted(p.suffix for p in quantized_store.folder(tmp_path).iterdir()) == ["", ".json"]


def test_a_model_that_scores_few_edits_is_left_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, model: ModelFile
) -> None:
    few: list[float | None] = [*ORDER[:10], *[None] * 190]
    with pytest.raises(CannotEnforce, match="scores only 10 of 200"):
        outcome(monkeypatch, tmp_path, model, {"Q4_1": (few, 100.0)}, Writer(TINY, None))
    most: list[float | None] = [*ORDER, None]
    found = {"Q4_1": (most, 100.0), "BF16": (most, 300.0), "Q8_0": ([None, *ORDER], 400.0), "Q4_0": (most, 90.0)}
    best, said = outcome(monkeypatch, tmp_path, model, found, Writer(TINY, pack(WRITTEN)))
    assert (best.form, list(best.failed)) == ("BF16", ["Q8_0"])
    assert "scores only 99 of 100 edits" in said[2]


def test_a_large_or_absent_model_is_left_alone(tmp_path: Path, model: ModelFile) -> None:
    for odd in (replace(model, bytes=1 << 40), replace(model, path=None)):
        with pytest.raises(AnswerIsNo, match="is not rewritten"):
            tune(odd, tmp_path, Writer(b"", None), REFERENCE, lambda _line: None)


def test_ranks_are_compared_not_values() -> None:
    assert rank_correlation([1, 2, 3, 4], [10, 200, 3000, 4e9]) == pytest.approx(1.0)
    assert rank_correlation([1, 2, 3, 4], [4, 3, 2, 1]) == pytest.approx(-1.0)
    assert rank_correlation([1, 1, 2], [5, 5, 9]) == pytest.approx(1.0)
    assert rank_correlation([1, 1, 1], [1, 2, 3]) == 0.0


@pytest.mark.long
@pytest.mark.model
def test_the_bundled_model_is_measured_and_its_rewritten_weights_score_alike(
    tmp_path: Path, bundled_model: ModelFile, jail: NamespaceJail, monkeypatch: pytest.MonkeyPatch
) -> None:
    reference = reference_edits(Settings.from_environ())
    few = ReferenceEdits(source=reference.source, edits=reference.edits[::4])
    monkeypatch.setattr(tuning, "FORMATS", {"BF16": 32})
    monkeypatch.setattr(tuning, "_ROUNDS", 1)
    monkeypatch.setattr(tuning, "_WORTH", 0.0)  # also where the processor has no kernels for it
    said: list[str] = []
    best = tune(bundled_model, tmp_path, jail, few, said.append, memory_bytes=1 << 30)
    assert best.agreement["BF16"] > 0.97, said
    assert set(best.rates) == set(best.memory) == {AS_IT_IS, "BF16"}
    assert best.memory["BF16"] > best.memory[AS_IT_IS] > bundled_model.bytes
    assert best.form == "BF16"
    made = serving(bundled_model, tmp_path)
    scorer = ModelScorer(made, jail, threads=1)
    got = scorer.score(few.source, "", few.edits[:5], timeout_seconds=120)
    assert scorer.warning == ""
    assert None not in got
    assert scorer.digest == f"sha256:{bundled_model.sha256}"
    assert bundled_model.mender is not None
    assert scorer.weights == digest_of(f"{best.sha256}+{bundled_model.mender.sha256}".encode())
    scorer.close()
    assert made.path is not None
    with made.path.open("r+b") as weights:
        weights.seek(-2, os.SEEK_END)
        weights.write(b"\xaa\x55")
    spared = ModelScorer(made, jail, threads=1, spare=spare_of(made, bundled_model))
    assert None not in spared.score(few.source, "", few.edits[:5], timeout_seconds=120)
    assert "SHA-256 is not the registered one" in spared.remark
    assert (spared.warning, spared.weights) == ("", f"sha256:{bundled_model.sha256}")
    spared.close()


@pytest.mark.long
@pytest.mark.model
def test_rewritten_weights_that_were_altered_are_refused(
    tmp_path: Path, bundled_model: ModelFile, jail: NamespaceJail
) -> None:
    altered = tmp_path / "w.gguf"
    altered.write_bytes(TINY)
    model = replace(bundled_model, path=altered, bytes=len(TINY), registered_sha256=bundled_model.sha256)
    scorer = ModelScorer(model, jail, threads=1)
    few = reference_edits(Settings.from_environ())
    assert set(scorer.score(few.source, "", few.edits[:2], timeout_seconds=60)) == {None}
    assert "SHA-256 is not the registered one" in scorer.warning
    scorer.close()
    with pytest.raises(CannotEnforce, match="SHA-256"):
        tune(replace(model, registered_sha256=""), tmp_path, jail, few, lambda _line: None)
