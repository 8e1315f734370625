"""When waiting for the model is worth it: laws of the decision, and the cases it was made for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localagent.repair.ordering.model_time_budget import (
    HAND,
    ORDERED,
    READ,
    READ_ON,
    met,
    worth_awaiting,
    worth_reading_on,
    worth_waiting,
)


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
    for curve in (HAND, READ, ORDERED, READ_ON):
        low, high = met(curve, min(few, more)), met(curve, max(few, more))
        assert 0.0 <= low <= high <= 1.0
        assert met(HAND, few) <= met(READ, few) <= met(ORDERED, few) <= met(READ_ON, few)


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


@pytest.mark.parametrize(
    ("candidates", "seconds", "each", "reading", "awaits"),
    [
        (45, 50.0, 0.1, 3.0, True),  # few candidates, and time that nothing else is done with
        (45, 300.0, 0.02, 3.0, True),
        (495, 290.0, 0.1, 3.0, False),  # all of the hundred will run anyhow
        (100, 300.0, 0.1, 3.0, False),  # as well
        (45, 50.0, 10.0, 3.0, False),  # hardly one runs meanwhile: reading beside costs nothing
        (45, 11.0, 0.1, 3.0, False),  # too little time
        (45, 300.0, 0.1, float("inf"), False),  # nobody knows how long it takes
        (0, 300.0, 0.1, 3.0, False),
    ],
)
def test_reading_on_is_waited_for_where_candidates_are_dearer_than_time(
    candidates: int, seconds: float, each: float, reading: float, awaits: bool
) -> None:
    got = worth_awaiting(candidates=candidates, seconds=seconds, each_seconds=each, reading_seconds=reading)
    assert got is awaits


@given(st.integers(0, 10_000), st.floats(0, 1_000), st.floats(0, 100), st.floats(0, 1_000))
def test_nobody_waits_for_much_of_the_time_nor_where_all_that_is_read_would_run(
    candidates: int, seconds: float, each: float, reading: float
) -> None:
    if worth_awaiting(candidates=candidates, seconds=seconds, each_seconds=each, reading_seconds=reading):
        assert reading <= seconds / 4
    assert not worth_awaiting(candidates=candidates + 100, seconds=1_000.0, each_seconds=0.1, reading_seconds=reading)
