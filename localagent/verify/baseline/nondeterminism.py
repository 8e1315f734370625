"""Tests that failed in each jail at first and passed at a later run there: by chance, or by what a run leaves behind?

A fresh jail tells: who goes by a mark fails there once more. Not promised: that chance never looks like a mark. Both
are named, and neither is chased.
"""

from collections.abc import Collection, Sequence

from localagent.verify.worker.jail_pool import JailPool
from localagent.verify.worker.suite_run import SuiteWorker
from localagent.verify.worker.worker_client import OpenRequest, RunRequest, WorkerLost
from localagent.verify.worker.worker_messages import Collected
from localagent.verify.worker.worker_spec import WorkerUse

_SHOWN = 5


def one_sided(jails: JailPool, request: OpenRequest, names: Collection[str]) -> Sequence[str]:
    """A remark on those of `names` that fail in a jail in which nothing ran before, or none."""
    if not names:
        return ()
    found: list[str] = []
    try:
        with jails.start({}, WorkerUse.BASELINE) as worker:
            suite = SuiteWorker(worker.client, request)
            answer = suite.open()
            items = [i for i in answer.items if i.id in names] if isinstance(answer, Collected) else []
            ran = suite.run(items, RunRequest(items=(), cpu_seconds=5.0, budget_seconds=10.0))
            found = sorted(name for name, result in ran.results.items() if not result.outcome.good)
    except WorkerLost as lost:
        jails.check()
        return (f"whether {len(names)} flaky tests go by what they leave behind is not known: {lost}",)
    if not found:
        return ()
    more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    shown = ", ".join(found[:_SHOWN])
    return (f"flaky on one side: failing in a fresh jail, passing where a run of theirs left something: {shown}{more}",)
