"""Edits in places where no repair belongs: support for tests, and functions that no failing test runs.

Limitations: coverage misses other processes and threads that were not traced; unknown coverage says nothing.
"""

from collections.abc import Iterator, Sequence

from localagent.code.spans import last_line
from localagent.domain.edit import Patch
from localagent.domain.paths import RepoPath
from localagent.repair.acceptance.changed_functions import TouchedFile
from localagent.repair.acceptance.contradiction import (
    Contradiction,
    ContradictionKind,
    ContradictionWeight,
    PatchContext,
)

_FOLDERS = frozenset({"testing", "testutils", "test_utils", "testutil", "test_util", "_testing", "testsupport"}) | {
    "test_support",
    "test_helpers",
    "testhelpers",
}
_FILES = _FOLDERS | {"conftest", "testclient", "test_client", "pytest_plugin", "noxfile"}


def testing_support(patch: Patch) -> Iterator[Contradiction]:
    """Files that exist for the sake of tests."""
    for change in patch.changes:
        parts = change.path.parts
        held = next((p for p in parts[:-1] if p.lower() in _FOLDERS), "")
        stem = parts[-1].rpartition(".")[0].lower()
        if held or stem in _FILES:
            yield Contradiction(
                kind=ContradictionKind.TESTING_SUPPORT,
                severity=ContradictionWeight.HARD,
                path=change.path,
                line=1,
                function="",
                why=f"the edit is in `{held + '/' if held else parts[-1]}`, which supports tests and is not under test",
            )


def no_failing_behaviour(files: Sequence[TouchedFile], context: PatchContext) -> Iterator[Contradiction]:
    """No touched function is run by a failing test, or named in a traceback."""
    if not context.covered or any(not f.functions for f in files):
        return
    for file in files:
        for pair in file.functions:
            body = range(pair.old.body[0].lineno, last_line(pair.old) + 1)
            if _runs(file.path, body, context):
                return
    for file in files[:1]:
        pair = file.functions[0]
        yield Contradiction(
            kind=ContradictionKind.NO_FAILING_BEHAVIOUR,
            severity=ContradictionWeight.SOFT,
            path=file.path,
            line=pair.effects[0].line,
            function=pair.qualname,
            why=f"no failing test runs `{pair.new.name}`",
        )


def _runs(path: RepoPath, lines: range, context: PatchContext) -> bool:
    frames = (frame for failure in context.failures for frame in failure.frames)
    if any(frame.path == path and frame.line in lines for frame in frames):
        return True
    return any(any(line in lines for line in covered.get(path, ())) for covered in context.covered.values())
