"""Everything that `verify` runs of a repository: the tree before and the tree after, side by side, always in jails.

The tree before carries the patch's own tests, so that a test that the patch brings counts as failing before it.
"""

import contextlib
from collections.abc import Sequence
from pathlib import Path

from localagent.domain.edit import Candidate, FileChange, Patch
from localagent.domain.outcome import Baseline, FullResult
from localagent.domain.policy import Policy
from localagent.domain.task import Snapshot, Task
from localagent.jail.limits.profile import load
from localagent.ports import Jail
from localagent.repo.top_level_modules import importable_names
from localagent.verify.baseline.baseline import BaselineRunner
from localagent.verify.baseline.collection_plan import OPTIONS
from localagent.verify.baseline.failed_project import project_of
from localagent.verify.baseline.failure_cause import without_missing_modules
from localagent.verify.checks.full_check import FullChecker
from localagent.verify.checks.new_findings import Delta, ToolAnswer
from localagent.verify.checks.quick_check import WarmQuickCheck
from localagent.verify.evidence.changed_lines import ChangedFile
from localagent.verify.worker.jail_pool import JailPool
from localagent.verify.worker.suite_run import SuiteWorker
from localagent.verify.worker.worker_client import OpenRequest, WorkerLost
from localagent.verify.worker.worker_messages import Collected
from localagent.verify.worker.worker_spec import WorkerSpec, WorkerUse


class PatchVerifier:
    """The trees of one patch. `before` and `after` are its rooms."""

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
        self._old: JailPool | None = None
        self._make_rooms = worker_pool
        self._runner = BaselineRunner(self.before, task)
        self.request: OpenRequest = self._runner.request

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader should know of how the tests were found."""
        return tuple(self._runner.notes)

    @property
    def limits_reached(self) -> tuple[str, ...]:
        """The policy's limits that were reached in the jails, with what to do."""
        trees = (self.before, self.after, *([self._old] if self._old is not None else []))
        return tuple(dict.fromkeys(remark for rooms in trees for remark in rooms.place.bounds.remarks))

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
        self, files: Sequence[ChangedFile], baseline: Baseline, *, seed: int, may_fail: Sequence[str]
    ) -> FullResult:
        """Everything on the tree after, compared with the baseline."""
        checker = FullChecker(self.after, self.request, Delta(self.before, self._policy), unpatched=self.before)
        return checker.check(candidate_of(files), baseline, seed=seed, may_fail=may_fail)

    def deltas(self, files: Sequence[ChangedFile]) -> tuple[ToolAnswer, ...]:
        """What ruff and mypy say."""
        return Delta(self.before, self._policy).review(candidate_of(files).patch)

    def after_baseline(self) -> Baseline:
        """Outcomes and lines of the tree after: what covers the changed lines."""
        return BaselineRunner(self.after, self._task).run()

    def quick(self, baseline: Baseline, *, jobs: int, always: Sequence[str] = ()) -> WarmQuickCheck:
        """Warm workers on the tree after, in which some tests always run."""
        return WarmQuickCheck(self.after, baseline, self.request, jobs=jobs, always=always)

    def ids(self, tree: Snapshot) -> frozenset[str]:
        """The ids that a tree offers; none where it does not collect."""
        self._old = rooms = self._make_rooms(tree)
        with contextlib.suppress(WorkerLost), rooms.start({}, WorkerUse.BASELINE) as room:
            request = OpenRequest(args=self._task.tests, options=OPTIONS, pythonpath=self.request.pythonpath)
            answer = SuiteWorker(room.client, request).open()
            if isinstance(answer, Collected):
                return frozenset(item.id for item in answer.items)
        rooms.check()
        return frozenset()

    def cancel(self) -> None:
        """End every jail now."""
        for rooms in (self.before, self.after, self._old):
            if rooms is not None:
                rooms.cancel()
                rooms.close()


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
