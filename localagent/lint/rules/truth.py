"""Rules on conditions and truth values."""

import ast
from collections.abc import Iterator

from localagent.code.names import dotted_name
from localagent.lint.file_view import FileView
from localagent.lint.lint_rule import FixGrade, Hit, bad, rule
from localagent.lint.rules.comparisons import CLASSES, is_value, single

_SAFE, _SUGGESTION = FixGrade.SAFE, FixGrade.SUGGESTION


@rule(
    "len-zero",
    ast.Compare,
    standard=False,
    words=(b"len(",),
    why="An empty container is false; whether to write it so is taste, and arrays have no truth value.",
    bad=[
        bad("if len(x) == 0:\n    y()\n", "if not x:\n    y()\n", _SUGGESTION),
        bad("if len(x) > 0:\n    y()\n", "if x:\n    y()\n", _SUGGESTION),
    ],
    good=["if not x:\n    y()\n", "n = len(x) == 0\n", "if len(x) > 1:\n    y()\n"],
)
def len_zero(view: FileView, node: ast.AST) -> Iterator[Hit]:
    """Comparing a length with zero where only the truth value matters."""
    pair = single(node)
    if not pair or not isinstance(pair[1], ast.Eq | ast.NotEq | ast.Gt) or not view.asks(node):
        return
    call, zero = pair[0].left, pair[2]
    counts = isinstance(zero, ast.Constant) and zero.value == 0 and not isinstance(zero.value, bool)
    if counts and isinstance(call, ast.Call) and len(call.args) == 1 and view.builtin(call.func, "len"):
        simple = isinstance(call.args[0], ast.Name | ast.Attribute | ast.Call | ast.Subscript)
        negated = isinstance(pair[1], ast.Eq)
        loose = isinstance(view.parent(node), ast.If | ast.While | ast.Assert | ast.BoolOp)
        text = ("not " if negated else "") + view.text(call.args[0])
        yield Hit(node, "test the value itself", (view.put(node, text),) if simple and loose else None, _SUGGESTION)


@rule(
    "double-not",
    ast.UnaryOp,
    grade=_SAFE,
    words=(b"not not", b"not (not"),
    why="`bool(x)` says what is meant.",
    bad=[bad("a = not not x\n", "a = bool(x)\n", _SAFE), bad("a = not not x or y\n", "a = bool(x) or y\n", _SAFE)],
    good=["a = not x\n", "bool = str\na = not not x\n", "from y import *\na = not not x\n"],
)
def double_not(view: FileView, node: ast.AST) -> Iterator[Hit]:
    """Two negations in a row; `bool` gives the same value."""
    if not isinstance(node, ast.UnaryOp) or not isinstance(node.op, ast.Not):
        return
    inner = node.operand
    if isinstance(inner, ast.UnaryOp) and isinstance(inner.op, ast.Not) and view.free("bool", node):
        lead = view.between(view.start(node), view.start(inner.operand)).split()
        plain = lead == ["not", "not"] and view.end(node) == view.end(inner.operand)
        text = f"bool({view.text(inner.operand)})"
        yield Hit(node, "use bool(...)", (view.put(node, text),) if plain else None, _SAFE)


@rule(
    "bool-ternary",
    ast.IfExp,
    grade=_SAFE,
    words=(b"True if", b"False if"),
    why="The condition already is the truth value.",
    bad=[
        bad("a = True if x else False\n", "a = bool(x)\n", _SAFE),
        bad("a = f(False if x else True)\n", "a = f(not x)\n", _SAFE),
    ],
    good=["a = True if x else None\n", "a = 1 if x else 0\n", "a = True if x else True\n"],
)
def bool_ternary(view: FileView, node: ast.AST) -> Iterator[Hit]:
    """`True if x else False` and its opposite; `bool` and `not` give the same value."""
    if not isinstance(node, ast.IfExp):
        return
    simple = isinstance(node.test, ast.Name | ast.Attribute | ast.Call | ast.Subscript | ast.Compare)
    loose = view.end(node.test) <= view.start(node.orelse) and "\n" not in view.text(node)
    plain = (
        simple
        and loose
        and view.between(view.start(node), view.start(node.test)).split() in (["True", "if"], ["False", "if"])
    )
    if is_value(node.body, True) and is_value(node.orelse, False) and view.free("bool", node):
        yield Hit(node, "use bool(...)", (view.put(node, f"bool({view.text(node.test)})"),) if plain else None, _SAFE)
    elif is_value(node.body, False) and is_value(node.orelse, True):
        yield Hit(node, "use not ...", (view.put(node, f"not {view.text(node.test)}"),) if plain else None, _SAFE)


@rule(
    "isinstance-merge",
    ast.BoolOp,
    grade=_SAFE,
    words=(b"isinstance",),
    why="`isinstance` takes a tuple.",
    bad=[
        bad("a = isinstance(x, int) or isinstance(x, str)\n", "a = isinstance(x, (int, str))\n", _SAFE),
        bad("a = isinstance(x, A) or isinstance(x, B)\n", "a = isinstance(x, (A, B))\n", _SUGGESTION),
    ],
    good=[
        "a = isinstance(x, int) or isinstance(y, str)\n",
        "a = isinstance(x, int) and isinstance(x, str)\n",
        "def isinstance(a, b):\n    return 1\na = isinstance(x, int) or isinstance(x, str)\n",
    ],
)
def isinstance_merge(view: FileView, node: ast.AST) -> Iterator[Hit]:
    """Alternatives of `isinstance` on one name. Safe where all classes are builtin ones."""
    if not isinstance(node, ast.BoolOp) or not isinstance(node.op, ast.Or):
        return
    classes, names = [], set()
    for part in node.values:
        if not isinstance(part, ast.Call) or not view.builtin(part.func, "isinstance") or part.keywords:
            return
        if len(part.args) != 2 or not isinstance(part.args[0], ast.Name) or not dotted_name(part.args[1]):
            return
        names.add(part.args[0].id)
        classes.append(part.args[1])
    if len(names) == 1 and len(classes) > 1:
        text = f"isinstance({names.pop()}, ({', '.join(view.text(c) for c in classes)}))"
        known = [c for c in classes if view.builtin(c, *CLASSES)] == classes
        plain = "#" not in view.text(node) and view.end(node) == view.end(node.values[-1])
        yield Hit(
            node, "give isinstance a tuple", (view.put(node, text),) if plain else None, _SAFE if known else _SUGGESTION
        )


RULES = (len_zero, double_not, bool_ternary, isinstance_merge)
