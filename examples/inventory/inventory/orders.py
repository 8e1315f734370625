"""Orders: reserved as a whole or not at all."""

from __future__ import annotations

from dataclasses import dataclass

from inventory.errors import InventoryError
from inventory.warehouse import Warehouse


@dataclass(frozen=True)
class OrderLine:
    """So many pieces of one item."""

    number: str
    quantity: int


@dataclass(frozen=True)
class Order:
    """What one customer wants."""

    customer: str
    lines: tuple[OrderLine, ...]

    def pieces(self) -> int:
        """All pieces of the order."""
        return sum(line.quantity for line in self.lines)


def place(order: Order, warehouse: Warehouse) -> None:
    """Reserve every line; if one cannot be, nothing stays reserved and the error goes on."""
    done: list[OrderLine] = []
    try:
        for line in order.lines:
            warehouse.reserve(line.number, line.quantity)
            done.append(line)
    except (InventoryError, ValueError):
        for line in reversed(done):
            warehouse.release(line.number, line.quantity)
        raise


def ship(order: Order, warehouse: Warehouse) -> int:
    """Send a placed order; answers how many pieces left."""
    for line in order.lines:
        warehouse.ship(line.number, line.quantity)
    return order.pieces()
