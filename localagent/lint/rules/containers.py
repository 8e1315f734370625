"""Rules on lists, sets, dictionaries and what is made of them."""

import ast
from collections.abc import Iterator

from localagent.lint.file_view import FileView
from localagent.lint.lint_rule import FixGrade, Hit, bad, rule

_SAFE, _SUGGESTION = FixGrade.SAFE, FixGrade.SUGGESTION
_BY_FRAME = ("next", "super", "locals", "vars", "dir", "eval", "exec")  # a list's own frame is gone since Python 3.12
_WITHOUT_LENGTH = ("range", "zip", "map", "filter", "enumerate", "sorted")


def _waits(node: ast.AST) -> bool:
    """Whether an expression awaits, yields, binds or looks at names, or may raise StopIteration: generators differ."""
    return any(
        isinstance(n, ast.Await | ast.Yield | ast.YieldFrom | ast.NamedExpr)
        or (isinstance(n, ast.comprehension) and n.is_async)
        or (isinstance(n, ast.Name) and n.id in _BY_FRAME)
        or (isinstance(n, ast.Attribute) and n.attr in ("__next__", "next"))
        for n in ast.walk(node)
    )


def _sole(view: FileView, node: ast.AST, *names: str) -> ast.expr | None:
    """The only argument of a call of one of some builtins, where nothing else stands between the parentheses."""
    if not isinstance(node, ast.Call) or len(node.args) != 1 or node.keywords or not view.builtin(node.func, *names):
        return None
    inner = node.args[0]
    before = view.between(view.end(node.func), view.start(inner))
    after = view.between(view.end(inner), view.end(node))
    return inner if before == "(" and after == ")" and not isinstance(inner, ast.Starred) else None


@rule(
    "list-of-comprehension",
    ast.Call,
    grade=_SAFE,
    words=(b"list([", b"set([", b"tuple([", b"frozenset([", b"list(["),
    why="The outer call copies a list that was just made.",
    bad=[
        bad("a = list([x for x in y if x])\n", "a = [x for x in y if x]\n", _SAFE),
        bad("a = set([f(x) for x in y])\n", "a = {f(x) for x in y}\n", _SAFE),
        bad("a = set([1, 2])\n", "a = {1, 2}\n", _SAFE),
        bad("a = set([])\n", "a = set()\n", _SAFE),
        bad("a = tuple([1, 2])\n", "a = (1, 2)\n", _SAFE),
        bad("a = tuple([x])\n", "a = (x,)\n", _SAFE),
        bad("a = list([1, 2])\n", "a = [1, 2]\n", _SAFE),
    ],
    good=[
        "a = list(x for x in y)\n",
        "def list(x):\n    return x\na = list([1])\n",
        "a = set([x async for x in y])\n",
        "a = list(y)\n",
    ],
)
def list_of_comprehension(view: FileView, node: ast.AST) -> Iterator[Hit]:
    """`list`, `set` or `tuple` of a list that is written out: the same container as a display or comprehension."""
    if (inner := _sole(view, node, "list", "set", "tuple")) is None or _waits(inner):
        return
    name, text = node.func.id, view.text(inner)  # type: ignore[attr-defined]
    body = text[1:-1]
    if isinstance(inner, ast.ListComp) and name in ("list", "set"):
        yield Hit(
            node,
            "write the comprehension directly",
            (view.put(node, text if name == "list" else f"{{{body}}}"),),
            _SAFE,
        )
    elif isinstance(inner, ast.List):
        if name == "list":
            new = text
        elif not inner.elts:
            new = f"{name}()"
        elif name == "set":
            new = f"{{{body}}}"
        else:
            new = f"({body}{',' if len(inner.elts) == 1 and not body.rstrip().endswith(',') else ''})"
        fits = name == "list" or "#" not in body
        yield Hit(node, f"write the {name} directly", (view.put(node, new),) if fits else None, _SAFE)


