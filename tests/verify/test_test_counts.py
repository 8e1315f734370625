"""Numbers of tests in what a check prints: they may lower trust, never raise it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localagent.verify.checks.test_counts import compared, summarized_tests

UNITTEST = "..s\n----------\nRan {} tests in 0.001s\n\n{}\n"


@pytest.mark.parametrize(
    ("output", "counts"),
    [
        (UNITTEST.format(3, "OK"), (3,)),
        (UNITTEST.format(3, "OK (skipped=2)"), (1,)),
        (UNITTEST.format(3, "FAILED (failures=1, skipped=3)"), (0,)),
        ("Found 1 test(s).\n" + UNITTEST.format(1, "OK"), (1,)),
        ("Ran 1 test in 0.1s\n\nOK\nRan 4 tests in 0.2s\n\nOK (skipped=1)\n", (1, 3)),
        ("==== 2 failed, 3 passed, 1 skipped, 1 warning in 0.12s ====\n", (5,)),
        ("\x1b[32m\x1b[1m3 passed\x1b[0m in 61.00s (0:01:01)\n", (3,)),
        ("no tests ran in 0.00s\n", (0,)),
        ("1 failed, 2 subtests passed in 0.1s\n", (1,)),
        ("3 tests in 2 items.\n3 passed and 0 failed.\n", (3,)),
        ("all good\n", ()),
        ("I Ran 3 tests in my head\n", ()),
    ],
)
def test_summaries_of_runners(output: str, counts: tuple[int, ...]) -> None:
    assert summarized_tests(output) == counts


@pytest.mark.parametrize(
    ("before", "after", "lost", "odd"),
    [
        ((3,), (3,), False, False),
        ((3,), (5,), False, False),
        ((3,), (2,), True, False),
        ((3,), (0,), True, False),
        ((3,), (), True, False),
        ((), (), False, False),
        ((3, 2), (1, 9), True, False),
        ((3,), (999, 0), True, False),
        ((3,), (999, 1), False, True),
        ((3,), (3, 4), False, False),
    ],
)
def test_fewer_tests_than_before_are_lost(
    before: tuple[int, ...], after: tuple[int, ...], *, lost: bool, odd: bool
) -> None:
    told = compared(before, after)
    assert (bool(told.lost), bool(told.odd)) == (lost, odd)


@given(st.lists(st.integers(0, 99), max_size=4), st.lists(st.integers(0, 99), max_size=4))
def test_a_run_of_fewer_tests_is_never_passed_over(before: list[int], after: list[int]) -> None:
    told = compared(before, after)
    if before and sum(after) < sum(before):
        assert told.lost


@given(st.text(alphabet="Ran 019tesin.\n=,passedfailed\x1b[m", max_size=200))
def test_any_output_has_an_answer(output: str) -> None:
    assert all(n >= 0 for n in summarized_tests(output))
