"""What an edit does to the kind of a value: numbers ordered as texts, fractions for whole numbers, order for identity.

New containers that stay empty, and arguments changed in place, are here, too.

Limitations: kinds are read from the forms of expressions; a name that hides `float` or `str` is taken for the builtin.
"""

import ast
import re
from collections import Counter
from collections.abc import Iterator, Sequence

from localagent.code.spans import Function
from localagent.repair.acceptance.changed_functions import FunctionPair, TouchedFile
from localagent.repair.acceptance.contradiction import (
    Contradiction,
    ContradictionKind,
    ContradictionWeight,
    PatchContext,
    against,
)
from localagent.repair.acceptance.documentation_rules import own_nodes
from localagent.text.visible_text import shortened

_ORDERING = frozenset({"sorted", "sort", "min", "max", "nlargest", "nsmallest", "groupby"})
_AS_TEXT = frozenset({"str", "repr", "ascii", "format"})
_WHOLE_AGAIN = frozenset({"int", "round", "floor", "ceil", "trunc"})
_FRACTION = re.compile(r"\d\.\d*[1-9]|\d[eE]-\d")
_ORDERS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_EQUALITIES = (ast.Eq, ast.NotEq)
_NUMBER = re.compile(r"-?\d+")
_EMPTY = frozenset({"[]", "{}", "()", "set()", "list()", "dict()", "tuple()"})
_READ_ONLY = frozenset({"all", "any", "bool", "enumerate", "iter", "len", "max", "min", "reversed", "sorted", "sum"})
_CONTAINERS = (ast.List, ast.ListComp, ast.Dict, ast.DictComp, ast.Set, ast.SetComp)
_MAKERS = frozenset({"sorted", "list", "dict", "set"})


def ordered_as_text(file: TouchedFile, pair: FunctionPair) -> Iterator[Contradiction]:
    """A key that orders becomes a text: 10 then comes before 9, and None among the letters."""
    old = {ast.unparse(body) for body in _keys(pair.old)}
    for body in _keys(pair.new):
        inner = body.args[0] if isinstance(body, ast.Call) and len(body.args) == 1 else None
        text = isinstance(body, ast.Call) and isinstance(body.func, ast.Name) and body.func.id in _AS_TEXT
        if text and inner is not None and ast.unparse(inner) in old and ast.unparse(body) not in old:
            why = f"`{ast.unparse(body)}` orders by text, where numbers and what is missing come out of order"
            yield against(file, pair, ContradictionKind.VALUE_KIND, ContradictionWeight.HARD, why)
            return


def _keys(function: ast.AST) -> Iterator[ast.expr]:
    """The bodies of `key=lambda x: ...` of calls that order."""
    for node in ast.walk(function):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        for keyword in node.keywords if name in _ORDERING else ():
            if keyword.arg == "key" and isinstance(keyword.value, ast.Lambda):
                yield keyword.value.body


def fractions(files: Sequence[TouchedFile], context: PatchContext) -> Iterator[Contradiction]:
    """`int(x)` becomes `float(x)` where the failing tests expect whole numbers: equal to them, and another type."""
    expected = context.expected
    if not any(_NUMBER.fullmatch(key) for key in expected) or any(_FRACTION.search(key) for key in expected):
        return
    for file in files:
        for pair in file.functions:
            was, stays = _calls(pair.old, "int"), _made_whole(pair.new)
            for argument, node in _calls(pair.new, "float").items():
                if argument in was and node not in stays:
                    yield against(
                        file,
                        pair,
                        ContradictionKind.VALUE_KIND,
                        ContradictionWeight.SOFT,
                        f"`{ast.unparse(node)}` answers fractions, and the tests expect whole numbers",
                    )
                    return


def _calls(function: Function, name: str) -> dict[str, ast.Call]:
    """The calls of a builtin with one argument, by the argument's text."""
    found = (n for n in own_nodes(function) if isinstance(n, ast.Call) and len(n.args) == 1 and not n.keywords)
    return {ast.unparse(n.args[0]): n for n in found if isinstance(n.func, ast.Name) and n.func.id == name}


