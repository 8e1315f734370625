"""Rules on comparisons."""

import ast
from collections.abc import Iterator

from localagent.code.names import dotted_name
from localagent.code.scopes import ScopeKind
from localagent.lint.file_view import FileView
from localagent.lint.lint_rule import FixGrade, Hit, bad, rule

_SAFE, _SUGGESTION = FixGrade.SAFE, FixGrade.SUGGESTION
CLASSES = ("int", "str", "bytes", "float", "bool", "list", "tuple", "dict", "set", "frozenset", "complex", "bytearray")


def single(node: ast.AST) -> tuple[ast.Compare, ast.cmpop, ast.expr] | None:
    """A comparison of two sides only."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        return node, node.ops[0], node.comparators[0]
    return None


def is_value(node: ast.AST, value: object) -> bool:
    """Whether an expression is one of the constants that exist once."""
    return isinstance(node, ast.Constant) and node.value is value


_PLAIN_RESULTS = ("builtins.len", *(f"builtins.{n}" for n in CLASSES), "re.match", "re.search", "re.fullmatch")
_WITHOUT_DEFAULT = ("os.getenv", "os.environ.get")
_DISPLAYS = (
    ast.List,
    ast.Tuple,
    ast.Dict,
    ast.Set,
    ast.ListComp,
    ast.DictComp,
    ast.SetComp,
    ast.JoinedStr,
    ast.Constant,
)


def has_builtin_eq(view: FileView, node: ast.expr) -> bool:
    """Whether an expression is certainly of a class that answers `==` as the builtin classes do.

    That is a literal, a call of a builtin class, or a local name that is only ever assigned such values.
    """
    if isinstance(node, ast.Name):
        bound = view.bindings(node)
        values = [_assigned(view, binding.node) for binding in bound]
        local = bool(bound) and view.scope(bound[0].node).kind is ScopeKind.FUNCTION
        return local and all(v is not None and not isinstance(v, ast.Name) and has_builtin_eq(view, v) for v in values)
    if isinstance(node, ast.Call):
        lone = len(node.args) == 1 and not node.keywords
        return view.named(node.func, *_PLAIN_RESULTS) or (lone and view.named(node.func, *_WITHOUT_DEFAULT))
    return isinstance(node, _DISPLAYS)


def _assigned(view: FileView, target: ast.AST) -> ast.expr | None:
    """The value of the plain assignment that binds a name; None for any other binding."""
    statement = view.parent(target)
    return statement.value if isinstance(statement, ast.Assign) and target in statement.targets else None


def _operator(view: FileView, node: ast.Compare, old: str, new: str) -> tuple[int, int, str] | None:
    """A cut that changes the operator of a comparison of two sides; None where a comment or line end is in the way."""
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
    why="`None` is a single object; `==` calls the other side's class, which may return anything.",
    bad=[
        bad("if int(x) == None:\n    y()\n", "if int(x) is None:\n    y()\n", _SAFE),
        bad(
            "import re\ndef f(x):\n    m = re.match('a', x)\n    return m != None\n",
            "import re\ndef f(x):\n    m = re.match('a', x)\n    return m is not None\n",
            _SAFE,
        ),
        bad("if x == None:\n    y()\n", "if x is None:\n    y()\n", _SUGGESTION),
        bad("assert Null() == None\n", "assert Null() is None\n", _SUGGESTION),
        bad("mask = column == None\n", "mask = column is None\n", _SUGGESTION),
    ],
    good=["if x is None:\n    y()\n", "if x == 0:\n    y()\n", "x == y == None\n"],
)
def none_comparison(view: FileView, node: ast.AST) -> Iterator[Hit]:
    """Comparing with `None` by `==` or `!=`.

    Safe if the other side is certainly of a builtin class; other classes may define `==` (arrays, query columns, null
    objects), so there it is a suggestion.
    """
    if (pair := single(node)) and is_value(pair[2], None) and isinstance(pair[1], ast.Eq | ast.NotEq):
        old, new = ("==", "is") if isinstance(pair[1], ast.Eq) else ("!=", "is not")
        cut = _operator(view, pair[0], old, new)
        if cut and not view.between(cut[1], cut[1] + 1).isspace():
            cut = (*cut[:2], new + " ")
        if cut and not view.between(cut[0] - 1, cut[0]).isspace():
            cut = (*cut[:2], " " + cut[2])
        grade = _SAFE if has_builtin_eq(view, pair[0].left) else _SUGGESTION
        yield Hit(node, f"compare with None using `{new}`", (cut,) if cut else None, grade)


@rule(
    "literal-is",
    ast.Compare,
    grade=_SAFE,
    words=(b" is",),
    why="Whether equal strings or numbers are one object depends on the interpreter and its version.",
    bad=[
        bad("if str(mode) is 'r':\n    y()\n", "if str(mode) == 'r':\n    y()\n", _SAFE),
        bad("x = name is not b''\n", "x = name != b''\n", _SUGGESTION),
        bad("x = n is 1\n", "x = n == 1\n", _SUGGESTION),
    ],
    good=["x is None\n", "x is True\n", "x is ...\n", "x == 'r'\n", "'a' is None\n"],
)
def literal_is(view: FileView, node: ast.AST) -> Iterator[Hit]:
    """Comparing with a literal string or number by `is`.

    Safe for strings if the other side is certainly of a builtin class: an array compares `==` element by element, and
    `True == 1`. Singletons are allowed on either side.
    """
    if (pair := single(node)) and isinstance(pair[1], ast.Is | ast.IsNot):
        both = (pair[0].left, pair[2])
        sides = [s.value for s in both if isinstance(s, ast.Constant)]
        values = [v for v in sides if isinstance(v, str | bytes | int | float | complex) and not isinstance(v, bool)]
        if not values or len(values) < len(sides):
            return
        text = isinstance(values[0], str | bytes) and all(has_builtin_eq(view, side) for side in both)
        old, new = ("is", "==") if isinstance(pair[1], ast.Is) else ("is not", "!=")
        cut = _operator(view, pair[0], old, new)
        yield Hit(node, f"compare literals using `{new}`", (cut,) if cut else None, _SAFE if text else _SUGGESTION)


def _negated(view: FileView, node: ast.AST, kind: type[ast.cmpop], old: str, new: str) -> Iterator[Hit]:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not) and (pair := single(node.operand)):
        if not isinstance(pair[1], kind):
            return
        cut = _operator(view, pair[0], old, new)
        start, inner = view.start(node), view.start(pair[0])
        plain = view.between(start, inner).strip() == "not" and view.end(node) == view.end(pair[0])
        if plain:  # with parentheses nobody misreads it
            yield Hit(node, f"use `{new}`", ((start, inner, ""), cut) if cut else None, _SAFE)


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
def not_in(view: FileView, node: ast.AST) -> Iterator[Hit]:
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
def not_is(view: FileView, node: ast.AST) -> Iterator[Hit]:
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
        bad(
            "class M(type):\n    def __eq__(self, other):\n        return True\na = type(x) == int\n",
            "class M(type):\n    def __eq__(self, other):\n        return True\na = type(x) is int\n",
            _SUGGESTION,
        ),
    ],
    good=["type(x) is int\n", "def type(x):\n    return 1\nif type(x) == int:\n    y()\n", "isinstance(x, int)\n"],
)
def type_comparison(view: FileView, node: ast.AST) -> Iterator[Hit]:
    """Comparing what `type(x)` gives by `==`.

    Safe where the other side is a builtin class, unless the file defines an `__eq__`, which may be a metaclass's.
    """
    if not (pair := single(node)) or not isinstance(pair[1], ast.Eq | ast.NotEq):
        return
    call = pair[0].left
    if isinstance(call, ast.Call) and len(call.args) == 1 and view.builtin(call.func, "type"):
        old, new = ("==", "is") if isinstance(pair[1], ast.Eq) else ("!=", "is not")
        cut = _operator(view, pair[0], old, new)
        if cut and not (view.between(cut[0] - 1, cut[0]) + view.between(cut[1], cut[1] + 1)).isspace():
            cut = None
        known = view.builtin(pair[2], *CLASSES) and b"__eq__" not in view.source.utf8
        yield Hit(node, f"compare classes using `{new}`", (cut,) if cut else None, _SAFE if known else _SUGGESTION)


@rule(
    "self-comparison",
    ast.Compare,
    why="The result is always the same; probably another operand was meant.",
    bad=[bad("a = x.width < x.width\n"), bad("if size == size:\n    y()\n")],
    good=[
        "a = x.width < y.width\n",
        "a = f() == f()\n",
        "is_nan = x != x\n",
        "assert x == x\n",
        "self.assertTrue(x == x)\n",
    ],
)
def self_comparison(view: FileView, node: ast.AST) -> Iterator[Hit]:
    """A name compared with itself. Allowed are assertions (they test `__eq__`) and `x != x`, which tests for NaN."""
    if (
        not (pair := single(node))
        or isinstance(pair[1], ast.NotEq | ast.In | ast.NotIn)
        or not dotted_name(pair[0].left)
    ):
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
def true_comparison(view: FileView, node: ast.AST) -> Iterator[Hit]:
    """Comparing with `True` or `False` where only the truth value matters."""
    pair = single(node)
    if not pair or not isinstance(pair[1], ast.Eq | ast.NotEq) or not view.asks(node):
        return
    if is_value(pair[2], True) or is_value(pair[2], False):
        wanted = is_value(pair[2], True) is isinstance(pair[1], ast.Eq)
        simple = isinstance(pair[0].left, ast.Name | ast.Attribute | ast.Call | ast.Subscript)
        whole = view.between(view.start(node), view.start(pair[0].left)) == ""
        text = view.text(pair[0].left)
        cuts = (view.put(node, text if wanted else f"not {text}"),) if simple and whole else None
        if not wanted and not isinstance(view.parent(node), ast.If | ast.While | ast.Assert | ast.BoolOp):
            cuts = None
        yield Hit(node, "test the value itself", cuts, _SUGGESTION)


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
def nan_comparison(view: FileView, node: ast.AST) -> Iterator[Hit]:
    """Comparing with NaN."""
    if not (pair := single(node)) or not isinstance(pair[1], ast.Eq | ast.NotEq | ast.Is | ast.IsNot):
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
    why="`in` on a dictionary already tests its keys.",
    bad=[bad("if k in d.keys():\n    y()\n", "if k in d:\n    y()\n", _SUGGESTION)],
    good=["if k in d:\n    y()\n", "if k in d.values():\n    y()\n", "for k in d.keys():\n    y()\n"],
)
def keys_membership(view: FileView, node: ast.AST) -> Iterator[Hit]:
    """Membership in `d.keys()`. A suggestion: `d` may be something that only looks like a dictionary."""
    if (pair := single(node)) and isinstance(pair[1], ast.In | ast.NotIn) and isinstance(call := pair[2], ast.Call):
        if isinstance(call.func, ast.Attribute) and call.func.attr == "keys" and not call.args and not call.keywords:
            cut = (view.end(call.func.value), view.end(call), "")
            cuts = (cut,) if view.between(*cut[:2]) == ".keys()" else None
            yield Hit(node, "test the dictionary itself", cuts, _SUGGESTION, anchor=node)


RULES = (
    none_comparison, literal_is, not_in, not_is, type_comparison, self_comparison, true_comparison, nan_comparison,
    keys_membership,
)  # fmt: skip
