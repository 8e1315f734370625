"""The guard check: the tests beside the goal's, with a patch, in cold jails; bad ones are compared with before.

Those that the edit can reach run first, nearest first. A test that is bad is run again by itself, then on the unpatched
tree, by itself and after its neighbours: it counts as broken only where the unpatched tree has it good and the patched
one has it bad again. What the unpatched tree says is kept for the candidates that follow. One breakage ends the check.
Limitations: tests of files that only collect with the patch are not run; a test that the patch makes skip passes; a
test that fails with the patch only after tests of other files is taken for flaky.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path
from typing import TypeVar

from localagent.code.import_distance import import_distances
from localagent.domain.edit import Candidate
from localagent.domain.guard import Guard, GuardResult, bounded_ids
from localagent.domain.outcome import Baseline, Outcome, TestResult
from localagent.domain.paths import RepoPath
from localagent.domain.task import Task
from localagent.errors import AnswerIsNo
from localagent.fs.openat import read_regular
from localagent.text.visible_text import shortened
from localagent.verify.baseline import test_discovery
from localagent.verify.baseline.collection_plan import Collecting
from localagent.verify.checks.test_selection import COLLECT_PREFIX
from localagent.verify.worker.jail_pool import JailPool
from localagent.verify.worker.suite_jail import LEAST_SECONDS, RunMode, SuiteJail, TestLimits, killed_at
from localagent.verify.worker.worker_client import OpenRequest, WorkerLost
from localagent.verify.worker.worker_messages import Collected, CollectionRefusal, CollectionRefused, Item
from localagent.verify.worker.worker_spec import WorkerUse

LIMITS = TestLimits(cpu_seconds=20.0, wall_seconds=30.0)
PATIENT = TestLimits(cpu_seconds=40.0, wall_seconds=60.0)  # where a patched test is run again
FIRST_BATCH, GROWTH = 16, 4
COMPARED_AT_ONCE = 20
MORE_RUNS = 3  # of a test that the unpatched tree has good, before the patch is blamed
MOST_NEIGHBOURS = 100
RESERVED_SHARE, MOST_RESERVED_SECONDS = 0.2, 20.0  # of the time: for running bad tests again
COLLECTING_SLOWER, COLLECTING_SECONDS = 5.0, 5.0  # times, and beside, what collecting took before: then it hangs
MOST_FILES, MOST_FILE_BYTES = 5_000, 2 << 20

_Test = TypeVar("_Test", Item, TestResult)
Tell = Callable[[int, int], None]  # how many of how many tests have run


@dataclass(frozen=True, kw_only=True, slots=True)
class _Unpatched:
    """How the unpatched tree's suite is collected, and what it holds.

    `why`: the reason why there is nothing to run; `unknown`: not because there are no tests.
    """

    request: OpenRequest
    items: tuple[Item, ...] = ()
    errors: frozenset[str] = frozenset()
    seconds: float = 0.0
    why: str = ""
    unknown: bool = False


class _Before(Enum):
    """What the unpatched tree makes of a test: good by itself, good after the tests of its file alone, or bad."""

    GOOD_ALONE = "good-alone"
    GOOD_IN_FILE = "good-in-file"
    BAD = "bad"


@dataclass(kw_only=True, slots=True)
class _Count:
    """What one check has seen so far."""

    found: int = 0
    ran: set[str] = field(default_factory=set)
    bad: set[str] = field(default_factory=set)
    broken: list[str] = field(default_factory=list)
    flaky: list[str] = field(default_factory=list)
    undecided: list[str] = field(default_factory=list)
    why: list[str] = field(default_factory=list)

    def result(self, begin: float) -> GuardResult:
        """Bounded, with the time since `begin`."""
        return GuardResult(
            found=self.found,
            ran=len(self.ran),
            passed=len(self.ran - self.bad),
            broken=bounded_ids(self.broken),
            flaky=bounded_ids(self.flaky),
            undecided=bounded_ids(self.undecided),
            not_run=self.found - len(self.ran),
            seconds=time.monotonic() - begin,
            why="; ".join(dict.fromkeys(self.why)),
        )


class GuardChecker:
    """Of one task. Keeps what the unpatched tree showed: its collection, and outcomes of tests that were asked for."""

    def __init__(self, rooms: JailPool, task: Task, request: OpenRequest) -> None:
        self._rooms, self._task = rooms, task
        self._guard: Guard = task.guard
        self._request = replace(request, args=self._guard.tests)
        self._before: _Unpatched | None = None
        self._seen_before: dict[str, _Before] = {}
        self._sources: Mapping[RepoPath, bytes] | None = None

    def check(self, candidate: Candidate, baseline: Baseline, *, seconds: float, tell: Tell) -> GuardResult:
        """Run the guard with a candidate, for at most so many seconds."""
        begin = time.monotonic()
        until = begin + seconds
        if not baseline.pytest:
            return GuardResult(why=f"no tests found: {self._rooms.place.executable} has no pytest")
        before = self._collected_before(until)
        if before.why:
            goal = {name.removeprefix(COLLECT_PREFIX) for name in baseline.collect_failures}
            unknown = before.unknown and not (before.errors and before.errors <= goal)
            why = before.why if unknown or not before.errors else "every test file that is found belongs to the goal"
            return GuardResult(seconds=time.monotonic() - begin, why=why, unknown=unknown)
        near, far = self._by_reach(outside(before.items, baseline), candidate)
        items = [*near, *far]
        count = _Count(found=len(items))
        if before.errors:
            number = len(before.errors)
            count.why.append(
                f"{number} {'file does' if number == 1 else 'files do'} not collect without the patch either"
            )
        if not items:
            count.why.append("no tests found outside --test")
            return count.result(begin)
        tell(0, count.found)
        changes = {c.path: c.after for c in candidate.patch.changes}
        comparison = _Comparison(
            after=SuiteJail(self._rooms, changes, before.request),
            before=SuiteJail(self._rooms, {}, before.request),
            unpatched=before,
            seen_before=self._seen_before,
            count=count,
            until=until,
        )
        try:
            if comparison.collects(items):
                until -= min(MOST_RESERVED_SECONDS, RESERVED_SHARE * seconds)
                comparison.run(near, until, tell)
                comparison.run(far, until, tell)
        finally:
            comparison.close()
        return count.result(begin)

    def _collected_before(self, until: float) -> _Unpatched:
        """The unpatched tree's suite; asked for once, but where the time was too short to say."""
        if self._before is None:
            begin = time.monotonic()
            found = self._collect_before(until)
            if found.why and time.monotonic() >= until - 1:
                why = f"collecting the suite took the {until - begin:.0f} s that there were"
                return replace(found, why=why, unknown=True)
            self._before = replace(found, seconds=time.monotonic() - begin)
        return self._before

    def _collect_before(self, until: float) -> _Unpatched:
        left = max(1.0, until - time.monotonic())
        collecting = Collecting(self._rooms.place, replace(self._task, tests=self._guard.tests))
        collecting.request = replace(self._request, wall_seconds=left, cpu_seconds=left)
        try:
            with self._rooms.start({}, WorkerUse.FULL) as room, killed_at(until, room.client.kill):
                _suite, found = collecting.first(room)
        except WorkerLost as lost:
            self._rooms.check()
            why = f"the suite could not be collected: {lost}"
            return _Unpatched(request=collecting.request, why=why, unknown=True)
        except AnswerIsNo as no:
            why = shortened(f"the suite does not collect without the patch: {no}", 500)
            return _Unpatched(request=collecting.request, why=why, unknown=True)
        why = ""
        if not found.items:
            files = ", ".join(sorted(found.errors)[:3])
            why = (
                shortened(f"the suite does not collect without the patch: {files}", 500) if files else "no tests found"
            )
        return _Unpatched(
            request=collecting.request,
            items=found.items,
            errors=frozenset(found.errors),
            why=why,
            unknown=bool(why and found.errors),
        )

    def _by_reach(self, items: Sequence[Item], candidate: Candidate) -> tuple[list[Item], list[Item]]:
        """Those that the edit can reach, nearest first; and the others. As collected where nothing else tells."""
        if self._sources is None:
            self._sources = python_sources(self._rooms.place.store)
        distances = import_distances([c.path for c in candidate.patch.changes], self._sources)
        near = [(distances[i.path], i) for i in items if i.path is not None and i.path in distances]
        far = [item for item in items if item.path not in distances]
        return [item for _, item in sorted(near, key=lambda pair: pair[0])], far


