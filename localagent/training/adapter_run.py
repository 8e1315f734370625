"""`train`'s second part: an adapter for the language model, kept only if held-back fixes are met earlier with it.

Learning runs in a confined child that sees one model and tokens; checkpoints are written whole, named by what they
belong to and by their digest, and gone on with. Fixes that judge are of repositories that taught nothing (of other
commits, where there are too few repositories). Not promised: that a gain in rank is the same gain in tasks.
"""

import hashlib
import importlib.util
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from localagent.app.jail_level import open_policy_jail
from localagent.app.settings import Settings as House
from localagent.errors import AnswerIsNo, CannotEnforce, UsageFault
from localagent.jail.api import NamespaceJail
from localagent.llm.model import adapter
from localagent.llm.model.adapter import AdapterFile
from localagent.llm.model.registry import ModelFile
from localagent.llm.scoring.decoder import ModelDecoder
from localagent.llm.scoring.scorer import ModelScorer
from localagent.repair.ordering.weights import Weights
from localagent.repo.git import Git
from localagent.training.adapter_examples import TextPair, TokenExample, digest, examples_of, pairs_of
from localagent.training.adapter_learning import AdapterSettings, Learning, Say, cuda_devices
from localagent.training.ranker_corpus import Corpus
from localagent.training.ranker_judging import Paired, rank
from localagent.training.ranker_learning import listed
from localagent.training.ranker_samples import Read, Sample, reader_of

HELD_BACK = 4  # of so many parts of the fixes, one judges
LEAST_GROUPS = 4


@dataclass(frozen=True, kw_only=True, slots=True)
class AdapterTrained:
    """What came of it. `registered` is None where the model stays as it is."""

    examples: int
    steps: int
    digest: str
    judged: Paired
    registered: AdapterFile | None
    about: dict[str, Any]


def missing() -> list[str]:
    """The packages of the extra `train` that are not installed."""
    return [name for name in ("torch", "gguf") if importlib.util.find_spec(name) is None]


def require(device: str) -> None:
    """UsageFault where the extra is not installed, CannotEnforce where no GPU is there that was asked for."""
    if gone := missing():
        raise UsageFault(
            f"an adapter cannot be learned: {' and '.join(gone)} not installed",
            remedy="`pip install 'localagent[train]'` in localagent's own environment (docs/train.md), or learn the "
            "order alone: --preset ranker",
        )
    if device == "cuda" and not cuda_devices():
        raise CannotEnforce(
            "an adapter cannot be learned on a GPU: no device of one can be opened here (/dev/nvidia*)",
            remedy="use --preset cpu",
        )


def judging_fixes(samples: Sequence[tuple[str, str]]) -> Callable[[str, str], bool]:
    """Which fixes judge, of (repository, origin) of all: those of whole repositories, of commits where these are few.

    The answer is asked by repository and origin. A quarter of the fixes or more, never those of every repository.
    """
    groups = sorted({group for group, _ in samples}, key=lambda name: hashlib.sha256(name.encode()).hexdigest())
    if len(groups) < LEAST_GROUPS:
        return lambda _group, origin: hashlib.sha256(origin.encode()).digest()[0] % HELD_BACK == 0
    back: set[str] = set()
    for group in groups[:-1]:
        if sum(g in back for g, _ in samples) * HELD_BACK >= len(samples):
            break
        back.add(group)
    return lambda group, _origin: group in back


def learn_adapter(
    corpora: Sequence[Corpus],
    model: ModelFile,
    house: House,
    weights: Weights,
    say: Say,
    *,
    read_with: Callable[[ModelScorer], Read],
    device: str,
    ends: float,
) -> AdapterTrained:
    """Learn, judge and keep or drop. `ends` is a monotonic time; a fifth of what is left to it is for judging.

    `model` is what serves without an adapter. CannotEnforce where the child does not do its part.
    """
    settings, reader = AdapterSettings(), reader_of(model.sha256)
    real = [(corpus.name, s) for corpus in corpora for _, s in corpus.samples() if s.kind == "real" and s.truth]
    judges = judging_fixes([(name, s.origin) for name, s in real])
    back = [s for name, s in real if judges(name, s.origin) and s.reader == reader]
    jail = open_policy_jail(house)
    examples = _examples(corpora, judges, model, jail, say, seed=settings.seed)
    told = digest(examples)
    if not examples or not back:
        say(f"adapter: {len(examples)} examples, {len(back)} held-back fixes: nothing to learn from, or to judge by")
        nothing = Paired(hand=(), learned=())
        return AdapterTrained(examples=len(examples), steps=0, digest=told, judged=nothing, registered=None, about={})
    place = adapter.folder(house.data_dir)
    place.mkdir(parents=True, exist_ok=True, mode=0o755)
    with tempfile.TemporaryDirectory(dir=place, prefix=".learning-") as scratch:
        made = Path(scratch) / "adapter.gguf"
        learning = Learning(model, place, jail, say, Path(scratch), settings, device)
        written = learning.run(examples, told, made, ends=time.monotonic() + 0.8 * (ends - time.monotonic()))
        candidate = AdapterFile(path=made, bytes=made.stat().st_size, sha256=str(written["sha256"]), about={})
        judged = _judged(back, replace(model, adapter=candidate), jail, weights, say, read_with)
        about = {
            "model": _registered(model),
            "repositories": sorted(corpus.name for corpus in corpora),
            "examples": len(examples),
            "data": told,
            "settings": asdict(settings),
            "device": device,
            "steps": written["steps"],
            "loss": [written["loss_first"], written["loss_last"]],
            "judged": judged.figures(),
        }
        kept = _install_adapter(candidate, about, house, model) if judged.is_better else None
    return AdapterTrained(
        examples=len(examples), steps=int(written["steps"]), digest=told, judged=judged, registered=kept, about=about
    )


