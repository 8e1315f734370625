"""Everything that `verify` runs of a repository: the tree before and the tree after, side by side, always in jails.

The tree before carries the patch's own tests, so that a test that the patch brings counts as failing before it.
"""

import contextlib
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from localagent.domain.edit import Candidate, FileChange, Patch
from localagent.domain.guard import Guard
from localagent.domain.outcome import Baseline, CauseOrigin, FullResult, Outcome, TestResult
from localagent.domain.policy import Policy
from localagent.domain.task import Snapshot, Task
from localagent.jail.limits.profile import load
from localagent.ports import Jail
from localagent.repo.top_level_modules import importable_names
from localagent.verify.baseline.baseline import BaselineRunner, first_run, second_chance_of
from localagent.verify.baseline.failed_project import project_of
from localagent.verify.baseline.failure_cause import with_causes, without_missing_modules
from localagent.verify.checks.full_check import FullChecker
from localagent.verify.checks.guard_comparison import LIMITS
from localagent.verify.checks.new_findings import Delta, ToolAnswer
from localagent.verify.checks.patch_guard import COLLECTING_SECONDS, GuardedTrees, PatchGuard, guard_patch
from localagent.verify.checks.quick_check import WarmQuickCheck
from localagent.verify.evidence.changed_lines import ChangedFile
from localagent.verify.worker.jail_pool import JailPool
from localagent.verify.worker.suite_jail import RunMode, SuiteJail
from localagent.verify.worker.suite_run import SuiteWorker
from localagent.verify.worker.worker_client import OpenRequest, WorkerLost
from localagent.verify.worker.worker_messages import Collected, Item
from localagent.verify.worker.worker_spec import WorkerSpec, WorkerUse

_UNSEEN_SECONDS = 30.0  # for noting the lines of turned tests for which there was no time

_T = TypeVar("_T")


