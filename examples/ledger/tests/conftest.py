import pytest

from ledger import parse_journal

BOOK = """
# spring
2024-02-27  salary      2,310.00
2024-02-29  groceries     -54.20  weekly shop
2024-03-01  rent         -820.00  March
2024-03-09  groceries     -61.75
2024-03-31  savings      -200.00  standing order
2024-04-02  Groceries     -12.05
"""


@pytest.fixture
def journal():
    return parse_journal(BOOK)
