"""Rules on comparisons and truth."""

import ast
from collections.abc import Iterator

from localagent.hook.rule import Grade, Hit, bad, rule
from localagent.hook.view import View, dotted

_SAFE, _SUGGESTION = Grade.SAFE, Grade.SUGGESTION
_CLASSES = ("int", "str", "bytes", "float", "bool", "list", "tuple", "dict", "set", "frozenset", "complex", "bytearray")


def _single(node: ast.AST) -> tuple[ast.Compare, ast.cmpop, ast.expr] | None:
    """A comparison of two sides only."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        return node, node.ops[0], node.comparators[0]
    return None


def _is(node: ast.AST, value: object) -> bool:
    return isinstance(node, ast.Constant) and node.value is value


def _operator(view: View, node: ast.Compare, old: str, new: str) -> tuple[int, int, str] | None:
    """A cut that changes the operator of a comparison of two sides; None where it cannot be told from what is around."""
    start, end = view.end(node.left), view.start(node.comparators[0])
    gap = view.between(start, end)
    if gap.replace(")", "").replace("(", "").strip(" ") != old:
        return None  # a comment or a line end stands between
    at = start + gap.index(old)
    return at, at + len(old), new


@rule(
    "none-comparison",
    ast.Compare,
    grade=_SAFE,
    words=(b"None",),
    why="`None` is one object; `==` asks the other side's class, which may answer anything.",
    bad=[
        bad("if x == None:\n    y()\n", "if x is None:\n    y()\n", _SAFE),
        bad("while not f(x) != None:\n    y()\n", "while not f(x) is not None:\n    y()\n", _SAFE),
        bad("mask = column == None\n", "mask = column is None\n", _SUGGESTION),
    ],
    good=["if x is None:\n    y()\n", "if x == 0:\n    y()\n", "x == y == None\n"],
)
def none_comparison(view: View, node: ast.AST) -> Iterator[Hit]:
    """Comparing with `None` by `==` or `!=`. Safe where only truth is asked; elsewhere the answer may be an array or a
    query's condition, so it is a suggestion."""
    if (pair := _single(node)) and _is(pair[2], None) and isinstance(pair[1], ast.Eq | ast.NotEq):
        old, new = ("==", "is") if isinstance(pair[1], ast.Eq) else ("!=", "is not")
        cut = _operator(view, pair[0], old, new)
        if cut and not view.between(cut[1], cut[1] + 1).isspace():
            cut = (*cut[:2], new + " ")
        if cut and not view.between(cut[0] - 1, cut[0]).isspace():
            cut = (*cut[:2], " " + cut[2])
        grade = _SAFE if view.asks(node) else _SUGGESTION
        yield Hit(node, f"compare with None by `{new}`", (cut,) if cut else None, grade)


@rule(
    "literal-is",
    ast.Compare,
    grade=_SAFE,
    words=(b" is",),
    why="Whether equal texts or numbers are one object is the interpreter's business and changes between versions.",
    bad=[
        bad("if mode is 'r':\n    y()\n", "if mode == 'r':\n    y()\n", _SAFE),
        bad("x = name is not b''\n", "x = name != b''\n", _SAFE),
        bad("x = n is 1\n", "x = n == 1\n", _SUGGESTION),
    ],
    good=["x is None\n", "x is True\n", "x is ...\n", "x == 'r'\n"],
)
def literal_is(view: View, node: ast.AST) -> Iterator[Hit]:
    """Asking by `is` whether something is a literal text or number. Numbers are a suggestion: `True == 1`."""
    if (pair := _single(node)) and isinstance(pair[1], ast.Is | ast.IsNot):
        sides = [s.value for s in (pair[0].left, pair[2]) if isinstance(s, ast.Constant)]
        values = [v for v in sides if isinstance(v, str | bytes | int | float | complex) and not isinstance(v, bool)]
        if not values:
            return
        text = isinstance(values[0], str | bytes)
        old, new = ("is", "==") if isinstance(pair[1], ast.Is) else ("is not", "!=")
        cut = _operator(view, pair[0], old, new)
        yield Hit(node, f"compare literals by `{new}`", (cut,) if cut else None, _SAFE if text else _SUGGESTION)