def _made_whole(function: ast.AST) -> set[ast.AST]:
    """What stands inside a call that makes whole numbers of it, in a comparison or in a formatted text."""
    found: set[ast.AST] = set()
    for node in ast.walk(function):
        name = ""
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name in _WHOLE_AGAIN or isinstance(node, ast.Compare | ast.FormattedValue):
            found |= set(ast.walk(node)) - {node}
    return found


def lost_order(file: TouchedFile, pair: FunctionPair) -> Iterator[Contradiction]:
    """`a > b` becomes `a != b` (or `==`) of two values that vary: which of them is the greater no longer matters."""
    had = {(ast.unparse(n.left), ast.unparse(n.comparators[0])) for n in _comparisons(pair.old, _ORDERS)}
    kept = {ast.unparse(n) for n in _comparisons(pair.old, _EQUALITIES)}
    for node in _comparisons(pair.new, _EQUALITIES):
        sides = node.left, node.comparators[0]
        varies = not any(isinstance(side, ast.Constant | ast.UnaryOp) for side in sides)
        if varies and ast.unparse(node) not in kept and tuple(map(ast.unparse, sides)) in had:
            yield against(
                file,
                pair,
                ContradictionKind.ORDER_LOST,
                ContradictionWeight.SOFT,
                f"`{ast.unparse(node)}` no longer says which of the two is the greater",
            )
            return


def _comparisons(function: Function, kinds: tuple[type[ast.cmpop], ...]) -> Iterator[ast.Compare]:
    for node in own_nodes(function):
        if isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], kinds):
            yield node


def never_filled(file: TouchedFile, pair: FunctionPair) -> Iterator[Contradiction]:
    """A new local that is an empty container, and that nothing fills: whatever reads it always sees the same."""
    had = {n.id for n in ast.walk(pair.old) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
    for node in own_nodes(pair.new):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and ast.unparse(node.value) in _EMPTY:
            target = node.targets[0]
            if isinstance(target, ast.Name) and target.id not in had and _stays_empty(pair.new, target):
                why = f"`{target.id}` is new and stays empty: nothing fills it"
                yield against(file, pair, ContradictionKind.CONSTANT_CONDITION, ContradictionWeight.SOFT, why)


def _stays_empty(function: Function, bound: ast.Name) -> bool:
    """Whether a name is read, bound nowhere else, and used only where nothing can be put into what it holds."""
    uses = [n for n in ast.walk(function) if isinstance(n, ast.Name) and n.id == bound.id and n is not bound]
    harmless: set[int] = set()
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _READ_ONLY:
            harmless |= {id(a) for a in node.args}
        elif isinstance(node, ast.Compare):
            harmless |= {id(n) for n in (node.left, *node.comparators)}
        elif isinstance(node, ast.If | ast.IfExp | ast.While):
            harmless.add(id(node.test))
        elif isinstance(node, ast.UnaryOp):
            harmless.add(id(node.operand))
        elif isinstance(node, ast.For | ast.comprehension):
            harmless.add(id(node.iter))
    return bool(uses) and all(id(n) in harmless for n in uses)


def changed_in_place(file: TouchedFile, pair: FunctionPair) -> Iterator[Contradiction]:
    """A container given as an argument was replaced in the function and is now extended: the caller's own changes."""
    parameters = {a.arg for a in ast.walk(pair.new.args) if isinstance(a, ast.arg)}
    rebound = Counter(_rebound(pair.old)) - Counter(_rebound(pair.new))
    for node in own_nodes(pair.new):
        if not isinstance(node, ast.AugAssign) or not isinstance(node.target, ast.Name):
            continue
        name = node.target.id
        if name in parameters and rebound[name] > 0 and _makes_container(node.value):
            why = f"`{shortened(ast.unparse(node), 80)}` changes the caller's own `{name}`, which was left alone before"
            yield against(file, pair, ContradictionKind.VALUE_KIND, ContradictionWeight.SOFT, why)


def _rebound(function: Function) -> Iterator[str]:
    for node in own_nodes(function):
        if isinstance(node, ast.Assign):
            yield from (t.id for t in node.targets if isinstance(t, ast.Name))


def _makes_container(value: ast.expr) -> bool:
    called = value.func if isinstance(value, ast.Call) else None
    return isinstance(value, _CONTAINERS) or (isinstance(called, ast.Name) and called.id in _MAKERS)
