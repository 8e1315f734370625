"""The model's part of the order: what it is asked about open edits, and what they cost by its answers.

It reads a few hundred tokens a second, and the suspicious functions of a real repository have tens of thousands: so the
most suspicious ones are asked about first, in whichever file they stand, a few at a time, and each few are read, which
counts at once, and then mended. Of what it has not spoken of yet an edit costs what an average one costs by its
answers, so that being asked about early is neither an advantage nor a burden (docs/adr/0047).
"""

import concurrent.futures as cf
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from localagent.domain.edit import Edit, Reading
from localagent.domain.paths import RepoPath
from localagent.ports import EditMender
from localagent.repair.ordering.scored_edit import Open
from localagent.repair.search.run_context import RunContext
from localagent.repair.search.search_node import Lineage, SearchStep

STRETCH_BYTES = 2_400  # functions that stand together are asked about together, up to so much
_GAP_BYTES = 600
BATCH_BYTES = 4_800  # about so much is read before it is mended, and before anything else is read; first half of it
_LEAST_SECONDS, _MOST_SECONDS, _SHARE_OF_TIME = 2.0, 30.0, 0.3  # for one question

Told = Sequence[Reading | float | None]
# What the learned order takes off the costs of edits of a file that were read.
Gains = Callable[[Sequence[Open]], Sequence[float]]


class Pass(Enum):
    """What the model is asked about some edits."""

    READ = "read"
    MEND = "mend"


@dataclass(frozen=True, kw_only=True, slots=True)
class ScoringRequest:
    """Edits of one file of a program, and how the learned order sees them once they are read."""

    parent: Lineage
    path: RepoPath
    edits: Sequence[Open]
    gains: Gains


@dataclass(frozen=True, kw_only=True, slots=True)
class EditStretch:
    """Edits that stand together, the highest suspicion among them, and how much text is read for them."""

    asked: ScoringRequest
    edits: Sequence[Open]
    suspicion: float
    bytes: int


class Ordering:
    """One task's. The model works on a thread of its own; close it with `close`."""

    def __init__(self, run: RunContext) -> None:
        self._run = run
        self._pool = cf.ThreadPoolExecutor(1, thread_name_prefix="order")
        self._coming: list[tuple[Pass, ScoringRequest, cf.Future[Told]]] = []
        self._noted: list[EditStretch] = []  # what is to be asked about
        self._preparing: cf.Future[None] | None = None
        self._mender = _in_use(run)
        run.state.mends = self._mender is not None
        self.spoke = False

    def close(self) -> None:
        """Give up what the model has not begun."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    @property
    def wanted(self) -> bool:
        """Whether there is a model to ask."""
        scorer = self._run.parts.scorer
        return scorer is not None and not scorer.warning

    @property
    def coming(self) -> Sequence[cf.Future[Told]]:
        """The answers that were not taken yet, in the order in which they are."""
        return [job for _, _, job in self._coming]

    def of(self, parent: Lineage, path: RepoPath) -> list[cf.Future[Told]]:
        """Those of them that are about a file of this program."""
        return [job for _, asked, job in self._coming if asked.parent is parent and asked.path == path]

    def prepare(self, path: RepoPath) -> None:
        """Let the model read what stands in front of a file that it will be asked about."""
        if self.wanted:
            context = self._run.parts.context(path, self._run.baseline)
            self._preparing = self._pool.submit(self._prepared, context)

    def _prepared(self, context: str) -> None:
        scorer = self._run.parts.scorer
        assert scorer is not None
        scorer.prepare(context, timeout_seconds=_MOST_SECONDS)

    def priced(self, edits: Iterable[Open]) -> list[SearchStep]:
        """The steps of edits that are asked about, by what was told of them."""
        weights, mends = self._run.parts.weights, self._mender is not None
        return [each.priced(weights, mends=mends) for each in edits]

    def unasked(self, edits: Sequence[Open]) -> list[SearchStep]:
        """The steps of edits that it will not be asked about, at what an average one costs by its answers."""
        self._run.state.opened |= {id(each.step.edit): each for each in edits}
        return self.priced(edits)

    def note(self, asked: ScoringRequest) -> None:
        """Edits that were pushed, as `priced` has them; those that are no heirs are to be asked about."""
        self._run.state.opened |= {id(each.step.edit): each for each in asked.edits}
        fresh = [each for each in asked.edits if not each.heir]
        if fresh:
            self._noted += stretches_of(replace(asked, edits=fresh))

    def ask(self, *, least: float = 0.0) -> None:
        """Ask about what was noted and is at least so suspicious, the most suspicious functions first."""
        turns = scoring_order([stretch for stretch in self._noted if stretch.suspicion >= least])
        self._noted = [stretch for stretch in self._noted if stretch.suspicion < least]
        self._run.state.awaits_order = bool(turns or self._coming) and not self.spoke
        for turn in turns:
            for what in Pass if self._mender is not None else (Pass.READ,):
                for one in turn:
                    self._coming.append((what, one, self._pool.submit(self._question, what, one)))

    def take(self) -> None:
        """Reorder the frontier by what the model has finished; by nothing of it once the model was dropped."""
        run, waiting = self._run, list[tuple[Pass, ScoringRequest, cf.Future[Told]]]()
        if self._preparing is not None and self._preparing.done():
            self._preparing.result()  # nothing of it is wanted but that it did not fail
            self._preparing = None
        for what, asked, job in self._coming:
            if waiting or not job.done():
                waiting.append((what, asked, job))
            else:
                self._book(what, asked, job.result())
        self._coming = waiting
        run.state.awaits_order = bool(waiting) and not self.spoke
        dropped = run.parts.scorer is not None and bool(run.parts.scorer.warning)
        if dropped and run.state.opened and not run.state.by_hand:
            plain = [each.step for each in run.state.opened.values()]
            run.frontier.reorder(plain)
            run.emit("unordered", edits=len(plain))
            run.state.by_hand, self.spoke = True, False

    def _book(self, what: Pass, asked: ScoringRequest, told: Told) -> None:
        known = sum(each is not None for each in told)
        if known:
            self.spoke = True
            for each, answer in zip(asked.edits, told, strict=True):
                each.record(answer)
            if what is Pass.READ:
                for each, gain in zip(asked.edits, asked.gains(asked.edits), strict=True):
                    each.gained(gain)
            self._run.frontier.reorder(self.priced(one for each in asked.edits for one in each.line()))
        counts = {"scored": known} if what is Pass.READ else {"mended": known}
        self._run.emit("ordered", edits=len(asked.edits) if known else 0, **counts)

    def _question(self, what: Pass, asked: ScoringRequest) -> Told:
        """Runs on the model's thread. Nothing of a model that was dropped."""
        run = self._run
        scorer = run.parts.scorer
        assert scorer is not None
        seconds = max(_LEAST_SECONDS, min(_MOST_SECONDS, _SHARE_OF_TIME * run.task.budget.max_seconds))
        source = asked.parent.sources(run.parts.sources)[asked.path]
        context = run.parts.context(asked.path, run.baseline)
        edits = [each.step.edit for each in asked.edits]
        told: Told
        if what is Pass.READ:
            told = scorer.read(source, context, edits, timeout_seconds=seconds)
        else:
            assert self._mender is not None
            told = self._mender.mend(source, context, edits, timeout_seconds=seconds)
        return [None] * len(edits) if scorer.warning else told


