"""Tests and programs on the agent's copy: laid out into a store of its own, run in a jail, told shortly.

A jail for each run. Not promised: that a program finds what one before it left.
"""

import contextlib
import itertools
import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from localagent.agent.agent_ports import SuiteOutcome, SuiteReport
from localagent.app.agent.request import DoRequest
from localagent.app.agent.snapshot_tree import SnapshotTree
from localagent.app.fix.environment import interpreter_of
from localagent.app.jail_level import open_policy_jail
from localagent.app.settings import Settings
from localagent.domain.outcome import Failure, Outcome, TestResult
from localagent.domain.paths import RepoPath
from localagent.domain.policy import LimitRules, Policy
from localagent.domain.task import Task
from localagent.errors import AnswerIsNo
from localagent.jail.api import scratch_folder
from localagent.jail.limits.profile import load
from localagent.ports import Jail
from localagent.repo.patched_snapshot import patched
from localagent.repo.snapshot import take_snapshot
from localagent.text.secret_redaction import Sanitizer
from localagent.text.visible_text import one_line
from localagent.verify.baseline.baseline import first_run
from localagent.verify.baseline.collection_plan import Collecting
from localagent.verify.baseline.test_discovery import NoTests
from localagent.verify.worker.jail_pool import JailPool
from localagent.verify.worker.worker_client import WorkerLost
from localagent.verify.worker.worker_spec import WorkerSpec, WorkerUse

_RUN_SECONDS = 120.0
_CODE_SECONDS = 60
_SHOWN = 6
_MESSAGE = 400


@dataclass(frozen=True, kw_only=True, slots=True)
class Results:
    """What a run said, by test; files that could not be collected as `collect:<path>`."""

    tests: Mapping[str, TestResult]
    errors: Mapping[str, Failure]
    missed: int = 0

    @property
    def bad(self) -> dict[str, Failure | None]:
        """What failed, and how."""
        found: dict[str, Failure | None] = {f"collect:{path}": failure for path, failure in self.errors.items()}
        found |= {name: test.failure for name, test in self.tests.items() if not test.outcome.good}
        return found


@dataclass(kw_only=True)
class JailRuns:
    """`SuiteRunner` in jails."""

    jail: Jail
    task: Task
    tree: SnapshotTree
    python: str
    scratch: Path
    sandbox_dir: Path
    limits: LimitRules
    _number: "itertools.count[int]" = field(default_factory=itertools.count)
    _before: Results | None = None
    _kept: dict[tuple[tuple[tuple[RepoPath, str | None], ...], tuple[str, ...]], Results] = field(default_factory=dict)
    _pools: list[JailPool] = field(default_factory=list)

    def run_tests(self, writes: Mapping[RepoPath, str | None], tests: Sequence[str]) -> SuiteReport:
        """`tests` are pytest arguments; none: the whole suite."""
        try:
            before = self._before if self._before is not None else self._whole_before()
            ran = self.results(writes, tuple(tests))
        except NoTests:
            where = f"in {one_line(', '.join(tests), 200)}" if tests else "here"
            return SuiteReport(outcome=SuiteOutcome.NO_TESTS, text=f"there are no tests {where}")
        except (AnswerIsNo, WorkerLost) as no:
            return SuiteReport(outcome=SuiteOutcome.COULD_NOT_RUN, text=one_line(str(no), 800))
        return _suite_report(ran, before, frozenset(writes), whole=not tests)

    def newly_failing(self, writes: Mapping[RepoPath, str | None]) -> frozenset[str]:
        """Tests that fail on the copy and did not on the tree. AnswerIsNo, WorkerLost where that cannot be told."""
        before = self._before if self._before is not None else self._whole_before()
        ran = self.results(writes, ())
        if ran.missed:
            raise AnswerIsNo(f"{ran.missed} tests were not run for want of time", remedy="run fewer tests")
        return frozenset(ran.bad.keys() - before.bad.keys())

    def _whole_before(self) -> Results:
        try:
            self._before = self.results({}, ())
        except NoTests:
            self._before = Results(tests={}, errors={})
        return self._before

    def passes(self, writes: Mapping[RepoPath, str | None], tests: Sequence[str]) -> bool:
        """Whether some tests all pass. AnswerIsNo, WorkerLost where they cannot be run."""
        ran = self.results(writes, tuple(tests))
        return bool(ran.tests) and not ran.bad and not ran.missed

    def results(self, writes: Mapping[RepoPath, str | None], tests: tuple[str, ...]) -> Results:
        """How each test ended. NoTests where there are none; AnswerIsNo, WorkerLost where they cannot be run."""
        key = (tuple(sorted(writes.items())), tests)
        if key not in self._kept:
            while len(self._kept) > 8:
                self._kept.pop(next(iter(self._kept)))
            self._kept[key] = self._run(writes, tests)
        return self._kept[key]

    def _run(self, writes: Mapping[RepoPath, str | None], tests: tuple[str, ...]) -> Results:
        pool = self._pool(writes)
        try:
            with pool.start({}, WorkerUse.BASELINE) as worker:
                suite, found = Collecting(pool.place, replace(self.task, tests=tests)).first(worker)
                results, missed = first_run(suite, found.items, budget_seconds=_RUN_SECONDS, second_chance=8.0)
            if not found.items and not found.errors:
                raise NoTests("there are no tests here")
            return Results(tests=results, errors=dict(found.errors), missed=missed)
        finally:
            self._close(pool)

    def run_code(self, writes: Mapping[RepoPath, str | None], code: str) -> str:
        """Output of a Python program that runs at the root of the copy."""
        pool = self._pool(writes)
        try:
            place = pool.place
            workspace = place.workspace({}, WorkerUse.BASELINE)
            try:
                spec = place.spec(workspace, WorkerUse.BASELINE)
                limits = replace(spec.limits, wall_seconds=_CODE_SECONDS, cpu_seconds=_CODE_SECONDS)
                env = (*spec.env, ("PYTHONPATH", self.task.repo))
                program = replace(spec, argv=(place.executable, "-"), limits=limits, env=env)
                result = place.jail.run(program, stdin=code.encode("utf-8", "replace"))
            finally:
                workspace.remove()
        finally:
            self._close(pool)
        said = Sanitizer().clean([result.stdout + result.stderr]).text
        return f"exit {result.returncode} ({result.ending.value})\n{said}".rstrip()

    def _pool(self, writes: Mapping[RepoPath, str | None]) -> JailPool:
        """The copy in a store, and what starts jails on it."""
        store = self.scratch / f"run-{next(self._number)}"
        patched(self.tree.snapshot, store, self.tree.changes(writes))
        place = WorkerSpec.make(
            jail=self.jail,
            repo=self.task.repo,
            store=store,
            scratch=self.scratch,
            python=self.python,
            limits={use: load(self.sandbox_dir / f"{use.value}.toml").limits for use in WorkerUse},
            tighter=self.limits,
        )
        pool = JailPool(place)
        self._pools.append(pool)
        return pool

    def _close(self, pool: JailPool) -> None:
        pool.close()
        self._pools.remove(pool)
        shutil.rmtree(pool.place.store, ignore_errors=True)

    def cancel(self) -> None:
        """End every jail now."""
        for pool in tuple(self._pools):
            pool.cancel()


