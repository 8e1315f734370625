"""The project's own Hypothesis properties: what they draw is the seed's, and nothing of it stays in the tree."""

import pytest
from support.house_builder import house

DRAWS = """import os
from hypothesis import Phase, given, settings, strategies as st

drawn = []


@settings(max_examples=6, phases=[Phase.generate])
@given(st.integers(0, 10**12))
def collect(n):
    drawn.append(n)


@settings(max_examples=5)
@given(st.integers())
def breaks(n):
    raise ValueError(n)


def test_draws():
    try:
        breaks()
    except ValueError:
        pass
    collect()
    raise AssertionError("%s %s" % (os.path.exists(".hypothesis"), drawn))
"""


def drawn(seed: int, *tests: str) -> str:
    with house({"m.py": "A = 1\n", "test_m.py": DRAWS}, seed=seed, tests=tests) as h:
        (test,) = h.verifier.baseline().tests
        assert test.failure is not None
        return test.failure.message


@pytest.mark.long
def test_a_seed_draws_the_same_again_and_another_one_does_not() -> None:
    first = drawn(3)
    assert first.startswith("False [")
    assert drawn(3) == first
    assert drawn(4) != first


@pytest.mark.long
def test_the_seed_that_pytest_was_given_stays() -> None:
    assert drawn(3, "--hypothesis-seed=9", "test_m.py") == drawn(4, "--hypothesis-seed=9", "test_m.py")
