"""Tests of a patched tree in cold jails; those that are bad there are compared with the tree before.

A bad test is run again by itself, then on the unpatched tree, by itself and after its neighbours: it counts as broken
only where the unpatched tree has it good and the patched one has it bad again. One breakage ends the comparison.
Limitations: tests of files that only collect with the patch are not run; a test that the patch makes skip passes; a
test that fails with the patch only after tests of other files is taken for flaky.
"""

import os
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from localagent.domain.guard import GuardResult, bounded_ids
from localagent.domain.outcome import Outcome, TestResult
from localagent.fs.processor_wait import slowdown
from localagent.verify.baseline.baseline import BUSY, MOST_SLOWED
from localagent.verify.checks.test_selection import COLLECT_PREFIX
from localagent.verify.worker.suite_jail import LEAST_SECONDS, RunMode, SuiteJail, TestLimits
from localagent.verify.worker.worker_messages import Collected, CollectionRefusal, CollectionRefused, Item

LIMITS = TestLimits(cpu_seconds=20.0, wall_seconds=30.0)
PATIENT = TestLimits(cpu_seconds=40.0, wall_seconds=60.0)  # where a patched test is run again
FIRST_BATCH, GROWTH = 16, 4
COMPARED_AT_ONCE = 20
MORE_RUNS = 3  # of a test that the unpatched tree has good, before the patch is blamed
MOST_NEIGHBOURS = 100
COLLECTING_SLOWER, COLLECTING_SECONDS = 5.0, 5.0  # times, and beside, what collecting took before: then it hangs

Tell = Callable[[int, int], None]  # how many of how many tests have run


class Before(Enum):
    """What the unpatched tree makes of a test: good by itself, good after the tests of its file alone, or bad."""

    GOOD_ALONE = "good-alone"
    GOOD_IN_FILE = "good-in-file"
    BAD = "bad"


@dataclass(kw_only=True, slots=True)
class Count:
    """What one comparison has seen so far."""

    found: int = 0
    results: dict[str, TestResult] = field(default_factory=dict)
    bad: set[str] = field(default_factory=set)
    broken: list[str] = field(default_factory=list)
    flaky: list[str] = field(default_factory=list)
    undecided: list[str] = field(default_factory=list)
    why: list[str] = field(default_factory=list)

    def result(self, begin: float) -> GuardResult:
        """Bounded, with the time since `begin`."""
        return GuardResult(
            found=self.found,
            ran=len(self.results),
            passed=len(self.results.keys() - self.bad),
            broken=bounded_ids(self.broken),
            flaky=bounded_ids(self.flaky),
            undecided=bounded_ids(self.undecided),
            not_run=self.found - len(self.results),
            seconds=time.monotonic() - begin,
            why="; ".join(dict.fromkeys(self.why)),
        )