@contextlib.contextmanager
def copied_tree(settings: Settings, repo: Path) -> Iterator[tuple[SnapshotTree, Path]]:
    """A private copy of the working tree as it stands, and the scratch folder in which it lies; gone at the end."""
    with scratch_folder(settings.scratch_dir) as scratch:
        yield SnapshotTree(take_snapshot(repo, scratch / "store")), scratch


@contextlib.contextmanager
def opened_runs(request: DoRequest, settings: Settings, policy: Policy, task: Task) -> Iterator[JailRuns]:
    """Runs on a copy of a task's tree. CannotEnforce without a sound jail."""
    jail = open_policy_jail(settings, policy, request.backend)
    with copied_tree(settings, Path(task.repo)) as (tree, scratch):
        yield JailRuns(
            jail=jail,
            task=task,
            tree=tree,
            python=interpreter_of(task),
            scratch=scratch,
            sandbox_dir=settings.sandbox_dir,
            limits=policy.limits,
        )


def _suite_report(ran: Results, before: Results, written: Collection[RepoPath], *, whole: bool) -> SuiteReport:
    """Counts first, then what failed: new failures before those that were there.

    Tests that are gone are told; those of a `written` file may be meant to go, which gates and `verify` judge.
    """
    bad, was_bad = ran.bad, before.bad
    new = [name for name in bad if name not in was_bad]
    old = [name for name in bad if name in was_bad]
    gone = [n for n, t in before.tests.items() if whole and t.outcome.good and n not in ran.tests and not ran.missed]
    passed = sum(t.outcome is Outcome.PASSED for t in ran.tests.values())
    turned = sum(t.outcome.good for n, t in ran.tests.items() if n in was_bad)
    counts = [
        f"{passed} passed",
        f"{len(bad)} failed" + (f" ({len(old)} of them before your changes, too)" if old else ""),
    ]
    counts += [f"{turned} failed before and pass now"] if turned else []
    counts += [f"{ran.missed} not run for want of time"] if ran.missed else []
    lines = [", ".join(counts)]
    for name in (*new, *old)[:_SHOWN]:
        lines += _failure(name, bad[name])
    if len(bad) > _SHOWN:
        lines.append(f"[{len(bad) - _SHOWN} more failures]")
    if gone:
        lines.append(f"passed before and are not there any more: {', '.join(gone[:_SHOWN])}")
    lost = [name for name in gone if name.partition("::")[0] not in written]
    good = not new and not lost and not ran.missed
    return SuiteReport(outcome=SuiteOutcome.PASSED if good else SuiteOutcome.FAILED, text="\n".join(lines))


def _failure(name: str, failure: Failure | None) -> list[str]:
    if failure is None:
        return [f"{name}: failed"]
    message = one_line(failure.message, _MESSAGE)
    at = [f"  {f.path}:{f.line}" for f in failure.frames[-3:] if f.path is not None]
    return [f"{name}: {failure.exception}: {message}", *at]
