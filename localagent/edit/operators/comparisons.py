"""Comparisons: their operators and their sides."""

from collections.abc import Iterator

import libcst as cst

from localagent.domain.edit import EditEffect
from localagent.edit.operator_context import Change, OperatorContext
from localagent.edit.operator_registry import operator
from localagent.edit.precedence import COMPARE
from localagent.edit.unit import Expr

_ORDER = ("<", "<=", ">", ">=", "==", "!=")
_LIKELY = {
    ("<", "<="): 0.3,
    ("<=", "<"): 0.3,
    (">", ">="): 0.3,
    (">=", ">"): 0.3,
    ("==", "!="): 0.2,
    ("!=", "=="): 0.2,
    ("<", ">"): 0.1,
    (">", "<"): 0.1,
    ("is", "is not"): 0.2,
    ("is not", "is"): 0.2,
    ("in", "not in"): 0.2,
    ("not in", "in"): 0.2,
    ("<=", ">="): 0.0,
    (">=", "<="): 0.0,
    ("is", "=="): 0.0,
    ("==", "is"): -2.0,
    ("!=", "is not"): -2.0,
}


_EXTREMES = ("min", "max", "sum", "abs")
_KEPT = 2.2  # for the number alone, where its comparison stands in a number's place
_ONE_OF_ITS_KIND = frozenset({"True", "False", "Ellipsis", "...", "NotImplemented"})


def _alternatives(ctx: OperatorContext, old: str, left: str, right: str) -> tuple[str, ...]:
    if old in ("is", "is not"):
        return ("is not" if old == "is" else "is", "==", "!=")
    if old in ("in", "not in"):
        return ("not in" if old == "in" else "in", "==", "!=")
    others = tuple(o for o in _ORDER if o != old)
    if old in ("==", "!="):
        marks = right in ctx.facts.module_names and (right.isupper() or right.startswith("_"))
        single = marks or right in _ONE_OF_ITS_KIND or left.startswith("type(") or left.endswith(".__class__")
        same = ("is" if old == "==" else "is not",) if single else ()
        return (*others, *(("is", "is not") if right == "None" else ("in", "not in", *same)))
    return (*others, "in") if old == "<" else others


@operator("compare-swap", prior=0.0, effects={EditEffect.MOVES_BOUNDARY})
def compare_swap(ctx: OperatorContext) -> Iterator[Change]:
    """Another comparison operator: `<` for `<=`, `!=` for `==`, `not in` for `in`, `is not` for `is`."""
    for expr, node in ctx.of(cst.Comparison):
        for left, target in zip((node.left, *(t.comparator for t in node.comparisons)), node.comparisons, strict=False):
            start, end = ctx.unit.span(target.operator)
            old = " ".join(ctx.unit.slice(start, end).split())
            for new in _alternatives(ctx, old, ctx.unit.code(left), ctx.unit.code(target.comparator)):
                delta = _LIKELY.get((old, new), -0.5 if new in _ORDER else -2.0)
                text = _spaced(ctx, start, end, new)
                yield ctx.splice(expr, (start, end, text), delta=delta, old=old, new=new)


def _spaced(ctx: OperatorContext, start: int, end: int, new: str) -> str:
    if not new[0].isalpha():
        return new
    before = "" if ctx.unit.text[start - 1 : start].isspace() else " "
    after = "" if ctx.unit.text[end : end + 1].isspace() else " "
    return before + new + after


@operator("compare-sides", prior=-1.0)
def compare_sides(ctx: OperatorContext) -> Iterator[Change]:
    """The two sides of a comparison change places."""
    for expr, node in ctx.of(cst.Comparison):
        if len(node.comparisons) == 1:
            left, right = ctx.unit.outer(node.left), ctx.unit.outer(node.comparisons[0].comparator)
            a, b = ctx.unit.slice(*left), ctx.unit.slice(*right)
            if isinstance(node.comparisons[0].operator, (cst.Equal, cst.NotEqual)):
                continue
            yield ctx.splice(expr, (*left, b), (*right, a), note=f"sides of {expr.text} swapped")


@operator("compare-bound", prior=-0.9)
def compare_bound(ctx: OperatorContext) -> Iterator[Change]:
    """A comparison with a small number moves its bound: `== 0` to `<= 1`, `> 0` to `> 1`, `< 1` to `<= 2`."""
    bounds = ("<= 0", "<= 1", "< 2", "<= 2", "> 0", "> 1", ">= 1", ">= 2", "== 0", "== 1", "!= 0", "!= 1")
    for expr, node in ctx.of(cst.Comparison):
        if len(node.comparisons) != 1 or not isinstance(node.comparisons[0].comparator, cst.Integer):
            continue
        start = ctx.unit.outer(node.left)[1]
        end = ctx.unit.outer(node.comparisons[0].comparator)[1]
        if node.comparisons[0].comparator.value in ("0", "1", "2"):
            for place, bound in enumerate(bounds):
                yield ctx.splice(expr, (start, end, f" {bound}"), delta=-0.05 * place, note=bound)


def _is_stored_number(ctx: OperatorContext, expr: Expr, node: cst.Comparison) -> bool:
    """Whether a number is compared with a literal where a number is kept: `best = max(a, b) == 0`."""
    parent = expr.parent
    if not isinstance(parent, cst.Assign | cst.AugAssign) or not isinstance(
        node.comparisons[0].comparator, cst.Integer
    ):
        return False
    target = parent.target if isinstance(parent, cst.AugAssign) else parent.targets[0].target
    if isinstance(parent, cst.AugAssign) or ctx.names.kind(target) in ("int", "float"):
        return True
    called = isinstance(node.left, cst.Call) and ctx.unit.code(node.left.func) in _EXTREMES
    return called and isinstance(target, cst.Subscript)


@operator("compare-drop", prior=-1.5)
def compare_drop(ctx: OperatorContext) -> Iterator[Change]:
    """A comparison is reduced to one of its sides (`x is None` to `x`), or loses one link of a chain."""
    for expr, node in ctx.of(cst.Comparison):
        sides = [node.left, *(t.comparator for t in node.comparisons)]
        if len(sides) == 2:
            for side in sides:
                kept = _KEPT if side is node.left and _is_stored_number(ctx, expr, node) else 0.0
                yield ctx.put(expr, ctx.unit.code(side), COMPARE + 1, kept - 0.5)
            continue
        ends = [ctx.unit.outer(s) for s in sides]
        yield ctx.splice(expr, (ends[0][0], ends[1][0], ""), note="first link of the chain dropped")
        yield ctx.splice(expr, (ends[-2][1], ends[-1][1], ""), note="last link of the chain dropped")