class PatchVerifier:
    """The trees of one patch. `before` and `after` are where their jails come from."""

    def __init__(
        self,
        *,
        jail: Jail,
        task: Task,
        before: Snapshot,
        after: Snapshot,
        python: str,
        scratch: Path,
        sandbox_dir: Path,
        policy: Policy,
    ) -> None:
        self._task = task
        self._policy = policy
        limits = {use: load(sandbox_dir / f"{use.value}.toml").limits for use in WorkerUse}

        def worker_pool(tree: Snapshot) -> JailPool:
            store = Path(tree.store)
            place = WorkerSpec.make(
                jail=jail,
                repo=task.repo,
                store=store,
                scratch=scratch,
                python=python,
                limits=limits,
                tighter=policy.limits,
            )
            return JailPool(place)

        self.before, self.after = worker_pool(before), worker_pool(after)
        self._others: list[JailPool] = []
        self._make_jails = worker_pool
        self._runner = BaselineRunner(self.before, task)
        self.request: OpenRequest = self._runner.request

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader should know of how the tests were found."""
        return tuple(self._runner.notes)

    @property
    def limits_reached(self) -> tuple[str, ...]:
        """The policy's limits that were reached in the jails, with what to do."""
        trees = (self.before, self.after, *self._others)
        return tuple(dict.fromkeys(remark for jails in trees for remark in jails.place.bounds.remarks))

    def baseline(self) -> Baseline:
        """Outcomes before. NoTests where there are none, AnswerIsNo where they cannot be run."""
        baseline = self._runner.run()
        self.request = self._runner.request
        if not baseline.collect_failures:
            return baseline
        place = self.before.place
        project = project_of(place.store, place.repo, place.executable, baseline, self._task.tests)
        baseline = without_missing_modules(baseline, project, importable_names(Path(self.after.place.store)))
        self._runner.notes[:] = baseline.notes
        return baseline

    def full(
        self,
        files: Sequence[ChangedFile],
        baseline: Baseline,
        *,
        seed: int,
        may_fail: Sequence[str],
        untouched: Mapping[str, TestResult] | None = None,
        groups: Mapping[str, str] | None = None,
    ) -> FullResult:
        """Everything on the tree after, compared with the baseline, and with `results` of the tree at the start."""
        checker = FullChecker(self.after, self.request, Delta(self.before, self._policy), unpatched=self.before)
        return checker.check(
            candidate_of(files),
            baseline,
            seed=seed,
            may_fail=may_fail,
            untouched=untouched or {},
            groups=groups or {},
        )

    def unmendable(self, baseline: Baseline) -> frozenset[str]:
        """Failing tests whose cause lies in the environment or in the tests, so that no source could mend them."""
        place = self.before.place
        project = project_of(place.store, place.repo, place.executable, baseline, self._task.tests)
        causes = with_causes(baseline, project).causes
        return frozenset(i for c in causes if c.kind.origin is not CauseOrigin.CODE for i in c.failing)

    def deltas(self, files: Sequence[ChangedFile]) -> tuple[ToolAnswer, ...]:
        """What ruff and mypy say."""
        return Delta(self.before, self._policy).review(candidate_of(files).patch)

    def after_baseline(self, turned: Collection[str] = ()) -> Baseline:
        """Outcomes and lines of the tree after: what covers the changed lines.

        Tests of `turned` of which there was no time to note the lines are run once more, by themselves.
        """
        after = BaselineRunner(self.after, self._task).run()
        unseen = {t.id for t in after.tests if t.id in turned and t.lines is None and t.outcome is Outcome.PASSED}
        if not unseen:
            return after
        with closing(SuiteJail(self.after, {}, self.request)) as jail:
            found = jail.collect(until=time.monotonic() + COLLECTING_SECONDS)
            items = [i for i in found.items if i.id in unseen] if isinstance(found, Collected) else []
            until = time.monotonic() + _UNSEEN_SECONDS
            again = jail.run(items, RunMode.TRACED, LIMITS, until=until).results
        tests = (replace(t, lines=again[t.id].lines) if t.id in again else t for t in after.tests)
        return replace(after, tests=tuple(tests))

    def quick(self, baseline: Baseline, *, jobs: int, always: Sequence[str] = ()) -> WarmQuickCheck:
        """Warm workers on the tree after, in which some tests always run."""
        return WarmQuickCheck(self.after, baseline, self.request, jobs=jobs, always=always)

    def ids(self, tree: Snapshot) -> frozenset[str]:
        """The ids that a tree offers; none where it does not collect."""
        found = self._on(tree, lambda _, told: frozenset(item.id for item in told.items))
        return found if found is not None else frozenset()

    def results(self, tree: Snapshot, paths: Collection[str]) -> Mapping[str, TestResult]:
        """What the tests in some files of a tree say, by id; nothing where they cannot be run."""

        def ran(suite: SuiteWorker, found: Collected) -> Mapping[str, TestResult]:
            return self._ran(suite, [item for path in paths for item in found.items if item.path == path])

        return self._on(tree, ran) or {}

    def guard(self, files: Sequence[ChangedFile], baseline: Baseline, guard: Guard) -> PatchGuard:
        """The tests outside the named ones; those that run what changes are asked from now on like the named ones."""
        trees = GuardedTrees(before=self.before, after=self.after, request=self.request)
        found = guard_patch(trees, self._task, guard, files, baseline)
        if found.witnesses:
            self.request = replace(self.request, args=(*self.request.args, *found.args))
        return found

    def _ran(self, suite: SuiteWorker, wanted: Sequence[Item]) -> Mapping[str, TestResult]:
        seconds = self._task.budget.max_seconds
        return first_run(suite, wanted, budget_seconds=seconds, second_chance=second_chance_of(seconds))[0]

    def _on(self, tree: Snapshot, ask: Callable[[SuiteWorker, Collected], _T]) -> _T | None:
        """What is asked of a tree's tests; None where they do not collect, or their jail is lost."""
        jails = self._make_jails(tree)
        self._others.append(jails)
        with contextlib.suppress(WorkerLost), jails.start({}, WorkerUse.BASELINE) as worker:
            request = OpenRequest(
                args=self._task.tests, options=self.request.options, pythonpath=self.request.pythonpath
            )
            suite = SuiteWorker(worker.client, request)
            answer = suite.open()
            return ask(suite, answer) if isinstance(answer, Collected) else None
        jails.check()
        return None

    def cancel(self) -> None:
        """End every jail now."""
        for jails in (self.before, self.after, *self._others):
            jails.cancel()
            jails.close()


def candidate_of(files: Sequence[ChangedFile]) -> Candidate:
    """The changed files as a candidate without edits: what tools that look at files are asked about."""
    changes = {f.path: FileChange(path=f.path, before=f.before, after=f.after) for f in files}
    return Candidate(number=0, patch=Patch(changes=tuple(changes[p] for p in sorted(changes))), edits=(), cost=0.0)


def unreached(baseline: Baseline, files: Sequence[ChangedFile]) -> tuple[str, ...]:
    """Failing tests that never run anything of what the patch changes; a test whose lines are not known may."""
    lines = {t.id: t.lines for t in baseline.tests}
    found = []
    for name in baseline.failing:
        known = lines.get(name)
        if known and not any(f.reached_by(known.get(f.source, frozenset())) for f in files):
            found.append(name)
    return tuple(found)
