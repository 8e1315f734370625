"""The guard of a patch that somebody made: tests outside those that were named, on the patched tree and on the other.

Test files that the change can reach by imports, nearest first, in bounded time; or what was named. What breaks is told
by `guard_comparison`, as for a repair. Tests that pass and run a touched function are as good a witness of the change
as the named ones. Limitations: files are found by their names.
"""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from localagent.code.import_distance import import_distances
from localagent.domain.guard import Guard, GuardResult
from localagent.domain.outcome import Baseline, Outcome, TestResult
from localagent.domain.paths import RepoPath
from localagent.domain.task import Task
from localagent.verify.baseline import test_discovery
from localagent.verify.checks.guard_check import outside, python_sources
from localagent.verify.checks.guard_comparison import LIMITS, Count, GuardComparison
from localagent.verify.evidence.changed_lines import ChangedFile
from localagent.verify.worker.jail_pool import JailPool
from localagent.verify.worker.suite_jail import RunMode, SuiteJail
from localagent.verify.worker.worker_client import OpenRequest
from localagent.verify.worker.worker_messages import Collected, Item

FILES_LIMIT = 12
WITNESSES_LIMIT = 200
COLLECTING_SECONDS = 120.0  # at most, beside the time for running
_PLAIN_SHARE = 0.4  # of the time, for running all of them; the rest is for noting lines


@dataclass(frozen=True, kw_only=True, slots=True)
class PatchGuard:
    """What ran outside the named tests.

    `args` are what was collected. `witnesses`, with the lines that they run, pass with the patch and run a touched
    function; without it they pass, too, but for those in `turned`.
    """

    result: GuardResult
    args: tuple[str, ...] = ()
    witnesses: tuple[TestResult, ...] = ()
    turned: frozenset[str] = frozenset()


@dataclass(frozen=True, kw_only=True, slots=True)
class GuardedTrees:
    """The two trees, and how their tests are collected, whatever arguments name them."""

    before: JailPool
    after: JailPool
    request: OpenRequest


def guard_patch(
    trees: GuardedTrees, task: Task, guard: Guard, files: Sequence[ChangedFile], baseline: Baseline
) -> PatchGuard:
    """Run the guard of a patch."""
    begin = time.monotonic()
    args = guard.tests or near_files(trees.after.place.store, [f.path for f in files], task.tests)
    if not args:
        return PatchGuard(
            result=GuardResult(why="no test file outside --test was found that imports what the patch changes")
        )
    request = replace(trees.request, args=args)
    with closing(SuiteJail(trees.before, {}, request)) as before, closing(SuiteJail(trees.after, {}, request)) as after:
        answer = before.collect(until=begin + COLLECTING_SECONDS)
        if not isinstance(answer, Collected):
            why = f"the tests outside --test do not collect without the patch: {answer.text if answer else before.lost}"
            return PatchGuard(result=GuardResult(seconds=time.monotonic() - begin, why=why[:500], unknown=True))
        items = outside(answer.items, baseline)
        count = Count(found=len(items))
        comparison = GuardComparison(
            after=after,
            before=before,
            errors=frozenset(answer.errors),
            collecting=time.monotonic() - begin,
            count=count,
            until=time.monotonic() + COLLECTING_SECONDS,
        )
        found: tuple[TestResult, ...] = ()
        turned: frozenset[str] = frozenset()
        if comparison.collects(items):
            ready = time.monotonic()
            comparison.until = ready + guard.seconds
            comparison.run(items, ready + _PLAIN_SHARE * guard.seconds)
            if not count.broken:
                found, turned = _witnesses(comparison, items, files, guard.seconds)
    return PatchGuard(result=count.result(begin), args=args, witnesses=found, turned=turned)


def _witnesses(
    comparison: GuardComparison, items: Sequence[Item], files: Sequence[ChangedFile], seconds: float
) -> tuple[tuple[TestResult, ...], frozenset[str]]:
    """Tests that pass and run what changes, as far as the tree before was seen to run them; those that fail there."""
    results = comparison.count.results
    passed = [item for item in items if item.id in results and results[item.id].outcome is Outcome.PASSED]
    traced = comparison.after.run(_in_turn(passed), RunMode.TRACED, LIMITS, until=comparison.until).results
    chosen = {t.id: t for t in _that_run(files, [t for t in traced.values() if t.outcome is Outcome.PASSED])}
    again = [item for item in items if item.id in chosen]
    there = comparison.before.run(again, RunMode.IN_ORDER, LIMITS, until=time.monotonic() + seconds).results
    return (
        tuple(test for name, test in chosen.items() if name in there),
        frozenset(name for name in chosen if name in there and not there[name].outcome.good),
    )


def _in_turn(items: Sequence[Item]) -> list[Item]:
    """The files' first tests, then their second ones, and so on."""
    at: Counter[RepoPath | None] = Counter()
    turns = []
    for item in items:
        turns.append((at[item.path], item))
        at[item.path] += 1
    return [item for _, item in sorted(turns, key=lambda turn: turn[0])]


def near_files(store: Path, changed: Sequence[RepoPath], named: Sequence[str]) -> tuple[str, ...]:
    """Test files outside the named arguments that import what changed, nearest first; none where folders hold all."""
    places = [spec.split("::", 1)[0].rstrip("/") for spec in named]
    distances = import_distances(changed, python_sources(store))
    found = [
        path
        for path in map(RepoPath, test_discovery.test_like_files(store))
        if path in distances and not any(place in (".", "", path) or path.startswith(f"{place}/") for place in places)
    ]
    return tuple(sorted(found, key=lambda path: (distances[path], path))[:FILES_LIMIT])


def _that_run(files: Sequence[ChangedFile], passed: Sequence[TestResult]) -> list[TestResult]:
    """Tests that run the body of a touched function: those first that run a changed statement, then the quickest."""
    changed = {f.path: f.executable() for f in files}
    bodies = {
        f.path: frozenset(n for _, new in f.touched() for n in range(new.body_line, new.last_line + 1)) for f in files
    }

    def runs(test: TestResult, lines: Mapping[RepoPath, frozenset[int]]) -> bool:
        return test.lines is not None and any(not lines[p].isdisjoint(test.lines.get(p, ())) for p in lines)

    found = [t for t in passed if runs(t, bodies) or runs(t, changed)]
    return sorted(found, key=lambda t: (not runs(t, changed), t.seconds))[:WITNESSES_LIMIT]
