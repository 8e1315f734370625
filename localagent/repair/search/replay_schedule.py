"""The loop at the pace of a record: it waits for what came then, at the point where it came, and sees the time of then.

A journal tells what came when (`started`, `checked`, `ordered`, `read-on`, `unordered`, `written`), what the clock
decided (`timed`, `retried`, `read`, `reading-on`, `expanded`, `drained`, `released`), and which answers a limit of
time cut off (`late`). Not promised: that what the answers say is the same. Where a run departs from its record, it
goes on freely.
"""

import concurrent.futures as cf
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from enum import Enum
from typing import Any

from localagent.domain.edit import Written
from localagent.domain.outcome import Baseline, QuickResult
from localagent.domain.task import Event, Stage
from localagent.repair.search.scheduling import Flying, Live, timed

PATIENCE = 20  # times a limit of time, for what came within it then


class _Next(Enum):
    START = "start"
    ANSWER = "answer"
    ORDER = "order"
    ONWARD = "onward"
    DROP = "drop"
    WRITE = "write"
    RETRY = "retry"
    RELEASE = "release"
    END = "end"


_DECISIONS = {
    "started": _Next.START,
    "denied": _Next.START,  # refused while the next candidate was looked for
    "expanded": _Next.START,  # as well
    "drained": _Next.START,  # looked for and not found, or found too late
    "checked": _Next.ANSWER,
    "ordered": _Next.ORDER,
    "read-on": _Next.ONWARD,
    "unordered": _Next.DROP,
    "written": _Next.WRITE,
    "retried": _Next.RETRY,
    "released": _Next.RELEASE,
    "stage": _Next.END,
    "ranked": _Next.END,
}
_NOT_FOLLOWED = {"progress"}


