"""What mending adds to a score: a share of its nats, cut off, and nothing where nothing was answered."""

import math

from hypothesis import given
from hypothesis import strategies as st

from localagent.repair.weights import MENDED_LEAST, Weights, mended_values

NATS = st.lists(st.none() | st.floats(-1e6, 0.0), min_size=1)


def test_the_share_the_cut_and_what_was_not_answered() -> None:
    weights = Weights(mended=0.5, unmended=-3.0)
    assert mended_values([-1.0, MENDED_LEAST - 1.0, None, 0.0], weights) == [-0.5, MENDED_LEAST / 2, -1.5, 0.0]
    assert mended_values([None, None], weights) == [0.0, 0.0]
    assert mended_values([], weights) == []


@given(NATS)
def test_a_likelier_edit_never_gets_less(nats: list[float | None]) -> None:
    values = mended_values(nats, Weights())
    assert len(values) == len(nats)
    assert all(Weights().mended * MENDED_LEAST <= value <= 0.0 for value in values)
    told = sorted((n, v) for n, v in zip(nats, values, strict=True) if n is not None)
    assert [v for _, v in told] == sorted(v for _, v in told)
    assert all(math.isfinite(value) for value in values)
