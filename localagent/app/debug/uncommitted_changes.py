"""What of the changes since the last commit makes a test fail: taken back by parts on a private copy (delta debugging).

What a developer has just changed is the likeliest cause, and taking it back an experiment that needs no guess. The
commit's version is read from git's objects. Not covered: files that were added or deleted, and what no failing test
ran or imported.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from localagent.app.debug.value_experiments import CPU_SECONDS
from localagent.app.review.patch_tests import TestedSnapshot
from localagent.bisect.guilty_hunks import hunks_of, minimal_hunks
from localagent.code.related_tests import is_test
from localagent.domain.bisection import MinimalHunks
from localagent.domain.diff import ChangeKind, FileMode, TreeChange
from localagent.domain.edit import Candidate, FileChange, Patch
from localagent.domain.outcome import Baseline, Failure, Outcome
from localagent.errors import LocalagentError
from localagent.ports import Sources
from localagent.repo.git import Git

MOST_RUNS = 48
_MOST_FILES = 60
_MOST_BYTES = 1 << 20


def uncommitted_hunks(
    ground: TestedSnapshot, baseline: Baseline, test: str, changes: Sequence[TreeChange], left: Callable[[], float]
) -> MinimalHunks | None:
    """The least of some changes that makes a test fail; None where it fails without all of them as well."""
    before = next((t.failure for t in baseline.tests if t.id == test), None)
    if not changes or before is None:
        return None
    quick = ground.verifier.quick(replace(baseline, failing=(test,), passing=()), jobs=1)

    def outcome(kept: Sequence[TreeChange]) -> tuple[Outcome | None, Failure | None]:
        """What becomes of the test with so much of the changes."""
        texts = {c.path: c.before for c in changes} | {c.path: c.after for c in kept}
        patch = Patch(
            changes=tuple(
                FileChange(path=path, before=ground.sources[path], after=text)
                for path, text in texts.items()
                if text != ground.sources[path]
            )
        )
        result = quick.check(
            Candidate(number=1, patch=patch, edits=(), cost=0.0), cpu_seconds=CPU_SECONDS, stop_early=False
        )
        return result.outcomes.get(test), result.failures.get(test)

    def fails(kept: Sequence[TreeChange]) -> bool:
        failure = outcome(kept)[1] if left() > 0 else None
        return failure is not None and failure.exception == before.exception

    try:
        if left() <= 0 or outcome(())[0] is not Outcome.PASSED:
            return None
        return minimal_hunks(hunks_of(changes), fails, MOST_RUNS)
    finally:
        quick.close()


def uncommitted_changes(baseline: Baseline, test: str, git: Git, sources: Sources) -> Iterator[TreeChange]:
    """The files that the test ran or imported, as of the last commit and as of now, where they differ.

    Compared by their bytes: git's own comparison would start the filters that the repository names.
    """
    ran = next((t.lines for t in baseline.tests if t.id == test), None) or {}
    known = [path for path in sources if path in ran or path in baseline.import_lines]
    for path in [path for path in known if not is_test(path)][:_MOST_FILES]:
        try:
            before = git.read_bounded("cat-file", "blob", f"HEAD:./{path}", most_bytes=_MOST_BYTES)
        except LocalagentError:  # it is new
            continue
        if before is not None and before != sources[path]:
            yield TreeChange(
                path=path,
                source=path,
                kind=ChangeKind.MODIFIED,
                before=before,
                after=sources[path],
                before_mode=FileMode.REGULAR,
                after_mode=FileMode.REGULAR,
            )
