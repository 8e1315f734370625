"""The guard of a patch that somebody made: tests outside those that were named, on the patched tree and on the other.

Test files that the change can reach by imports, nearest first, in bounded time; or what was named. A test that is bad
with the patch is run again, and then without it: it counts as broken where the unpatched tree has it good. Those that
pass on both and run a touched function are as good a witness of the change as the named ones. Limitations: files are
found by their names; a test that is good or bad by chance may pass for the other.
"""

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from localagent.code.import_distance import import_distances
from localagent.domain.guard import Guard, GuardResult, GuardScope, bounded_ids
from localagent.domain.outcome import Baseline, Outcome, TestResult
from localagent.domain.paths import RepoPath
from localagent.domain.task import Task
from localagent.errors import AnswerIsNo
from localagent.text.visible_text import shortened
from localagent.verify.baseline import test_discovery
from localagent.verify.baseline.baseline import BaselineRunner
from localagent.verify.checks.guard_check import outside, python_sources
from localagent.verify.evidence.changed_lines import ChangedFile
from localagent.verify.worker.jail_pool import JailPool

FILES_LIMIT = 12
WITNESSES_LIMIT = 200

Results = Callable[[Collection[str], Sequence[str]], Mapping[str, TestResult]]
"""What tests of these ids say, collected from these pytest arguments."""


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
    """Where the guard runs: the patched tree's rooms, and who runs tests by name on either tree."""

    after: JailPool
    on_before: Results
    on_after: Results


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
    limited = replace(task, tests=args, checks=(), budget=replace(task.budget, max_seconds=guard.seconds))
    try:
        after = BaselineRunner(trees.after, limited).run()
    except AnswerIsNo as no:
        why = shortened(f"the tests outside --test could not be run: {no}", 500)
        return PatchGuard(result=GuardResult(seconds=time.monotonic() - begin, why=why, unknown=True))
    names = {item.id for item in outside(after.tests, baseline)}
    ran = [t for t in after.tests if t.id in names]
    bad = [t.id for t in ran if not t.outcome.good and t.id not in after.flaky]
    witnesses = _witnesses(files, [t for t in ran if t.outcome is Outcome.PASSED])
    before = trees.on_before([*bad, *(t.id for t in witnesses)], args) if bad or witnesses else {}
    suspects = [name for name in bad if name in before and before[name].outcome.good]
    again = trees.on_after(suspects, args) if suspects else {}
    broken = [name for name in suspects if name in again and not again[name].outcome.good]
    flaky = [*(n for n in after.flaky if n in names), *(n for n in suspects if n not in broken)]
    known = [t for t in witnesses if t.id in before]
    reasons = [f"{after.not_run} not run in {guard.seconds:.0f} s"] if after.not_run else []
    reasons += [f"{len(after.collect_failures)} files do not collect"] if after.collect_failures else []
    return PatchGuard(
        result=GuardResult(
            found=len(ran) + after.not_run,
            ran=len(ran),
            passed=len([t for t in ran if t.outcome.good or t.id in flaky]),
            broken=bounded_ids(broken),
            flaky=bounded_ids(flaky),
            undecided=bounded_ids([name for name in bad if name not in before]),
            not_run=after.not_run,
            seconds=time.monotonic() - begin,
            why="; ".join(reasons),
        ),
        args=args,
        witnesses=tuple(known),
        turned=frozenset(t.id for t in known if not before[t.id].outcome.good),
    )


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
