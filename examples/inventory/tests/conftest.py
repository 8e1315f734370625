import pytest

from inventory import Item, Warehouse

BOLT = Item("B-10", "bolt M10", minimum=40, target=100, pack=25)
HINGE = Item("H-02", "hinge", minimum=4, target=10, pack=2)
LAMP = Item("L-77", "lamp", minimum=0, target=5)


@pytest.fixture
def warehouse():
    house = Warehouse([BOLT, HINGE, LAMP])
    house.receive("B-10", 60)
    house.receive("H-02", 6)
    house.receive("L-77", 1)
    return house
