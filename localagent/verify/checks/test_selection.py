"""Which tests a quick check runs: the failing ones, then passing ones that cover the edited lines while they are cheap.

What runs at import time is in no test's own lines. For a change there the passing tests of the failing tests' files
stand in, which a candidate's worker collects anyway: those that run what reads the changed name, else those that have
most lines of the file in common with the failing tests. Passing tests without known lines are left to the full check.
"""

import ast
import math
import threading
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from localagent.code.names import imports_of
from localagent.code.source_text import parse_or_none
from localagent.code.spans import Definition, Function, first_line, head_end, last_line, lines_of
from localagent.domain.edit import Candidate, FileChange
from localagent.domain.outcome import Baseline, TestResult
from localagent.domain.paths import RepoPath

# What a change at import time matters to: lines that read what the changed statements bind.
#
# A constant, a class attribute, a pattern, a default value runs while collecting, in no test's own lines; the tests
# that a change of it may break are those that run the lines which read the name. Names are compared as text: a local
# variable of the same name is a reader, too.


@dataclass(frozen=True, kw_only=True, slots=True)
class _File:
    """A parsed file, and the stretches of lines that read each name."""

    tree: ast.Module
    readers: Mapping[str, Sequence[range]]


class Readers:
    """Asks one snapshot's files; each is parsed and gone through once."""

    def __init__(self) -> None:
        self._files: dict[RepoPath, _File | None] = {}
        self._one = threading.Lock()  # several candidates are checked at once

    def of(self, path: RepoPath, source: bytes, lines: range) -> frozenset[int]:
        """Lines (1-based) that read what the statements on `lines` bind.

        None for lines of a function's body, which run in tests or not at all, and in a file that does not parse.
        """
        with self._one:
            if path not in self._files:
                self._files[path] = _parsed(source)
            file = self._files[path]
        if file is None:
            return frozenset()
        try:
            names = set(_bound(file.tree, lines))
        except RecursionError:  # thousands of `elif`
            return frozenset()
        found = (stretch for name in names for stretch in file.readers.get(name, ()))
        return frozenset(n for stretch in found for n in stretch)


def _parsed(source: bytes) -> _File | None:
    tree = parse_or_none(source)
    if tree is None:
        return None
    readers: defaultdict[str, list[range]] = defaultdict(list)
    for node in ast.walk(tree):
        if isinstance(node, ast.Name | ast.Attribute) and not isinstance(node.ctx, ast.Load):
            continue
        match node:
            case (
                ast.Name(id=name)
                | ast.Attribute(attr=name)
                | ast.FunctionDef(name=name)
                | ast.AsyncFunctionDef(name=name)
            ):
                readers[name].append(lines_of(node))
            case _:
                continue
    return _File(tree=tree, readers=readers)


