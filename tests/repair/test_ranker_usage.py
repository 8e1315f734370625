"""How usual tokens are in a file: shares and log-probabilities, the line itself left out, bounded on hostile text."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localagent.repair.ordering.ranker_tokens import TOKEN, kind_of, named, shape_of
from localagent.repair.ordering.ranker_usage import _MOST_NAMES, USAGE, FileUsage

SOURCE = b"""\
def clipped(value, low, high):
    if value < low:
        return low
    if value > high:
        return low
    return value

def spread(values, low, high):
    width = high - low
    return [(value - low) / width for value in values]
"""
TOKENS = st.lists(st.sampled_from([b"a", b"b", b"low", b"(", b")", b".", b"=", b"3", b"'x'", b"if", b","]), max_size=9)


def rows(source: bytes) -> list[list[bytes]]:
    return [TOKEN.findall(line) for line in source.split(b"\n")]


def told(before: bytes, after: bytes, source: bytes = SOURCE) -> dict[str, float]:
    """Of a line of the source, stripped, that becomes another."""
    old, new = TOKEN.findall(before), TOKEN.findall(after)
    front = next((k for k, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
    back = 0
    while back < min(len(old), len(new)) - front and old[-1 - back] == new[-1 - back]:
        back += 1
    return dict(zip(USAGE, FileUsage(rows(source)).counts(old, new, front, back), strict=True))


def test_a_name_that_stands_so_elsewhere_fits_and_one_that_does_not_does_not() -> None:
    assert told(b"return low", b"return value")["name-fits"] == 1.0
    assert told(b"return low", b"return width")["name-fits"] == 0.0
    assert told(b"if value > high:", b"if value > low:")["name-fits-right"] == 1.0  # `low :` of the line above
    assert told(b"if value > high:", b"if value > width:")["name-fits-right"] == 0.0


def test_behind_a_dot_the_attribute_counts_and_behind_an_equals_sign_the_kind_of_value() -> None:
    source = b"a.get(1)\nb.put(2)\nf(x=1)\nf(y='t')\na.put(3)\n"
    assert told(b"b.put(2)", b"a.put(2)", source)["name-fits-right"] == 1.0
    assert told(b"a.get(1)", b"b.get(1)", source)["name-fits-right"] == 0.0
    assert told(b"f(y='t')", b"f(x='t')", source)["name-fits-right"] == 0.0
    assert told(b"f(y=4)", b"f(x=4)", source)["name-fits-right"] == 1.0


def test_what_is_taken_must_stand_elsewhere_too() -> None:
    once = told(b"width = high - low", b"width = high + low")
    assert once["old-fours-known"] == 0.0
    assert once["old-likely"] < told(b"return low", b"return value")["old-likely"]  # `return low` stands twice
    twice = told(b"return low", b"return value")
    assert twice["old-name-fits"] == twice["old-name-fits-left"] == 1.0
    assert told(b"return value", b"return low")["old-name-fits"] == 0.0
    other = b"width = value - low"  # takes `high` from beside `low`, as in other lines, and `width`, as in no other
    assert told(b"width = high - low", other)["old-together"] == 0.5
    assert told(b"width = high - low", other, SOURCE + b"high = width\n")["old-together"] == 1.0


def test_a_line_does_not_vouch_for_itself() -> None:
    line = b"return [(value - low) / width for value in values]"
    assert told(line, line.replace(b"width", b"low"))["old-name-fits-left"] == 0.0  # nothing else is divided by
    alone = told(b"a = b", b"a = c", b"a = b")  # four kinds of tokens, once each, of which three are left
    assert alone["old-likely"] == alone["old-likely-least"] == pytest.approx(math.log(0.3 / (3 + 0.3 * 5)))


def test_a_name_that_stays_is_no_company_to_itself() -> None:
    assert told(b"return low", b"return low - low")["together"] == 0.5  # nothing comes that was not there


def test_what_follows_an_edit_is_part_of_how_likely_it_is() -> None:
    usage, tokens = FileUsage(rows(SOURCE)), TOKEN.findall(b"if value < low:")
    assert usage._likely(tokens, 1, 2, own=0) == [
        usage._after(*three, 0) for three in ((b"", b"if", b"value"), (b"if", b"value", b"<"), (b"value", b"<", b"low"))
    ]
    assert len(usage._likely(tokens, 4, 5, own=0)) == 2  # the colon, and the end of the line


def test_rows_of_tokens_and_of_shapes() -> None:
    known = told(b"if value > high:", b"if value < high:")
    assert known["fours-known"] == 0.25  # a line that begins with `if value <`; none goes on with `high`
    assert told(b"if value > high:", b"if value > low:")["fours-known"] == 0.0
    assert known["shapes-known"] == 1.0  # if, a name, <, a name, : stands there, whatever the names
    assert told(b"if value > high:", b"if value > high + 1:")["shapes-known"] < 1.0
    assert told(b"if value > high:", b"if value > low:")["together"] == 1.0
    assert told(b"if value > high:", b"if value > width:")["together"] == 1.0
    assert told(b"if value > high:", b"if value > spread:")["together"] == 0.0


def test_the_likelier_row_is_likelier() -> None:
    usual, unusual = told(b"return value", b"return low"), told(b"return value", b"return width")
    assert usual["likely"] > unusual["likely"]
    assert usual["likely-least"] > unusual["likely-least"]
    for each in (usual, unusual):
        assert each["likely-least"] <= each["likely"] < 0.0


def test_probabilities_after_a_row_add_up_to_no_more_than_one() -> None:
    usage = FileUsage(rows(SOURCE))
    tokens = sorted({t for row in rows(SOURCE) for t in row} | {b"\n", b"unheard"})
    for one, two in ((b"", b""), (b"", b"return"), (b"value", b"<"), (b"unheard", b"of")):
        assert sum(math.exp(usage._after(one, two, t, 0)) for t in tokens) == pytest.approx(1.0)


def test_what_many_edits_take_is_counted_once() -> None:
    usage = FileUsage(rows(SOURCE))
    old = TOKEN.findall(b"return low")
    first = usage.counts(old, TOKEN.findall(b"return value"), 1, 0)
    assert len(usage._stood) == 1
    again = usage.counts(old, TOKEN.findall(b"return width"), 1, 0)
    assert len(usage._stood) == 1
    assert first[-6:] == again[-6:]
    assert first[:7] != again[:7]


def test_a_line_of_very_many_names_is_not_held_name_by_name() -> None:
    names = [b"name%d" % k for k in range(5_000)]
    usage = FileUsage([names])
    assert len(usage._together) == _MOST_NAMES * (_MOST_NAMES - 1) // 2
    assert usage.counts(names, names[1:], 0, len(names) - 1)


def test_of_an_endless_file_only_so_much_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("localagent.repair.ordering.ranker_usage._MOST_TOKENS", 7)
    usage = FileUsage([[b"a", b"b", b"c"], [b"a", b"b"], [b"b", b"c", b"d", b"e"], [b"f"]])
    assert {row[0] for row in usage._rows[0]} == {b"a", b"b", b"c", b"\n"}


@given(st.lists(TOKENS, max_size=5), TOKENS, TOKENS, TOKENS, TOKENS)
def test_shares_are_shares_and_logarithms_are_of_probabilities(
    lines: list[list[bytes]], before: list[bytes], old: list[bytes], new: list[bytes], behind: list[bytes]
) -> None:
    usage = FileUsage(lines)
    values = usage.counts([*before, *old, *behind], [*before, *new, *behind], len(before), len(behind))
    for name, value in zip(USAGE, values, strict=True):
        assert math.isfinite(value)
        assert value <= 0.0 if "likely" in name else 0.0 <= value <= 1.0


@pytest.mark.parametrize(
    ("token", "is_name", "kind", "shape"),
    [
        (b"total", True, "name", b"a"),
        (b"_x1", True, "name", b"a"),
        ("größe".encode(), True, "name", b"a"),
        (b"return", False, "name", b"return"),
        (b"0x1f", False, "number", b"0"),
        (b"'it'", False, "text", b'""'),
        (b'"it"', False, "text", b'""'),
        (b"<=", False, "", b"<="),
        (b"(", False, "", b"("),
    ],
)
def test_kinds_and_shapes_of_tokens(token: bytes, is_name: bool, kind: str, shape: bytes) -> None:
    assert TOKEN.findall(token) == [token]
    assert (named(token), kind_of(token), shape_of(token)) == (is_name, kind, shape)
