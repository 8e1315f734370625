"""`model bench`: how well a model orders edits and writes them, how fast and large it is, on built-in bugs.

The set is `models/reference-bugs.json`, made from this project's own cases. In order and yield an edit is right where
the file it makes has the repaired file's syntax tree: other repairs may be as good, so these are lower bounds, and
localization, which finds the place, is no part of them. Whole repairs (`model_repairs`) are judged by tests held back.
Not promised: that the numbers carry over to other programs.
"""

import ast
import json
import math
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from localagent.app.fix.edit_writers import NAMES, open_writer
from localagent.app.fix.learned_order import open_order
from localagent.app.fix.prior import load_prior
from localagent.app.jail_level import open_policy_jail
from localagent.app.models.measurements import ModelMeasurement, WayYield, keep
from localagent.app.models.repairs import repair_all
from localagent.app.settings import Settings
from localagent.code.source_text import parse_or_none
from localagent.domain.edit import SPAN, Edit, Reading
from localagent.domain.outcome import Baseline
from localagent.domain.paths import RepoPath
from localagent.domain.task import Budget, Suspicion, Task
from localagent.edit.space import open_edit_space
from localagent.errors import CannotEnforce, InternalFault
from localagent.llm.model.gpu import offload_of
from localagent.llm.model.quantized_store import machine, serving, spare_of
from localagent.llm.model.registry import ModelFile, Registry
from localagent.llm.scoring.scorer import ModelScorer
from localagent.llm.scoring.test_context import build_context
from localagent.ports import EditSpace
from localagent.repair.ordering.ranker import Ranker, hand_scores
from localagent.repair.ordering.ranker_features import File
from localagent.repair.ordering.weights import Weights, mended_value
from localagent.repair.search.expansion import crowds_of

_SCORING_SECONDS = 120.0
_WRITING_SECONDS = 120.0
_SPAN_STEPS = 12
_KINDS = ("order", "write")


@dataclass(frozen=True, kw_only=True, slots=True)
class Bug:
    """One file with a bug at a line, the file repaired, the tests that see it, and others held back."""

    id: str
    kind: str
    path: str
    line: int
    before: str
    after: str
    tests: str
    hidden: str


def load_bugs(models_dir: Path) -> list[Bug]:
    """The built-in set. InternalFault where it is not what was shipped."""
    try:
        table = json.loads((models_dir / "reference-bugs.json").read_text(encoding="ascii"))
        bugs = [Bug(**row) for row in table["bugs"]]
    except (OSError, ValueError, KeyError, TypeError) as fault:
        raise InternalFault(f"reference-bugs.json of the installation cannot be read: {fault}") from None
    if not all(any(bug.kind == kind for bug in bugs) for kind in _KINDS):
        raise InternalFault("reference-bugs.json of the installation lacks a kind of bugs")
    return bugs


def right_edits(bug: Bug, edits: Iterable[Edit]) -> list[Edit]:
    """Those that make the repaired file."""
    wanted, source = _tree(bug.after.encode()), bug.before.encode()
    near = [edit for edit in edits if abs(edit.line - bug.line) <= 3]
    return [edit for edit in near if _tree(edit.apply(source)) == wanted]


@dataclass(frozen=True, kw_only=True, slots=True)
class Extent:
    """How much is measured: `only` some ways of writing, at most so many bugs of each kind, whole repairs or none."""

    only: tuple[str, ...] = ()
    most: int | None = None
    repairs: bool = True

    @property
    def whole(self) -> bool:
        """Whether all bugs are written by all ways: nothing less says how a model writes best."""
        return not self.only and self.most is None


def bench_model(name: str, settings: Settings, say: Callable[[str], None], extent: Extent) -> ModelMeasurement:
    """Measure one model ("": the default), keep the result, and for a user's own model the way it writes best.

    The way only where the whole set was measured.
    CannotEnforce where the model cannot be used.
    """
    only, most = extent.only, extent.most
    registry = Registry(settings.models_dir, settings.data_dir)
    model = registry.verify(name)
    bugs = load_bugs(settings.models_dir)
    order, write = ([bug for bug in bugs if bug.kind == kind][:most] for kind in _KINDS)
    space = open_edit_space(load_prior(settings.models_dir / "prior.json"))
    weights, ranker = open_order(settings)
    tuned = serving(model, settings.data_dir)
    offload, jail = offload_of(settings.gpu_layers), open_policy_jail(settings)
    if offload.said:
        say(offload.said)
    scorer = ModelScorer(tuned, jail, spare=spare_of(tuned, model), offload=offload)
    try:
        found = _ordered(scorer, model, order, space, _Order(weights, ranker), say)
        for way in only or NAMES:
            told = _written(scorer, way, write, weights)
            if told is not None:
                found.ways[way] = told
                say(f"{way}: {told.exact} of {told.bugs} exact, {told.valid} of {told.replies} replies are edits")
        scorer.refuse_if_dropped()
    finally:
        scorer.close()
    found = replace(found, resident_bytes=scorer.resident_bytes)  # writing takes more than ordering
    settle(registry, found, extent, say)
    if extent.repairs:
        repairs, dropped = repair_all(name, [*order, *write], settings, say)
        if dropped:
            raise CannotEnforce(dropped)
        found = replace(found, repairs=repairs)
    keep(found, settings)
    return found


