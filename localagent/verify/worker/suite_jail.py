"""One tree and one way to collect its tests, in a cold jail that is renewed when it ends, is lost, or gets old.

Every call has a moment by which it must be over: the jail is killed a little after it. Limitations: results of a run
whose jail was lost or killed are lost with it; session fixtures are made anew in each jail and for each run.
"""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from localagent.domain.paths import RepoPath
from localagent.verify.worker.jail_pool import JailPool, JailWorker
from localagent.verify.worker.suite_run import SuiteRun, SuiteWorker
from localagent.verify.worker.worker_client import OpenRequest, RunRequest, WorkerLost
from localagent.verify.worker.worker_messages import Collected, CollectionRefused, Item
from localagent.verify.worker.worker_spec import WorkerUse

RENEWED_AFTER_SECONDS = 150.0
JAIL_SECONDS = 270.0  # the profile's wall limit ends a jail at 300
KILLED_AFTER_SECONDS = 5.0
LEAST_SECONDS = 0.5


class RunMode(Enum):
    """How tests run: in one session, as plain pytest would; each in a process of its own; so, with their lines."""

    IN_ORDER = "in-order"
    ALONE = "alone"
    TRACED = "traced"


@dataclass(frozen=True, kw_only=True, slots=True)
class TestLimits:
    """Of one test."""

    __test__ = False

    cpu_seconds: float
    wall_seconds: float


class SuiteJail:
    """`changes` over the snapshot of `jails`. `close` when done. Interrupted where the task was cancelled."""

    def __init__(self, jails: JailPool, changes: Mapping[RepoPath, bytes], request: OpenRequest) -> None:
        self._jails, self._changes, self._request = jails, changes, request
        self._worker: JailWorker | None = None
        self._suite: SuiteWorker | None = None
        self._born = 0.0
        self.lost = ""  # why the last jail ended, "" while none did

    def collect(self, *, until: float) -> Collected | CollectionRefused | None:
        """In a new session; None where the jail was lost or there is no time."""
        left = until - time.monotonic()
        if left < LEAST_SECONDS:
            return None
        try:
            with killed_at(until, self._kill):
                self._open_jail()
                assert self._worker is not None
                self._suite = SuiteWorker(self._worker.client, self._bounded(left))
                return self._suite.open()
        except WorkerLost as lost:
            self._lose(str(lost))
            return None

    def run(self, items: Sequence[Item], way: RunMode, limits: TestLimits, *, until: float) -> SuiteRun:
        """What the tests say by then; all are missed where the jail was lost."""
        begin = time.monotonic()
        nothing = SuiteRun(missed=tuple(item.id for item in items))
        if until - begin < LEAST_SECONDS or not items:
            return nothing
        if begin - self._born > RENEWED_AFTER_SECONDS:
            self.close()
        try:
            with killed_at(until, self._kill):
                if self._worker is None or self._suite is None:
                    self._open_jail()
                    assert self._worker is not None
                    self._suite = SuiteWorker(self._worker.client, self._bounded(until - begin))
                    self._suite.open()
                left = min(until, self._born + JAIL_SECONDS) - time.monotonic()
                if left < LEAST_SECONDS:
                    return nothing
                request = RunRequest(
                    items=(),
                    inline=way is RunMode.IN_ORDER,
                    trace=way is RunMode.TRACED,
                    hard_budget=True,
                    cpu_seconds=limits.cpu_seconds,
                    wall_seconds=min(limits.wall_seconds, left),
                    budget_seconds=left,
                )
                return self._suite.run(items, request)
        except WorkerLost as lost:
            self._lose(str(lost))
            return nothing

    def close(self) -> None:
        """End the jail. Any number of times; a later call opens another one."""
        worker, self._worker, self._suite = self._worker, None, None
        if worker is not None:
            worker.close()

    def _lose(self, why: str) -> None:
        self._jails.check()
        self.lost = why
        self.close()

    def _open_jail(self) -> None:
        if self._worker is None:
            self._worker, self._born = self._jails.start(self._changes, WorkerUse.FULL), time.monotonic()

    def _bounded(self, seconds: float) -> OpenRequest:
        return replace(self._request, wall_seconds=seconds, cpu_seconds=seconds)

    def _kill(self) -> None:
        worker = self._worker
        if worker is not None:
            worker.client.kill()


@contextlib.contextmanager
def killed_at(until: float, kill: Callable[[], None]) -> Iterator[None]:
    """Whatever the jail does: a little after `until` it is over."""
    timer = threading.Timer(max(0.0, until - time.monotonic()) + KILLED_AFTER_SECONDS, kill)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
