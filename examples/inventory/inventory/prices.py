"""What it costs, in cents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from inventory.errors import UnknownItem
from inventory.reorder import Proposal


class PriceList:
    """Cents a piece, with one discount in per cent from a number of pieces on."""

    def __init__(self, cents: Mapping[str, int], *, discount_from: int = 0, discount_percent: int = 0) -> None:
        self._cents = dict(cents)
        self._discount_from = discount_from
        self._discount_percent = discount_percent

    def cost(self, number: str, pieces: int) -> int:
        """The cost of some pieces of one item, rounded down to whole cents."""
        if number not in self._cents:
            raise UnknownItem(number)
        full = self._cents[number] * pieces
        if self._discount_from and pieces >= self._discount_from:
            return full * (100 - self._discount_percent) // 100
        return full

    def total(self, proposals: Iterable[Proposal]) -> int:
        """The cost of everything proposed."""
        return sum(self.cost(proposal.item.number, proposal.pieces) for proposal in proposals)
