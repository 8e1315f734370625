"""Localization: the formula, the statements, the fusion."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localagent.code.statements import StatementKind, statements_of
from localagent.domain.outcome import Baseline, Failure, Frame, Outcome, TestResult
from localagent.domain.paths import RepoPath
from localagent.localize.evidence import runs_of, spectrum_of
from localagent.localize.fuse import SpectrumLocalizer
from localagent.localize.spectrum import line_runs, ochiai

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
    scores = ochiai(line_runs([lines(1, 2), lines(1)], [lines(1), lines(3)]))
    assert math.isclose(scores[M][1], 2 / math.sqrt(2 * 3))
    assert math.isclose(scores[M][2], 1 / math.sqrt(2 * 1))
    assert 3 not in scores[M]


@pytest.mark.long
@given(st.lists(st.frozensets(st.integers(1, 9)), max_size=6), st.lists(st.frozensets(st.integers(1, 9)), max_size=6))
def test_ochiai_stays_in_the_unit_interval(bad: list[frozenset[int]], good: list[frozenset[int]]) -> None:
    scores = ochiai(line_runs([{M: b} for b in bad], [{M: g} for g in good]))
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


PLACES = b"""\
LIMIT = 3


@cache(1)
@other
def f(x, y=0):
    '''doc'''
    try:
        return x
    except (KeyError, ValueError):
        match y:
            case 1 if x:
                return 2
    return LIMIT
"""


def test_handlers_cases_decorators_and_headers_are_places() -> None:
    spans = {(s.line, s.end_line): s for s in statements_of(PLACES)}
    assert spans[(4, 4)].place is spans[(5, 5)].place is StatementKind.DECORATOR
    assert spans[(6, 6)].place is StatementKind.FUNCTION_HEADER
    assert spans[(10, 10)].names == {"KeyError", "ValueError"}
    assert spans[(12, 12)].names == {"x"}
    assert (8, 8) in spans
    assert not any(a <= 10 <= b for a, b in spans if a != 10)


def place(*tests: TestResult, source: bytes, test: bytes, imported: tuple[int, ...] = ()) -> list[int]:
    base = replace(baseline(*tests), import_lines={M: frozenset(imported)} if imported else {})
    return [s.line for s in SpectrumLocalizer().localize(base, {M: source, T: test})]


def failing(*covered: int, failure: Failure | None = None, name: str = "test_a") -> TestResult:
    return TestResult(id=f"{T}::{name}", outcome=Outcome.FAILED, lines=lines(*covered), path=T, line=1, failure=failure)


def passing(*covered: int) -> TestResult:
    return TestResult(id=f"{T}::test_good", outcome=Outcome.PASSED, lines=lines(*covered), path=T, line=9)


def test_a_covered_handler_is_suspected_and_headers_come_after_the_body() -> None:
    ranked = place(
        failing(8, 9, 10, 14), passing(8, 9), source=PLACES, test=b"def test_a():\n    f(1)\n", imported=(1, 4)
    )
    assert {10, 14} == set(ranked[:2])
    body = max(ranked.index(k) for k in (10, 14))
    assert all(body < ranked.index(k) for k in (4, 5, 6))


def test_headers_of_functions_that_no_failing_test_ran_are_left_out() -> None:
    ranked = place(failing(7, 8), source=SOURCE, test=b"def test_a():\n    bad(1)\n")
    assert 6 in ranked
    assert 1 not in ranked


def test_a_constant_is_suspected_by_its_use_and_before_other_import_time_code() -> None:
    source = b"OTHER = 1\nLIMIT = 3\n\n\ndef f(x):\n    return x < LIMIT\n"
    ranked = place(failing(6), source=source, test=b"def test_a():\n    f(1)\n", imported=(1, 2, 5))
    assert ranked.index(6) < ranked.index(2) < ranked.index(1)


def test_code_that_ran_only_while_collecting_is_suspected() -> None:
    source = (
        b"class Option:\n    def __init__(self):\n        self.flag = True\n\n    def show(self):\n        return 1\n"
    )
    ranked = place(
        failing(6), source=source, test=b"@mark(Option())\ndef test_a(o):\n    assert o.flag\n", imported=(1, 2, 3, 5)
    )
    assert 3 in ranked[:2]


CACHE = b"""\
def load():
    table = {}
    return table


def parse(text):
    value = text[1]
    return value
