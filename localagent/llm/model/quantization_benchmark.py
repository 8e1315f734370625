"""Which format of a model's weights is fastest on this machine, found by measuring.

Weights that come in one quantization may run several times faster in another: kernels differ by processor. Each format
is written and read in confined children; one is kept if it is the fastest and orders reference edits as the registered
file does, and its process takes no more memory than it may. Not promised: that it is the fastest under load, or with
other thread counts.
"""

import fcntl
import hashlib
import os
import select
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import correlation
from typing import NamedTuple

from localagent.domain.edit import Edit
from localagent.errors import AnswerIsNo, CannotEnforce, LocalagentError
from localagent.fs.openat import move_file, replace_file
from localagent.jail.api import fresh_uid
from localagent.llm.model.gguf import read_header
from localagent.llm.model.quantized_store import AS_IT_IS, Tuned, folder, machine, record_path, text, weights_path
from localagent.llm.model.registry import ModelFile
from localagent.llm.process.batched_sampling import Draw
from localagent.llm.process.child_jail import child_spec
from localagent.llm.process.llama_engine import FORMATS
from localagent.llm.process.protocol import FrameBuffer, FrameFault, send
from localagent.llm.scoring.scorer import ModelScorer
from localagent.llm.writing.sample_client import ModelSampler, text_prompt
from localagent.ports import Jail

LEAST_AGREEMENT = 0.97
MOST_MEMORY_BYTES = 450_000_000  # of the process, unless more is given or the registered file takes more as it is
LARGEST_SOURCE_BYTES = 400 << 20  # larger ones are written four times as large at worst, and take long
_GROWTH = 4
_WRITING_SECONDS = 300.0
_SCORING_SECONDS = 120.0
_ROUNDS = 2
_LEAST_SCORES = 50
_WORTH = 1.1  # a rewritten file must be so much faster than the registered one
_COPY_BYTES = 1 << 20
_SCRATCH = ".tuning-"


@dataclass(frozen=True, kw_only=True, slots=True)
class ReferenceEdits:
    """Edits of one text that all formats score."""

    source: bytes
    edits: tuple[Edit, ...]


class Measured(NamedTuple):
    """Scores of the reference edits, tokens a second of processor time, and the memory of the process."""

    scores: Sequence[float | None]
    rate: float
    resident_bytes: int = 0


def tune(
    model: ModelFile,
    data_dir: Path,
    jail: Jail,
    reference: ReferenceEdits,
    say: Callable[[str], None],
    *,
    memory_bytes: int = MOST_MEMORY_BYTES,
) -> Tuned:
    """Measure, keep what won, and record it. `model` is a registered file; `say` hears a line for each step.

    A format is not used whose process takes more than `memory_bytes`, or than that of the registered file if more.

    AnswerIsNo when the model is too large, the disk is full, or another process does the same; CannotEnforce when the
    registered file itself cannot be scored with.
    """
    if model.path is None or model.bytes > LARGEST_SOURCE_BYTES:
        raise AnswerIsNo(
            f"{model.name} is not rewritten: only installed files up to {LARGEST_SOURCE_BYTES >> 20} MB are",
            remedy="it runs as it is; choose its quantization where you got it from",
        )
    try:
        with _alone(folder(data_dir)) as scratch:
            best = _best(model, jail, reference, say, scratch, memory_bytes)
            _keep(best, data_dir, scratch)
    except OSError as fault:
        raise AnswerIsNo(
            f"cannot keep rewritten weights below {folder(data_dir)}: {fault.strerror or fault}",
            remedy="make room there; the model runs as before meanwhile",
        ) from fault
    return best


