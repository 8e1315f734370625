"""What a failure that moved on makes suspicious: what ran before it, and what the line depends on most."""

from hypothesis import given
from hypothesis import strategies as st

from localagent.repair.search.beam import AROUND, BEFORE, BINDING, reached

SOURCE = b"""\
import os


def other(a):
    return a


def merged(a, b):
    i = 0
    out = []
    while i <= len(a):
        out.append(a[i])
        i += 1
    last = out[-1]
    if b:
        out += b

    def inner(x):
        return x
    return out, last
"""


def test_a_crash_points_at_heads_around_it_and_at_what_binds_its_names() -> None:
    assert reached(SOURCE, 12, crashed=True) == {
        9: BINDING,
        10: BINDING,
        11: AROUND,
        12: BEFORE,
        13: BINDING,
    }


def test_nothing_behind_a_crash_ran() -> None:
    found = reached(SOURCE, 14, crashed=True)
    assert found[14] == BEFORE
    assert found[10] == BINDING
    assert max(found) == 14


def test_where_nothing_crashed_the_whole_function_ran() -> None:
    found = reached(SOURCE, 9, crashed=False)
    assert set(found) == {9, 10, 11, 12, 13, 14, 15, 16, 18, 20}
    assert set(found.values()) == {BEFORE}


def test_a_line_that_no_function_holds_says_nothing() -> None:
    assert reached(SOURCE, 1, crashed=True) == {}
    assert reached(b"def f(:\n", 1, crashed=True) == {}


def test_what_stands_in_a_match_is_not_its_head() -> None:
    cases = b"        case 1:\n            b = 2\n        case _:\n            b = a[0]\n"
    source = b"def f(a):\n    match a:\n" + cases + b"    return b\n"
    assert reached(source, 6, crashed=True) == {2: AROUND, 4: BEFORE, 6: BEFORE}


@given(line=st.integers(-2, 30), crashed=st.booleans(), cut=st.integers(0, len(SOURCE)))
def test_shares_are_shares_of_lines_that_are_there(line: int, crashed: bool, cut: int) -> None:
    source = SOURCE[:cut]
    for k, share in reached(source, line, crashed=crashed).items():
        assert 0 < share <= 1
        assert 1 <= k <= source.count(b"\n") + 1
