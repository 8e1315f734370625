"""What should be bought."""

from __future__ import annotations

from dataclasses import dataclass

from inventory.items import Item
from inventory.warehouse import Warehouse


@dataclass(frozen=True)
class Proposal:
    """Buy so many packs of an item."""

    item: Item
    packs: int

    @property
    def pieces(self) -> int:
        """Pieces that would arrive."""
        return self.packs * self.item.pack


def packs_needed(item: Item, available: int) -> int:
    """Whole packs that bring an item from `available` to its target, 0 while its minimum is there."""
    if available >= item.minimum:
        return 0
    missing = item.minimum - available
    return -(-missing // item.pack)


def propose(warehouse: Warehouse) -> list[Proposal]:
    """Proposals for all items that ran low, the lowest share of its target first."""
    found = []
    for item in warehouse:
        available = warehouse.available(item.number)
        packs = packs_needed(item, available)
        if packs > 0:
            found.append((available / item.target, item.number, Proposal(item, packs)))
    return [proposal for _, _, proposal in sorted(found, key=lambda row: row[:2])]