@contextmanager
def _alone(place: Path) -> Iterator[Path]:
    """A scratch folder for the one process that may tune; what a killed one left behind goes away."""
    place.mkdir(parents=True, exist_ok=True, mode=0o755)
    with (place / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise AnswerIsNo("another process is measuring models here", remedy="wait until it has ended") from None
        for left in place.glob(f"{_SCRATCH}*"):
            shutil.rmtree(left, ignore_errors=True)
        with tempfile.TemporaryDirectory(dir=place, prefix=_SCRATCH) as scratch:
            yield Path(scratch)


def _best(
    model: ModelFile,
    jail: Jail,
    reference: ReferenceEdits,
    say: Callable[[str], None],
    scratch: Path,
    memory_bytes: int,
) -> Tuned:
    """What was measured; the files of all formats lie in `scratch`."""
    wanted, rate, resident = _measured(model, jail, reference)
    most = max(memory_bytes, resident)
    told = [k for k, score in enumerate(wanted) if score is not None]
    if len(told) < _LEAST_SCORES:
        raise CannotEnforce(f"{model.name} scores only {len(told)} of {len(wanted)} reference edits")
    say(f"{AS_IT_IS} ({model.quantization}): {rate:.0f} tokens/s, {_mb(resident)}")
    rates, agreement, failed = {AS_IT_IS: rate}, {AS_IT_IS: 1.0}, dict[str, str]()
    memory = {AS_IT_IS: resident}
    best = Tuned(
        source_sha256=model.sha256, machine=machine(), form=AS_IT_IS, bytes=model.bytes, sha256=model.sha256,
        rates=rates, agreement=agreement, failed=failed, memory=memory,
    )  # fmt: skip
    least = _WORTH * rate
    for form in FORMATS:
        path = scratch / f"{form}.gguf"
        try:
            made = _rewritten(model, form, jail, path)
            scores, rate, resident = _measured(made, jail, reference)
            both = [(a, b) for k in told if (a := wanted[k]) is not None and (b := scores[k]) is not None]
            if len(both) < len(told):
                raise CannotEnforce(f"it scores only {len(both)} of {len(told)} edits")
        except (LocalagentError, OSError) as fault:
            failed[form] = str(fault)
            say(f"{form}: not usable: {fault}")
            path.unlink(missing_ok=True)
            continue
        rates[form], agreement[form] = rate, rank_correlation(*zip(*both, strict=True))
        memory[form] = resident
        refused = "" if agreement[form] >= LEAST_AGREEMENT else f" (below {LEAST_AGREEMENT}: not used)"
        if not refused and resident > most:
            refused = f" (more than {_mb(most)}: not used)"
        say(f"{form}: {rate:.0f} tokens/s, {_mb(resident)}, order agrees to {agreement[form]:.3f}{refused}")
        if not refused and rate > least:
            (scratch / f"{best.form}.gguf").unlink(missing_ok=True)
            best, least = replace(best, form=form, bytes=made.bytes, sha256=made.sha256), rate
        else:
            path.unlink()
    return best


def rank_correlation(one: Sequence[float], other: Sequence[float]) -> float:
    """Spearman's rank correlation, ties by their mean rank; 0 where either is constant."""
    if len(set(one)) < 2 or len(set(other)) < 2:
        return 0.0
    return correlation(_ranks(one), _ranks(other))


def _ranks(values: Sequence[float]) -> list[float]:
    order = sorted(range(len(values)), key=values.__getitem__)
    out = [0.0] * len(values)
    at = 0
    while at < len(order):
        end = at
        while end + 1 < len(order) and values[order[end + 1]] == values[order[at]]:
            end += 1
        for k in order[at : end + 1]:
            out[k] = (at + end) / 2
        at = end + 1
    return out


def _mb(count: int) -> str:
    return f"{count / 1e6:.0f} MB"


def _measured(model: ModelFile, jail: Jail, reference: ReferenceEdits) -> Measured:
    """On one thread, the best rate of the rounds; memory with room for whatever a task asks of it."""
    scorer = ModelScorer(model, jail, threads=1)
    try:
        rate = 0.0
        first: Sequence[float | None] = ()
        for number in range(_ROUNDS):
            tokens, seconds = scorer.tokens_used, scorer.cpu_seconds
            context = f"# round {number}\n"  # another beginning, so that nothing is remembered
            got = scorer.score(reference.source, context, reference.edits, timeout_seconds=_SCORING_SECONDS)
            scorer.refuse_if_dropped()
            first = first or got
            rate = max(rate, (scorer.tokens_used - tokens) / max(1e-6, scorer.cpu_seconds - seconds))
        ModelSampler(scorer).draw(
            text_prompt("x = "), Draw(seeds=(0,), most_tokens=1), timeout_seconds=_SCORING_SECONDS
        )
        scorer.refuse_if_dropped()
        return Measured(first, rate, scorer.resident_bytes)
    finally:
        scorer.close()


def _rewritten(model: ModelFile, form: str, jail: Jail, path: Path) -> ModelFile:
    """The model in another format, as a new file; what the child wrote is bounded, hashed and parsed."""
    limit = _GROWTH * model.bytes
    with writable(path.parent) as target:
        process = jail.start(child_spec(model, "localagent.llm.process.requantize", target=target, writes_bytes=limit))
        try:
            request = {"kind": "requantize", "bytes": model.bytes, "sha256": model.sha256, "type": form}
            send(process.channel, request)
            buffer, until = FrameBuffer(), time.monotonic() + _WRITING_SECONDS
            answers: list[dict[str, object]] = []
            while not answers:
                left = until - time.monotonic()
                if left <= 0 or not select.select([process.channel], [], [], left)[0]:
                    raise CannotEnforce(f"writing it took longer than {_WRITING_SECONDS:.0f} s")
                data = process.channel.recv(1 << 16)
                if not data:
                    raise CannotEnforce("the child that writes it ended")
                answers = list(buffer.feed(data))
        except (OSError, FrameFault) as fault:
            raise CannotEnforce(f"the child that writes it failed: {fault}") from None
        finally:
            process.kill()
            process.channel.close()
        if answers[0]["kind"] != "written":
            raise CannotEnforce(str(answers[0].get("why", "the child refused"))[:300])
        digest, size = copied(target, path, limit)
    with path.open("rb") as stream:
        read_header(stream)
    return replace(model, path=path, bytes=size, sha256=digest, quantization=form)


@contextmanager
def writable(scratch: Path) -> Iterator[Path]:
    """An empty file which a jail's own user, and nobody else but us, may write."""
    with tempfile.NamedTemporaryFile(dir=scratch) as file:
        uid = fresh_uid()
        if uid is not None:
            os.fchown(file.fileno(), uid, uid)
        yield Path(file.name)


def copied(source: Path, path: Path, limit: int) -> tuple[str, int]:
    """What a child wrote, as a new file of ours: its SHA-256 and its bytes. CannotEnforce beyond `limit` bytes."""
    digest, size = hashlib.sha256(), 0
    with source.open("rb") as made, path.open("xb") as target:
        while piece := made.read(_COPY_BYTES):
            size += len(piece)
            if size > limit:
                raise CannotEnforce(f"the child wrote more than {limit} bytes")
            digest.update(piece)
            target.write(piece)
    path.chmod(0o644)
    return digest.hexdigest(), size


def _keep(best: Tuned, data_dir: Path, scratch: Path) -> None:
    """The record last, so that it never names a file that is not there; a file without a record serves nobody."""
    record, weights = record_path(data_dir, best.source_sha256), weights_path(data_dir, best.source_sha256)
    record.unlink(missing_ok=True)
    if best.form == AS_IT_IS:
        weights.unlink(missing_ok=True)
    else:
        move_file(scratch / f"{best.form}.gguf", weights)
    replace_file(record, text(best).encode("ascii"), mode=0o644)
