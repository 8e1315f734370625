"""The likeliest open edits, read on by the model and put in a better order among themselves.

The first pass looks at one token of each edit. Where tests are slow, the model reads those at the front of the queue
whole meanwhile, with what follows them; what it makes of that permutes their costs, and touches no other's, but for
those of the same edits of kept candidates. In steps, so that the first ones gain from it soon. Where few candidates may
run, these wait for the first step (docs/adr/0059-where-candidates-are-dearer-than-time.md).
"""

import concurrent.futures as cf
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

from localagent.domain.edit import Edit
from localagent.domain.paths import RepoPath
from localagent.ports import OnwardReader
from localagent.repair.ordering.model_time_budget import worth_awaiting, worth_reading_on
from localagent.repair.search.run_context import RunContext
from localagent.repair.search.search_node import Lineage, SearchStep

EDITS = 100  # read in one step
STEPS = 3
LEAST_EDITS = 10
_FOR_EACH_CANDIDATE = 2  # edits that are read where candidates wait: what lies behind them is seldom brought so far
_WEIGHED_SECONDS = 0.5  # between two looks at whether it is worth it: they take some milliseconds
_LATE = 1.5  # times the expected seconds, after which what was read so far is taken

# for each edit that was asked for, what it reads better than what stood there, nats; None: not read
Told = list[float | None]


