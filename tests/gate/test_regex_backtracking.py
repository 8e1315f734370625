"""Regular expressions that take long: which, and how long."""

import pytest

from localagent.gate.review.regex_backtracking import slow_time


@pytest.mark.parametrize(
    ("pattern", "time"),
    [
        (r"(?:a+)+b", "exponential"),
        (r"^(\w+\s*)*$", "exponential"),
        (r"(\s*\s*\s*x?)+", "exponential"),  # the worse of the two
        (r"\s*(.+?)\s*(?:k|m)?\s*", "polynomial"),
        (r".*.*.*x", "polynomial"),
        (r"\s*(\d+)\s*(?:k|m)?\s*", ""),
        (r"(?:\w+,)*\w+", ""),
    ],
)
def test_the_time_that_a_pattern_may_take(pattern: str, time: str) -> None:
    assert slow_time(pattern) == time
