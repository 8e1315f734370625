"""Functions that differ between two texts: only bodies, and only where both texts parse."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localagent.domain.paths import RepoPath
from localagent.verify.worker import function_regions

M, N = RepoPath("m.py"), RepoPath("n.txt")
SOURCE = b"""\
import functools

LIMIT = 3


@functools.cache
def a(x):
    # a comment
    y = x
    return y


class C:
    def b(self):
        def inner():
            return 1
        return inner()


if LIMIT:
    def c(): return LIMIT
"""


def swapped(old: bytes, new: bytes, imported: frozenset[int] = frozenset()) -> list[tuple[str, int, int]] | None:
    after = SOURCE.replace(old, new)
    assert after != SOURCE
    found = function_regions.orders(M, SOURCE, after, imported)
    return None if found is None else [(o["name"], o["line"], o["old_line"]) for o in found]


def test_changed_bodies_are_sent_with_their_lines() -> None:
    assert swapped(b"y = x", b"y = x\n    y += 1") == [("a", 6, 6)]
    assert swapped(b"return 1", b"return 2") == [("b", 14, 14)]
    assert swapped(b"return LIMIT", b"return 1") == [("c", 21, 21)]


def test_functions_below_are_found_where_they_stood() -> None:
    after = SOURCE.replace(b"y = x", b"y = x\n    y += 1").replace(b"return 1", b"return 2")
    found = function_regions.orders(M, SOURCE, after, frozenset())
    assert found is not None
    assert [(o["name"], o["line"], o["old_line"]) for o in found] == [("a", 6, 6), ("b", 15, 14)]
    assert found[1]["class"] == "C"
    assert found[1]["text"].startswith("    def b(self):")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"LIMIT = 3", b"LIMIT = 4"),
        (b"def a(x)", b"def a(x=1)"),
        (b"@functools.cache\n", b""),
        (b"# a comment", b"# another"),
        (b"class C", b"class D"),
        (b"def b(self)", b"def d(self)"),
        (b"    return y\n", b"    return y\nz = a(1)\n"),
        (b"return y", b"return ("),
    ],
)
def test_anything_else_is_run_from_scratch(old: bytes, new: bytes) -> None:
    assert swapped(old, new) is None


def test_what_ran_while_importing_is_run_from_scratch() -> None:
    assert swapped(b"y = x", b"y = 2", frozenset({9})) is None
    assert swapped(b"y = x", b"y = 2", frozenset({6, 7, 15})) is not None


@pytest.mark.parametrize("head", [b"\xef\xbb\xbf", b"# -*- coding: latin-1 -*-\n", b"x = 1\r\r\n", b"# \xff\n"])
def test_texts_whose_offsets_could_be_misread_are_not_compared(head: bytes) -> None:
    after = SOURCE.replace(b"y = x", b"y = 2")
    assert function_regions.orders(M, head + SOURCE, head + after, frozenset()) is None


@pytest.mark.parametrize("head", [b"#!/usr/bin/python\n# -*- coding: UTF-8 -*-\n", b'"""On encoding=latin-1."""\n'])
def test_a_head_that_speaks_of_encodings_and_changes_none_is_no_hindrance(head: bytes) -> None:
    after = SOURCE.replace(b"y = x", b"y = 2")
    assert function_regions.orders(M, head + SOURCE, head + after, frozenset())


def test_other_files_must_be_equal() -> None:
    before = {M: SOURCE, N: b"a"}
    assert function_regions.changed(before, {M: SOURCE, N: b"a"}, {}) == []
    assert function_regions.changed(before, {M: SOURCE, N: b"b"}, {}) is None


@given(st.sampled_from([b"y = x", b"return y", b"return 1", b"return inner()", b"return LIMIT"]), st.integers(0, 99))
def test_putting_the_texts_in_place_gives_the_other_program(old: bytes, number: int) -> None:
    after = SOURCE.replace(old, b"return %d" % number)
    found = function_regions.orders(M, SOURCE, after, frozenset())
    assert found is not None
    layout = function_regions.regions(SOURCE)
    assert layout is not None
    program = SOURCE
    for order in found:
        was = next(r for r in layout.functions if r.name == order["name"])
        program = program[: was.start] + order["text"].encode() + program[was.end :]
    assert program == after


HEAD = b"def f(a: int, b=1):\n    return a + b\n"


@pytest.mark.parametrize(
    ("new", "good"),
    [
        (b"def f(x: int, b=1):\n    return x + b\n", True),
        (b"def f(a: str, b=1) -> int:\n    return a + b\n", True),
        (b"def f(a: int, b=2):\n    return a + b\n", False),
        (b"def f(a: int, *, b=1):\n    return a + b\n", False),
        (b"def f(a: int = 1, b=1):\n    return a + b\n", False),
        (b"def g(a: int, b=1):\n    return a + b\n", False),
        (b"@list\ndef f(a: int, b=1):\n    return a + b\n", False),
        (b"K = 1\n\n\n" + HEAD, False),
    ],
)
def test_heads_may_differ_where_only_calls_are_made(new: bytes, good: bool) -> None:
    found = function_regions.orders(M, HEAD, new, frozenset(), heads=True)
    assert ([o["text"] for o in found] == [new.decode().rstrip("\n")] if found is not None else False) is good
    assert function_regions.orders(M, HEAD, new, frozenset()) is None