@dataclass(kw_only=True, slots=True)
class _Comparison:
    """One candidate's check: the tree after and the tree before, until the time is up."""

    after: SuiteJail
    before: SuiteJail
    unpatched: _Unpatched
    seen_before: dict[str, _Before]
    count: _Count
    until: float

    def close(self) -> None:
        """End both jails."""
        self.after.close()
        self.before.close()

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
        begin = time.monotonic()
        answer = jail.collect(until=self.until)
        if answer is None:
            self.count.why.append(f"the suite could not be collected: {jail.lost or 'no time was left'}")
            return None
        if isinstance(answer, CollectionRefused) and answer.why is CollectionRefusal.HUNG:
            patient = COLLECTING_SLOWER * self.unpatched.seconds + COLLECTING_SECONDS
            if time.monotonic() - begin < patient:
                self.count.why.append("the suite was not collected with the patch in the time that was left")
                return None
        errors = {f"{COLLECT_PREFIX}{path}" for path in answer.errors if path not in self.unpatched.errors}
        if isinstance(answer, Collected):
            return errors | ({item.id for item in items} - {item.id for item in answer.items})
        return errors or {f"{COLLECT_PREFIX}{answer.path or '.'}"}

    def run(self, items: Sequence[Item], until: float, tell: Tell) -> None:
        """Batch after batch, until one is broken or the time is up."""
        pending, size = list(items), FIRST_BATCH
        while pending and not _too_late(until) and not self.count.broken:
            batch, pending = pending[:size], pending[size:]
            size *= GROWTH
            pending = [*self._batch(batch, until), *pending]
            tell(len(self.count.ran), self.count.found)
        if pending and not self.count.broken:
            self.count.why.append("the time of the guard (--guard-seconds) is used up")

    def _batch(self, batch: Sequence[Item], until: float) -> list[Item]:
        """Run some tests and compare the bad ones; what is to be run again in another jail."""
        self.after.lost = ""
        run = self.after.run(batch, RunMode.IN_ORDER, LIMITS, until=until)
        if not run.results and self.after.lost:
            run = self.after.run(batch, RunMode.ALONE, LIMITS, until=until)
        self.count.ran |= set(run.results)
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
        suspects = [item for item in still if self.seen_before.get(item.id) is _Before.GOOD_ALONE]
        in_file = [item for item in still if self.seen_before.get(item.id) is _Before.GOOD_IN_FILE]
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
            self.seen_before[item.id] = _Before.GOOD_ALONE if _good(alone[item.id]) else _Before.BAD
            row = _neighbours(item, batch)
            if self.seen_before[item.id] is _Before.BAD and len(row) > 1:
                there = self.before.run(row, RunMode.IN_ORDER, LIMITS, until=self.until).results
                if _good(there.get(item.id)):
                    self.seen_before[item.id] = _Before.GOOD_IN_FILE

    def _flaky(self, items: Iterable[Item]) -> None:
        for item in items:
            self.count.flaky.append(item.id)
            self.count.bad.discard(item.id)