def _bound(node: ast.AST, lines: range) -> Iterator[str]:
    """Names bound by the innermost statements outside of functions' bodies that have one of these lines."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ExceptHandler | ast.match_case):
            yield from _bound(child, lines)
            continue
        if not isinstance(child, ast.stmt):
            continue
        first = first_line(child)
        if isinstance(child, Definition):
            if _meet(first, head_end(child), lines):
                yield child.name
            if isinstance(child, Function):
                continue
            first = head_end(child) + 1
        if _meet(first, last_line(child), lines):
            yield from _own_names(child)
            yield from _bound(child, lines)


def _meet(first: int, last: int, lines: range) -> bool:
    return first < lines.stop and last >= lines.start


def _own_names(statement: ast.stmt) -> Iterator[str]:
    match statement:
        case ast.Import() | ast.ImportFrom():
            yield from (name.bound for name in imports_of(statement))
        case ast.Assign() | ast.AnnAssign() | ast.AugAssign():
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            yield from (n.id for target in targets for n in ast.walk(target) if isinstance(n, ast.Name))
            yield from (n.attr for target in targets for n in ast.walk(target) if isinstance(n, ast.Attribute))
        case _:
            return


PASSING_LIMIT = 200
PASSING_SECONDS = 1.0
STAND_INS = 20  # passing tests that run for a change nobody is known to read
QUICK_SECONDS = 0.1  # below it tests count as equally quick
CHECK_PREFIX, COLLECT_PREFIX = "check:", "collect:"


@dataclass(frozen=True, kw_only=True, slots=True)
class Targets:
    """The failing ids by kind."""

    tests: tuple[str, ...]
    files: tuple[str, ...]
    checks: tuple[str, ...]

    @classmethod
    def of(cls, baseline: Baseline) -> "Targets":
        """Failing tests quickest first, so that a candidate that does not help is told apart soon."""
        seconds = {t.id: _cost(t) for t in baseline.tests}
        known = set(seconds)
        tests = [i for i in baseline.failing if i in known]
        files = [i for i in baseline.failing if i not in known and i.startswith(COLLECT_PREFIX)]
        commands = [i for i in baseline.failing if i not in known and i.startswith(CHECK_PREFIX)]
        return cls(tests=tuple(sorted(tests, key=lambda i: seconds[i])), files=tuple(files), checks=tuple(commands))


def _cost(test: TestResult) -> int:
    return 1000 if test.outcome.value == "timed-out" else coarse(test.seconds)


def coarse(seconds: float) -> int:
    """Coarse: tests alike stay in the order they were collected in, whatever a busy machine made of their times."""
    return 0 if seconds < QUICK_SECONDS else 1 + int(math.log(seconds / QUICK_SECONDS, 4))


def changed_lines(change: FileChange, *, beside: int = 1) -> range:
    """Lines of the original between the common beginning and the common end of both versions, and some on each side."""
    old, new = change.before.splitlines(keepends=True), change.after.splitlines(keepends=True)
    top = 0
    while top < min(len(old), len(new)) and old[top] == new[top]:
        top += 1
    bottom = 0
    while bottom < min(len(old), len(new)) - top and old[-1 - bottom] == new[-1 - bottom]:
        bottom += 1
    return range(max(1, top + 1 - beside), len(old) - bottom + 1 + beside)


class Selector:
    """Finds covering passing tests; an index by file and line is made once."""

    def __init__(self, baseline: Baseline) -> None:
        wanted, failing = set(baseline.passing), set(baseline.failing)
        self._seconds: dict[str, float] = {}
        self._covering: dict[tuple[RepoPath, int], list[str]] = {}
        self._import_lines = baseline.import_lines
        self._readers = Readers()
        self._failing = [t for t in baseline.tests if t.id in failing and t.lines is not None]
        paths = {t.path for t in baseline.tests if t.id in failing}
        passing = [t for t in baseline.tests if t.id in wanted and t.lines is not None]
        self._near = [t for t in passing if t.path in paths] if failing else passing
        for test in baseline.tests:
            if test.id not in wanted or test.lines is None:
                continue
            self._seconds[test.id] = test.seconds
            for path, lines in test.lines.items():
                for line in lines:
                    self._covering.setdefault((path, line), []).append(test.id)

    def passing_for(self, candidate: Candidate) -> tuple[str, ...]:
        """Passing tests that reach an edited line, quickest first, at most what fits."""
        found: dict[str, None] = {}
        for change in candidate.patch.changes:
            lines = changed_lines(change)
            reached = [i for line in lines for i in self._covering.get((change.path, line), ())]
            found.update(dict.fromkeys(reached or self._at_import_time(change, lines)))
        chosen: list[str] = []
        left = PASSING_SECONDS
        for test in sorted(found, key=lambda i: coarse(self._seconds[i])):
            left -= self._seconds[test]
            if (left < 0 and chosen) or len(chosen) >= PASSING_LIMIT:
                break
            chosen.append(test)
        return tuple(chosen)

    def _at_import_time(self, change: FileChange, lines: range) -> list[str]:
        """Passing tests that a change outside of what tests run may matter to: of those beside failing ones, if any."""
        if not self._near:
            return []
        reading = self._readers.of(change.path, change.before, changed_lines(change, beside=0) or lines)
        near = [(t.id, (t.lines or {}).get(change.path, frozenset())) for t in self._near]
        found = [i for i, ran in near if ran & reading]
        imported = not self._import_lines.get(change.path, frozenset()).isdisjoint(lines)
        if imported and not self._failing:
            return [*found, *(i for i, ran in near if ran)] or [i for i, _ in near]
        if found or not imported:
            return found
        wanted = frozenset(n for t in self._failing for n in (t.lines or {}).get(change.path, ()))
        return [i for i, ran in sorted(near, key=lambda x: -len(x[1] & wanted)) if ran & wanted][:STAND_INS]
