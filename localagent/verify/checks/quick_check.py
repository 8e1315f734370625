"""The quick check: a pool of warm workers, each with its own read-only workspace that the host patches from outside.

Routes: SWAP (forked from the collected session, code replaced), FRESH (collected anew in the warm worker), COLD (a new
jail on a writable copy), the last when the repository's tests do not behave the same in a read-only warm worker.
"""

import concurrent.futures as cf
import queue
from collections.abc import Sequence

from localagent.domain.edit import Candidate
from localagent.domain.outcome import Baseline, QuickResult
from localagent.verify.checks.quick_plan import Ask, QuickPlan
from localagent.verify.checks.test_selection import Selector
from localagent.verify.worker.jail_pool import JailPool
from localagent.verify.worker.warm_worker import Warm, WarmSlot
from localagent.verify.worker.worker_client import OpenRequest


class WarmQuickCheck:
    """ports.QuickCheck. Workers start in the background as soon as this is made.

    `always` are passing tests that every candidate is put to, whatever it touches.
    """

    def __init__(
        self,
        jails: JailPool,
        baseline: Baseline,
        request: OpenRequest,
        *,
        jobs: int,
        keep: bool = False,
        always: Sequence[str] = (),
    ) -> None:
        self._plan = QuickPlan(jails, baseline, request)
        self._keep = keep
        self.warm: Warm | None = None
        self._selector = Selector(baseline)
        self._always = tuple(always)
        self._slots = [WarmSlot(self._plan) for _ in range(max(1, jobs))]
        self._free: queue.LifoQueue[WarmSlot] = queue.LifoQueue()
        self._starter = cf.ThreadPoolExecutor(len(self._slots), thread_name_prefix="warm")
        for slot in self._slots:
            self._starter.submit(self._start, slot)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the report should know."""
        return tuple(self._plan.notes)

    def _start(self, slot: WarmSlot) -> None:
        try:
            slot.ready()
        finally:
            self._free.put(slot)  # what went wrong shows again, in the thread that asks

    def check(self, candidate: Candidate, *, cpu_seconds: float, stop_early: bool = True) -> QuickResult:
        """Run one candidate; waits for a free worker."""
        ask = Ask(
            candidate=candidate,
            passing=tuple(
                t
                for t in dict.fromkeys((*self._always, *self._selector.passing_for(candidate)))
                if t not in self._plan.unsteady
            ),
            cpu_seconds=cpu_seconds,
            stop_early=stop_early,
        )
        slot = self._free.get()
        try:
            return slot.check(ask)
        finally:
            self._free.put(slot)

    def close(self) -> None:
        """End all workers; with `keep` all but one that is well, which is `warm` then and ends with its jails."""
        self._starter.shutdown(wait=True)
        for slot in self._slots:
            if self.warm is None and self._keep:
                self.warm = slot.release()
            else:
                slot.close()
