"""The guard check of a repair: the tests beside the goal's, with a candidate, against before (`guard_comparison`).

Those that the edit can reach run first, nearest first. What the unpatched tree says is kept for the candidates that
follow.
"""

import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from localagent.code.import_distance import import_distances
from localagent.domain.edit import Candidate
from localagent.domain.guard import Guard, GuardResult
from localagent.domain.outcome import Baseline, TestResult
from localagent.domain.paths import RepoPath
from localagent.domain.task import Task
from localagent.errors import AnswerIsNo
from localagent.fs.openat import read_regular
from localagent.text.visible_text import shortened
from localagent.verify.baseline import test_discovery
from localagent.verify.baseline.collection_plan import Collecting
from localagent.verify.checks.guard_comparison import Before, Count, GuardComparison, Tell
from localagent.verify.checks.test_selection import COLLECT_PREFIX
from localagent.verify.worker.jail_pool import JailPool
from localagent.verify.worker.suite_jail import SuiteJail, killed_at
from localagent.verify.worker.worker_client import OpenRequest, WorkerLost
from localagent.verify.worker.worker_messages import Item
from localagent.verify.worker.worker_spec import WorkerUse

RESERVED_SHARE, MOST_RESERVED_SECONDS = 0.2, 20.0  # of the time: for running bad tests again
MOST_FILES, MOST_FILE_BYTES = 5_000, 2 << 20

_Test = TypeVar("_Test", Item, TestResult)


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


class GuardChecker:
    """Of one task. Keeps what the unpatched tree showed: its collection, and outcomes of tests that were asked for."""

    def __init__(self, jails: JailPool, task: Task, request: OpenRequest) -> None:
        self._jails, self._task = jails, task
        self._guard: Guard = task.guard
        self._request = replace(request, args=self._guard.tests)
        self._before: _Unpatched | None = None
        self._seen_before: dict[str, Before] = {}
        self._sources: Mapping[RepoPath, bytes] | None = None

    def check(self, candidate: Candidate, baseline: Baseline, *, seconds: float, tell: Tell) -> GuardResult:
        """Run the guard with a candidate, for at most so many seconds."""
        begin = time.monotonic()
        until = begin + seconds
        if not baseline.pytest:
            return GuardResult(why=f"no tests found: {self._jails.place.executable} has no pytest")
        before = self._collected_before(until)
        if before.why:
            goal = {name.removeprefix(COLLECT_PREFIX) for name in baseline.collect_failures}
            unknown = before.unknown and not (before.errors and before.errors <= goal)
            why = before.why if unknown or not before.errors else "every test file that is found belongs to the goal"
            return GuardResult(seconds=time.monotonic() - begin, why=why, unknown=unknown)
        near, far = self._by_reach(outside(before.items, baseline), candidate)
        items = [*near, *far]
        count = Count(found=len(items))
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
        with (
            closing(SuiteJail(self._jails, changes, before.request)) as patched,
            closing(SuiteJail(self._jails, {}, before.request)) as unpatched,
        ):
            comparison = GuardComparison(
                after=patched,
                before=unpatched,
                errors=before.errors,
                collecting=before.seconds,
                count=count,
                until=until,
                seen_before=self._seen_before,
            )
            if comparison.collects(items):
                until -= min(MOST_RESERVED_SECONDS, RESERVED_SHARE * seconds)
                comparison.run(near, until, tell)
                comparison.run(far, until, tell)
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
        collecting = Collecting(self._jails.place, replace(self._task, tests=self._guard.tests))
        collecting.request = replace(self._request, wall_seconds=left, cpu_seconds=left)
        try:
            with self._jails.start({}, WorkerUse.FULL) as worker, killed_at(until, worker.client.kill):
                _suite, found = collecting.first(worker)
        except WorkerLost as lost:
            self._jails.check()
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
            self._sources = python_sources(self._jails.place.store)
        distances = import_distances([c.path for c in candidate.patch.changes], self._sources)
        near = [(distances[i.path], i) for i in items if i.path is not None and i.path in distances]
        far = [item for item in items if item.path not in distances]
        return [item for _, item in sorted(near, key=lambda pair: pair[0])], far


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