def _negated(view: View, node: ast.AST, kind: type[ast.cmpop], old: str, new: str) -> Iterator[Hit]:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not) and (pair := _single(node.operand)):
        if not isinstance(pair[1], kind):
            return
        cut = _operator(view, pair[0], old, new)
        start, inner = view.start(node), view.start(pair[0])
        plain = view.between(start, inner).strip() == "not" and view.end(node) == view.end(pair[0])
        if plain:  # with parentheses nobody misreads it
            yield Hit(node, f"`{new}` says it in one operator", ((start, inner, ""), cut) if cut else None, _SAFE)


@rule(
    "not-in",
    ast.UnaryOp,
    grade=_SAFE,
    words=(b"not ",),
    why="`not x in y` reads as `(not x) in y`.",
    bad=[
        bad("a = not x in y\n", "a = x not in y\n", _SAFE),
        bad("if not f(x) in (1, 2):\n    z()\n", "if f(x) not in (1, 2):\n    z()\n", _SAFE),
    ],
    good=["a = x not in y\n", "a = not (x in y)\n", "a = not x\n", "a = not x in y in z\n"],
)
def not_in(view: View, node: ast.AST) -> Iterator[Hit]:
    """A negated membership test. The same operation either way."""
    yield from _negated(view, node, ast.In, "in", "not in")


@rule(
    "not-is",
    ast.UnaryOp,
    grade=_SAFE,
    words=(b"not ",),
    why="`not x is y` reads as `(not x) is y`.",
    bad=[bad("a = not x is None\n", "a = x is not None\n", _SAFE)],
    good=["a = x is not None\n", "a = not x == y\n"],
)
def not_is(view: View, node: ast.AST) -> Iterator[Hit]:
    """A negated identity test. The same operation either way."""
    yield from _negated(view, node, ast.Is, "is", "is not")


@rule(
    "type-comparison",
    ast.Compare,
    grade=_SAFE,
    words=(b"type(",),
    why="Classes are compared by identity; `isinstance` is usually what is meant.",
    bad=[
        bad("if type(x) == int:\n    y()\n", "if type(x) is int:\n    y()\n", _SAFE),
        bad("a = type(x) != Shape\n", "a = type(x) is not Shape\n", _SUGGESTION),
    ],
    good=["type(x) is int\n", "def type(x):\n    return 1\nif type(x) == int:\n    y()\n", "isinstance(x, int)\n"],
)
def type_comparison(view: View, node: ast.AST) -> Iterator[Hit]:
    """Comparing what `type(x)` gives by `==`. Safe where the other side is a builtin class."""
    if not (pair := _single(node)) or not isinstance(pair[1], ast.Eq | ast.NotEq):
        return
    call = pair[0].left
    if isinstance(call, ast.Call) and len(call.args) == 1 and view.builtin(call.func, "type"):
        old, new = ("==", "is") if isinstance(pair[1], ast.Eq) else ("!=", "is not")
        cut = _operator(view, pair[0], old, new)
        if cut and not (view.between(cut[0] - 1, cut[0]) + view.between(cut[1], cut[1] + 1)).isspace():
            cut = None
        known = view.builtin(pair[2], *_CLASSES)
        yield Hit(node, f"compare classes by `{new}`", (cut,) if cut else None, _SAFE if known else _SUGGESTION)


@rule(
    "self-comparison",
    ast.Compare,
    why="Something compared with itself is always the same answer, or was meant to be compared with something else.",
    bad=[bad("a = x.width < x.width\n"), bad("if size == size:\n    y()\n")],
    good=[
        "a = x.width < y.width\n",
        "a = f() == f()\n",
        "is_nan = x != x\n",
        "assert x == x\n",
        "self.assertTrue(x == x)\n",
    ],
)
def self_comparison(view: View, node: ast.AST) -> Iterator[Hit]:
    """A name compared with itself. Assertions are let pass (they test `__eq__`), and `x != x`, which asks for NaN."""
    if not (pair := _single(node)) or isinstance(pair[1], ast.NotEq | ast.In | ast.NotIn) or not dotted(pair[0].left):
        return
    above = view.parent(node)
    tested = isinstance(view.statement(node), ast.Assert)
    tested = tested or (isinstance(above, ast.Call) and "assert" in getattr(above.func, "attr", "").lower())
    if ast.dump(pair[0].left) == ast.dump(pair[2]) and not tested:
        yield Hit(node, "compared with itself")


