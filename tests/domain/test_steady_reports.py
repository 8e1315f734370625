"""What a failure says is the same in every run, whatever addresses objects have and wherever a report cuts them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localagent.domain.outcome import Failure, steady

ADDRESSES = st.integers(min_value=0x500000000000, max_value=0x7FFFFFFFFFFF).map(hex)


def cut(text: str, most: int) -> str:
    """As pytest shortens a long text."""
    if len(text) <= most:
        return text
    head = max(0, (most - 3) // 2)
    return text[:head] + "..." + text[len(text) - max(0, most - 3 - head) :]


@given(st.lists(st.tuples(ADDRESSES, ADDRESSES), min_size=1, max_size=4), st.integers(min_value=3, max_value=200))
def test_two_runs_say_the_same_wherever_a_report_is_cut(addresses: list[tuple[str, str]], most: int) -> None:
    one, other = (
        "[" + ", ".join(f"<coroutine object double at {pair[run]}>" for pair in addresses) + "]" for run in (0, 1)
    )
    assert steady(cut(one, most)) == steady(cut(other, most))


@pytest.mark.parametrize(
    "text",
    ["assert 12 == 13", "0x10 is not 0x20", "['a', 'b'...'cafe']", "1..10", "rows 3...5, columns 4", "<Row deadbeef>"],
)
def test_what_is_no_address_stays(text: str) -> None:
    assert steady(text) == text
    assert Failure(exception="E", message=text).steady == text


def test_the_end_of_an_address_that_a_report_left_is_taken_out() -> None:
    message = "assert ([<coroutine ...9bc2db10>], 2) == (['aa'], 2)"
    assert Failure(exception="AssertionError", message=message).steady.startswith("assert ([<coroutine ...0x0>], 2)")
