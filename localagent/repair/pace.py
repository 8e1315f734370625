"""When the loop starts a candidate, believes an answer or takes the model's scores: as they come, or as they once came.

Answers arrive when they arrive, and the search goes on from what it has: that makes two runs differ. A journal tells
what came when, so a second run can wait for the same answer at the same point and see the recorded time. Not promised:
that what the answers say is the same; where a run departs from its record, it goes on freely.
"""

import concurrent.futures as cf
import time
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, Protocol

from localagent.domain.edit import Candidate
from localagent.domain.outcome import QuickResult
from localagent.domain.task import Event
from localagent.repair.lineage import Step

Flying = dict[cf.Future[QuickResult], tuple[Step, Candidate]]


class Pace(Protocol):
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

    def may_order(self, job: "cf.Future[list[Step]]") -> bool:
        """Whether the model's scores are taken now; `job` may still be at work."""
        ...

    def awaits_scores(self, *, coming: bool) -> bool:
        """Whether nothing may go on before the model has spoken; `coming`: whether it is at work at all."""
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

    def may_order(self, job: "cf.Future[list[Step]]") -> bool:
        """When they are there."""
        return job.done()

    def awaits_scores(self, *, coming: bool) -> bool:
        """Never: the loop knows how long to wait."""
        del coming
        return False


class _Next(Enum):
    START = "start"
    ANSWER = "answer"
    ORDER = "order"
    END = "end"


_DECISIONS = {
    "started": _Next.START,
    "denied": _Next.START,  # refused while the next candidate was looked for
    "checked": _Next.ANSWER,
    "ordered": _Next.ORDER,
    "stage": _Next.END,
    "ranked": _Next.END,
}


class Followed(Live):
    """As a record says. It must be told every event of the run, as a sink, after those who keep them.

    `record` are the events of the recorded run in order, each with `kind`, `at` and `data`; without `progress`.
    """

    def __init__(self, record: Sequence[Mapping[str, Any]]) -> None:
        self._record = list(record)
        self._at = 0
        self._offset = 0.0
        self.following = True

    def emit(self, event: Event) -> None:
        """Goes one event further; another one than recorded ends the following."""
        if not self.following or event.kind == "progress":
            return
        past: Mapping[str, Any] = {"kind": "", "data": {}}
        expected = self._record[self._at] if self._at < len(self._record) else past
        if (expected["kind"], expected["data"].get("number")) != (event.kind, event.data.get("number")):
            self._depart()
        else:
            self._at += 1

    def _depart(self) -> None:
        """From here on by the machine's clock, going on from the recorded time."""
        self._offset = self.clock() - time.monotonic()
        self.following = False

    def clock(self) -> float:
        """The recorded time: of the last event, or of the next one where nothing more is started."""
        if not self.following:
            return time.monotonic() + self._offset
        if not self._record:
            return 0.0
        at = self._at if self._decision() is _Next.END else self._at - 1
        return float(self._record[min(max(at, 0), len(self._record) - 1)]["at"])

    def may_start(self) -> bool:
        """When the record starts one here."""
        return not self.following or self._decision() is _Next.START

    def answered(self, flying: Flying) -> Sequence[cf.Future[QuickResult]]:
        """The one whose answer was judged here, however long it takes."""
        if not self.following:
            return super().answered(flying)
        decision = self._decision()
        if decision is _Next.ORDER:
            return ()
        if decision is _Next.ANSWER:
            number = self._entry()["data"].get("number")
            for job, (_, candidate) in flying.items():
                if candidate.number == number:
                    cf.wait((job,))
                    return (job,)
        self._depart()
        return super().answered(flying)

    def may_order(self, job: "cf.Future[list[Step]]") -> bool:
        """Where the record has them, after waiting for the model; nowhere else."""
        if not self.following:
            return job.done()
        if self._decision() is not _Next.ORDER:
            return False
        cf.wait((job,))
        return True

    def awaits_scores(self, *, coming: bool) -> bool:
        """Where the record has scores next; without a model at work the run departs from it."""
        if not self.following or self._decision() is not _Next.ORDER:
            return False
        if not coming:
            self._depart()
        return coming

    def _decision(self) -> _Next:
        entry = self._entry()
        return _DECISIONS[entry["kind"]] if entry else _Next.END

    def _entry(self) -> Mapping[str, Any]:
        """The next recorded event that a decision led to."""
        for entry in self._record[self._at :]:
            if entry["kind"] in _DECISIONS:
                return entry
        return {}
