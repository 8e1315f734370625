"""What mending adds to a score: a share of its nats, cut off."""

import math

from hypothesis import given
from hypothesis import strategies as st

from localagent.repair.ordering.weights import MENDED_LEAST, Weights, mended_value


def test_the_share_the_cut_and_what_was_not_answered() -> None:
    weights = Weights(mended=0.5, unmended=-3.0)
    told = [mended_value(nats, weights) for nats in (-1.0, MENDED_LEAST - 1.0, None, 0.0)]
    assert told == [-0.5, MENDED_LEAST / 2, -1.5, 0.0]


@given(st.floats(-1e6, 0.0), st.floats(-1e6, 0.0))
def test_a_likelier_edit_never_gets_less(some: float, other: float) -> None:
    less, more = (mended_value(nats, Weights()) for nats in sorted((some, other)))
    assert Weights().mended * MENDED_LEAST <= less <= more <= 0.0
    assert math.isfinite(less)


def test_what_was_not_answered_stands_between_the_best_and_the_worst() -> None:
    weights = Weights()
    assert mended_value(MENDED_LEAST, weights) < mended_value(None, weights) < mended_value(-1.0, weights)
