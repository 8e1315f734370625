"""What `--guard` and `--guard-seconds` say, and what is bounded in a result."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localagent.domain.guard import (
    MOST_ID_CHARACTERS,
    MOST_NAMED,
    MOST_SECONDS,
    Guard,
    GuardResult,
    GuardScope,
    bounded_ids,
    guard_faults,
    guard_of,
)


def test_nothing_said_is_the_whole_suite() -> None:
    assert guard_of([], 120.0) == Guard()
    assert Guard().scope is GuardScope.SUITE
    assert guard_faults([], 120.0) == []


@given(st.lists(st.text(min_size=1)), st.floats())
def test_what_has_no_fault_comes_back_as_it_was_said(specs: list[str], seconds: float) -> None:
    if not guard_faults(specs, seconds):
        guard = guard_of(specs, seconds)
        assert (list(guard.specs), guard.seconds) == (specs, seconds)
        assert (guard.scope is GuardScope.NONE) is (specs == ["none"])
        assert 0 < guard.seconds <= MOST_SECONDS


@pytest.mark.parametrize("seconds", [0.0, -1.0, math.inf, math.nan, MOST_SECONDS + 1])
def test_seconds_are_bounded(seconds: float) -> None:
    assert guard_faults([], seconds) == ["--guard-seconds: more than 0 and at most 3600 (`--guard none` runs nothing)"]


def test_all_faults_come_together() -> None:
    assert len(guard_faults(["none", "", "a\0"], 0.0)) == 4


def test_scope_and_tests_cannot_disagree() -> None:
    with pytest.raises(ValueError, match="scope none"):
        Guard(scope=GuardScope.NONE, tests=("a",))
    with pytest.raises(ValueError, match="scope named"):
        Guard(scope=GuardScope.NAMED)


def test_a_refusal_names_five_and_ids_are_bounded() -> None:
    names = bounded_ids([f"{n}" + "x" * 9000 for n in range(1000)])
    assert (len(names), {len(name) for name in names}) == (MOST_NAMED, {MOST_ID_CHARACTERS})
    refusal = GuardResult(broken=names).refusal
    assert refusal.endswith(" and 45 more")
    assert len(refusal) < 1200
    assert GuardResult(flaky=("a",), undecided=("b",)).refusal == ""
