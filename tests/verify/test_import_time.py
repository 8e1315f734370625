"""What reads the names that statements bind while importing."""

import warnings

import pytest

from localagent.domain.paths import RepoPath
from localagent.verify.checks.test_selection import Readers

SOURCE = """\
import re as regex
from os import path

WORD = regex.compile("a")
LOW, HIGH = 1, 2


class Box:
    size = 3
    table: dict = {
        "a": 1,
    }

    def grown(self):
        return self.size + 1

    def looked(self):
        return (self
                .table)


@len
def words(text, least=LOW):
    return WORD.findall(text)


try:
    FAST = True
except ImportError:
    FAST = False


def fast():
    return FAST


def elsewhere():
    return Box, words
"""


def at(text: str) -> range:
    line = next(n for n, row in enumerate(SOURCE.splitlines(), 1) if text in row)
    return range(line, line + 1)


def readers(text: str) -> list[str]:
    rows = SOURCE.splitlines()
    found = Readers().of(RepoPath("a.py"), SOURCE.encode(), at(text))
    return [rows[n - 1].strip() for n in sorted(found)]


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ("WORD = ", ["return WORD.findall(text)"]),
        ("LOW, HIGH", ["def words(text, least=LOW):"]),
        ("import re", ['WORD = regex.compile("a")']),
        ("size = 3", ["return self.size + 1"]),
        ('"a": 1', ["return (self", ".table)"]),
        ("@len", ["def words(text, least=LOW):", "return WORD.findall(text)", "return Box, words"]),
        ("FAST = False", ["return FAST"]),
        ("class Box", ["return Box, words"]),
    ],
)
def test_names_bound_by_the_innermost_statement_are_looked_for(changed: str, expected: list[str]) -> None:
    assert readers(changed) == expected


def test_the_body_of_a_function_binds_nothing_at_import_time() -> None:
    assert readers("return WORD") == []
    assert readers("return self.size") == []
    head = at("def words").start
    source = SOURCE.replace("    return WORD.findall(text)", "    FAST = WORD\n    return FAST").encode()
    both = Readers().of(RepoPath("a.py"), source, range(head, head + 2))
    assert both == Readers().of(RepoPath("a.py"), source, range(head, head + 1))


def test_lines_between_statements_bind_nothing() -> None:
    assert Readers().of(RepoPath("a.py"), SOURCE.encode(), range(3, 4)) == frozenset()


def test_a_change_over_several_statements_binds_what_each_does() -> None:
    found = Readers().of(RepoPath("a.py"), SOURCE.encode(), range(4, 6))
    assert found == {*at("def words"), *at("return WORD")}


@pytest.mark.parametrize("source", [b"def f(:\n", b"a = '\0'\n", b"x = " + b"(" * 5000, b"\xff\xfe"])
def test_a_file_that_does_not_parse_has_no_readers(source: bytes) -> None:
    assert Readers().of(RepoPath("a.py"), source, range(1, 2)) == frozenset()


def test_no_depth_of_statements_is_too_much() -> None:
    deep = "if a:\n    b = 1\n" + "elif a:\n    b = 1\n" * 1500 + "print(b)\n"
    lines = range(3001, 3003)
    assert Readers().of(RepoPath("a.py"), deep.encode(), lines) <= {3003}


def test_what_python_thinks_of_a_file_is_not_said() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = Readers().of(RepoPath("a.py"), b"A = '\\d'\nprint(A is 1)\n", range(1, 2))
    assert found == {2}


def test_each_file_is_asked_by_its_own_text() -> None:
    readers_of = Readers()
    assert readers_of.of(RepoPath("a.py"), b"A = 1\nprint(A)\n", range(1, 2)) == {2}
    assert readers_of.of(RepoPath("b.py"), b"A = 1\n\nprint(A)\n", range(1, 2)) == {3}
