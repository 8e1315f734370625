"""`train`: from repositories to a registered order, or to the figures that say why there is none.

Samples are the checkpoint: each is kept whole as soon as it is found, and the next run goes on from them. What is
learned is a function of the samples, the settings and numpy. Not promised: that an order learned here helps elsewhere.
"""

import json
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from localagent.app.fix.learned_order import REGISTERED
from localagent.app.fix.prior import load_prior
from localagent.app.jail_level import open_policy_jail
from localagent.app.settings import Settings as House
from localagent.domain.edit import Edit, Reading, digest_of
from localagent.domain.paths import RepoPath
from localagent.edit.space import open_edit_space
from localagent.errors import AnswerIsNo, UsageFault
from localagent.fs.openat import replace_file
from localagent.llm.model.adapter import drop
from localagent.llm.model.gpu import offload_of
from localagent.llm.model.quantized_store import serving
from localagent.llm.model.registry import ModelFile, Registry
from localagent.llm.scoring.scorer import ModelScorer
from localagent.llm.scoring.test_context import build_context
from localagent.repair.ordering.ranker import Ranker, RankerModel, knows_nothing, load_ranker, ranker_json
from localagent.repair.ordering.weights import Weights, load_weights
from localagent.training.adapter_run import AdapterTrained, forget_adapters, learn_adapter, require
from localagent.training.ranker_corpus import Corpus, data_digest, opened
from localagent.training.ranker_judging import OrderInUse, Paired, judged, scored
from localagent.training.ranker_learning import Listed, RankerSettings, learn, listed
from localagent.training.ranker_samples import Read, reader_of

# The order that tasks go by now: what a new one has to be better than, and what it was learned from.
#
# A registered order that was learned from a repository which is not named any more does not stay: what a repository
# gave goes with it, whether or not what is learned without it is kept. Not promised: that a file which somebody else
# wrote says truly what it was learned from.


@dataclass(frozen=True, kw_only=True, slots=True)
class InForce:
    """An order in use, how much it counts, and the names of the repositories that it was learned from."""

    ranker: Ranker
    counts: float = 1.0
    repositories: frozenset[str] = frozenset()

    def model(self, *, with_model: bool) -> RankerModel:
        """The part for tasks with the language model, or without, at the weight at which it counts."""
        part = self.ranker.with_model if with_model else self.ranker.without_model
        return replace(
            part,
            linear=self.counts * part.linear,
            out=self.counts * part.out,
            operators={name: self.counts * offset for name, offset in part.operators.items()},
        )

    def standing(self, *, with_model: bool) -> OrderInUse:
        """What ranks fixes as tasks are ordered now."""
        part = self.model(with_model=with_model)
        return OrderInUse(scores=lambda sample: sample.hand + scored(part, sample), learned_from=self.repositories)


def in_force(house: House, weights: Weights) -> InForce | None:
    """The registered order, else the bundled one where it is switched on, else None: the hand's."""
    target = house.data_dir / REGISTERED
    own = load_ranker(target)
    if own is not None:
        return InForce(ranker=own, repositories=_learned_from(target))
    bundled = load_ranker(house.models_dir / "ranker.json") if weights.learned else None
    return None if bundled is None else InForce(ranker=bundled, counts=weights.learned)


def outgrown(house: House, names: Collection[str], say: Callable[[str], None]) -> None:
    """Take a registered order away that was learned from a repository which is not among these, or is none."""
    target = house.data_dir / REGISTERED
    if not target.is_file():
        return
    try:
        load_ranker(target)
        more = sorted(_learned_from(target) - set(names))
    except UsageFault as fault:
        target.unlink()
        say(f"the learned order in use cannot be read, and is taken away ({fault})")
        return
    if more:
        target.unlink()
        say(
            f"the learned order in use was learned from {', '.join(more)} too, and is taken away: "
            "tasks go by the order that localagent came with until one is kept"
        )


def _learned_from(target: Path) -> frozenset[str]:
    """What its card says; an order whose card does not say is of a repository that nobody can name."""
    about: Any = json.loads(target.read_text("utf-8")).get("about")
    found = about.get("found") if isinstance(about, dict) else None
    carried = about.get("carried", []) if isinstance(about, dict) else []
    if not isinstance(found, dict) or not isinstance(carried, list):
        return frozenset({"a repository that its card does not name"})
    return frozenset({*map(str, found), *map(str, carried)})


