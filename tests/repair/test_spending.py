"""When waiting for the model is worth it: laws of the decision, and the cases it was made for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localagent.repair.spending import HAND, READ, met, worth_reading_on, worth_waiting


@pytest.mark.parametrize(
    ("candidates", "seconds", "each", "wait", "waits"),
    [
        (50, 300.0, 0.01, 2.0, True),  # few candidates are all there is: none is to be wasted
        (500, 300.0, 10.0, 3.0, True),  # thirty tests fit into the budget: score first
        (1_000_000, 30.0, 0.01, 2.0, False),  # time is all there is, and tests cost next to nothing: verify
        (1_000_000, 30.0, 0.01, 25.0, False),  # the model would eat the budget
        (500, 10.0, 1.0, 9.5, False),
    ],
)
def test_the_cases_it_was_made_for(candidates: int, seconds: float, each: float, wait: float, waits: bool) -> None:
    got = worth_waiting(candidates=candidates, seconds=seconds, each_seconds=each, wait_seconds=wait)
    assert got is waits


@given(st.floats(0, 10_000), st.floats(0, 10_000))
def test_more_candidates_meet_no_fewer_fixes(few: float, more: float) -> None:
    for curve in (HAND, READ):
        low, high = met(curve, min(few, more)), met(curve, max(few, more))
        assert 0.0 <= low <= high <= 1.0
        assert met(HAND, few) <= met(READ, few)


@given(st.integers(0, 10_000), st.floats(0, 1_000), st.floats(0, 100), st.floats(0, 100))
def test_every_cost_has_an_answer_and_free_orders_are_never_refused(
    candidates: int, seconds: float, each: float, wait: float
) -> None:
    worth_waiting(candidates=candidates, seconds=seconds, each_seconds=each, wait_seconds=wait)
    assert not worth_waiting(candidates=candidates, seconds=wait, each_seconds=each, wait_seconds=wait)
    assert not worth_waiting(candidates=0, seconds=seconds, each_seconds=each, wait_seconds=wait)


@pytest.mark.parametrize(
    ("seconds", "each", "reading", "reads"),
    [
        (300.0, 0.03, 10.0, False),  # all of them would have run by then
        (300.0, 1.0, 10.0, True),
        (300.0, 10.0, 10.0, True),
        (15.0, 10.0, 10.0, False),  # no time is left to gain from it
        (300.0, 10.0, float("inf"), False),  # nobody knows how long it takes
    ],
)
def test_the_likeliest_are_read_on_where_tests_are_slow(
    seconds: float, each: float, reading: float, reads: bool
) -> None:
    assert worth_reading_on(edits=100, seconds=seconds, each_seconds=each, reading_seconds=reading) is reads


@given(st.floats(0, 1_000), st.floats(0, 100), st.floats(0, 1_000), st.floats(0, 100))
def test_slower_tests_and_a_faster_model_never_speak_against_reading_on(
    seconds: float, each: float, reading: float, more: float
) -> None:
    if worth_reading_on(edits=100, seconds=seconds, each_seconds=each, reading_seconds=reading):
        assert worth_reading_on(edits=100, seconds=seconds, each_seconds=each + more, reading_seconds=reading)
        assert worth_reading_on(edits=100, seconds=seconds, each_seconds=each, reading_seconds=max(0.0, reading - more))
