"""The law of guessed properties: what is true of a function for every input is never denied, what is false is found."""

import types
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localagent.runner.observed_properties import properties

NUMBERS = st.integers(-1000, 1000)


def held(function: Callable[..., Any], *args: Any) -> dict[str, bool]:
    assert isinstance(function, types.FunctionType)
    return properties(function, None, args, {}, args, {}, function(*args), alone=True)


@given(NUMBERS, NUMBERS)
def test_a_symmetric_function_is_symmetric_on_every_pair(a: int, b: int) -> None:
    for function in (lambda x, y: x + y, lambda x, y: max(x, y), lambda x, y: sorted([x, y])):
        assert held(function, a, b).get("symmetric") is (True if a != b else None)


@given(NUMBERS, NUMBERS)
def test_an_asymmetric_one_is_found_on_every_pair(a: int, b: int) -> None:
    found = held(lambda x, y: x - y, a, b)
    assert found.get("symmetric") is (False if a != b else None)


@given(NUMBERS)
def test_a_monotonic_function_is_monotonic_everywhere(n: int) -> None:
    assert held(lambda x: 3 * x + 1, n)["never falls"]
    assert held(lambda x: -x, n)["never rises"]
    assert held(lambda x: x // 10, n)["never falls"]
    assert held(lambda x: 5 + 0 * x, n) == {**held(lambda x: 5 + 0 * x, n), "never falls": True, "never rises": True}


@given(st.integers(-1000, -1))
def test_what_turns_is_found(n: int) -> None:
    assert not held(lambda x: x * x, n)["never falls"]
    assert not held(lambda x: x * x, 1 - n)["never rises"]


def refuses(n: int) -> int:
    if n > 3:
        raise ValueError(n)
    return n


@pytest.mark.parametrize("value", [float("nan"), float("inf"), True, "a"])
def test_what_has_no_order_is_not_asked_for_one(value: Any) -> None:
    assert not {"never falls", "never rises"} & held(lambda x: x, value).keys()


def test_what_raises_beside_an_input_says_nothing() -> None:
    assert "never falls" not in held(refuses, 3)
    assert held(lambda x, y: x / y, 0, 5)["symmetric"] is False
