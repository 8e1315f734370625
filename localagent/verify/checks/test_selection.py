"""Which tests a quick check runs: the failing ones, then passing ones that cover the edited lines while they are cheap.

What runs at import time is in no test's own lines. For a change there the passing tests of the failing tests' files
stand in, which a candidate's worker collects anyway: those that run what reads the changed name, else those that have
most lines of the file in common with the failing tests. Passing tests without known lines are left to the full check.
"""

import math
from dataclasses import dataclass

from localagent.domain.edit import Candidate, FileChange
from localagent.domain.outcome import Baseline, TestResult
from localagent.domain.paths import RepoPath
from localagent.verify.baseline.import_time import Readers

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
        self._near = [t for t in baseline.tests if t.id in wanted and t.lines is not None and t.path in paths]
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
        """Passing tests beside the failing ones that a change outside of what tests run may matter to."""
        if not self._near:
            return []
        reading = self._readers.of(change.path, change.before, changed_lines(change, beside=0) or lines)
        near = [(t.id, (t.lines or {}).get(change.path, frozenset())) for t in self._near]
        found = [i for i, ran in near if ran & reading]
        if found or self._import_lines.get(change.path, frozenset()).isdisjoint(lines):
            return found
        wanted = frozenset(n for t in self._failing for n in (t.lines or {}).get(change.path, ()))
        return [i for i, ran in sorted(near, key=lambda x: -len(x[1] & wanted)) if ran & wanted][:STAND_INS]
