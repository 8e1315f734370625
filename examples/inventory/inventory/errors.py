"""What can go wrong."""


class InventoryError(Exception):
    """Root of this package's errors."""


class UnknownItem(InventoryError):
    """No item has this number."""


class OutOfStock(InventoryError):
    """Less is available than was asked for."""

    def __init__(self, number: str, asked: int, available: int) -> None:
        super().__init__(f"{number}: {asked} asked for, {available} available")
        self.number = number
        self.asked = asked
        self.available = available
