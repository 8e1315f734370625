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
