"""What lies on the shelves, and what of it is promised."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from inventory.errors import OutOfStock, UnknownItem
from inventory.items import Item


class Warehouse:
    """Counts pieces of known items. Never lets a reservation exceed what is there."""

    def __init__(self, items: Iterable[Item]) -> None:
        self._items = {item.number: item for item in items}
        self._on_hand = dict.fromkeys(self._items, 0)
        self._reserved = dict.fromkeys(self._items, 0)

    def __iter__(self) -> Iterator[Item]:
        return iter(self._items.values())

    def item(self, number: str) -> Item:
        """The item with this number."""
        try:
            return self._items[number]
        except KeyError:
            raise UnknownItem(number) from None

    def on_hand(self, number: str) -> int:
        """Pieces on the shelves, reserved ones included."""
        return self._on_hand[self.item(number).number]

    def available(self, number: str) -> int:
        """Pieces on the shelves that nobody has reserved."""
        return self.on_hand(number) - self._reserved[number]

    def receive(self, number: str, quantity: int) -> None:
        """A delivery came in."""
        if quantity <= 0:
            raise ValueError(f"{number}: cannot receive {quantity} pieces")
        self._on_hand[self.item(number).number] += quantity

    def reserve(self, number: str, quantity: int) -> None:
        """Promise pieces to an order."""
        if quantity <= 0:
            raise ValueError(f"{number}: cannot reserve {quantity} pieces")
        available = self.available(number)
        if quantity >= available:
            raise OutOfStock(number, quantity, available)
        self._reserved[number] += quantity

    def release(self, number: str, quantity: int) -> None:
        """Take a promise back."""
        if not 0 < quantity <= self._reserved[self.item(number).number]:
            raise ValueError(f"{number}: {quantity} pieces are not reserved")
        self._reserved[number] -= quantity

    def ship(self, number: str, quantity: int) -> None:
        """Reserved pieces leave the house."""
        self.release(number, quantity)
        self._on_hand[number] -= quantity
