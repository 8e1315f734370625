"""The guard of a patch that somebody made: tests outside those that were named, on the patched tree and on the other.

Test files that the change can reach by imports, nearest first, in bounded time; or what was named. A test that is bad
with the patch is run again, and then without it: it counts as broken where the unpatched tree has it good. So does a
file that collects without the patch alone. Those that
pass on both and run a touched function are as good a witness of the change as the named ones. Limitations: files are
found by their names; a test that is good or bad by chance may pass for the other.
"""

import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from localagent.code.import_distance import import_distances
from localagent.domain.guard import Guard, GuardResult, GuardScope, bounded_ids
from localagent.domain.outcome import Baseline, Outcome, TestResult
from localagent.domain.paths import RepoPath
from localagent.domain.task import Task
from localagent.verify.baseline import test_discovery
from localagent.verify.baseline.baseline import first_run, second_chance_of
from localagent.verify.checks.guard_check import outside, python_sources
from localagent.verify.checks.test_selection import COLLECT_PREFIX
from localagent.verify.evidence.changed_lines import ChangedFile
from localagent.verify.worker.jail_pool import JailPool
from localagent.verify.worker.suite_run import SuiteWorker
from localagent.verify.worker.worker_client import RunRequest
from localagent.verify.worker.worker_messages import Collected, CollectionRefused, Item

FILES_LIMIT = 12
WITNESSES_LIMIT = 200
_PLAIN_SHARE = 0.4  # of the time, for running all of them; the rest is for noting lines

Run = Callable[[SuiteWorker, Sequence[Item]], Mapping[str, TestResult]]
Ask = Callable[[JailPool, Run, tuple[str, ...]], Mapping[str, TestResult] | None]
"""What a tree's tests, collected from pytest arguments, say, with what does not collect as `uncollected` gives it.

None where that cannot be said: the collection hung, or the jail is lost.
"""


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
    """Where the guard runs, and who asks there."""

    before: JailPool
    after: JailPool
    ask: Ask


def guard_patch(
    trees: GuardedTrees, task: Task, guard: Guard, files: Sequence[ChangedFile], baseline: Baseline
) -> PatchGuard | None:
    """Run the guard of a patch; None where it is asked for none, or the named tests are all that there is."""
    if guard.scope is GuardScope.NONE or not task.tests:
        return None
    begin = time.monotonic()
    args = guard.tests or near_files(trees.after.place.store, [f.path for f in files], task.tests)
    if not args:
        return PatchGuard(result=GuardResult(why="no test file outside --test imports what the patch changes"))
    run = _GuardRun(baseline=baseline, seconds=guard.seconds)
    after = trees.ask(trees.after, run.all, args)
    if after is None:
        why = "the tests outside --test were not collected with the patch in their time, or could not be run"
        return PatchGuard(result=GuardResult(seconds=time.monotonic() - begin, why=why, unknown=True))
    bad = [t.id for t in after.values() if not t.outcome.good]
    witnesses = _witnesses(files, [t for t in after.values() if t.outcome is Outcome.PASSED])
    asked = run.some([*bad, *(t.id for t in witnesses)])
    before = trees.ask(trees.before, asked, args) if bad or witnesses else {}
    suspects = [name for name in bad if _is_good(name, before)]
    again = trees.ask(trees.after, run.some(suspects), args) if suspects else {}
    flaky = [name for name in suspects if _is_good(name, again)]
    broken = [name for name in suspects if again is not None and name in again and name not in flaky]
    doubted = [n for n in bad if before is None or not (n in before or _is_good(n, before))]
    before = before or {}
    tests = [t for t in after.values() if not t.id.startswith(COLLECT_PREFIX)]
    known = [t for t in witnesses if t.id in before]
    return PatchGuard(
        result=GuardResult(
            found=run.found,
            ran=len(tests),
            passed=len([t for t in tests if t.outcome.good or t.id in flaky]),
            broken=bounded_ids(broken),
            flaky=bounded_ids(flaky),
            undecided=bounded_ids([*doubted, *(n for n in suspects if n not in (*broken, *flaky))]),
            not_run=run.found - len(tests),
            seconds=time.monotonic() - begin,
            why=f"the time of the guard ({guard.seconds:.0f} s) is used up" if run.found > len(tests) else "",
        ),
        args=args,
        witnesses=tuple(known),
        turned=frozenset(t.id for t in known if not before[t.id].outcome.good),
    )


def uncollected(answer: Collected | CollectionRefused) -> dict[str, TestResult]:
    """The files that do not collect, each as an error of `collect:<path>`."""
    errors = dict(answer.errors)
    if isinstance(answer, CollectionRefused) and not errors:
        errors = {answer.path or ".": answer.failure}
    names = {f"{COLLECT_PREFIX}{path}": failure for path, failure in errors.items()}
    return {name: TestResult(id=name, outcome=Outcome.ERROR, failure=failure) for name, failure in names.items()}


def _is_good(name: str, results: Mapping[str, TestResult] | None) -> bool:
    """Whether a test is good there, or a file is collected."""
    if results is None or name.startswith(COLLECT_PREFIX):
        return results is not None and name not in results
    return name in results and results[name].outcome.good


@dataclass(kw_only=True, slots=True)
class _GuardRun:
    """Runs in a guard's time. `found`: how many tests there are outside the named ones."""

    baseline: Baseline
    seconds: float
    found: int = 0

    def all(self, suite: SuiteWorker, items: Sequence[Item]) -> Mapping[str, TestResult]:
        """All tests outside the named ones, then those that pass with their lines noted, files in turn."""
        begin = time.monotonic()
        wanted = outside(items, self.baseline)
        self.found = len(wanted)
        half = _PLAIN_SHARE * self.seconds
        results, _ = first_run(suite, wanted, budget_seconds=half, second_chance=second_chance_of(self.seconds))
        passed = [i for i in wanted if i.id in results and results[i.id].outcome is Outcome.PASSED]
        left = self.seconds - (time.monotonic() - begin)
        request = RunRequest(items=(), trace=True, cpu_seconds=20.0, wall_seconds=40.0, budget_seconds=max(1.0, left))
        traced = suite.run(_in_turn(passed), request).results
        return {
            name: traced[name] if name in traced and traced[name].outcome.good else r for name, r in results.items()
        }

    def some(self, names: Collection[str]) -> Run:
        """A run of these alone."""
        wanted = frozenset(names)

        def ran(suite: SuiteWorker, items: Sequence[Item]) -> Mapping[str, TestResult]:
            chosen = [item for item in items if item.id in wanted]
            chance = second_chance_of(self.seconds)
            return first_run(suite, chosen, budget_seconds=self.seconds, second_chance=chance)[0]

        return ran


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


def _witnesses(files: Sequence[ChangedFile], passed: Sequence[TestResult]) -> list[TestResult]:
    """Tests that run the body of a touched function: those first that run a changed statement, then the quickest."""
    changed = {f.path: f.executable() for f in files}
    bodies = {
        f.path: frozenset(n for _, new in f.touched() for n in range(new.body_line, new.last_line + 1)) for f in files
    }

    def runs(test: TestResult, lines: Mapping[RepoPath, frozenset[int]]) -> bool:
        return test.lines is not None and any(not lines[p].isdisjoint(test.lines.get(p, ())) for p in lines)

    found = [t for t in passed if runs(t, bodies) or runs(t, changed)]
    return sorted(found, key=lambda t: (not runs(t, changed), t.seconds))[:WITNESSES_LIMIT]