@rule(
    "true-comparison",
    ast.Compare,
    words=(b"True", b"False"),
    why="A condition is true or false by itself; `== True` also refuses other true values, rarely on purpose.",
    bad=[
        bad("if ready == True:\n    y()\n", "if ready:\n    y()\n", _SUGGESTION),
        bad("if ready == False:\n    y()\n", "if not ready:\n    y()\n", _SUGGESTION),
    ],
    good=["if ready:\n    y()\n", "mask = column == True\n", "if x is True:\n    y()\n"],
)
def true_comparison(view: View, node: ast.AST) -> Iterator[Hit]:
    """Comparing with `True` or `False` where only truth is asked."""
    pair = _single(node)
    if not pair or not isinstance(pair[1], ast.Eq | ast.NotEq) or not view.asks(node):
        return
    if _is(pair[2], True) or _is(pair[2], False):
        wanted = _is(pair[2], True) is isinstance(pair[1], ast.Eq)
        simple = isinstance(pair[0].left, ast.Name | ast.Attribute | ast.Call | ast.Subscript)
        whole = view.between(view.start(node), view.start(pair[0].left)) == ""
        text = view.text(pair[0].left)
        cuts = (view.put(node, text if wanted else f"not {text}"),) if simple and whole else None
        if not wanted and not isinstance(view.parent(node), ast.If | ast.While | ast.Assert | ast.BoolOp):
            cuts = None
        yield Hit(node, "ask for its truth", cuts, _SUGGESTION)


@rule(
    "nan-comparison",
    ast.Compare,
    words=(b"nan",),
    why="NaN equals nothing, itself included: the comparison never finds it.",
    bad=[
        bad("import math\na = x == math.nan\n"),
        bad("a = x == float('nan')\n"),
        bad("from numpy import nan\na = x != nan\n"),
    ],
    good=["import math\na = math.isnan(x)\n", "a = x == float('inf')\n", "nan = 3\na = x == nan\n"],
)
def nan_comparison(view: View, node: ast.AST) -> Iterator[Hit]:
    """Comparing with NaN."""
    if not (pair := _single(node)) or not isinstance(pair[1], ast.Eq | ast.NotEq | ast.Is | ast.IsNot):
        return
    for side in (pair[0].left, pair[2]):
        made = isinstance(side, ast.Call) and view.builtin(side.func, "float") and len(side.args) == 1
        text = side.args[0].value if made and isinstance(side.args[0], ast.Constant) else ""  # type: ignore[attr-defined]
        if (isinstance(text, str) and text.strip().lower() == "nan") or view.named(side, "math.nan", "numpy.nan"):
            yield Hit(node, "use math.isnan: NaN equals nothing")
            return


@rule(
    "keys-membership",
    ast.Compare,
    words=(b".keys()",),
    why="`in` asks a dictionary for its keys without making a view of them first.",
    bad=[bad("if k in d.keys():\n    y()\n", "if k in d:\n    y()\n", _SUGGESTION)],
    good=["if k in d:\n    y()\n", "if k in d.values():\n    y()\n", "for k in d.keys():\n    y()\n"],
)
def keys_membership(view: View, node: ast.AST) -> Iterator[Hit]:
    """Membership in `d.keys()`. A suggestion: `d` may be something that only looks like a dictionary."""
    if (pair := _single(node)) and isinstance(pair[1], ast.In | ast.NotIn) and isinstance(call := pair[2], ast.Call):
        if isinstance(call.func, ast.Attribute) and call.func.attr == "keys" and not call.args and not call.keywords:
            cut = (view.end(call.func.value), view.end(call), "")
            cuts = (cut,) if view.between(*cut[:2]) == ".keys()" else None
            yield Hit(node, "ask the dictionary itself", cuts, _SUGGESTION, anchor=node)


@rule(
    "len-zero",
    ast.Compare,
    standard=False,
    words=(b"len(",),
    why="An empty container is false; whether to spell it so is taste, and arrays have no single truth.",
    bad=[
        bad("if len(x) == 0:\n    y()\n", "if not x:\n    y()\n", _SUGGESTION),
        bad("if len(x) > 0:\n    y()\n", "if x:\n    y()\n", _SUGGESTION),
    ],
    good=["if not x:\n    y()\n", "n = len(x) == 0\n", "if len(x) > 1:\n    y()\n"],
)
def len_zero(view: View, node: ast.AST) -> Iterator[Hit]:
    """Asking whether a length is zero where only truth is asked."""
    pair = _single(node)
    if not pair or not isinstance(pair[1], ast.Eq | ast.NotEq | ast.Gt) or not view.asks(node):
        return
    call, zero = pair[0].left, pair[2]
    counts = isinstance(zero, ast.Constant) and zero.value == 0 and not isinstance(zero.value, bool)
    if counts and isinstance(call, ast.Call) and len(call.args) == 1 and view.builtin(call.func, "len"):
        simple = isinstance(call.args[0], ast.Name | ast.Attribute | ast.Call | ast.Subscript)
        negated = isinstance(pair[1], ast.Eq)
        loose = isinstance(view.parent(node), ast.If | ast.While | ast.Assert | ast.BoolOp)
        text = ("not " if negated else "") + view.text(call.args[0])
        yield Hit(node, "ask for its truth", (view.put(node, text),) if simple and loose else None, _SUGGESTION)


