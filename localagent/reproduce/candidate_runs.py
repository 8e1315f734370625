"""Runs variants of a failing test in the jail: a warm worker with the project read-only, or a new jail for each.

Not promised: that a variant which fails in a warm worker fails elsewhere; what is reported is run again from nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from localagent.domain.outcome import Failure, Outcome, TestResult
from localagent.domain.paths import RepoPath
from localagent.verify.baseline.collection_plan import MEMORY_BYTES, OPTIONS
from localagent.verify.worker.jail_pool import JailPool, JailWorker
from localagent.verify.worker.worker_client import OpenRequest, RunRequest, WorkerLost
from localagent.verify.worker.worker_messages import Collected, CollectionRefused, Item
from localagent.verify.worker.worker_spec import WorkerUse

COLLECTION = "collection of "  # an id of what is no test: the import of a file
NO_CONFTEST = "--noconftest"
MOST_TESTS = 40
RENEWED_AFTER = 300  # candidates


@dataclass(frozen=True, kw_only=True, slots=True)
class Variant:
    """Files over the snapshot, the pytest argument that collects the test, and further pytest options."""

    files: Mapping[RepoPath, bytes]
    spec: str
    options: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class RunLimits:
    """Of one test."""

    cpu_seconds: float = 20.0
    wall_seconds: float = 30.0


class CandidateRuns:
    """`pythonpath` as the tests need it. `runs` counts what was run. Interrupted where the pool was cancelled."""

    def __init__(self, pool: JailPool, pythonpath: tuple[str, ...] = ()) -> None:
        self._pool, self._pythonpath = pool, pythonpath
        self._worker: JailWorker | None = None
        self._left = 0
        self.runs = 0
        self.limits = RunLimits()
        self.warm = True
        self.hot: Variant | None = None  # what a session has collected in which candidates are; None: a session each
        self._sessions: dict[tuple[str, ...], str] = {}

    def results(self, variant: Variant) -> tuple[TestResult, ...]:
        """What the tests of a variant say, failing imports among them; () where the jail was lost."""
        self.runs += 1
        try:
            if not self.warm:
                return self.cold(variant)
            worker = self._ready()
            for path, data in variant.files.items():
                worker.workspace.rewrite(path, data)
            return self._hot(worker, variant, self.hot) if self.hot is not None else self._ask(worker, variant)
        except WorkerLost:
            self._pool.check()
            self.close()
            return ()

    def cold(self, variant: Variant) -> tuple[TestResult, ...]:
        """The same in a new jail with a writable copy of its own. WorkerLost when the jail ended."""
        with self._pool.start(variant.files, WorkerUse.FULL) as worker:
            return self._ask(worker, variant)

    def close(self) -> None:
        """End the warm worker. Any number of times; a later run starts another one."""
        worker, self._worker = self._worker, None
        self._sessions = {}
        if worker is not None:
            worker.close()

    def _ready(self) -> JailWorker:
        if self._worker is None or self._left <= 0 or not self._worker.client.usable:
            self.close()
            self._worker, self._left = self._pool.start({}, WorkerUse.QUICK), RENEWED_AFTER
        self._left -= 1
        return self._worker

    def _hot(self, worker: JailWorker, variant: Variant, hot: Variant) -> tuple[TestResult, ...]:
        """In a child of a session that has imported the project once; a session of its own where there is none."""
        if variant.options not in self._sessions:
            name = f"hot-{len(self._sessions)}"
            for path, data in hot.files.items():
                worker.workspace.rewrite(path, data)
            answer = worker.client.open(replace(self._request(hot.spec, variant.options), session=name, swap=True))
            well = isinstance(answer, Collected) and not answer.unforkable
            self._sessions[variant.options] = name if well else ""
        session = self._sessions[variant.options]
        if not session:
            return self._ask(worker, variant)
        cpu_seconds, wall_seconds = self.limits.cpu_seconds, self.limits.wall_seconds
        results, errors = worker.client.collect_run(
            variant.spec, session=session, most=MOST_TESTS, cpu_seconds=cpu_seconds, wall_seconds=wall_seconds
        )
        return (*_uncollected(errors), *results)

    def _request(self, spec: str, options: tuple[str, ...]) -> OpenRequest:
        return OpenRequest(
            args=(spec,),
            options=(*OPTIONS, *options),
            pythonpath=self._pythonpath,
            cpu_seconds=self.limits.cpu_seconds,
            wall_seconds=self.limits.wall_seconds,
            memory_bytes=MEMORY_BYTES,
        )

    def _ask(self, worker: JailWorker, variant: Variant) -> tuple[TestResult, ...]:
        answer = worker.client.open(self._request(variant.spec, variant.options))
        if isinstance(answer, CollectionRefused):
            return _refused(answer, variant.spec)
        return (*_uncollected(answer.errors), *self._run(worker, answer.items[:MOST_TESTS]))

    def _run(self, worker: JailWorker, items: Sequence[Item]) -> tuple[TestResult, ...]:
        if not items:
            return ()
        limits = self.limits
        request = RunRequest(
            items=items,
            cpu_seconds=limits.cpu_seconds,
            wall_seconds=limits.wall_seconds,
            budget_seconds=2 * limits.wall_seconds,
            memory_bytes=MEMORY_BYTES,
        )
        ran = worker.client.run(request)
        return tuple(ran.results.values())


def _refused(answer: CollectionRefused, spec: str) -> tuple[TestResult, ...]:
    return _uncollected(answer.errors or {str(answer.path or spec): answer.failure})


def _uncollected(errors: Mapping[str, Failure]) -> tuple[TestResult, ...]:
    return tuple(
        TestResult(id=f"{COLLECTION}{name}", outcome=Outcome.ERROR, failure=failure) for name, failure in errors.items()
    )