def _too_late(until: float) -> bool:
    return time.monotonic() >= until - LEAST_SECONDS


def _neighbours(item: Item, batch: Sequence[Item]) -> list[Item]:
    """The tests of the same file up to this one, in the batch's order."""
    row = [other for other in batch if other.path == item.path]
    at = row.index(item)
    return row[max(0, at - MOST_NEIGHBOURS) : at + 1]


def _good(result: TestResult | None) -> bool:
    return result is not None and result.outcome.good


def outside(items: Sequence[_Test], baseline: Baseline) -> list[_Test]:
    """Tests without the goal's: those that ran, and all of files that did not collect.

    By file and name within it, for what stands in front of that in an id depends on where pytest was started.
    """
    goal = {(test.path, _within(test.id)) for test in baseline.tests}
    files = {name.removeprefix(COLLECT_PREFIX) for name in baseline.collect_failures}
    return [i for i in items if (i.path, _within(i.id)) not in goal and str(i.path) not in files]


def _within(test_id: str) -> str:
    return test_id.split("::", 1)[-1]


def python_sources(store: Path) -> dict[RepoPath, bytes]:
    """The Python files of a store, as far as the bounds allow; no link is followed."""
    found: dict[RepoPath, bytes] = {}
    for path in test_discovery.python_files(store):
        if len(found) == MOST_FILES:
            break
        data = _read(store / path)
        if data is not None:
            found[RepoPath(path)] = data
    return found


def _read(path: Path) -> bytes | None:
    """A regular file's bytes; None for anything else, and for what is too large."""
    try:
        return read_regular(path, None, MOST_FILE_BYTES)[0]
    except OSError:
        return None
