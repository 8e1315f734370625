"""ddmin (Zeller and Hildebrandt, Simplifying and Isolating Failure-Inducing Input, 2002): a 1-minimal part that fails.

Pure. Each part is asked about once.
"""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

_Unit = TypeVar("_Unit")


@dataclass(frozen=True, kw_only=True, slots=True)
class Reduced:
    """Numbers of the units that are left, in order. Where `complete`, no single one of them can be left out."""

    kept: tuple[int, ...]
    asked: int
    complete: bool


def ddmin(units: Sequence[_Unit], fails: Callable[[Sequence[_Unit]], bool], *, most: int) -> Reduced:
    """The smallest part found of `units`, of which all together fail, asking at most so often."""
    known: dict[tuple[int, ...], bool] = {}

    def failing(part: tuple[int, ...]) -> bool | None:
        if part not in known:
            if len(known) >= most:
                return None
            known[part] = fails([units[n] for n in part])
        return known[part]

    kept = tuple(range(len(units)))
    grain = 2
    while len(kept) > 1:
        parts = _split(kept, grain)
        complements = [tuple(n for n in kept if n not in set(part)) for part in parts]
        smaller: tuple[int, ...] | None = None
        for candidate in (*parts, *complements) if grain > 2 else parts:
            answer = failing(candidate)
            if answer is None:
                return Reduced(kept=kept, asked=len(known), complete=False)
            if answer:
                smaller = candidate
                break
        if smaller is not None:
            grain = 2 if smaller in parts else max(grain - 1, 2)
            kept = smaller
        elif grain < len(kept):
            grain = min(len(kept), 2 * grain)
        else:
            break
    return Reduced(kept=kept, asked=len(known), complete=True)


def _split(kept: tuple[int, ...], grain: int) -> list[tuple[int, ...]]:
    """So many parts of nearly equal size, none empty."""
    bounds = [len(kept) * n // grain for n in range(grain + 1)]
    return [kept[low:high] for low, high in itertools.pairwise(bounds) if low < high]
