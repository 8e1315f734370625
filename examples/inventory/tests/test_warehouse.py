import pytest

from inventory import OutOfStock, UnknownItem


def test_receiving_adds_up(warehouse):
    warehouse.receive("H-02", 2)
    assert warehouse.on_hand("H-02") == 8


def test_reserved_pieces_are_on_hand_but_not_available(warehouse):
    warehouse.reserve("B-10", 20)
    assert (warehouse.on_hand("B-10"), warehouse.available("B-10")) == (60, 40)


def test_the_last_piece_can_be_reserved(warehouse):
    warehouse.reserve("L-77", 1)
    assert warehouse.available("L-77") == 0


def test_more_than_available_cannot(warehouse):
    warehouse.reserve("H-02", 4)
    with pytest.raises(OutOfStock) as caught:
        warehouse.reserve("H-02", 3)
    assert (caught.value.asked, caught.value.available) == (3, 2)


def test_shipping_ends_the_reservation(warehouse):
    warehouse.reserve("B-10", 10)
    warehouse.ship("B-10", 10)
    assert (warehouse.on_hand("B-10"), warehouse.available("B-10")) == (50, 50)


def test_only_reserved_pieces_ship(warehouse):
    with pytest.raises(ValueError, match="not reserved"):
        warehouse.ship("B-10", 1)


@pytest.mark.parametrize("quantity", [0, -1])
def test_quantities_are_positive(warehouse, quantity):
    with pytest.raises(ValueError, match="cannot reserve"):
        warehouse.reserve("B-10", quantity)
    with pytest.raises(ValueError, match="cannot receive"):
        warehouse.receive("B-10", quantity)


def test_unknown_item(warehouse):
    with pytest.raises(UnknownItem):
        warehouse.available("X-00")
