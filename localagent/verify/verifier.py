"""ports.Verifier on jails: keeps what the baseline learned for the quick and the full check."""

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from localagent.domain.behaviour import Behaviours
from localagent.domain.edit import Candidate
from localagent.domain.guard import GuardResult
from localagent.domain.outcome import Baseline, FullResult
from localagent.domain.paths import RepoPath
from localagent.domain.policy import Policy
from localagent.domain.task import Event, Snapshot, Task
from localagent.jail.limits.profile import load
from localagent.ports import Jail, Sink
from localagent.verify.baseline.baseline import BaselineRunner
from localagent.verify.baseline.failed_project import project_of
from localagent.verify.baseline.failure_cause import cause_notes, hints, with_causes
from localagent.verify.checks.full_check import FullChecker
from localagent.verify.checks.guard_check import GuardChecker
from localagent.verify.checks.new_findings import Delta
from localagent.verify.checks.quick_check import WarmQuickCheck
from localagent.verify.checks.static_tools import Silence, ToolFinding, lint, type_errors
from localagent.verify.evidence.candidate_behaviour import behaviours
from localagent.verify.worker.jail_pool import JailPool
from localagent.verify.worker.warm_worker import Warm
from localagent.verify.worker.worker_client import OpenRequest, WorkerLost
from localagent.verify.worker.worker_spec import WorkerSpec, WorkerUse

COMPARING_SHARE = 0.4  # of the time that is left: the full check needs the rest


class JailVerifier:
    """Everything that runs the repository's code, for one task."""

    def __init__(
        self,
        *,
        jail: Jail,
        task: Task,
        snapshot: Snapshot,
        python: str,
        scratch: Path,
        sandbox_dir: Path,
        policy: Policy | None,
        sink: Sink,
    ) -> None:
        self.begin = time.monotonic()  # of the task, for the times of events
        limits = {use: load(sandbox_dir / f"{use.value}.toml").limits for use in WorkerUse}
        self._task = task
        self._sink = sink
        self._policy = policy
        place = WorkerSpec.make(
            jail=jail,
            repo=task.repo,
            store=Path(snapshot.store),
            scratch=scratch,
            python=python,
            limits=limits,
            tighter=None if policy is None else policy.limits,
        )
        self._jails = JailPool(place)
        self._runner = BaselineRunner(self._jails, task)
        self._quick: list[WarmQuickCheck] = []
        self._full: FullChecker | None = None
        self._guard: GuardChecker | None = None

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the report should know."""
        quick = (note for quick in self._quick for note in quick.notes)
        return (*self._runner.notes, *quick, *self._jails.place.bounds.remarks)

    @property
    def worker_pool(self) -> JailPool:
        """Where everything runs, for what is measured beside the checks."""
        return self._jails

    @property
    def request(self) -> OpenRequest:
        """How the tests are collected; known once the baseline is."""
        return self._runner.request

    def warm(self) -> Warm | None:
        """A warm worker that a closed quick check left, once."""
        found = [quick.warm for quick in self._quick if quick.warm is not None]
        for quick in self._quick:
            quick.warm = None
        return found[-1] if found else None

    def baseline(self) -> Baseline:
        """Run the unpatched tree; `causes` are set apart from what fails. AnswerIsNo when there is nothing to run."""
        baseline = self._runner.run()
        if baseline.failing:
            place = self._jails.place
            project = project_of(place.store, place.repo, place.executable, baseline, self._task.tests)
            baseline = with_causes(baseline, project)
            if baseline.failing:
                self._runner.notes.extend((*cause_notes(baseline.causes), *hints(baseline, project)))
                baseline = replace(baseline, notes=tuple(self._runner.notes))
        for note in (*baseline.notes, *self._jails.place.bounds.remarks):
            self._sink.emit(
                Event(kind="warning", at_seconds=round(time.monotonic() - self.begin, 3), data={"text": note})
            )
        return baseline

    def quick(self, baseline: Baseline, *, jobs: int) -> WarmQuickCheck:
        """Warm workers for `baseline.failing`; the caller may have narrowed that."""
        check = WarmQuickCheck(self._jails, baseline, self._runner.request, jobs=jobs, keep=True)
        self._quick.append(check)
        return check

    def full(
        self, candidate: Candidate, baseline: Baseline, *, seed: int, may_fail: Collection[str] = ()
    ) -> FullResult:
        """Everything once more in a cold jail."""
        return self._checker().check(candidate, baseline, seed=seed, may_fail=may_fail)

    def _checker(self) -> FullChecker:
        if self._full is None:
            self._full = FullChecker(self._jails, self._runner.request, Delta(self._jails, self._policy))
        return self._full

    def still_pass(
        self, changes: Mapping[RepoPath, bytes], baseline: Baseline, names: Collection[str]
    ) -> frozenset[str] | None:
        """Which of some failing tests and checks pass with some changes, in a cold jail; None where it was lost."""
        try:
            return self._checker().still_pass(changes, baseline, names)
        except WorkerLost:
            self._jails.check()
            return None

    def guard(
        self, candidate: Candidate, baseline: Baseline, *, seconds: float, tell: Callable[[int, int], None]
    ) -> GuardResult:
        """The task's guard in cold jails."""
        if self._guard is None:
            self._guard = GuardChecker(self._jails, self._task, self._runner.request)
        with self._jails.beside(seconds):
            return self._guard.check(candidate, baseline, seconds=seconds, tell=tell)

    def behaviours(self, candidates: Sequence[Candidate], baseline: Baseline, *, seed: int) -> Behaviours:
        """What candidates do on inputs near the tests'; empty when that cannot be told."""
        with self._jails.within(COMPARING_SHARE):
            return behaviours(self._jails, baseline, self._runner.request, candidates, seed=seed)

    def type_errors(self, changes: Mapping[RepoPath, bytes]) -> tuple[ToolFinding, ...] | Silence:
        """What mypy says of the tree with some changes, in a jail."""
        return type_errors(self._jails, changes)

    def lint(
        self, tool: str, paths: Sequence[RepoPath], changes: Mapping[RepoPath, bytes], *, seconds: float
    ) -> tuple[ToolFinding, ...] | Silence:
        """What ruff or bandit says of some files with some changes, in a jail."""
        return lint(self._jails, tool, paths, changes, seconds=seconds)

    def cancel(self) -> None:
        """End every jail now; whatever is running raises Interrupted."""
        self._jails.cancel()
        self._jails.close()
