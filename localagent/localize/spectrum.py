"""Spectrum-based suspiciousness.

Ochiai (Abreu, Zoeteweij, van Gemund, TAIC PART 2007): ef / sqrt((ef + nf) * (ef + ep)), in [0, 1]. Only traced tests
count: an untraced passing test says nothing of a line.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from localagent.domain.paths import RepoPath

Lines = Mapping[RepoPath, frozenset[int]]
Line = tuple[RepoPath, int]


@dataclass(frozen=True, kw_only=True, slots=True)
class LineRuns:
    """How many of the `failing` and of the `passing` tests ran each line."""

    failed: Mapping[Line, int]
    passed: Mapping[Line, int]
    failing: int
    passing: int


def line_runs(failing: Iterable[Lines], passing: Iterable[Lines]) -> LineRuns:
    """Counted over the lines that each test ran."""
    bad, n_bad = _counts(failing)
    good, n_good = _counts(passing)
    return LineRuns(failed=bad, passed=good, failing=n_bad, passing=n_good)


def ochiai(runs: LineRuns) -> dict[RepoPath, dict[int, float]]:
    """Suspiciousness of each line that at least one failing test covers."""
    out: dict[RepoPath, dict[int, float]] = {}
    for (path, line), ef in runs.failed.items():
        ep = runs.passed.get((path, line), 0)
        out.setdefault(path, {})[line] = ef / math.sqrt(runs.failing * (ef + ep))
    return out


def _counts(runs: Iterable[Lines]) -> tuple[Counter[Line], int]:
    counts: Counter[Line] = Counter()
    n = 0
    for lines in runs:
        n += 1
        counts.update((path, line) for path, covered in lines.items() for line in covered)
    return counts, n