def settle(registry: Registry, found: ModelMeasurement, extent: Extent, say: Callable[[str], None]) -> None:
    """Write the way into the model's manifest, or say why it stays as it was."""
    if extent.whole:
        registry.writes(found.name, (found.best,))
    else:
        say(f"{found.name} is asked to write as before: only a measurement of all bugs by all ways decides that")


def _ordered(
    scorer: ModelScorer,
    model: ModelFile,
    bugs: Sequence[Bug],
    space: EditSpace,
    by: "_Order",
    say: Callable[[str], None],
) -> ModelMeasurement:
    """Ranks of the right edits in the whole file's edit space, every line being as suspicious as any other.

    By the order that a task goes by, the learned one included, with and without the language model.
    """
    ranks, plain, count = [], [], 0
    if not scorer.forms(scorer.load_limit_seconds):
        scorer.refuse_if_dropped()
        raise CannotEnforce(f"{model.name} does not load in {scorer.load_limit_seconds:.0f} s")
    seconds = 1e-6
    for bug in bugs:
        path, source = RepoPath(bug.path), bug.before.encode()
        edits = list(space.edits(path, {path: source}, lines=None, failures=()))
        right = {id(edit) for edit in right_edits(bug, edits)}
        context = build_context([(RepoPath("tests/test_it.py"), bug.tests.encode())], (), path, source=source)
        began = time.monotonic()
        readings = scorer.read(source, context, edits, timeout_seconds=_SCORING_SECONDS)
        mended = scorer.mend(source, context, edits, timeout_seconds=_SCORING_SECONDS)
        seconds += time.monotonic() - began
        scorer.refuse_if_dropped()
        if not right:
            raise InternalFault(f"{bug.id}: no enumerated edit repairs it: make reference-bugs.json anew")
        ranks.append(_rank(edits, by.costs(source, edits, readings, mended), right))
        plain.append(_rank(edits, by.costs(source, edits, None, ()), right))
        count += len(edits)
        say(f"{bug.id}: rank {ranks[-1]} of {len(edits)} edits ({plain[-1]} without the model)")
    say(f"order: {len(ranks)} bugs, median rank {statistics.median(ranks):g} ({statistics.median(plain):g} without)")
    return ModelMeasurement(
        name=model.name,
        sha256=model.sha256,
        machine=machine(),
        threads=scorer.threads,
        ranks=tuple(ranks),
        plain=tuple(plain),
        edits=count,
        tokens_per_second=scorer.tokens_used / seconds,
        tokens_per_cpu_second=scorer.tokens_used / max(1e-6, scorer.cpu_seconds),
        load_seconds=scorer.load_seconds,
        resident_bytes=scorer.resident_bytes,
    )


class _Order:
    """What edits of a file cost in a task, no line being more suspicious than another."""

    def __init__(self, weights: Weights, ranker: Ranker | None) -> None:
        self._weights, self._ranker = weights, ranker

    def costs(
        self,
        source: bytes,
        edits: Sequence[Edit],
        readings: Sequence[Reading | None] | None,
        mended: Sequence[float | None],
    ) -> list[float]:
        """One an edit; `readings` None where there is no language model, `mended` is what it says on mending."""
        crowds = crowds_of(edits)
        costs = -hand_scores(edits, crowds, readings, self._weights)
        if self._ranker is not None:
            costs -= self._ranker.corrections(File(source), edits, crowds, readings, self._weights)
        if readings is not None:
            costs -= [mended_value(nats, self._weights) for nats in mended]
        return [float(cost) for cost in costs]


def _rank(edits: Sequence[Edit], costs: Sequence[float], right: set[int]) -> int:
    """The place of the first right edit; of equal costs those that were enumerated first come first."""
    order = sorted(range(len(edits)), key=costs.__getitem__)
    return 1 + next(place for place, k in enumerate(order) if id(edits[k]) in right)


def _written(scorer: ModelScorer, way: str, bugs: Sequence[Bug], weights: Weights) -> WayYield | None:
    """Some steps of a span search at each known place, else one question; None where the model knows no such way."""
    replies = valid = exact = tokens = asked = 0
    began = time.monotonic()
    for bug in bugs:
        path = RepoPath(bug.path)
        task = Task(id="", repo="", tests=(), checks=(), text="", python="", seed=0, budget=Budget())
        sources = {path: bug.before.encode(), RepoPath("tests/test_it.py"): bug.tests.encode()}
        writer = open_writer(scorer, (way,), weights, sources, task, tests=bug.tests)
        place = Suspicion(path=path, line=bug.line, end_line=bug.line, score=1.0)
        writer.begin(sources, (place,), Baseline(tests=(), failing=(), passing=()))
        hit = False
        for _ in range(_SPAN_STEPS if way == SPAN else 1):
            if math.isinf(writer.next_cost):
                break
            asked += 1
            found = [written.edit for written in writer.more(timeout_seconds=_WRITING_SECONDS)]
            valid += len(found)
            hit = hit or bool(right_edits(bug, found))
        exact += hit
        tokens += writer.tokens_used
        replies += getattr(writer, "replies", 0) or (valid if way == SPAN else 0)
    if not asked or scorer.warning:
        return None
    seconds = time.monotonic() - began
    return WayYield(bugs=len(bugs), replies=replies, valid=valid, exact=exact, tokens=tokens, seconds=round(seconds, 2))


def _tree(source: bytes) -> str | None:
    tree = parse_or_none(source)
    try:
        return ast.dump(tree) if tree is not None else None
    except RecursionError:  # parses, and is nested deeper than a tree can be written down
        return None
