"""Where functions, statements and blocks lie: the one table that every question about lines starts from."""

import ast

import pytest

from localagent.code.source_text import line_starts, parse_or_none, read_source
from localagent.code.spans import (
    all_blocks,
    all_lines_of,
    blocks,
    byte_span,
    clauses,
    first_line,
    functions,
    head_end,
    last_line,
    lines_of,
    outermost_functions,
)

SOURCE = """\
def first():
    def inner(): pass
    return lambda: 0

class Shop:
    @property
    @cached(
        1)
    def name(self):
        class Local:
            def deep(self): ...
        return Local

    if True:
        def chosen(self): ...

try:
    def tried(): ...
except ValueError:
    def handled(): ...
else:
    def other(): ...
finally:
    async def last(): ...
match x:
    case 1:
        def matched(): ...
"""


def tree() -> ast.Module:
    return ast.parse(SOURCE)


def test_functions_come_in_the_order_of_the_source_by_their_qualified_names() -> None:
    found = list(functions(tree()))
    assert [f.qualname for f in found] == [
        "first", "first.<locals>.inner", "Shop.name", "Shop.name.<locals>.Local.deep", "Shop.chosen",
        "tried", "handled", "other", "last", "matched",
    ]  # fmt: skip
    assert [f.node.lineno for f in found] == sorted(f.node.lineno for f in found)
    assert [f.class_name for f in found] == [None, None, "Shop", "Local", "Shop", None, None, None, None, None]
    names = [f.node.name for f in outermost_functions(tree())]
    assert names == ["first", "name", "chosen", "tried", "handled", "other", "last", "matched"]


def test_functions_of_a_function_are_those_inside_it() -> None:
    shop = tree().body[1]
    assert [f.qualname for f in functions(shop)] == ["name", "name.<locals>.Local.deep", "chosen"]
    assert [f.qualname for f in functions(tree().body[0])] == ["inner"]


def test_lines_of_a_decorated_function() -> None:
    name = next(f.node for f in functions(tree()) if f.node.name == "name")
    assert (first_line(name), name.lineno, last_line(name)) == (6, 9, 12)
    assert lines_of(name) == range(9, 13)
    assert all_lines_of(name) == range(6, 13)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("if (a and\n    b):\n    c\n", 2),
        ("x = [\n1,\n2]\n", 3),
        ("if a: b\n", 1),
        ("while a:\n\n    # why\n    b\n", 3),
    ],
)
def test_the_head_of_a_statement_ends_before_its_body(source: str, expected: int) -> None:
    assert head_end(ast.parse(source).body[0]) == expected


def test_blocks_of_a_statement_and_of_its_clauses() -> None:
    attempt, match = tree().body[2:4]
    assert [block[0].lineno for block in blocks(attempt)] == [18, 22, 24]
    assert [clause.body[0].lineno for clause in clauses(attempt)] == [20]
    assert [block[0].lineno for block in all_blocks(attempt)] == [18, 20, 22, 24]
    assert list(blocks(match)) == []
    assert [block[0].lineno for block in all_blocks(match)] == [27]
    assert list(blocks(ast.parse("lambda: 1", mode="eval").body)) == []


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_bytes_of_a_node(newline: str) -> None:
    source = f"a = 1{newline}é = [{newline}f(2)]{newline}".encode()
    node = ast.parse(source).body[1]
    start, end = byte_span(node, line_starts(source))
    assert source[start:end] == f"é = [{newline}f(2)]".encode()


def test_a_node_without_an_end_has_no_bytes() -> None:
    with pytest.raises(ValueError, match="line 3: a node without an end"):
        byte_span(ast.Pass(lineno=3, col_offset=0), (0, 2, 4))
    assert last_line(ast.Pass(lineno=3, col_offset=0)) == 3


@pytest.mark.parametrize(
    "source", ["def", "x = (", b"\xff\xfe", "\0", "(" * 300 + ")" * 300, "x = \ud800", b"# coding: nothing\nx"]
)
def test_what_python_does_not_take_has_no_tree(source: str | bytes) -> None:
    assert parse_or_none(source) is None
    assert parse_or_none("x = '\\d'") is not None  # a warning is not an error


def test_the_line_of_an_offset() -> None:
    source = read_source(b"a\r\n\nbc\rd")
    assert source is not None
    assert [source.line_of(at) for at in range(9)] == [1, 1, 1, 2, 3, 3, 3, 4, 4]
    assert [source.offset(line, 0) for line in range(1, 5)] == [0, 3, 4, 7]