def _in_use(run: RunContext) -> EditMender | None:
    """Decided once a task: what edits cost that it did not speak of yet must not depend on when they were found."""
    mender = run.parts.mender
    return mender if mender is not None and mender.mends and run.parts.weights.mended else None


def scoring_order(stretches: Sequence[EditStretch]) -> list[list[ScoringRequest]]:
    """What is asked about together, the most suspicious first: of each file those edits, the likeliest first."""
    out: list[list[ScoringRequest]] = []
    size = 0
    held: dict[tuple[int, RepoPath], tuple[ScoringRequest, list[Open]]] = {}
    for stretch in sorted(stretches, key=lambda s: -s.suspicion):
        if held and size + stretch.bytes > (BATCH_BYTES if out else BATCH_BYTES // 2):
            out.append(_closed(held.values()))
            held, size = {}, 0
        key = (id(stretch.asked.parent), stretch.asked.path)
        held.setdefault(key, (stretch.asked, []))[1].extend(stretch.edits)
        size += stretch.bytes
    return [*out, _closed(held.values())] if held else out


def _closed(held: Iterable[tuple[ScoringRequest, list[Open]]]) -> list[ScoringRequest]:
    return [
        ScoringRequest(
            parent=asked.parent,
            path=asked.path,
            gains=asked.gains,
            edits=sorted(edits, key=lambda each: each.step.cost),
        )
        for asked, edits in held
    ]


def stretches_of(asked: ScoringRequest) -> list[EditStretch]:
    """A file's edits by where they stand: in functions, neighbours together, pieces of what is long."""
    spans = [_span(each.step.edit) for each in asked.edits]
    merged: list[tuple[int, int]] = []
    for start, end in sorted(set(spans)):
        if merged and start <= merged[-1][1] + _GAP_BYTES and max(end, merged[-1][1]) - merged[-1][0] <= STRETCH_BYTES:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    held: dict[tuple[int, int], list[Open]] = {}
    for each, (start, end) in zip(asked.edits, spans, strict=True):
        begin = next(low for low, high in merged if low <= start and end <= high)
        held.setdefault((begin, (_offset(each.step.edit) - begin) // STRETCH_BYTES), []).append(each)
    sizes = {low: high - low for low, high in merged}
    return [
        EditStretch(
            asked=asked,
            edits=edits,
            suspicion=max(each.suspicion for each in edits),
            bytes=min(STRETCH_BYTES, sizes[begin] - piece * STRETCH_BYTES),
        )
        for (begin, piece), edits in held.items()
    ]


def _offset(edit: Edit) -> int:
    return edit.splices[0].start if edit.splices else 0


def _span(edit: Edit) -> tuple[int, int]:
    """The bytes of the function around an edit, or its own."""
    start, end = _offset(edit), edit.splices[-1].end if edit.splices else 0
    scope = edit.scope
    return (start, end) if scope is None else (min(scope.start, start), max(scope.end, end))