@rule(
    "dict-of-pairs",
    ast.Call,
    grade=_SAFE,
    words=(b"dict([", b"dict(("),
    why="A dictionary comprehension needs no tuples and no list.",
    bad=[
        bad("a = dict([(k, v) for k, v in y])\n", "a = {k: v for k, v in y}\n", _SAFE),
        bad("a = dict((k, f(k)) for k in y)\n", "a = {k: f(k) for k in y}\n", _SAFE),
    ],
    good=[
        "a = dict(y)\n",
        "a = dict([(1, 2)])\n",
        "a = dict((await k, v) for k, v in y)\n",
        "a = dict([p for p in y])\n",
    ],
)
def dict_of_pairs(view: FileView, node: ast.AST) -> Iterator[Hit]:
    """`dict` of a comprehension of pairs."""
    if not isinstance(node, ast.Call) or len(node.args) != 1 or node.keywords or not view.builtin(node.func, "dict"):
        return
    inner = node.args[0]
    if not isinstance(inner, ast.ListComp | ast.GeneratorExp) or not isinstance(inner.elt, ast.Tuple) or _waits(inner):
        return
    if len(inner.elt.elts) != 2 or any(isinstance(e, ast.Starred) for e in inner.elt.elts):
        return
    key, value = inner.elt.elts
    closing = "])" if isinstance(inner, ast.ListComp) else ")"
    tail = view.between(view.end(inner.elt), view.end(node))
    around = (
        view.between(view.end(node.func), view.start(inner.elt)) + view.between(view.start(inner.elt), view.start(key)),
        view.between(view.end(key), view.start(value)).strip(),
        view.between(view.end(value), view.end(inner.elt)),
    )
    opening = "([" if isinstance(inner, ast.ListComp) else "("
    plain = around == (opening + "(", ",", ")") and tail.endswith(closing) and "#" not in view.text(node)
    if not plain or isinstance(key, ast.Lambda):
        yield Hit(node, "write a dictionary comprehension")
        return
    end = tail.removesuffix(closing)
    new = f"{{{view.text(key)}: {view.text(value)}{end}}}"
    yield Hit(node, "write a dictionary comprehension", (view.put(node, new),), _SAFE)


@rule(
    "needless-list",
    ast.Call,
    grade=_SAFE,
    words=(b"sum([", b"min([", b"max([", b"any([", b"all([", b"sorted(["),
    why="The list is made only to be read once.",
    bad=[
        bad("a = sum([len(x) for x in y])\n", "a = sum(len(x) for x in y)\n", _SAFE),
        bad("a = sorted([f(x) for x in y])\n", "a = sorted(f(x) for x in y)\n", _SAFE),
        bad("a = any([f(x) for x in y])\n", "a = any(f(x) for x in y)\n", _SUGGESTION),
    ],
    good=[
        "a = sum(len(x) for x in y)\n",
        "a = sum([1, 2])\n",
        "async def f():\n    return sum([await x for x in y])\n",
        "a = sum([x for x in y], 0)\n",
        "a = sum([next(x) for x in y])\n",
        "class A(B):\n    def f(self, y):\n        return sum([super().f(x) for x in y])\n",
    ],
)
def needless_list(view: FileView, node: ast.AST) -> Iterator[Hit]:
    """A list comprehension as the only argument of a builtin that reads it once.

    `any` and `all` stop early and then skip what the rest would have done, so those are suggestions.
    """
    inner = _sole(view, node, "sum", "min", "max", "sorted", "any", "all")
    if isinstance(inner, ast.ListComp) and not _waits(inner):
        early = node.func.id in ("any", "all")  # type: ignore[attr-defined]
        start, end = view.start(inner), view.end(inner)
        cuts = ((start, start + 1, ""), (end - 1, end, ""))
        yield Hit(node, "the list is not needed", cuts, _SUGGESTION if early else _SAFE)


@rule(
    "copy-comprehension",
    ast.ListComp,
    ast.SetComp,
    grade=_SAFE,
    why="A comprehension that only copies is `list` or `set`, which is quicker and says so.",
    bad=[
        bad("a = [x for x in zip(y, z)]\n", "a = list(zip(y, z))\n", _SAFE),
        bad("a = f({x for x in y.z()})\n", "a = f(set(y.z()))\n", _SUGGESTION),
    ],
    good=[
        "a = [x for x in y if x]\n",
        "a = [x async for x in y]\n",
        "list = 1\na = [x for x in y]\n",
        "a = [x for x, in y]\n",
    ],
)
def copy_comprehension(view: FileView, node: ast.AST) -> Iterator[Hit]:
    """A comprehension that takes every element as it is.

    Safe over some builtins; `list` also calls `__len__`, which would call itself if it counts in this way.
    """
    if not isinstance(node, ast.ListComp | ast.SetComp) or len(node.generators) != 1:
        return
    only, name = node.generators[0], "list" if isinstance(node, ast.ListComp) else "set"
    if only.ifs or only.is_async or not isinstance(only.target, ast.Name) or not isinstance(node.elt, ast.Name):
        return
    if only.target.id == node.elt.id and view.free(name, view.parent(node)) and view.free(name, node):
        new = f"{name}({view.text(only.iter)})"
        plain = (
            view.end(only.iter) == view.end(node) - 1
            and not isinstance(only.iter, ast.NamedExpr)
            and not _waits(only.iter)
        )
        plain = plain and "#" not in view.between(view.start(node), view.start(only.iter))
        known = isinstance(only.iter, ast.Call) and view.builtin(only.iter.func, *_WITHOUT_LENGTH)
        yield Hit(node, f"use {name}(...)", (view.put(node, new),) if plain else None, _SAFE if known else _SUGGESTION)


