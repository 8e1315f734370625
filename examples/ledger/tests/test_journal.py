from datetime import date

import pytest

from ledger import Journal, Money


def test_balance(journal):
    assert journal.balance() == Money.parse("1,162.00")


def test_before_leaves_the_day_out(journal):
    assert [entry.category for entry in journal.before(date(2024, 3, 1))] == ["salary", "groceries"]


def test_categories_largest_spending_first(journal):
    assert list(journal.by_category()) == ["rent", "savings", "groceries", "salary"]
    assert journal.by_category()["groceries"] == Money.parse("-128.00")


def test_period_begins_on_its_first_day(journal):
    assert len(journal.between(date(2024, 3, 1), date(2024, 3, 15))) == 2


def test_one_day_is_a_period(journal):
    assert [entry.category for entry in journal.between(date(2024, 3, 1), date(2024, 3, 1))] == ["rent"]


def test_period_without_entries(journal):
    assert len(journal.between(date(2024, 3, 10), date(2024, 3, 30))) == 0


def test_backward_period(journal):
    with pytest.raises(ValueError, match="before it begins"):
        journal.between(date(2024, 3, 2), date(2024, 3, 1))


def test_empty():
    assert Journal().balance() == Money()
