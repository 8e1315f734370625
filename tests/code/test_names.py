"""What a node imports, binds or is called: the primitives that every question about names starts from."""

import ast

import pytest

from localagent.code.names import (
    ASSIGNING,
    ImportedName,
    bound_name,
    callee_name,
    dotted_name,
    imports_of,
    last_name,
)


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("import os", [("os", "os", "", "os")]),
        ("import os.path", [("os", "os.path", "", "os")]),
        ("import os.path as p, re", [("p", "os.path", "", "os.path"), ("re", "re", "", "re")]),
        ("import os.path as os", [("os", "os.path", "", "os.path")]),
        ("from os import path as p", [("p", "os", "path", "os.path")]),
        ("from os.path import join", [("join", "os.path", "join", "os.path.join")]),
        ("from . import a", [("a", ".", "a", "..a")]),
        ("from ..pkg import a as b", [("b", "..pkg", "a", "..pkg.a")]),
        ("from os import *", [("*", "os", "*", "os.*")]),
        ("os = 1", []),
    ],
)
def test_what_an_import_statement_binds(statement: str, expected: list[tuple[str, ...]]) -> None:
    assert list(imports_of(ast.parse(statement).body[0])) == [ImportedName(*row) for row in expected]


def test_every_way_to_bind_a_name() -> None:
    source = """
import a1.x
from m import y as a2
def f1(p1, /, p2=read1, *p3, p4, **p5): pass
async def f2(): pass
class C1(read2): pass
v1 = read3
v2: int = 1
for v3, (v4, *v5) in read4: pass
with read5 as v6: pass
try: pass
except E as v7: pass
match read6:
    case [v8, *v9] | {"k": _, **v10} as v11: pass
(v12 := 1)
del v13
"""
    nodes = list(ast.walk(ast.parse(source)))
    every = {f"v{n}" for n in range(1, 14)} | {f"p{n}" for n in range(1, 6)} | {"a1", "a2", "f1", "f2", "C1"}
    assert {bound_name(node) for node in nodes} - {""} == every
    handlers_and_patterns = {f"v{n}" for n in range(7, 12)}
    assigned = {bound_name(node) for node in nodes if isinstance(node, ASSIGNING)} - {""}
    assert assigned == {name for name in every - handlers_and_patterns if name[0] != "p"}


@pytest.mark.parametrize(
    ("text", "last", "callee", "dotted"),
    [
        ("a", "a", "a", "a"),
        ("a.b.c", "c", "c", "a.b.c"),
        ("a.b(1)", "", "b", ""),
        ("a().b", "b", "b", ""),
        ("a.b()()", "", "", ""),
        ("a[0].b", "b", "b", ""),
        ("a[0]", "", "", ""),
        ("1", "", "", ""),
    ],
)
def test_what_an_expression_is_called(text: str, last: str, callee: str, dotted: str) -> None:
    node = ast.parse(text, mode="eval").body
    assert (last_name(node), callee_name(node), dotted_name(node)) == (last, callee, dotted)
    assert last_name(None) == callee_name(None) == ""
