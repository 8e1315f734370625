"""Grades follow from their parts: more evidence never makes one worse, and what is not known never makes one better."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localagent.domain.strength import THRESHOLDS, Grade, Share, graded

shares = st.none() | st.integers(0, 40).flatmap(lambda n: st.integers(0, n).map(lambda k: Share(part=k, whole=n)))


def grade(lines: Share | None, mutants: Share | None, functions: Share | None) -> Grade:
    return graded(lines=lines, mutants=mutants, functions=functions, unknown={}).grade


@given(shares, shares, shares)
def test_more_is_never_worse(lines: Share | None, mutants: Share | None, functions: Share | None) -> None:
    found = grade(lines, mutants, functions)
    if lines is not None and lines.part < lines.whole:
        assert grade(Share(part=lines.part + 1, whole=lines.whole), mutants, functions).reaches(found)
    if mutants is not None and mutants.part < mutants.whole:
        assert grade(lines, Share(part=mutants.part + 1, whole=mutants.whole), functions).reaches(found)


@pytest.mark.long
@given(shares, shares, shares)
def test_the_unknown_is_never_better(lines: Share | None, mutants: Share | None, functions: Share | None) -> None:
    found = grade(lines, mutants, functions)
    for less in (grade(None, mutants, functions), grade(lines, None, functions), grade(lines, mutants, None)):
        assert found.reaches(less)


@given(shares, shares, shares)
def test_below_a_something_is_short(lines: Share | None, mutants: Share | None, functions: Share | None) -> None:
    strength = graded(lines=lines, mutants=mutants, functions=functions, unknown={})
    assert bool(strength.short) == (strength.grade is not Grade.A)


def test_each_threshold_is_exact() -> None:
    for t in THRESHOLDS:
        whole = 100
        exact = [Share(part=round(x * whole), whole=whole) for x in (t.lines, t.mutants, t.functions)]
        assert grade(*exact) is t.grade
        less = [Share(part=s.part - 1, whole=whole) if s.part else s for s in exact]
        assert grade(less[0], exact[1], exact[2]) is not t.grade
        assert grade(exact[0], less[1], exact[2]) is not t.grade


def test_few_mutants_say_too_little() -> None:
    full = Share(part=4, whole=4)
    assert grade(full, full, full) is Grade.C
    assert grade(full, Share(part=5, whole=5), full) is Grade.A


def test_no_line_run_is_e_and_some_is_d() -> None:
    assert grade(Share(part=0, whole=3), None, None) is Grade.E
    assert grade(Share(part=1, whole=3), None, None) is Grade.D
    assert grade(None, None, None) is Grade.E


@given(shares, shares, shares, st.integers(0, 9))
def test_tests_that_are_known_to_accept_others_go_with_neither_a_nor_b(
    lines: Share | None, mutants: Share | None, functions: Share | None, others: int
) -> None:
    alone = graded(lines=lines, mutants=mutants, functions=functions, unknown={})
    found = graded(lines=lines, mutants=mutants, functions=functions, unknown={}, others=others)
    assert alone.grade.reaches(found.grade)
    assert not found.weak or not found.grade.reaches(Grade.B)
    assert bool(others) <= bool(found.weak)
    if not others:
        assert found == alone


def test_weak_tests_are_named_with_what_shows_it() -> None:
    full = Share(part=4, whole=4)
    found = graded(
        lines=full,
        mutants=Share(part=7, whole=10, missing=("m.py:3 sign: a -> -a", "m.py:4 longer")),
        functions=full,
        unknown={},
        others=2,
    )
    assert found.grade is Grade.C
    assert found.weak == (
        "3 of 10 mutated alternatives of the changed lines pass too, the smallest: m.py:3 sign: a -> -a",
        "2 other behaviours, of repairs that were tried, pass too and answer otherwise on inputs near theirs",
    )
    assert "other behaviours that pass the tests: 2; B asks for none" in found.short


def test_a_few_mutants_that_live_show_nothing_yet() -> None:
    """Some are equal in behaviour, and of fewer than five nothing can be said."""
    full = Share(part=4, whole=4)
    for mutants in (Share(part=8, whole=10), Share(part=0, whole=4), None):
        assert not graded(lines=full, mutants=mutants, functions=full, unknown={}).weak
