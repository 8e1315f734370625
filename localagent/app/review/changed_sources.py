"""Which changes of a tree are of tests, and which of Python sources: what evidence is gathered of."""

from collections.abc import Callable, Iterator, Sequence

import pathspec

from localagent.domain.diff import ChangeKind, FileMode, TreeChange
from localagent.domain.policy import Policy
from localagent.verify.evidence.changed_lines import ChangedFile


def change_of_tests(policy: Policy) -> Callable[[TreeChange], bool]:
    """Tells changes of tests: by the policy's patterns, by what pytest collects, and fixtures."""
    spec = pathspec.GitIgnoreSpec.from_lines([p.lower() for p in policy.paths.tests])
    return lambda change: any(
        spec.match_file(path.replace("\n", " ").lower()) or path.name == "conftest.py"
        for path in (change.path, change.source)
    )


def python_sources(changes: Sequence[TreeChange], is_test: Callable[[TreeChange], bool]) -> Iterator[ChangedFile]:
    """The changed sources that are no tests."""
    for change in changes:
        link = FileMode.SYMLINK in (change.before_mode, change.after_mode)
        if not is_test(change) and change.path.is_python and change.source.is_python and not link:
            before = b"" if change.kind is ChangeKind.COPIED else change.before
            yield ChangedFile(path=change.path, source=change.source, before=before, after=change.after)
