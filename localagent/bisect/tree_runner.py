"""Runs the tests or checks that a bisection asks about on one private tree, in a cold jail of its own."""

import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from localagent.bisect.symptom import (
    CHECK_PREFIX,
    COLLECT_PREFIX,
    SymptomObservation,
    TreeRun,
    observed,
    refused_status,
)
from localagent.domain.outcome import Outcome
from localagent.domain.paths import RepoPath
from localagent.domain.policy import Policy
from localagent.domain.task import Snapshot, Task
from localagent.errors import AnswerIsNo
from localagent.jail.files.workspace import DiskFull
from localagent.jail.limits.profile import load
from localagent.ports import Jail
from localagent.verify.baseline.collection_plan import Collecting
from localagent.verify.checks import check_commands
from localagent.verify.worker.jail_pool import JailPool, JailWorker
from localagent.verify.worker.suite_jail import killed_at
from localagent.verify.worker.worker_client import RunRequest, WorkerLost
from localagent.verify.worker.worker_spec import WorkerSpec, WorkerUse


@dataclass(frozen=True, kw_only=True, slots=True)
class TreeRunner:
    """What is the same for all trees. `task` names the tests or checks, and `seconds` bound one run."""

    jail: Jail
    task: Task
    python: str
    scratch: Path
    sandbox_dir: Path
    policy: Policy
    seconds: float

    def pool(self, tree: Snapshot) -> JailPool:
        """Jails on a tree."""
        return JailPool(
            WorkerSpec.make(
                jail=self.jail,
                repo=self.task.repo,
                store=Path(tree.store),
                scratch=self.scratch,
                python=self.python,
                limits={use: load(self.sandbox_dir / f"{use.value}.toml").limits for use in WorkerUse},
                tighter=self.policy.limits,
            )
        )

    def run(self, tree: Snapshot, running: "RunningJails", *, trace: bool = False) -> TreeRun:
        """What the tests show, where `trace` with the files that they use.

        Interrupted where it was cancelled; a problem, never an exception, for what they do.
        """
        pool = self.pool(tree)
        running.add(pool)
        try:
            with pool.start({}, WorkerUse.FULL) as worker:
                until = time.monotonic() + self.seconds
                with killed_at(until, worker.client.kill):
                    return self._in(worker, pool.place, until, trace)
        except WorkerLost as lost:
            pool.check()
            return TreeRun(problem=f"its jail ended: {lost}", lost=True)
        except DiskFull:
            raise
        except AnswerIsNo as no:
            return TreeRun(problem=str(no))
        finally:
            running.remove(pool)

    def _in(self, worker: JailWorker, place: WorkerSpec, until: float, trace: bool) -> TreeRun:
        found = self._tests(worker, place, until, trace) if self.task.tests else TreeRun()
        seen, failing = dict(found.seen), [found.ran]
        for command in self.task.checks:
            words = check_commands.split(command)
            words = (place.executable, *words[1:]) if words[0] in ("python", "python3") else words
            left = max(1.0, until - time.monotonic())
            ran = worker.client.command(words, trace=trace, cpu_seconds=left, wall_seconds=left)
            if reason := refused_status(ran.status):
                return TreeRun(problem=f"{command} {reason}")
            failure = (
                None
                if ran.outcome.good
                else check_commands.failure_from(ran.output, place.repo, ran.outcome, ran.status)
            )
            name = CHECK_PREFIX + command
            seen[name] = observed(name, ran.outcome, failure)
            if not ran.outcome.good:
                failing.append(ran.lines or {})
        every = _together(failing)
        return TreeRun(seen=seen, ran=every, imported=tuple(p for p in found.imported if p not in every))

    def _tests(self, worker: JailWorker, place: WorkerSpec, until: float, trace: bool) -> TreeRun:
        collecting = Collecting(place, self.task)
        collecting.request = replace(collecting.request, trace=trace)
        suite, collection = collecting.first(worker)
        seen = {
            COLLECT_PREFIX + path: observed(COLLECT_PREFIX + path, Outcome.ERROR, failure)
            for path, failure in collection.errors.items()
        }
        left = max(1.0, until - time.monotonic())
        request = RunRequest(
            items=(),
            trace=trace,
            inline=True,
            hard_budget=True,
            cpu_seconds=left,
            wall_seconds=left,
            budget_seconds=left,
        )
        results = suite.run(collection.items, request).results
        seen.update({name: observed(name, result.outcome, result.failure) for name, result in results.items()})
        for item in collection.items:
            if item.id not in results:
                seen[item.id] = SymptomObservation(outcome=Outcome.TIMED_OUT, kind="TimeLimit")
        failing = [result.lines or {} for result in results.values() if not result.outcome.good]
        if collection.errors:  # what a file that is not collected needs is what was imported for it
            failing.append(collection.import_lines)
        return TreeRun(seen=seen, ran=_together(failing), imported=tuple(sorted(collection.import_lines)))


def _together(runs: Iterable[Mapping[RepoPath, frozenset[int]]]) -> dict[RepoPath, frozenset[int]]:
    """The lines that any of the runs executed, files in order."""
    found: dict[RepoPath, frozenset[int]] = {}
    for lines in runs:
        for path, numbers in lines.items():
            found[path] = found.get(path, frozenset()) | numbers
    return dict(sorted(found.items()))


class RunningJails:
    """The jails of one thing that is being judged, so that it can be cancelled from another thread."""

    def __init__(self) -> None:
        self._pools: set[JailPool] = set()
        self._lock = threading.Lock()
        self._cancelled = False

    def add(self, pool: JailPool) -> None:
        """From now on `cancel` ends it; at once where that was called before."""
        with self._lock:
            self._pools.add(pool)
        if self._cancelled:
            pool.cancel()

    def remove(self, pool: JailPool) -> None:
        """It is over."""
        with self._lock:
            self._pools.discard(pool)

    def cancel(self) -> None:
        """End all of them; what runs in them raises Interrupted."""
        self._cancelled = True
        with self._lock:
            pools = list(self._pools)
        for pool in pools:
            pool.cancel()