@dataclass(kw_only=True, slots=True)
class GuardComparison:
    """One patch's: the tree after and the tree before, until the time is up.

    `errors`: files that the unpatched tree does not collect; `collecting`: seconds that it took to collect the others.
    `seen_before` is kept by the caller for the patches that follow.
    """

    after: SuiteJail
    before: SuiteJail
    errors: Collection[str]
    collecting: float
    count: Count
    until: float
    seen_before: dict[str, Before] = field(default_factory=dict)

    def collects(self, items: Sequence[Item]) -> bool:
        """Whether the patched tree collects what the unpatched one does; what it does not twice is broken."""
        missing = self._not_collected(self.after, items)
        if not missing:
            return missing is not None
        again, before = self._not_collected(self.after, items), self._not_collected(self.before, items)
        if again is None or before is None:
            return False
        missing = (missing & again) - before
        named = {name for name in missing if name.startswith(COLLECT_PREFIX)}
        files = {name[len(COLLECT_PREFIX) :] for name in named}
        inside = {item.id for item in items if str(item.path) in files or item.id.split("::", 1)[0] in files}
        self.count.broken += [*sorted(named), *sorted(missing - named - inside)]
        return not self.count.broken

    def _not_collected(self, jail: SuiteJail, items: Sequence[Item]) -> set[str] | None:
        """Tests and files (`collect:<path>`) that a tree does not collect; None (told) where that cannot be said."""
        patience = COLLECTING_SLOWER * self.collecting + COLLECTING_SECONDS
        patient = time.monotonic() + patience
        answer = jail.collect(until=min(patient, self.until))
        if answer is None:
            self.count.why.append(f"the suite could not be collected: {jail.lost or 'no time was left'}")
            return None
        if isinstance(answer, Collected):
            errors = {f"{COLLECT_PREFIX}{path}" for path in answer.errors if path not in self.errors}
            return errors | ({item.id for item in items} - {item.id for item in answer.items})
        return self._refused(answer, patience, hung_long=self.until >= patient)

    def _refused(self, answer: CollectionRefused, patience: float, *, hung_long: bool) -> set[str] | None:
        """What stands in the way of a collection, as `_not_collected` gives it."""
        errors = [path for path in answer.errors if path not in self.errors]
        if answer.why is CollectionRefusal.HUNG:
            if not hung_long:
                self.count.why.append("the suite was not collected with the patch in the time that was left")
                return None
            before = f"{self.collecting:.1f} s without the patch"
            self.count.why.append(f"collecting took more than {patience:.0f} s, and {before}")
        return {f"{COLLECT_PREFIX}{path}" for path in errors or [answer.path or "."]}

    def run(self, items: Sequence[Item], until: float, tell: Tell = lambda _ran, _found: None) -> None:
        """Batch after batch, until one is broken or the time is up."""
        begin, pending, size = time.monotonic(), list(items), FIRST_BATCH
        while pending and not _too_late(until) and not self.count.broken:
            batch, pending = pending[:size], pending[size:]
            size *= GROWTH
            pending = [*self._batch(batch, until), *pending]
            tell(len(self.count.results), self.count.found)
        if pending and not self.count.broken:
            self.count.why.append(_time_is_up(time.monotonic() - begin))

    def _batch(self, batch: Sequence[Item], until: float) -> list[Item]:
        """Run some tests and compare the bad ones; what is to be run again in another jail."""
        self.after.lost = ""
        run = self.after.run(batch, RunMode.IN_ORDER, LIMITS, until=until)
        if not run.results and self.after.lost:
            run = self.after.run(batch, RunMode.ALONE, LIMITS, until=until)
        self.count.results |= run.results
        bad = [i for i in batch if i.id in run.results and not run.results[i.id].outcome.good]
        self.count.bad |= {item.id for item in bad}
        for at in range(0, len(bad), COMPARED_AT_ONCE):
            if self.count.broken:
                return []
            self._compare(bad[at : at + COMPARED_AT_ONCE], batch, run.results)
        missed = set(run.missed)
        again = [item for item in batch if item.id in missed]
        if again and not run.results and not _too_late(until):
            self.count.why.append(f"{len(again)} tests could not be run: {self.after.lost or 'pytest gave no results'}")
            return []
        return again

    def _compare(self, bad: Sequence[Item], batch: Sequence[Item], first: Mapping[str, TestResult]) -> None:
        """Tell apart what is flaky, what was bad before, and what the patch breaks."""
        again = self.after.run(bad, RunMode.ALONE, PATIENT, until=self.until).results
        self._flaky(item for item in bad if _good(again.get(item.id)))
        still = [item for item in bad if item.id in again and not _good(again[item.id])]
        self._ask_before([item for item in still if item.id not in self.seen_before], batch)
        suspects = [item for item in still if self.seen_before.get(item.id) is Before.GOOD_ALONE]
        in_file = [item for item in still if self.seen_before.get(item.id) is Before.GOOD_IN_FILE]
        for _ in range(MORE_RUNS):
            quick = [item for item in suspects if first[item.id].outcome is not Outcome.TIMED_OUT]
            results = self.after.run(quick, RunMode.ALONE, PATIENT, until=self.until).results
            self._flaky(item for item in quick if _good(results.get(item.id)))
            suspects = [item for item in suspects if item.id not in self.count.flaky]
        for item in in_file:
            row = self.after.run(_neighbours(item, batch), RunMode.IN_ORDER, PATIENT, until=self.until).results
            if item.id in row and not _good(row[item.id]):
                suspects.append(item)
        self.count.broken += [item.id for item in suspects]
        known = {item.id for item in still if item.id in self.seen_before}
        undecided = [item.id for item in bad if not _good(again.get(item.id)) and item.id not in known]
        self.count.undecided += undecided
        if undecided:
            self.count.why.append(f"{len(undecided)} tests fail, and whether they did before could not be seen")

    def _ask_before(self, items: Sequence[Item], batch: Sequence[Item]) -> None:
        """What the unpatched tree makes of tests: by themselves, then after those of their file in the batch."""
        alone = self.before.run(items, RunMode.ALONE, LIMITS, until=self.until).results
        for item in items:
            if item.id not in alone:
                continue
            self.seen_before[item.id] = Before.GOOD_ALONE if _good(alone[item.id]) else Before.BAD
            row = _neighbours(item, batch)
            if self.seen_before[item.id] is Before.BAD and len(row) > 1:
                there = self.before.run(row, RunMode.IN_ORDER, LIMITS, until=self.until).results
                if _good(there.get(item.id)):
                    self.seen_before[item.id] = Before.GOOD_IN_FILE

    def _flaky(self, items: Iterable[Item]) -> None:
        for item in items:
            self.count.flaky.append(item.id)
            self.count.bad.discard(item.id)


def _too_late(until: float) -> bool:
    return time.monotonic() >= until - LEAST_SECONDS


def _time_is_up(seconds: float) -> str:
    """Why not all tests ran: they took their time, or did not get it."""
    said = f"{seconds:.0f} s, the time of the guard (--guard-seconds) for running tests, are over"
    times = slowdown(MOST_SLOWED)
    return said if times <= BUSY else f"{said}; the machine was busy (load {os.getloadavg()[0]:.0f})"


def _neighbours(item: Item, batch: Sequence[Item]) -> list[Item]:
    """The tests of the same file up to this one, in the batch's order."""
    row = [other for other in batch if other.path == item.path]
    at = row.index(item)
    return row[max(0, at - MOST_NEIGHBOURS) : at + 1]


def _good(result: TestResult | None) -> bool:
    return result is not None and result.outcome.good
