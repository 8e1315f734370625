import pytest

from ledger import Money


@pytest.mark.parametrize(
    ("text", "cents"),
    [("12", 1200), ("12.05", 1205), ("-0.99", -99), ("+3.10", 310), ("1,234.50", 123450), ("-12,000,000.00", -1200000000)],
)
def test_parse(text, cents):
    assert Money.parse(text) == Money(cents)


@pytest.mark.parametrize("text", ["", "12.5", "1,23", "--4", "4 4", "€3"])
def test_parse_refuses(text):
    with pytest.raises(ValueError, match="not an amount"):
        Money.parse(text)


@pytest.mark.parametrize("text", ["0.00", "-0.05", "7.40", "1,234.50", "-98,765,432.10"])
def test_text_and_back(text):
    assert str(Money.parse(text)) == text


def test_split_loses_no_cent():
    shares = Money(1000).split(3)
    assert shares == [Money(334), Money(333), Money(333)]
    assert sum(share.cents for share in shares) == 1000