SAMPLES = Path("ranker") / "samples"  # below the data directory
_READING_SECONDS = 60.0
_COLLECTING = 0.85  # of the time; the rest is for learning
_COLLECTING_BESIDE = 0.35  # where an adapter is learned as well
_RANKER = 0.1  # of the time, left for the order when an adapter is learned

Say = Callable[[str], None]


@dataclass(frozen=True, kw_only=True, slots=True)
class Trained:
    """What a run found, learned and decided. `registered` is the file, None where the hand's order stays."""

    found: dict[str, dict[str, int]]
    digest: str
    figures: dict[str, dict[str, object]]
    registered: Path | None
    adapter: AdapterTrained | None = None


def train(
    repos: Sequence[Path], house: House, say: Say, *, hours: float, use_model: bool, device: str | None = None
) -> Trained:
    """Collect, learn, judge, and register what is better. UsageFault names every repository that cannot be read.

    `device` (cpu or cuda) asks for an adapter of the language model as well, None for none.
    """
    if device is not None:
        require(device)
    corpora = opened(list(repos), house.data_dir / SAMPLES)
    outgrown(house, [corpus.name for corpus in corpora], say)
    began = time.monotonic()
    until = began + 3600.0 * hours * (_COLLECTING if device is None else _COLLECTING_BESIDE)
    model = _model(house) if use_model else None
    if model is not None:
        _outgrown(model, corpora, house, say, again=device is not None)
    scorer = _scorer(replace(model, adapter=None), house) if model is not None else None
    reader = "" if model is None else reader_of(model.sha256)
    prior = load_prior(house.models_dir / "prior.json")
    try:
        for k, corpus in enumerate(corpora):
            share = _before(time.monotonic() + (until - time.monotonic()) / (len(corpora) - k))
            if scorer is not None:
                corpus.reread(_reader(scorer), reader, share)
            corpus.collect(lambda: open_edit_space(prior), _reader(scorer), share, reader=reader)
            say(f"{corpus.name}: {_corpus_summary(corpus)}")
    finally:
        if scorer is not None:
            scorer.close()
    weights = load_weights(house.models_dir / "order.json")
    learned = None
    if device is not None and model is not None:
        base = replace(model, adapter=None)
        ends = began + 3600.0 * hours * (1.0 - _RANKER)
        learned = learn_adapter(corpora, base, house, weights, say, read_with=_reader, device=device, ends=ends)
    digests, read, plain = sample_digests(corpora, weights, reader=reader, again=_again(house, use_model, say))
    found = {c.name: dict(c.counts) for c in corpora}
    standing = in_force(house, weights)
    trained = conclude(digests, read, plain, found, house.data_dir / REGISTERED, say, standing=standing)
    return replace(trained, adapter=learned)


def conclude(
    digests: list[str],
    read: Sequence[Listed],
    plain: Sequence[Listed],
    found: dict[str, dict[str, int]],
    target: Path,
    say: Say,
    *,
    standing: InForce | None = None,
) -> Trained:
    """Judge and learn from samples as numbers; `read` is empty where no language model read them.

    What is learned must be better than the hand's order and than `standing`, the one in use; the part of it for which
    that is not so stays as it is in use.
    """
    settings = RankerSettings()
    verdicts: dict[str, Paired] = {}
    models: dict[str, RankerModel] = {}
    for kind, samples, with_model in (("with-model", read, True), ("without-model", plain, False)):
        say(f"{kind}: {sum(s.kind == 'real' for s in samples)} fixes, {len(samples)} samples")
        beside = None if standing is None else standing.standing(with_model=with_model)
        verdicts[kind] = judged(samples, settings, with_model=with_model, say=say, standing=beside)
        if verdicts[kind].is_better:
            models[kind] = learn([s for s in samples if s.truth], settings, with_model=with_model)
        elif standing is not None:
            models[kind] = standing.model(with_model=with_model)
        else:
            models[kind] = knows_nothing(with_model=with_model)
    digest = data_digest(digests)
    figures = {kind: paired.figures() for kind, paired in verdicts.items()}
    if not any(paired.is_better for paired in verdicts.values()):
        return Trained(found=found, digest=digest, figures=figures, registered=None)
    kept_whole = all(paired.is_better for paired in verdicts.values())
    about: dict[str, Any] = {
        "data": digest,
        "samples": len(plain),
        "found": _sample_counts(found, plain),
        "carried": sorted(standing.repositories) if standing is not None and not kept_whole else [],
        "settings": asdict(settings),
        "judged": figures,
        "meaning": "ranks of real fixes that the order never saw, no line more suspicious than another",
    }
    name = f"learned-{digest_of(json.dumps(about, sort_keys=True).encode())[7:19]}"
    ranker = Ranker(name=name, with_model=models["with-model"], without_model=models["without-model"])
    _register(ranker_json(ranker, about), target)
    return Trained(found=found, digest=digest, figures=figures, registered=target)