"""


def test_the_crash_comes_first_even_if_spectrum_points_at_a_cache() -> None:
    frames = (Frame(path=T, line=2, function="test_a"), Frame(path=M, line=7, function="parse"))
    crash = Failure(exception="IndexError", message="string index out of range", frames=frames)
    good = [replace(passing(7, 8), id=f"{T}::g{k}") for k in range(6)]
    ranked = place(failing(2, 3, 7, failure=crash), *good, source=CACHE, test=b"def test_a():\n    load()\n")
    assert ranked[0] == 7
    outside = Failure(exception="AssertionError", message="", frames=frames[:1])
    ranked = place(failing(2, 3, 7, failure=outside), *good, source=CACHE, test=b"def test_a():\n    load()\n")
    assert ranked[0] != 7


def test_few_passing_tests_count_less_than_many() -> None:
    def score(n: int) -> float:
        good = [replace(passing(7), id=f"{T}::g{k}") for k in range(n)]
        return spectrum_of(runs_of(baseline(failing(2, 7), *good)), {T})[M][7]

    assert score(0) == 1.0
    assert score(1) > 0.9
    assert score(20) < 0.4


def test_names_of_the_failing_tests_own_body_outweigh_names_elsewhere_in_its_file() -> None:
    source = b"def one(x):\n    return x\n\n\ndef two(x):\n    return x\n"
    test = b"def test_a():\n    two(1)\n\n\ndef test_b():\n    one(1)\n"
    assert place(failing(2, 6), source=source, test=test)[0] == 6
    assert place(failing(2, 6, name="test_b"), source=source, test=test)[0] == 2


def test_lines_that_all_failing_tests_cover_come_before_lines_of_some() -> None:
    ranked = place(failing(2, 7), failing(7, name="test_b"), source=CACHE, test=b"x = 1\n")
    assert ranked[0] == 7


def test_words_of_the_message_and_of_the_task_point_at_statements() -> None:
    source = b"def f(x):\n    x.width = 1\n    x.height = 2\n    return x\n"
    told = Failure(exception="AssertionError", message="assert 3 == 2 where 3 = <Box>.height", frames=())
    assert place(failing(2, 3, 4, failure=told), source=source, test=b"y = 1\n")[0] == 3
    base = baseline(failing(2, 3, 4))
    assert SpectrumLocalizer(text="the width is wrong").localize(base, {M: source, T: b""})[0].line == 2


def test_what_the_failing_tests_are_named_after_points_at_functions() -> None:
    source = b"def send(x):\n    return x\n\n\ndef retry(x):\n    return x\n\n\n"
    source += b"def order(x):\n    # sends again\n    return x\n"
    test = b"y = 1\n"
    assert place(failing(2, 6, 11, name="test_retries"), source=source, test=test)[0] == 6
    assert place(failing(2, 6, 11, name="test_it[again]"), source=source, test=test)[0] == 11
    assert place(failing(2, 6, 11, name="test_no_such_word"), source=source, test=test)[0] == 2


def test_what_only_repr_leads_to_counts_less() -> None:
    source = (
        b"class B:\n    def __repr__(self):\n        return self.shown()\n\n    def shown(self):\n        return 'B'\n"
    )
    source += b"\n    def size(self):\n        return 1\n"
    good = [replace(passing(9), id=f"{T}::g{k}") for k in range(6)]
    test = b"def test_a():\n    assert run(B()) == 2\n"
    assert place(failing(3, 6, 9), *good, source=source, test=test)[0] == 9
    assert place(failing(3, 6, 9), *good, source=source, test=test + b"    assert repr(B()) == ''\n")[0] != 9


def test_one_function_keeps_all_its_statements_with_a_moderate_spread() -> None:
    base = baseline(failing(7, 8, 9), passing(7, 10))
    ranked = SpectrumLocalizer().localize(base, {M: SOURCE, T: b"def test_a():\n    bad(1)\n"})
    scores = {s.line: s.score for s in ranked}
    assert {7, 8, 9} <= set(scores)
    assert max(scores.values()) / min(scores[k] for k in (7, 8, 9)) < 3


def test_a_statement_is_listed_once() -> None:
    base = replace(baseline(failing(*range(1, 15))), import_lines={M: frozenset(range(1, 15))})
    ranked = SpectrumLocalizer().localize(base, {M: PLACES, T: b"def test_a():\n    f(1)\n"})
    spans = [(s.line, s.end_line) for s in ranked]
    assert len(spans) == len(set(spans))
    assert all(0 < s.score <= 1 for s in ranked)


def test_a_body_that_became_a_text_is_suspected_where_its_function_ran() -> None:
    source = b"LIMIT = 3\n\n\ndef f(x):\n    '''y = x\n    return y'''\n\n\ndef g(x):\n    '''Prose.'''\n    return x\n"
    ranked = place(failing(4, 11), source=source, test=b"f(1)\n", imported=(1, 4, 9))
    assert ranked[:2] == [5, 11] or ranked[:2] == [11, 5]
    assert 10 not in ranked


@pytest.mark.parametrize("head", [b"from m import A\n", b"import m\n"])
@pytest.mark.parametrize("place", ["tests/helper.py", "tests/support/helper.py"])
def test_tests_that_fail_in_a_helper_before_the_source_blame_what_they_import(head: bytes, place: str) -> None:
    helper, other = RepoPath(place), RepoPath("n.py")
    where = Frame(path=helper, line=2, function="call")
    fail = TestResult(
        id="t",
        outcome=Outcome.FAILED,
        lines={helper: frozenset({2})},
        path=T,
        failure=Failure(exception="AttributeError", message="type object 'A' has no attribute 'f'", frames=(where,)),
    )
    imported = {M: frozenset({1, 2, 4}), helper: frozenset({1}), other: frozenset({1})}
    sources = {
        M: b"class A:\n    x = 1\n\ndef f(self):\n    return 1\n",
        other: b"y = 1\n",
        helper: b"def call(a):\n    return a.f\n",
        T: head + b"from helper import call\n\ndef t():\n    assert call(m.A)\n",
    }
    blamed = SpectrumLocalizer().localize(replace(baseline(fail), import_lines=imported), sources)
    assert {s.line for s in blamed if s.path == M} == {1, 2, 4}
    assert other not in {s.path for s in blamed}


def test_headers_count_no_more_where_tests_lie_beside_the_sources() -> None:
    """A function that ran is what the test reached, wherever the test's file lies."""

    def scores(folder: str, tests: str) -> list[float]:
        source, test = RepoPath(f"{folder}/calc.py"), RepoPath(f"{tests}/test_calc.py")
        fail = TestResult(id="t", outcome=Outcome.FAILED, lines={source: frozenset({8, 9})}, path=test)
        ran = Baseline(
            tests=(fail,),
            failing=("t",),
            passing=(),
            test_files=frozenset({test}),
            import_lines={source: frozenset({1, 7})},
        )
        sources = {source: SOURCE, test: b"from calc import bad\n\ndef t():\n    assert bad(1)\n"}
        return [round(s.score, 6) for s in SpectrumLocalizer().localize(ran, sources)]

    assert scores("pkg", "pkg") == scores("src", "tests")
