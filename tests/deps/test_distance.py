"""The distance is a metric; the cheap bound never exceeds it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localagent.deps.squat import distance, letter_mask, letters_apart

WORDS = st.text(alphabet="abc-1é", max_size=9)


@given(WORDS, WORDS)
def test_symmetric_and_zero_only_for_equals(a: str, b: str) -> None:
    assert distance(a, b) == distance(b, a)
    assert (distance(a, b) == 0) == (a == b)
    assert abs(len(a) - len(b)) <= distance(a, b) <= max(len(a), len(b))


@given(WORDS, WORDS, WORDS)
def test_triangle(a: str, b: str, c: str) -> None:
    assert distance(a, c) <= distance(a, b) + distance(b, c)


def test_the_triangle_that_the_restricted_distance_breaks() -> None:
    assert (distance("ca", "ac"), distance("ac", "abc"), distance("ca", "abc")) == (1, 1, 2)


@pytest.mark.long
@given(WORDS, WORDS)
def test_the_bound_never_exceeds_the_distance(a: str, b: str) -> None:
    assert letters_apart(letter_mask(a), letter_mask(b)) <= distance(a, b)


@given(WORDS, st.integers(0, 8), st.sampled_from("abz"))
def test_one_edit_is_one(a: str, at: int, letter: str) -> None:
    at = min(at, len(a))
    assert distance(a, a[:at] + letter + a[at:]) == 1
    if at + 1 < len(a) and a[at] != a[at + 1]:
        assert distance(a, a[:at] + a[at + 1] + a[at] + a[at + 2 :]) == 1