def _registered(model: ModelFile) -> str:
    """The SHA-256 of the registered file, whatever serves of it."""
    return model.registered_sha256 or model.sha256


def _examples(
    corpora: Sequence[Corpus],
    judges: Callable[[str, str], bool],
    model: ModelFile,
    jail: NamespaceJail,
    say: Say,
    *,
    seed: int,
) -> list[TokenExample]:
    """What the histories teach, without the fixes that judge, in the model's tokens. CannotEnforce without a model."""
    say("adapter: looking for examples")
    pairs: list[TextPair] = []
    for corpus in corpora:
        git, name = Git(corpus.repo, {}), corpus.name
        teaches = partial(_teaches, judges, name)
        found = list(pairs_of(git, name, corpus.files(git), teaches, seed=seed))
        say(f"adapter: {name}: {len(found)} examples")
        pairs += found
    scorer = ModelScorer(model, jail, threads=1)
    try:
        examples = examples_of(pairs, ModelDecoder(scorer))
        scorer.refuse_if_dropped()
    finally:
        scorer.close()
    return examples


def _teaches(judges: Callable[[str, str], bool], repository: str, origin: str) -> bool:
    return not judges(repository, origin)


def _install_adapter(candidate: AdapterFile, about: dict[str, Any], house: House, model: ModelFile) -> AdapterFile:
    """The adapter in its place. AnswerIsNo where there is no room for it."""
    try:
        return adapter.keep(candidate.path, candidate.sha256, about, house.data_dir, _registered(model))
    except OSError as fault:
        raise AnswerIsNo(
            f"the adapter cannot be kept below {adapter.folder(house.data_dir)}: {fault.strerror or fault}",
            remedy="make room there",
        ) from fault


def _judged(
    back: Sequence[Sample],
    candidate: ModelFile,
    jail: NamespaceJail,
    weights: Weights,
    say: Say,
    read_with: Callable[[ModelScorer], Read],
) -> Paired:
    """Ranks of held-back fixes in the hand's order, by what the model read and by what it reads with the adapter."""
    base: list[int] = []
    adapted: list[int] = []
    scorer = ModelScorer(candidate, jail, threads=1)
    try:
        read = read_with(scorer)
        for k, sample in enumerate(back):
            again = replace(sample, readings=tuple(read(sample.source, sample.path, sample.edits)))
            if all(r is None for r in again.readings):
                raise CannotEnforce("the model with the adapter reads nothing")
            base.append(rank(listed(sample, weights)[0], listed(sample, weights)[0].hand))
            adapted.append(rank(listed(again, weights)[0], listed(again, weights)[0].hand))
            if (k + 1) % 10 == 0:
                say(f"adapter: judged {k + 1} of {len(back)} held-back fixes")
    finally:
        scorer.close()
    return Paired(hand=tuple(base), learned=tuple(adapted))


def forget_adapters(data_dir: Path) -> tuple[Path, ...]:
    """Take every adapter and every checkpoint away; what was there."""
    place = adapter.folder(data_dir)
    gone = sorted(path for path in place.glob("*") if path.is_file()) if place.is_dir() else []
    for path in sorted(gone, key=lambda p: p.suffix != ".json"):  # records first: without one an adapter serves nobody
        path.unlink()
    for left in place.glob(".learning-*") if place.is_dir() else ():
        shutil.rmtree(left, ignore_errors=True)
    return tuple(gone)
