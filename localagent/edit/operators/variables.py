"""Names: another name that is bound here."""

import builtins
import re
from collections.abc import Iterator
from difflib import SequenceMatcher
from functools import lru_cache

import libcst as cst

from localagent.edit.operator_context import Change, OperatorContext
from localagent.edit.operator_registry import operator
from localagent.edit.precedence import ATOM
from localagent.edit.unit import Expr, Stmt

BUILTINS = frozenset(n for n in dir(builtins) if not n.startswith("_"))
_PAIRS = frozenset(
    frozenset(p)
    for p in (
        *(("i", "j"), ("j", "k"), ("i", "k"), ("x", "y"), ("a", "b"), ("left", "right"), ("l", "r"), ("lo", "hi")),
        *(
            ("start", "end"),
            ("low", "high"),
            ("min", "max"),
            ("m", "n"),
            ("row", "col"),
            ("r", "c"),
            ("first", "second"),
        ),
        *(
            ("head", "tail"),
            ("prev", "curr"),
            ("prev", "next"),
            ("src", "dst"),
            ("u", "v"),
            ("key", "value"),
            ("k", "v"),
        ),
        *(("width", "height"), ("rows", "cols"), ("s", "t"), ("p", "q"), ("slow", "fast"), ("old", "new")),
    )
)


_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")


@lru_cache(maxsize=65536)
def likeness(a: str, b: str) -> float:
    """How alike two names are, from 0 to 1; usual pairs count as alike, so does a name that is a word of the other."""
    if frozenset((a, b)) in _PAIRS:
        return 0.9
    if a.lower().strip("_") == b.lower().strip("_"):
        return 0.95
    ratio = SequenceMatcher(None, a, b).ratio()
    if min(len(a), len(b)) >= 3 and (a.lower() in _name_parts(b) or b.lower() in _name_parts(a)):
        return max(ratio, 0.8)
    return ratio


def _name_parts(name: str) -> set[str]:
    """The words of a snake_case or CamelCase name, in lower case."""
    return {w.lower() for w in _WORD.findall(name)}


def names_for(ctx: OperatorContext, statement: Stmt) -> dict[str, float]:
    """Names that may be read in a statement, with an adjustment for nearness."""
    found: dict[str, float] = {}
    for name, line in ctx.visible(statement).items():
        found[name] = -min(abs(line - statement.line), 60) * 0.005
    for name in ctx.facts.module_names:
        if name not in found and name in ctx.facts.names:
            found[name] = -1.0
    return found


def _readable(expr: Expr) -> bool:
    node = expr.node
    return (
        isinstance(node, cst.Name)
        and node.value not in ("True", "False", "None")
        and not isinstance(expr.parent, (cst.Annotation, cst.Decorator, cst.Param))
    )


@operator("name-swap", prior=0.0)
def name_swap(ctx: OperatorContext) -> Iterator[Change]:
    """A name becomes another name in scope; similar, near and same-kind ones first."""
    for expr, node in ctx.of(cst.Name):
        if not _readable(expr):
            continue
        old = node.value
        is_callee = isinstance(expr.parent, cst.Call) and expr.parent.func is node
        kind = ctx.names.kinds.get(old, "")
        for name, near in names_for(ctx, expr.statement).items():
            if name == old or (name in ("self", "cls") and old not in ("self", "cls")):
                continue
            other = ctx.names.kinds.get(name, "")
            is_function = other == "func" or name in ctx.facts.functions or name in ctx.facts.classes
            delta = near + 0.5 * likeness(old, name) - 0.25
            if is_function != is_callee:
                delta -= 1.5
            elif kind and other:
                delta += 0.15 if kind == other else -0.6
            if expr.store:
                delta -= 0.4
            yield ctx.put(expr, name, ATOM, delta)