class ReadingOn:
    """One task's. It reads on a thread of its own, all else runs on the search's; close it with `close`."""

    def __init__(self, run: RunContext) -> None:
        self._run = run
        self._pool = cf.ThreadPoolExecutor(1, thread_name_prefix="onward")
        self._job: cf.Future[Told] | None = None
        self._steps = 0
        self._weighs_at = -math.inf  # by the run's clock
        self._asked: dict[int, tuple[Edit, float]] = {}  # by id: the edit, kept so that it stays its own, and its cost
        self._reading: list[Edit] = []
        self._awaited = False
        self._kept: Lineage | None = None
        self._nats: dict[int, float] = {}

    def close(self) -> None:
        """Give up what has not begun."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def read_of(self, kept: Lineage) -> None:
        """Read edits of this kept candidate on, from now on, in the place of the snapshot's: these are not scored."""
        self._kept = kept

    @property
    def awaited(self) -> bool:
        """Whether what it is at is worth more than running the next candidate meanwhile."""
        run = self._run
        return self._job is not None and self._awaited and not run.state.plausible and run.left() > 0.0

    def wait(self, seconds: float) -> None:
        """For what it is at, but no longer."""
        if self._job is not None:
            cf.wait((self._job,), timeout=seconds)

    def consider(self, each_seconds: float) -> None:
        """Begin the next step, where that is worth it by now. `each_seconds`: what a candidate costs."""
        run, reader = self._run, self._run.parts.onward
        if reader is None or self._job is not None or self._steps >= STEPS:
            return
        edits = self._worth_reading(reader, each_seconds)
        if not edits:
            return
        steps = self._likeliest(edits)
        self._steps += 1
        run.emit("reading-on", edits=len(steps))
        self._asked |= {id(step.edit): (step.edit, step.cost) for step in steps}
        self._reading = [step.edit for step in steps]
        late = _LATE * self._seconds(reader, self._reading)
        self._job = self._pool.submit(self._read, self._sources(), self._reading, late)
        run.state.reading_on = True

    def _worth_reading(self, reader: OnwardReader, each_seconds: float) -> int:
        """How many there is time for, EDITS or a part of it; weighed anew after a while."""
        run = self._run
        self._awaited = False
        if run.state.plausible or run.clock() < self._weighs_at:
            return 0
        self._weighs_at = run.clock() + _WEIGHED_SECONDS
        ahead = self._likeliest(EDITS)
        if len(ahead) < LEAST_EDITS:
            return 0
        if self._steps == 0:
            candidates = run.task.budget.max_candidates - run.state.verified
            most = max(EDITS // 4, min(EDITS, _FOR_EACH_CANDIDATE * candidates))
            self._awaited = worth_awaiting(
                candidates=candidates,
                seconds=run.left(),
                each_seconds=each_seconds,
                reading_seconds=self._seconds(reader, [step.edit for step in ahead[:most]]),
            )
            if self._awaited:
                return most
        for most in (EDITS, EDITS // 2, EDITS // 4):
            seconds = self._seconds(reader, [step.edit for step in ahead[:most]])
            edits = min(most, len(ahead))
            if worth_reading_on(edits=edits, seconds=run.left(), each_seconds=each_seconds, reading_seconds=seconds):
                return most
        return 0

    def _likeliest(self, most: int) -> list[SearchStep]:
        """Those at the front of the queue that were not asked for yet."""
        return [step for step in self._run.frontier.scored(self._kept) if id(step.edit) not in self._asked][:most]

    def _seconds(self, reader: OnwardReader, edits: Sequence[Edit]) -> float:
        sources = self._sources()
        return sum(
            reader.seconds(sources[path], [edits[at] for at in places]) for path, places in _by_path(edits).items()
        )

    def _sources(self) -> Mapping[RepoPath, bytes]:
        sources = self._run.parts.sources
        return sources if self._kept is None else self._kept.sources(sources)

    def take(self) -> None:
        """Put all that were read in their new order, when the model has read those it was asked for."""
        if self._job is None or not self._job.done():
            return
        run = self._run
        told, self._job, run.state.reading_on, self._awaited = self._job.result(), None, False, False
        self._weighs_at = -math.inf
        self._nats |= {id(e): nats for e, nats in zip(self._reading, told, strict=True) if nats is not None}
        still = [step for step in run.frontier.scored(self._kept) if id(step.edit) in self._nats]
        fresh = permuted(still, [self._worth(step.edit) for step in still])
        run.frontier.reorder([*fresh, *self._record_scores(fresh)])
        run.emit("read-on", scored=sum(nats is not None for nats in told))

    def _record_scores(self, fresh: Sequence[SearchStep]) -> list[SearchStep]:
        """Note what reading on adds to each edit that was read; the heirs of these, as they cost by that.

        Of an edit that ran already it is what it would have been, had it still been open: heirs may not have run.
        """
        run = self._run
        if run.state.by_hand:
            return []
        weights, mends = run.parts.weights, run.state.mends
        open_now = {id(step.edit): step.cost for step in fresh}
        shared = sorted(self._asked[key][1] for key in self._nats)
        by_worth = sorted(self._nats, key=lambda key: self._worth(self._asked[key][0]))
        heirs: list[SearchStep] = []
        for key, cost in zip(by_worth, shared, strict=True):
            opened = run.state.opened[key]
            if key in open_now:  # it may have been told more since it was asked for
                opened.moved(open_now[key] - (opened.priced(weights, mends=mends).cost - opened.read_on))
            else:
                opened.moved(cost - self._asked[key][1])
            heirs += [each.priced(weights, mends=mends) for each in opened.line() if each is not opened]
        return heirs

    def _worth(self, edit: Edit) -> float:
        """The edit's cost by what it was before, and by how much worse it reads than what stood there."""
        return self._asked[id(edit)][1] - self._run.parts.weights.onward * min(0.0, self._nats[id(edit)])

    def _read(self, sources: Mapping[RepoPath, bytes], edits: Sequence[Edit], seconds: float) -> Told:
        """Runs on the thread of its own: what there is time for, file by file."""
        reader = self._run.parts.onward
        assert reader is not None
        ends = time.monotonic() + seconds
        told: Told = [None] * len(edits)
        for path, places in _by_path(edits).items():
            left = max(0.0, ends - time.monotonic())
            nats = reader.read_on(sources[path], [edits[at] for at in places], timeout_seconds=left)
            for at, value in zip(places, nats, strict=True):
                told[at] = value
        return told


def _by_path(edits: Sequence[Edit]) -> dict[RepoPath, list[int]]:
    """The places of edits, file by file."""
    found: dict[RepoPath, list[int]] = {}
    for at, edit in enumerate(edits):
        found.setdefault(edit.path, []).append(at)
    return found


def permuted(steps: Sequence[SearchStep], worth: Sequence[float]) -> list[SearchStep]:
    """The steps with their own costs shared out anew: the lowest to the one of least `worth`; ties as they stood."""
    costs = sorted(step.cost for step in steps)
    ranked = sorted(range(len(steps)), key=lambda k: (worth[k], steps[k].cost))
    return [replace(steps[k], cost=cost) for k, cost in zip(ranked, costs, strict=True)]