def _sample_counts(names: Iterable[str], samples: Sequence[Listed]) -> dict[str, dict[str, int]]:
    """How many samples of each kind every repository gave that was named, whenever they were found."""
    counts = Counter((sample.group, sample.kind) for sample in samples)
    return {name: {kind: count for (group, kind), count in sorted(counts.items()) if group == name} for name in names}


def forget(house: House) -> tuple[Path, ...]:
    """Take the registered order, the adapters and every sample away; what was there."""
    gone: list[Path] = list(forget_adapters(house.data_dir))
    for file in (house.data_dir / REGISTERED, *sorted((house.data_dir / SAMPLES).glob("*/*"))):
        if file.is_file():
            file.unlink()
            gone.append(file)
    return tuple(gone)


def _register(text: str, target: Path) -> None:
    """Written whole or not at all."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        replace_file(target, text.encode(), mode=None)
    except OSError as fault:
        raise AnswerIsNo(
            f"the learned order cannot be kept in {target}: {fault.strerror or fault}", remedy="make room there"
        ) from fault


def _before(ends: float) -> Callable[[], bool]:
    return lambda: time.monotonic() < ends


def _corpus_summary(corpus: Corpus) -> str:
    counts = corpus.counts
    kept = sum(1 for _ in corpus.folder.glob("*.json.gz"))
    told = ", ".join(f"{count} {what}" for what, count in sorted(counts.items())) or "nothing new"
    return f"{told}; {kept} samples kept"


def _model(house: House) -> ModelFile:
    """What serves tasks by default."""
    return serving(Registry(house.models_dir, house.data_dir).default(), house.data_dir)


def _outgrown(model: ModelFile, corpora: Sequence[Corpus], house: House, say: Say, *, again: bool) -> None:
    """Take an adapter away that was learned from a repository which is not named any more, when one is learned anew."""
    learned = model.adapter
    if learned is None or not again:
        return
    more = learned.repositories - {corpus.name for corpus in corpora}
    if more:
        drop(house.data_dir, model.registered_sha256 or model.sha256)
        say(f"adapter: the one in use was learned from {', '.join(sorted(more))} too, and is taken away")


def _again(house: House, use_model: bool, say: Say) -> Read | None:
    """How samples are read anew where tasks read with an adapter; None where what was read on collecting stands."""
    model = _model(house) if use_model else None
    if model is None or model.adapter is None:
        return None
    say("what the model reads with its adapter: reading every sample anew")
    return _reader(_scorer(model, house))


def _scorer(model: ModelFile, house: House) -> ModelScorer:
    jail = open_policy_jail(house)
    return ModelScorer(model, jail, threads=1, offload=offload_of(house.gpu_layers))


def _reader(scorer: ModelScorer | None) -> Read:
    """Reads as a task does, without tests in front: there are none."""

    def read(source: bytes, path: str, edits: Sequence[Edit]) -> Sequence[Reading | None]:
        if scorer is None:
            return [None] * len(edits)
        context = build_context([], [], RepoPath(path), source=source)
        found = scorer.read(source, context, edits, timeout_seconds=_READING_SECONDS)
        scorer.refuse_if_dropped()
        return found

    return read


def sample_digests(
    corpora: Sequence[Corpus], weights: Weights, *, reader: str, again: Read | None = None
) -> tuple[list[str], list[Listed], list[Listed]]:
    """Digests of all samples, and their numbers: of those that the model read, and of all without it.

    `reader` names the model, "" for none: what another one read does not count. `again` reads each anew.
    """
    digests, read, plain = [], [], []
    seen: set[tuple[str, str]] = set()  # clones of one project bring the same fixes, which must not stand on both sides
    for corpus in corpora:
        for digest, sample in corpus.samples():
            same = (sample.path, digest_of(sample.source))
            if same in seen:
                continue
            seen.add(same)
            read_anew = sample.readings if again is None else tuple(again(sample.source, sample.path, sample.edits))
            with_model, without = listed(replace(sample, readings=read_anew), weights)
            digests.append(digest)
            plain.append(without)
            if reader and (again is not None or sample.reader == reader) and any(r is not None for r in read_anew):
                read.append(with_model)
    return digests, read, plain
