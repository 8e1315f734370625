"""Stock, reservations and reorder proposals of a small warehouse."""

from inventory.errors import InventoryError, OutOfStock, UnknownItem
from inventory.items import Item
from inventory.orders import Order, OrderLine, place
from inventory.prices import PriceList
from inventory.reorder import Proposal, propose
from inventory.warehouse import Warehouse

__all__ = [
    "InventoryError",
    "Item",
    "Order",
    "OrderLine",
    "OutOfStock",
    "PriceList",
    "Proposal",
    "UnknownItem",
    "Warehouse",
    "place",
    "propose",
]