@rule(
    "redundant-conversion",
    ast.Call,
    grade=_SAFE,
    words=(b"(list(", b"(tuple(", b"(sorted("),
    why="The inner copy is thrown away at once.",
    bad=[
        bad("a = sorted(list(x))\n", "a = sorted(x)\n", _SAFE),
        bad("a = set(tuple(x))\n", "a = set(x)\n", _SUGGESTION),
        bad("a = list(sorted(x, key=f))\n", "a = sorted(x, key=f)\n", _SAFE),
    ],
    good=[
        "a = list(x)\n",
        "a = sorted(set(x))\n",
        "a = list(reversed(x))\n",
        "def sorted(x):\n    return x\na = list(sorted(x))\n",
        "a = set(list())\n",
    ],
)
def redundant_conversion(view: FileView, node: ast.AST) -> Iterator[Hit]:
    """A container made of a list, tuple or sorted list that nothing else sees.

    A suggestion where the outer one hashes: the copy may be there because other threads change the source meanwhile.
    """
    inner = _sole(view, node, "list", "tuple", "set", "frozenset", "sorted")
    if not isinstance(inner, ast.Call):
        return
    if node.func.id == "list" and view.builtin(inner.func, "sorted"):  # type: ignore[attr-defined]
        yield Hit(node, "sorted already returns a list", (view.put(node, view.text(inner)),), _SAFE)
    elif (innermost := _sole(view, inner, "list", "tuple")) is not None and not isinstance(innermost, ast.GeneratorExp):
        hashes = node.func.id in ("set", "frozenset")  # type: ignore[attr-defined]
        grade = _SUGGESTION if hashes else _SAFE
        yield Hit(node, "the inner copy is not needed", (view.put(inner, view.text(innermost)),), grade)


def _key(node: ast.AST) -> object:
    """A constant's type and value, so that equal keys of different types are told apart; None for anything else."""
    if isinstance(node, ast.Constant) and not isinstance(node.value, float):
        return type(node.value).__name__, node.value
    return None


@rule(
    "duplicate-key",
    ast.Dict,
    why="The last of equal keys wins; the other values are lost.",
    bad=[bad("a = {'x': 1, 'y': 2, 'x': 3}\n"), bad("a = {1: b, 1: c}\n")],
    good=["a = {'x': 1, 'y': 2}\n", "a = {'1': 1, 1: 2}\n", "a = {**b, 'x': 1, **c}\n"],
)
def duplicate_key(view: FileView, node: ast.AST) -> Iterator[Hit]:
    """A constant key that occurs more than once in a dictionary display."""
    seen: set[object] = set()
    for key in node.keys if isinstance(node, ast.Dict) else ():
        if key is None or (found := _key(key)) is None:
            continue
        if found in seen:
            yield Hit(key, f"key {view.text(key)} is repeated", anchor=node)
        seen.add(found)


@rule(
    "duplicate-member",
    ast.Set,
    grade=_SAFE,
    why="A set holds an element once.",
    bad=[bad("a = {1, 2, 1}\n", "a = {1, 2}\n", _SAFE), bad("a = {'x', 'x', y}\n", "a = {'x', y}\n", _SAFE)],
    good=["a = {1, 2}\n", "a = {1, True, 1.0}\n", "a = {f(), f()}\n"],
)
def duplicate_member(view: FileView, node: ast.AST) -> Iterator[Hit]:
    """A constant that occurs more than once in a set display."""
    if not isinstance(node, ast.Set):
        return
    seen: set[object] = set()
    for before, member in zip((None, *node.elts), node.elts, strict=False):
        found = _key(member)
        if found is not None and found in seen and before is not None:
            cut = (view.end(before), view.end(member), "")
            plain = view.between(view.end(before), view.start(member)).strip() == ","
            yield Hit(member, f"{view.text(member)} is repeated", (cut,) if plain else None, _SAFE, anchor=node)
        seen.add(found)


RULES = (
    list_of_comprehension, dict_of_pairs, needless_list, copy_comprehension, redundant_conversion, duplicate_key,
    duplicate_member,
)  # fmt: skip
