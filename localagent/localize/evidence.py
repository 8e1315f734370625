"""What a baseline says of places: frames of the failures, lines of the runs, words of the messages.

Only what is written in the baseline; nothing here weighs one kind of evidence against another.
"""

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from localagent.code.statements import Statement, identifiers_in
from localagent.domain.outcome import Baseline, Failure, TestResult, steady
from localagent.domain.paths import RepoPath
from localagent.localize.spectrum import LineRuns, line_runs, ochiai

_FEW_PASSING = 4.0
_FRAMES_PER_FAILURE = 6
_WORDS_PER_FAILURE = 400


def failing_tests(baseline: Baseline) -> tuple[TestResult, ...]:
    """The tests to repair."""
    wanted = set(baseline.failing)
    return tuple(t for t in baseline.tests if t.id in wanted)


def failures_of(baseline: Baseline) -> tuple[Failure, ...]:
    """Every failure to repair: of tests, of collection, of check commands."""
    wanted = set(baseline.failing)
    out = [t.failure for t in failing_tests(baseline) if t.failure is not None]
    out += baseline.collect_failures.values()
    out += [c.failure for c in baseline.checks if c.failure is not None and f"check:{c.command}" in wanted]
    return tuple(out)


def runs_of(baseline: Baseline) -> LineRuns:
    """Which lines the traced failing and passing tests ran."""
    bad = [t.lines for t in failing_tests(baseline) if t.lines]
    bad += [c.lines for c in baseline.checks if c.lines and not c.outcome.good]
    passing = set(baseline.passing)
    good = [t.lines for t in baseline.tests if t.id in passing and t.lines]
    good += [c.lines for c in baseline.checks if c.lines and c.outcome.good]
    return line_runs(bad, good)


def spectrum_of(runs: LineRuns, test_files: Collection[RepoPath]) -> dict[RepoPath, dict[int, float]]:
    """Suspiciousness of each covered line outside the test files, in [0, 1].

    With few traced passing tests Ochiai says nothing: then the share of the failing tests that cover the line counts.
    """
    trust = runs.passing / (runs.passing + _FEW_PASSING)
    return {
        p: {k: trust * v + (1 - trust) * runs.failed[p, k] / runs.failing for k, v in lines.items()}
        for p, lines in ochiai(runs).items()
        if p not in test_files
    }


@dataclass(frozen=True, kw_only=True, slots=True)
class Frames:
    """Weight per line of the source frames; `crashes` are the lines where an exception left a source file's code."""

    weights: Mapping[tuple[RepoPath, int], float]
    crashes: frozenset[tuple[RepoPath, int]]


def frames_of(failures: Sequence[Failure], test_files: frozenset[RepoPath]) -> Frames:
    """1 for the innermost source frame of a failure, falling by a third per frame outwards."""
    weights: dict[tuple[RepoPath, int], float] = {}
    crashes: set[tuple[RepoPath, int]] = set()
    for failure in failures:
        here = [f for f in failure.frames if f.path is not None]
        inside = [f for f in here if f.path not in test_files]
        weight = 1.0
        for frame in reversed(inside[-_FRAMES_PER_FAILURE:]):
            assert frame.path is not None
            key = (frame.path, frame.line)
            weights[key] = max(weights.get(key, 0.0), weight)
            weight *= 2 / 3
        if inside and inside[-1] is here[-1] and inside[-1].path is not None:
            crashes.add((inside[-1].path, inside[-1].line))
    return Frames(weights=weights, crashes=frozenset(crashes))


def message_identifiers(failures: Sequence[Failure]) -> frozenset[str]:
    """Words of the messages and of both sides of the failing comparisons."""
    words: set[str] = set()
    for f in failures:
        words |= frozenset(
            sorted(identifiers_in(f"{f.steady[:4000]} {steady(f.left)[:2000]} {steady(f.right)[:2000]}"))[
                :_WORDS_PER_FAILURE
            ]
        )
    return frozenset(words)


def rarity(statements: Iterable[Statement]) -> Mapping[str, float]:
    """How telling a word is: 1 where one statement has it, falling with the number of those that do."""
    counts = Counter(w for s in statements for w in s.names | s.words)
    return {w: 1.0 / (1.0 + math.log2(n)) for w, n in counts.items()}
