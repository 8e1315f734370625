"""Runs variants of a failing test in the jail: a warm worker with the project read-only, or a new jail for each.

Not promised: that a variant which fails in a warm worker fails elsewhere; what is reported is run again from nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from localagent.domain.outcome import Outcome, TestResult
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
        self._room: JailWorker | None = None
        self._before: dict[RepoPath, bytes | None] = {}
        self._left = 0
        self.runs = 0
        self.limits = RunLimits()
        self.warm = True

    def results(self, variant: Variant) -> tuple[TestResult, ...]:
        """What the tests of a variant say, failing imports among them; () where the jail was lost."""
        self.runs += 1
        try:
            if not self.warm:
                return self.cold(variant)
            room = self._ready()
            for path, data in variant.files.items():
                room.workspace.rewrite(path, data)
            return self._ask(room, variant)
        except WorkerLost:
            self._pool.check()
            self.close()
            return ()

    def cold(self, variant: Variant) -> tuple[TestResult, ...]:
        """The same in a new jail with a writable copy of its own. WorkerLost when the jail ended."""
        with self._pool.start(variant.files, WorkerUse.FULL) as room:
            return self._ask(room, variant)

    def close(self) -> None:
        """End the warm worker. Any number of times; a later run starts another one."""
        room, self._room = self._room, None
        if room is not None:
            room.close()

    def _ready(self) -> JailWorker:
        if self._room is None or self._left <= 0 or not self._room.client.usable:
            self.close()
            self._room, self._left = self._pool.start({}, WorkerUse.QUICK), RENEWED_AFTER
        self._left -= 1
        return self._room

    def _ask(self, room: JailWorker, variant: Variant) -> tuple[TestResult, ...]:
        limits = self.limits
        request = OpenRequest(
            args=(variant.spec,),
            options=(*OPTIONS, *variant.options),
            pythonpath=self._pythonpath,
            cpu_seconds=limits.cpu_seconds,
            wall_seconds=limits.wall_seconds,
            memory_bytes=MEMORY_BYTES,
        )
        answer = room.client.open(request)
        if isinstance(answer, CollectionRefused):
            return _refused(answer, variant.spec)
        found = [
            TestResult(id=f"{COLLECTION}{name}", outcome=Outcome.ERROR, failure=failure)
            for name, failure in answer.errors.items()
        ]
        return (*found, *self._run(room, answer.items[:MOST_TESTS]))

    def _run(self, room: JailWorker, items: Sequence[Item]) -> tuple[TestResult, ...]:
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
        ran = room.client.run(request)
        return tuple(ran.results.values())


def _refused(answer: CollectionRefused, spec: str) -> tuple[TestResult, ...]:
    failures = answer.errors or {str(answer.path or spec): replace(answer.failure)}
    return tuple(
        TestResult(id=f"{COLLECTION}{name}", outcome=Outcome.ERROR, failure=failure)
        for name, failure in failures.items()
    )


def collected(answer: Collected | CollectionRefused) -> tuple[Item, ...]:
    """The tests of an answer."""
    return answer.items if isinstance(answer, Collected) else ()
