"""What of the first bad commit matters: the hunks that make all tests fail on its parent's tree that it makes fail."""

import itertools
from collections.abc import Sequence

from localagent.app.bisect.bisect_parts import BisectParts
from localagent.bisect.guilty_hunks import applied, hunks_of, minimal_hunks
from localagent.bisect.symptom import Symptom
from localagent.bisect.tree_runner import RunningJails
from localagent.domain.bisection import MinimalHunks
from localagent.domain.diff import TreeChange
from localagent.errors import AnswerIsNo
from localagent.jail.files.workspace import remove_tree
from localagent.repo.commit_history import changes_of
from localagent.repo.patched_snapshot import patched

_numbers = itertools.count()


def hunks_that_matter(
    parts: BisectParts, commit: str, parent: str, symptom: Symptom, running: RunningJails
) -> tuple[MinimalHunks | None, str]:
    """The hunks, or None and why they are not known. Files that are carried back are not among them."""
    try:
        changes = [c for c in changes_of(parts.git, commit, parent) if c.path not in parts.tests.files]
        before = parts.judge.tree(parent)
    except AnswerIsNo as no:
        return None, f"the commit's hunks were not reduced: {no}"
    hunks = hunks_of(changes)

    def shown(changed: Sequence[TreeChange]) -> frozenset[str]:
        """The tests that fail as at the bad commit with some changes of the parent's tree."""
        store = parts.scratch / f"hunks-{next(_numbers)}"
        try:
            tree = patched(before, store, changed) if changed else before
            return frozenset(symptom.shown(parts.judge.run_tree(tree, running)))
        except AnswerIsNo:  # a part that makes no tree: a file where a folder must be
            return frozenset()
        finally:
            remove_tree(store)

    wanted = shown(applied(hunks)) if hunks else frozenset()
    if not wanted:
        return None, "the commit's hunks were not reduced: on its parent's tree they do not make the tests fail alone"
    wanted -= shown(())
    if not wanted:
        return None, "the commit's hunks were not reduced: the tests fail on its parent's tree as well"
    return minimal_hunks(hunks, lambda changed: wanted <= shown(changed)), ""
