"""What names stand for."""

import ast

import pytest

from localagent.code.scopes import Walk

CASES = [
    ("open(p)", "builtins.open"),
    ("import os as o\no.path.join(a)", "os.path.join"),
    ("from os.path import join as j\nj(a)", "os.path.join"),
    ("import os.path\nos.path.join(a)", "os.path.join"),
    ("from . import open\nopen(p)", None),
    ("def open(p):\n    pass\nopen(p)", None),
    ("open = open\nopen(p)", None),
    ("from x import *\nopen(p)", None),
    ("def f(open):\n    open(p)", None),
    ("def f():\n    global open\n    open = 1\nopen(p)", None),
    ("def f():\n    open = 1\nopen(p)", "builtins.open"),
    ("class A:\n    def open(self):\n        pass\n    def f(self):\n        open(p)", "builtins.open"),
    ("class A:\n    open = 1\n    x = open(p)", None),
    ("class A:\n    open = 1\n    x = [open(p) for i in y]", "builtins.open"),
    ("[open for open in x]\nopen(p)", "builtins.open"),
    ("[(open := 1) for i in x]\nopen(p)", None),
    ("def f():\n    x = 1\n    def g():\n        nonlocal x\n        x(p)", None),
    ("try:\n    import yaml\nexcept ImportError:\n    yaml = None\nyaml.load(p)", "yaml.load"),
    ("try:\n    import yaml\nexcept ImportError:\n    yaml = other\nyaml.load(p)", None),
    ("try:\n    from a import f\nexcept ImportError:\n    from b import f\nf(p)", None),
    ("try:\n    pass\nexcept E as open:\n    pass\nopen(p)", None),
    ("match x:\n    case [open, *_]:\n        pass\nopen(p)", None),
    ("match x:\n    case {**open}:\n        pass\nopen(p)", None),
    ("with x as open:\n    pass\nopen(p)", None),
    ("for open in x:\n    pass\nopen(p)", None),
    ("del open\nopen(p)", None),
    ("lambda open: open(p)", None),
    ("def f(x=open(p), *, open=1):\n    pass", "builtins.open"),
    ("@open(p)\nclass open:\n    pass", None),
    ("f'{(open := 1)}'\nopen(p)", None),
    ("x().load(p)", None),
]


@pytest.mark.parametrize(("code", "expected"), CASES)
def test_qualified(code: str, expected: str | None) -> None:
    walk = Walk(ast.parse(code))
    calls = [n for n in walk.nodes if isinstance(n, ast.Call) and n.args and ast.unparse(n.args[0]) in ("p", "a")]
    assert walk.qualified(calls[-1].func) == expected


def test_every_node_is_walked_once() -> None:
    tree = ast.parse(
        "@d(1)\nasync def f(a: int = 1, *b: int, c=2, **d) -> int:\n    return [x async for x in y if z]\n"
    )
    nodes = Walk(tree).nodes
    assert len(nodes) == len(set(nodes))
    assert set(nodes) == {n for n in ast.walk(tree) if not isinstance(n, ast.expr_context)}
    lines = [n.lineno for n in nodes if isinstance(n, ast.stmt)]
    assert lines == sorted(lines)
