"""Everything the loop asks about time: when it starts a candidate, believes an answer, takes what the model has.

Answers arrive when they arrive, and the search goes on from what it has: that makes two runs differ. `Live` is the
machine's clock; `followed.Followed` does as a record says.
"""

import concurrent.futures as cf
import time
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any, Protocol

from localagent.domain.edit import Candidate, Written
from localagent.domain.outcome import Baseline, QuickResult
from localagent.repair.search.search_node import SearchStep

Flying = dict[cf.Future[QuickResult], tuple[SearchStep, Candidate]]


class Scheduling(Protocol):
    """What the loop asks about time."""

    @property
    def following(self) -> bool:
        """Whether a record decides."""
        ...

    def clock(self) -> float:
        """Seconds; only differences mean anything."""
        ...

    def may_start(self) -> bool:
        """Whether another candidate may be started now."""
        ...

    def answered(self, flying: Flying) -> Sequence[cf.Future[QuickResult]]:
        """The candidates whose answers are judged next, in that order; may be empty."""
        ...

    def stops(self, *, wanted: bool) -> bool:
        """Whether a candidate that was looked for is not started after all; `wanted`: whether the time is up."""
        ...

    def scores(self, *, wanted: bool) -> bool:
        """Whether the model is asked about the edits just enumerated; `wanted`: whether there is time and a model."""
        ...

    def may_order(self, job: cf.Future[Any]) -> bool:
        """Whether the model's scores are taken now; `job` may still be at work."""
        ...

    def reads_on(self, *, wanted: int) -> int:
        """How many open edits the model is to read on now; `wanted`: so many as there is time for."""
        ...

    def not_read(self) -> Collection[int]:
        """Which of those that it was asked for are to count as not read, by their places."""
        ...

    def may_read_on(self, job: "cf.Future[list[float | None]]") -> bool:
        """Whether what it made of them is taken now; `job` may still be at work."""
        ...

    def drops(self, *, wanted: bool) -> bool:
        """Whether what the model ordered is put back; `wanted`: whether it ordered something and was dropped."""
        ...

    def awaits_scores(self, *, coming: bool, onward: bool = False) -> bool:
        """Whether nothing may go on before the model has spoken; `coming`: whether it is at work at all.

        `onward`: whether it reads edits on.
        """
        ...

    def may_take(self, job: "cf.Future[Sequence[Written]] | None") -> bool:
        """Whether what the model wrote is taken now; `job` may still be at work, None when there is none."""
        ...

    def writes_more(self) -> bool:
        """Whether more of what the model writes is taken later: only a record knows."""
        ...

    def goes_on(self) -> bool:
        """Whether a candidate or a written edit is still to come though nothing is left to do: only a record knows."""
        ...

    def times(self, baseline: Baseline) -> Baseline:
        """The baseline with the times that limits and orders are made from."""
        ...

    def cpu_seconds(self, number: int, limit: float) -> float:
        """The limit of a candidate's tests, given the one that the loop holds for right."""
        ...

    def retried(self, numbers: Sequence[int]) -> Sequence[int]:
        """Which of the slow candidates get a second chance; `numbers` are those that there is time for."""
        ...

    def reads(self, *, wanted: bool) -> bool:
        """Whether the model is asked how candidates read; `wanted`: whether there is time."""
        ...

    def answers_reading(self) -> bool:
        """Whether an answer to that can come in time."""
        ...

    def proposes(self, *, wanted: bool) -> bool:
        """Whether one more proposal is checked; `wanted`: whether there is time."""
        ...


class Live:
    """As things come; several answers at once are judged in the order of their numbers."""

    following = False

    def clock(self) -> float:
        """Of the machine."""
        return time.monotonic()

    def may_start(self) -> bool:
        """Always."""
        return True

    def answered(self, flying: Flying) -> Sequence[cf.Future[QuickResult]]:
        """Those that are there, after waiting a moment."""
        done, _ = cf.wait(flying, timeout=0.2, return_when=cf.FIRST_COMPLETED)
        return sorted(done, key=lambda job: flying[job][1].number)

    def stops(self, *, wanted: bool) -> bool:
        """When the time is up."""
        return wanted

    def scores(self, *, wanted: bool) -> bool:
        """While there is time."""
        return wanted

    def may_order(self, job: cf.Future[Any]) -> bool:
        """When they are there."""
        return job.done()

    def reads_on(self, *, wanted: int) -> int:
        """So many."""
        return wanted

    def not_read(self) -> Collection[int]:
        """None but those that were not."""
        return ()

    def may_read_on(self, job: "cf.Future[list[float | None]]") -> bool:
        """When it is there."""
        return job.done()

    def drops(self, *, wanted: bool) -> bool:
        """Then."""
        return wanted

    def awaits_scores(self, *, coming: bool, onward: bool = False) -> bool:
        """Never: the loop knows how long to wait."""
        del coming, onward
        return False

    def may_take(self, job: "cf.Future[Sequence[Written]] | None") -> bool:
        """When it is there."""
        return job is not None and job.done()

    def writes_more(self) -> bool:
        """Nobody knows."""
        return False

    def goes_on(self) -> bool:
        """Nobody knows."""
        return False

    def times(self, baseline: Baseline) -> Baseline:
        """As measured, in whole milliseconds: a record can hold them as they are used."""
        return timed(baseline, *milliseconds(baseline))

    def cpu_seconds(self, number: int, limit: float) -> float:
        """That one."""
        del number
        return limit

    def retried(self, numbers: Sequence[int]) -> Sequence[int]:
        """Those."""
        return numbers

    def reads(self, *, wanted: bool) -> bool:
        """While there is time."""
        return wanted

    def answers_reading(self) -> bool:
        """It may."""
        return True

    def proposes(self, *, wanted: bool) -> bool:
        """While there is time."""
        return wanted


def milliseconds(baseline: Baseline) -> tuple[list[int], list[int]]:
    """What tests and checks took, in their order."""
    return [round(1000 * t.seconds) for t in baseline.tests], [round(1000 * c.seconds) for c in baseline.checks]


def traced(baseline: Baseline) -> list[int]:
    """Which tests have lines, by their places: passing ones are traced while there is time."""
    return [at for at, test in enumerate(baseline.tests) if test.lines is not None]


def timed(baseline: Baseline, tests: Sequence[int], checks: Sequence[int]) -> Baseline:
    """The same baseline with other times, one each."""
    return replace(
        baseline,
        tests=tuple(replace(t, seconds=ms / 1000) for t, ms in zip(baseline.tests, tests, strict=True)),
        checks=tuple(replace(c, seconds=ms / 1000) for c, ms in zip(baseline.checks, checks, strict=True)),
    )
