import pytest

from inventory import Item, PriceList, UnknownItem, propose
from inventory.reorder import packs_needed

from .conftest import BOLT, HINGE


def test_enough_is_left_alone(warehouse):
    assert propose(warehouse) == []


@pytest.mark.parametrize(("available", "packs"), [(40, 0), (39, 3), (25, 3), (24, 4), (0, 4)])
def test_whole_packs_up_to_the_target(available, packs):
    assert packs_needed(BOLT, available) == packs


def test_lowest_share_first(warehouse):
    warehouse.reserve("B-10", 30)
    warehouse.reserve("H-02", 5)
    assert [(p.item.number, p.pieces) for p in propose(warehouse)] == [("H-02", 10), ("B-10", 75)]


def test_cost_of_proposals(warehouse):
    prices = PriceList({"B-10": 12, "H-02": 350}, discount_from=50, discount_percent=10)
    warehouse.reserve("B-10", 30)
    assert prices.total(propose(warehouse)) == 75 * 12 * 90 // 100


def test_discount_begins_at_its_bound():
    prices = PriceList({"H-02": 350}, discount_from=10, discount_percent=20)
    assert (prices.cost("H-02", 9), prices.cost("H-02", 10)) == (3150, 2800)


def test_price_unknown():
    with pytest.raises(UnknownItem):
        PriceList({}).cost(HINGE.number, 1)


def test_item_bounds():
    with pytest.raises(ValueError, match="do not fit"):
        Item("Z", "zero", minimum=3, target=2)
