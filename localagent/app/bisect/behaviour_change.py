"""What the changes of the first bad commit that matter do: its parent's functions with and without, on equal inputs.

Inputs are the calls that the tests asked about make, variations of these, and literals made up. Where the commit could
not be reduced, all that it changed in sources is compared.
"""

import time
from collections.abc import Sequence

from localagent.app.bisect.bisect_parts import BisectParts
from localagent.app.review.changed_sources import change_of_tests, python_sources
from localagent.bisect.symptom import Symptom
from localagent.bisect.tree_runner import RunningJails
from localagent.domain.bisection import MinimalHunks
from localagent.domain.diff import TreeChange
from localagent.domain.verification import Differential
from localagent.errors import AnswerIsNo
from localagent.jail.files.workspace import remove_tree
from localagent.repo.commit_history import changes_of
from localagent.repo.patched_snapshot import patched
from localagent.verify.baseline.collection_plan import Collecting
from localagent.verify.evidence.changed_lines import ChangedFile
from localagent.verify.evidence.differential import Differ
from localagent.verify.worker.jail_pool import JailPool
from localagent.verify.worker.worker_client import WorkerLost
from localagent.verify.worker.worker_spec import WorkerUse


def behaviour_change(
    parts: BisectParts,
    commit: str,
    parent: str,
    symptom: Symptom,
    hunks: MinimalHunks | None,
    running: RunningJails,
) -> tuple[Differential | None, str]:
    """The comparison, or None and why there is none. Interrupted where it was cancelled."""
    is_test = change_of_tests(parts.runner.policy)
    try:
        every = hunks.changes if hunks is not None else changes_of(parts.git, commit, parent)
        changes = [change for change in every if change.path not in parts.tests.files]
        files = [file for file in python_sources(changes, is_test) if not file.alike() and file.touched()]
        if not files:
            return None, ""
        return _compared(parts, parent, changes, files, symptom, running), ""
    except WorkerLost as lost:
        return None, f"what the commit changed in behaviour was not compared: {lost}"
    except AnswerIsNo as no:
        return None, f"what the commit changed in behaviour was not compared: {no}"


def _compared(
    parts: BisectParts,
    parent: str,
    changes: Sequence[TreeChange],
    files: Sequence[ChangedFile],
    symptom: Symptom,
    running: RunningJails,
) -> Differential:
    runner = parts.runner
    stores = [parts.scratch / name for name in ("behaviour-before", "behaviour-after")]
    pools: list[JailPool] = []
    try:
        before = parts.tests.laid_over(parts.judge.tree(parent), stores[0])
        after = patched(before, stores[1], changes)
        for tree in (before, after):
            pools.append(runner.pool(tree))
            running.add(pools[-1])
        collecting = Collecting(pools[0].place, runner.task)
        names: list[str] = []
        if runner.task.tests:
            with pools[0].start({}, WorkerUse.FULL) as worker:
                _, collection = collecting.first(worker)
            names = [*symptom.kinds, *(item.id for item in collection.items if item.id not in symptom.kinds)]
        differ = Differ(pools[0], pools[1], collecting.request, files, seed=0, home=parts.hypothesis_home)
        differ.until = time.monotonic() + runner.seconds
        try:
            differ.open(with_tests=bool(names))
            return differ.ask(None, names, ())
        finally:
            differ.close()
    finally:
        for pool in pools:
            running.remove(pool)
            pool.close()
        for store in stores:
            remove_tree(store)
