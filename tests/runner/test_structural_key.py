"""Texts of values are equal where the values' structure is, and nowhere else."""

import datetime
from decimal import Decimal

from localagent.runner.structural_key import shape


def test_shapes_are_equal_where_a_test_could_not_tell_values_apart() -> None:
    assert shape([True, 1.0, {0: False}]) == shape([1, 1, {0: 0}])
    assert len({shape(v) for v in (1, 1.5, "1", None, [1], (1,), float("inf"), float("nan"))}) == 8


def test_values_without_attributes_are_told_apart() -> None:
    class Slotted:
        __slots__ = ("n",)

        def __init__(self, n: int) -> None:
            self.n = n

    day = datetime.date(2024, 3, 1)
    assert shape(day) != shape(day + datetime.timedelta(days=1))
    assert shape(Decimal("1.5")) != shape(Decimal("2.5"))
    assert shape(Slotted(1)) != shape(Slotted(2))
    assert shape(Slotted(1)) == shape(Slotted(1))