class Followed(Live):
    """As a record says. It must be told every event of the run, as a sink, after those who keep them.

    `record` are the events of the recorded run in order, each with `kind`, `at` and `data`; without `progress`.
    """

    def __init__(self, record: Sequence[Mapping[str, Any]]) -> None:
        self._record = list(record)
        self._at = 0
        self._offset = 0.0
        self.following = True
        baseline = {"stage": Stage.BASELINE.value}
        # what was told before the loop began counts its seconds from another moment
        self._first = next((n for n, e in enumerate(self._record) if dict(e["data"]) == baseline), 0)
        checked = [e["data"] for e in self._record if e["kind"] == "checked"]
        self._in_time = {c.get("number") for c in checked if c.get("late") == 0}
        self._in_time -= {c.get("number") for c in checked if c.get("late") != 0}

    def emit(self, event: Event) -> None:
        """Goes one event further; another one than recorded ends the following."""
        if not self.following or event.kind in _NOT_FOLLOWED:
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
        at = min(max(at, 0), len(self._record) - 1)
        return float(self._record[at]["at"]) if at >= self._first else 0.0

    def may_start(self) -> bool:
        """When the record starts one here."""
        return not self.following or self._decision() is _Next.START

    def answered(self, flying: Flying) -> Sequence[cf.Future[QuickResult]]:
        """The one whose answer was judged here, however long it takes."""
        if not self.following:
            return super().answered(flying)
        decision = self._decision()
        if decision in (_Next.ORDER, _Next.ONWARD, _Next.DROP, _Next.WRITE):
            return ()
        if decision is _Next.ANSWER:
            number = self._entry()["data"].get("number")
            for job, (_, candidate) in flying.items():
                if candidate.number == number:
                    cf.wait((job,))
                    return (job,)
        self._depart()
        return super().answered(flying)

    def stops(self, *, wanted: bool) -> bool:
        """Where the record has it so; where nothing was left, all is looked at here, too."""
        if not self.following:
            return wanted
        return self._kind() == "drained" and self._record[self._at]["data"].get("left") is not False

    def scores(self, *, wanted: bool) -> bool:
        """Where the record says that it was."""
        if self.following and self._kind() == "expanded":
            return self._record[self._at]["data"].get("asked") is True
        return wanted

    def may_order(self, job: cf.Future[Any]) -> bool:
        """Where the record has them, after waiting for the model; nowhere else."""
        return self._comes(job, _Next.ORDER)

    def reads_on(self, *, wanted: int) -> int:
        """As many as the record has."""
        if not self.following:
            return super().reads_on(wanted=wanted)
        return int(self._record[self._at]["data"].get("edits", 0)) if self._kind() == "reading-on" else 0

    def not_read(self) -> Collection[int]:
        """Those that were not read in time then: all are read now, so that they are asked in the same company."""
        if not self.following or self._decision() is not _Next.ONWARD:
            return super().not_read()
        return frozenset(self._entry()["data"].get("unread", ()))

    def may_read_on(self, job: "cf.Future[list[float | None]]") -> bool:
        """Where the record has it, after waiting for the model; nowhere else."""
        return self._comes(job, _Next.ONWARD)

    def drops(self, *, wanted: bool) -> bool:
        """Where the record has it so."""
        return self._decision() is _Next.DROP if self.following else wanted

    def awaits_scores(self, *, coming: bool, onward: bool = False) -> bool:
        """Where the record has scores next, or drops them; without a model at work the run departs from it."""
        if self.following and self._decision() is _Next.DROP:
            return True
        if not self.following or self._decision() not in (_Next.ORDER, _Next.ONWARD):
            return False
        coming = onward if self._decision() is _Next.ONWARD else coming
        if not coming:
            self._depart()
        return coming

    def may_take(self, job: "cf.Future[Sequence[Written]] | None") -> bool:
        """Where the record has it, after waiting for the model; without a writer at work the run departs from it."""
        if not self.following:
            return super().may_take(job)
        if self._decision() is not _Next.WRITE:
            return False
        if job is None:
            self._depart()
            return False
        cf.wait((job,))
        return True

    def writes_more(self) -> bool:
        """Whether the record has more of it."""
        return self.following and any(e["kind"] == "written" for e in self._record[self._at :])

    def goes_on(self) -> bool:
        """Whether the record has a written edit next; one that it starts and that is not there ends the following."""
        if self.following and self._decision() is _Next.START:
            self._depart()
        return self.following and self._decision() is _Next.WRITE

    def times(self, baseline: Baseline) -> Baseline:
        """With the recorded times, where the record has one for each, and lines of no more tests than it had."""
        if self.following:
            told: Mapping[str, Any] = next((e["data"] for e in self._record[self._at :] if e["kind"] == "timed"), {})
            tests, checks = told.get("tests", ()), told.get("checks", ())
            if (len(tests), len(checks)) == (len(baseline.tests), len(baseline.checks)):
                return _of_those(timed(baseline, tests, checks), told.get("traced"))
        return super().times(baseline)

    def cpu_seconds(self, number: int, limit: float) -> float:
        """A larger one for a candidate that kept within its limits then: a busy machine must not cut it off now."""
        return PATIENCE * limit if self.following and number in self._in_time else limit

    def retried(self, numbers: Sequence[int]) -> Sequence[int]:
        """Those of the record."""
        if not self.following:
            return numbers
        return tuple(self._entry()["data"].get("numbers", ())) if self._decision() is _Next.RETRY else ()

    def reads(self, *, wanted: bool) -> bool:
        """Where the record tells of it."""
        return self._kind() == "read" if self.following else wanted

    def answers_reading(self) -> bool:
        """Where the record has an answer."""
        return not self.following or bool(self._record[self._at]["data"].get("nats"))

    def proposes(self, *, wanted: bool) -> bool:
        """Where the record checks one."""
        if not self.following:
            return wanted
        return self._kind() == "stage" and self._record[self._at]["data"] == {"stage": Stage.FULL.value}

    def _comes(self, job: cf.Future[Any], what: _Next) -> bool:
        """Whether an answer of the model is taken now: where the record has it, after waiting, or when it is there."""
        if not self.following:
            return job.done()
        if self._decision() is not what or self._kind() == "reading-on":  # that comes first
            return False
        cf.wait((job,))
        return True

    def _kind(self) -> str:
        return str(self._record[self._at]["kind"]) if self._at < len(self._record) else ""

    def _decision(self) -> _Next:
        entry = self._entry()
        return _DECISIONS[entry["kind"]] if entry else _Next.END

    def _entry(self) -> Mapping[str, Any]:
        """The next recorded event that a decision led to."""
        for entry in self._record[self._at :]:
            if entry["kind"] in _DECISIONS:
                return entry
        return {}


def _of_those(baseline: Baseline, traced: Sequence[int] | None) -> Baseline:
    """With the lines of these tests alone; of all where an older record does not say."""
    if traced is None:
        return baseline
    tests = (t if at in traced else replace(t, lines=None) for at, t in enumerate(baseline.tests))
    return replace(baseline, tests=tuple(tests))
