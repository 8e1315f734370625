"""Localization: the formula, the statements, the fusion."""

import math

from hypothesis import given
from hypothesis import strategies as st

from localagent.domain.outcome import Baseline, Failure, Frame, Outcome, TestResult
from localagent.domain.paths import RepoPath
from localagent.localize.fuse import SpectrumLocalizer
from localagent.localize.spectrum import ochiai
from localagent.localize.statements import statements_of

M, T = RepoPath("m.py"), RepoPath("tests/test_m.py")
SOURCE = b"""\
def good(x):
    y = x + 1
    return y


def bad(x):
    if x > 0:
        z = x - 1
        return z
    return 0
"""


def lines(*numbers: int) -> dict[RepoPath, frozenset[int]]:
    return {M: frozenset(numbers)}


def baseline(*tests: TestResult) -> Baseline:
    return Baseline(
        tests=tests,
        failing=tuple(t.id for t in tests if not t.outcome.good),
        passing=tuple(t.id for t in tests if t.outcome.good),
        test_files=frozenset({T}),
    )


def test_ochiai_is_the_published_formula() -> None:
    scores = ochiai([lines(1, 2), lines(1)], [lines(1), lines(3)])
    assert math.isclose(scores[M][1], 2 / math.sqrt(2 * 3))
    assert math.isclose(scores[M][2], 1 / math.sqrt(2 * 1))
    assert 3 not in scores[M]


@given(st.lists(st.frozensets(st.integers(1, 9)), max_size=6), st.lists(st.frozensets(st.integers(1, 9)), max_size=6))
def test_ochiai_stays_in_the_unit_interval(bad: list[frozenset[int]], good: list[frozenset[int]]) -> None:
    scores = ochiai([{M: b} for b in bad], [{M: g} for g in good])
    assert all(0 < v <= 1 + 1e-9 for per_line in scores.values() for v in per_line.values())


def test_lines_only_failing_tests_cover_come_first() -> None:
    fail = TestResult(id="a", outcome=Outcome.FAILED, lines=lines(7, 8, 9), path=T)
    good = TestResult(id="b", outcome=Outcome.PASSED, lines=lines(2, 3, 7), path=T)
    ranked = SpectrumLocalizer().localize(baseline(fail, good), {M: SOURCE, T: b"bad(1)\ngood(1)\n"})
    assert {ranked[0].line, ranked[1].line} == {8, 9}
    assert all(s.path == M for s in ranked)
    assert 2 not in {s.line for s in ranked}


def test_the_innermost_frame_wins_among_equally_covered_lines() -> None:
    failure = Failure(
        exception="NameError",
        message="name 'q' is not defined",
        frames=(Frame(path=T, line=1, function="t"), Frame(path=M, line=8, function="bad")),
    )
    fail = TestResult(id="a", outcome=Outcome.FAILED, lines=lines(7, 8, 9), failure=failure, path=T)
    ranked = SpectrumLocalizer().localize(baseline(fail), {M: SOURCE, T: b"bad(1)\n"})
    assert ranked[0].line == 8


def test_a_file_that_does_not_parse_is_ranked_by_the_parsers_line() -> None:
    failure = Failure(exception="SyntaxError", message="invalid", frames=(Frame(path=M, line=2, function=""),))
    base = Baseline(
        tests=(),
        collect_failures={"tests/test_m.py": failure},
        failing=("collect:tests/test_m.py",),
        test_files=frozenset({T}),
    )
    ranked = SpectrumLocalizer().localize(base, {M: b"x = 1\ndef f(:\n", T: b"import m\n"})
    assert [(s.path, s.line) for s in ranked] == [(M, 2)]


def test_test_files_are_never_blamed() -> None:
    covered = {M: frozenset({2}), T: frozenset({1})}
    fail = TestResult(id="a", outcome=Outcome.FAILED, lines=covered, path=T)
    ranked = SpectrumLocalizer().localize(baseline(fail), {M: SOURCE, T: b"good(1)\n"})
    assert ranked
    assert T not in {s.path for s in ranked}


def test_compound_statements_count_with_their_header_only() -> None:
    spans = {(s.line, s.end_line, s.function) for s in statements_of(SOURCE)}
    assert (7, 7, "bad") in spans
    assert (8, 8, "bad") in spans
    assert not any(a <= 7 < b for a, b, _ in spans)


def test_hostile_sources_have_no_statements() -> None:
    assert statements_of(b"(" * 5000) == ()
    assert statements_of(b"\0") == ()
