"""What a function's surroundings say of it: signatures of the same file, bounded, stable, never code beyond them."""

from hypothesis import given
from hypothesis import strategies as st

from localagent.llm.writing.chat_prompts import signatures

SOURCE = b'''\
import math


def taxed(price, rate=0.2):
    return price * rate


class Row(dict):
    def __init__(self, name,
                 price=0):
        self.name = name


class Basket(Base,
             key=1):
    """Some rows."""

    def total(self, rows):
        out = 0
        for row in map(Row, rows):
            out += taxed(self.price(row)) + other.price(row) + math.floor(0.5)
        return Row("x", self.missing(out)), taxed(out)

    async def price(self, row, *,
                    again=False):
        return row.price


def unused(): return 1
'''
TOTAL = range(18, 23)


def test_the_class_and_what_is_called_one_line_each() -> None:
    assert signatures(SOURCE, TOTAL, 500).split("\n") == [
        "class Basket(Base, key=1):",
        "def taxed(price, rate=0.2):",
        "    async def price(self, row, *, again=False):",
        "class Row(dict):",
        "    def __init__(self, name, price=0):",
    ]


def test_what_is_shown_anyway_and_what_is_not_called_is_left_out() -> None:
    assert signatures(SOURCE, range(4, 6), 500) == ""
    whole = signatures(SOURCE, range(14, 27), 500)
    assert "Basket" not in whole
    assert "price(self" not in whole
    assert "taxed" in whole


def test_room_is_kept_and_what_does_not_parse_says_nothing() -> None:
    for room in range(200):
        told = signatures(SOURCE, TOTAL, room)
        assert len(told.encode()) <= room
        assert signatures(SOURCE, TOTAL, 500).startswith(told)
    assert signatures(b"def f(:\n", range(1, 2), 500) == ""
    long = b"def f(" + b", ".join(b"a%d" % k for k in range(90)) + b"):\n    return 0\n\n\ndef g():\n    return f()\n"
    assert signatures(long, range(5, 7), 5000) == ""


@given(st.binary(max_size=200), st.integers(1, 9), st.integers(1, 9), st.integers(-5, 300))
def test_law_any_bytes_give_a_bounded_text(noise: bytes, first: int, count: int, room: int) -> None:
    for source in (noise, SOURCE + noise):
        assert len(signatures(source, range(first, first + count), room).encode("utf-8", "replace")) <= max(0, room)


def test_lines_end_where_python_says() -> None:
    source = b"# a\r# b\r# c\rX = 1\ndef f(x):\n    return a(x)\n\ndef a(x):\n    return 1\n"
    assert signatures(source, range(5, 7), 400) == "def a(x):"
