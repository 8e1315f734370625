from datetime import date

from ledger import Money, statement
from ledger.statement import monthly


def test_march(journal):
    march = monthly(journal, 2024, 3)
    assert (march.first, march.last) == (date(2024, 3, 1), date(2024, 3, 31))
    assert march.opening == Money.parse("2,255.80")
    assert [entry.category for entry in march.entries] == ["rent", "groceries", "savings"]
    assert march.closing == Money.parse("1,174.05")


def test_months_follow_each_other_without_a_gap(journal):
    assert monthly(journal, 2024, 3).closing == monthly(journal, 2024, 4).opening


def test_december():
    from ledger import Journal

    assert monthly(Journal(), 2023, 12).last == date(2023, 12, 31)


def test_render(journal):
    text = statement(journal, date(2024, 4, 1), date(2024, 4, 30)).render()
    assert text.splitlines() == [
        "Statement 2024-04-01 to 2024-04-30",
        "opening balance                             1,174.05",
        "2024-04-02  groceries                         -12.05",
        "closing balance                             1,162.00",
    ]
