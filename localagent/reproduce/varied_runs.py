"""Runs one test again and again in the jail, under conditions that are held still or moved one at a time.

Every run is a new session (the project is imported anew) with an empty temporary folder. A test that needs to write
into the tree gets a new copy of it each time. Not promised: that nothing else varied; the machine's load always does.
"""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from localagent.domain.outcome import TestResult
from localagent.domain.reproduction import FailureRate
from localagent.reproduce.candidate_runs import RunLimits
from localagent.verify.baseline.collection_plan import MEMORY_BYTES, OPTIONS
from localagent.verify.worker.jail_pool import JailPool, JailWorker
from localagent.verify.worker.worker_client import OpenRequest, RunRequest, WorkerLost
from localagent.verify.worker.worker_messages import Collected, Item
from localagent.verify.worker.worker_spec import WorkerUse

PLUGIN = "_la_worker.variation_plugin"
MOST_BEFORE = 2000  # tests that run before the one in question


@dataclass(frozen=True, kw_only=True, slots=True)
class RunCondition:
    """`vary` is for the plugin in the jail (`random`, `clock`, `speed`, `switch`, `twice`); `before` are test ids."""

    vary: Mapping[str, float] = field(default_factory=dict)
    hash_seed: int = 0
    before: tuple[str, ...] = ()


class VariedRuns:
    """Of the test `test`, collected from `args`. Interrupted where the pool was cancelled; `close` when done."""

    def __init__(self, pool: JailPool, test: str, args: Sequence[str], pythonpath: tuple[str, ...]) -> None:
        self._place, self._pool = pool.place, pool
        self._pools: dict[int, JailPool] = {0: pool}
        self._jails: dict[int, JailWorker] = {}
        self._test, self._args, self._pythonpath = test, tuple(args), pythonpath
        self.writable = False
        self.limits = RunLimits()
        self.runs = 0

    def close(self) -> None:
        """End every jail of its own."""
        for worker in self._jails.values():
            worker.close()
        self._jails.clear()

    def cancel(self) -> None:
        """End every jail now."""
        for pool in list(self._pools.values()):
            pool.cancel()

    def rate(self, condition: RunCondition, runs: int, until: float) -> FailureRate:
        """So many runs, fewer where the time is up or jails are lost."""
        outcomes = [self.fails(condition) for _ in range(runs) if time.monotonic() < until]
        known = [outcome for outcome in outcomes if outcome is not None]
        return FailureRate(failed=sum(known), runs=len(known))

    def fails(self, condition: RunCondition) -> bool | None:
        """Whether the test fails; None where it was not run or its jail was lost."""
        result = self.result(condition)
        return None if result is None else not result.outcome.good

    def result(self, condition: RunCondition) -> TestResult | None:
        """What the test says after those of `before`, all in one process."""
        self.runs += 1
        seed = condition.hash_seed
        try:
            if self.writable or "twice" in condition.vary:
                with self._pool_of(seed).start({}, WorkerUse.FULL) as worker:
                    return self._ask(worker, condition)
            if seed not in self._jails or not self._jails[seed].client.usable:
                self._jails[seed] = self._pool_of(seed).start({}, WorkerUse.QUICK)
            return self._ask(self._jails[seed], condition)
        except WorkerLost:
            self._pool.check()
            lost = self._jails.pop(seed, None)
            if lost is not None:
                lost.close()
            return None

    def collected(self) -> tuple[Item, ...]:
        """All tests of `args`, in the order of their collection."""
        with self._pool_of(0).start({}, WorkerUse.FULL) as worker:
            answer = worker.client.open(replace(self._request(RunCondition()), args=self._args))
            return answer.items if isinstance(answer, Collected) else ()

    def _pool_of(self, seed: int) -> JailPool:
        if seed not in self._pools:
            place = replace(self._place, variables={**self._place.variables, "PYTHONHASHSEED": str(seed)})
            self._pools[seed] = JailPool(place)
        self._pool.check()
        return self._pools[seed]

    def _request(self, condition: RunCondition) -> OpenRequest:
        varied = ("-p", PLUGIN, "--la-vary", json.dumps(dict(condition.vary))) if condition.vary else ()
        args = self._args if condition.before else (self._test,)
        return OpenRequest(
            args=args,
            options=(*OPTIONS, *varied),
            pythonpath=self._pythonpath,
            cpu_seconds=2 * self.limits.cpu_seconds,
            wall_seconds=2 * self.limits.wall_seconds,
            memory_bytes=MEMORY_BYTES,
        )

    def _ask(self, worker: JailWorker, condition: RunCondition) -> TestResult | None:
        answer = worker.client.open(self._request(condition))
        if not isinstance(answer, Collected):
            return None
        by_id = {item.id: item for item in answer.items}
        if self._test not in by_id:
            return None
        items = [by_id[name] for name in condition.before[-MOST_BEFORE:] if name in by_id and name != self._test]
        request = RunRequest(
            items=[*items, by_id[self._test]],
            cpu_seconds=self.limits.cpu_seconds,
            wall_seconds=self.limits.wall_seconds,
            budget_seconds=120.0,
            memory_bytes=MEMORY_BYTES,
        )
        return worker.client.run(request).results.get(by_id[self._test].index)
