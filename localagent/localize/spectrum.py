"""Spectrum-based suspiciousness.

Ochiai (Abreu, Zoeteweij, van Gemund, TAIC PART 2007): ef / sqrt((ef + nf) * (ef + ep)), in [0, 1]. Only traced tests
count: an untraced passing test says nothing of a line.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping

from localagent.domain.paths import RepoPath

Lines = Mapping[RepoPath, frozenset[int]]


def ochiai(failing: Iterable[Lines], passing: Iterable[Lines]) -> dict[RepoPath, dict[int, float]]:
    """Suspiciousness of each line that at least one failing test covers."""
    bad, n_bad = _counts(failing)
    good, _ = _counts(passing)
    out: dict[RepoPath, dict[int, float]] = {}
    for (path, line), ef in bad.items():
        ep = good[(path, line)]
        out.setdefault(path, {})[line] = ef / math.sqrt(n_bad * (ef + ep))
    return out


def _counts(runs: Iterable[Lines]) -> tuple[Counter[tuple[RepoPath, int]], int]:
    counts: Counter[tuple[RepoPath, int]] = Counter()
    n = 0
    for lines in runs:
        n += 1
        counts.update((path, line) for path, covered in lines.items() for line in covered)
    return counts, n