@rule(
    "double-not",
    ast.UnaryOp,
    grade=_SAFE,
    words=(b"not not", b"not (not"),
    why="`bool(x)` says what is meant.",
    bad=[bad("a = not not x\n", "a = bool(x)\n", _SAFE), bad("a = not not x or y\n", "a = bool(x) or y\n", _SAFE)],
    good=["a = not x\n", "bool = str\na = not not x\n", "from y import *\na = not not x\n"],
)
def double_not(view: View, node: ast.AST) -> Iterator[Hit]:
    """Two negations in a row; `bool` gives the same value."""
    if not isinstance(node, ast.UnaryOp) or not isinstance(node.op, ast.Not):
        return
    inner = node.operand
    if isinstance(inner, ast.UnaryOp) and isinstance(inner.op, ast.Not) and view.free("bool", node):
        lead = view.between(view.start(node), view.start(inner.operand)).split()
        plain = lead == ["not", "not"] and view.end(node) == view.end(inner.operand)
        text = f"bool({view.text(inner.operand)})"
        yield Hit(node, "say bool(...)", (view.put(node, text),) if plain else None, _SAFE)


@rule(
    "bool-ternary",
    ast.IfExp,
    grade=_SAFE,
    words=(b"True if", b"False if"),
    why="A condition already is the truth that the expression spells out.",
    bad=[
        bad("a = True if x else False\n", "a = bool(x)\n", _SAFE),
        bad("a = f(False if x else True)\n", "a = f(not x)\n", _SAFE),
    ],
    good=["a = True if x else None\n", "a = 1 if x else 0\n", "a = True if x else True\n"],
)
def bool_ternary(view: View, node: ast.AST) -> Iterator[Hit]:
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
    if _is(node.body, True) and _is(node.orelse, False) and view.free("bool", node):
        yield Hit(node, "say bool(...)", (view.put(node, f"bool({view.text(node.test)})"),) if plain else None, _SAFE)
    elif _is(node.body, False) and _is(node.orelse, True):
        yield Hit(node, "say not ...", (view.put(node, f"not {view.text(node.test)}"),) if plain else None, _SAFE)


@rule(
    "isinstance-merge",
    ast.BoolOp,
    grade=_SAFE,
    words=(b"isinstance",),
    why="`isinstance` takes a tuple and looks at the object once.",
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
def isinstance_merge(view: View, node: ast.AST) -> Iterator[Hit]:
    """Alternatives of `isinstance` on one name. Safe where all classes are builtin ones."""
    if not isinstance(node, ast.BoolOp) or not isinstance(node.op, ast.Or):
        return
    classes, names = [], set()
    for part in node.values:
        if not isinstance(part, ast.Call) or not view.builtin(part.func, "isinstance") or part.keywords:
            return
        if len(part.args) != 2 or not isinstance(part.args[0], ast.Name) or not dotted(part.args[1]):
            return
        names.add(part.args[0].id)
        classes.append(part.args[1])
    if len(names) == 1 and len(classes) > 1:
        text = f"isinstance({names.pop()}, ({', '.join(view.text(c) for c in classes)}))"
        known = all([view.builtin(c, *_CLASSES) for c in classes])
        plain = "#" not in view.text(node) and view.end(node) == view.end(node.values[-1])
        yield Hit(
            node, "give isinstance a tuple", (view.put(node, text),) if plain else None, _SAFE if known else _SUGGESTION
        )


RULES = (
    none_comparison, literal_is, not_in, not_is, type_comparison, self_comparison, true_comparison, nan_comparison,
    keys_membership, len_zero, double_not, bool_ternary, isinstance_merge,
)  # fmt: skip
