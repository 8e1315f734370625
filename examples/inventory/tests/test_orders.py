import pytest

from inventory import Order, OrderLine, OutOfStock, UnknownItem, place
from inventory.orders import ship


def test_order_reserves_each_line(warehouse):
    place(Order("Ada", (OrderLine("B-10", 12), OrderLine("H-02", 3))), warehouse)
    assert (warehouse.available("B-10"), warehouse.available("H-02")) == (48, 3)


def test_a_failing_line_undoes_the_others(warehouse):
    order = Order("Bo", (OrderLine("B-10", 12), OrderLine("H-02", 99)))
    with pytest.raises(OutOfStock):
        place(order, warehouse)
    assert (warehouse.available("B-10"), warehouse.available("H-02")) == (60, 6)


def test_an_unknown_item_undoes_the_others(warehouse):
    with pytest.raises(UnknownItem):
        place(Order("Cy", (OrderLine("B-10", 1), OrderLine("X-00", 1))), warehouse)
    assert warehouse.available("B-10") == 60


def test_shipping_counts_pieces(warehouse):
    order = Order("Di", (OrderLine("B-10", 12), OrderLine("H-02", 2)))
    place(order, warehouse)
    assert ship(order, warehouse) == 14
    assert warehouse.on_hand("H-02") == 4
