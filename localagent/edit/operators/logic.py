"""Conditions: negation, operands of `and` and `or`, conditions known elsewhere in the function or file."""

import re
from collections.abc import Iterator

import libcst as cst

from localagent.domain.edit import EditEffect
from localagent.edit.operator_context import Change, OperatorContext
from localagent.edit.operator_registry import operator
from localagent.edit.precedence import AND, COMPARE, NOT, OR, binding, fit
from localagent.edit.unit import Expr

_SEVERAL_PARTS = re.compile(r"\b(and|or)\b")
_TESTS = (cst.If, cst.While, cst.IfExp, cst.CompIf, cst.Assert)


def is_test(expr: Expr) -> bool:
    """Whether an expression is decided upon: the test of `if`, `while`, a ternary, a filter or an assertion."""
    if isinstance(expr.parent, _TESTS):
        return getattr(expr.parent, "test", None) is expr.node
    return isinstance(expr.parent, cst.BooleanOperation) or (
        isinstance(expr.parent, cst.UnaryOperation) and isinstance(expr.parent.operator, cst.Not)
    )


@operator("negate", prior=-0.2)
def negate(ctx: OperatorContext) -> Iterator[Change]:
    """A condition is negated, or its `not` dropped."""
    for expr in ctx.exprs:
        node = expr.node
        if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Not):
            yield _negated(ctx.put(expr, ctx.unit.code(node.expression), binding(node.expression), 0.4))
        elif is_test(expr) or isinstance(expr.parent, (cst.Return, cst.Assign)):
            if isinstance(node, cst.Comparison) and len(node.comparisons) == 1:
                continue  # compare-swap says it better
            if isinstance(node, cst.Tuple):
                continue
            delta = 0.0 if is_test(expr) else (-1.0 if ctx.kind(expr) in ("bool", "") else -3.0)
            yield _negated(ctx.put(expr, f"not {fit(expr.text, expr.level, NOT)}", NOT, delta))


def _negated(change: Change) -> Change:
    return change.having(EditEffect.NEGATES_SEVERAL) if _SEVERAL_PARTS.search(change.old) else change


@operator("and-or", prior=0.0)
def and_or(ctx: OperatorContext) -> Iterator[Change]:
    """`and` becomes `or`, and the other way round."""
    for expr, node in ctx.of(cst.BooleanOperation):
        start, end = ctx.unit.span(node.operator)
        is_and = isinstance(node.operator, cst.And)
        new, level = ("or", OR) if is_and else ("and", AND)
        left = fit(ctx.unit.code(node.left), binding(node.left), level)
        right = fit(ctx.unit.code(node.right), binding(node.right), level + 1)
        before = ctx.unit.slice(ctx.unit.outer(node.left)[1], start)
        after = ctx.unit.slice(end, ctx.unit.outer(node.right)[0])
        text = f"{left}{before}{new}{after}{right}"
        inner = (*ctx.unit.span(node), text) if node.lpar else (expr.start, expr.end, fit(text, level, expr.need))
        yield ctx.splice(expr, inner, note=f"{'and' if is_and else 'or'} -> {new}")


@operator("condition-drop", prior=0.0, effects={EditEffect.CHANGES_CONDITION})
def condition_drop(ctx: OperatorContext) -> Iterator[Change]:
    """One operand of `and` or `or` is dropped."""
    for expr, node in ctx.of(cst.BooleanOperation):
        for side in (node.left, node.right):
            yield ctx.put(expr, ctx.unit.code(side), binding(side))


@operator("condition-order", prior=-1.0, effects={EditEffect.CHANGES_CONDITION, EditEffect.MOVES_BOUNDARY})
def condition_order(ctx: OperatorContext) -> Iterator[Change]:
    """The operands of `and` or `or` change places (the guard comes first)."""
    for expr, node in ctx.of(cst.BooleanOperation):
        left, right = ctx.unit.outer(node.left), ctx.unit.outer(node.right)
        level = AND if isinstance(node.operator, cst.And) else OR
        first = fit(ctx.unit.slice(*right), binding(node.right), level)
        second = fit(ctx.unit.slice(*left), binding(node.left), level + 1)
        yield ctx.splice(expr, (*left, first), (*right, second), note="operands swapped")


@operator("condition-add", prior=-2.2, effects={EditEffect.CHANGES_CONDITION})
def condition_add(ctx: OperatorContext) -> Iterator[Change]:
    """A known condition is joined to a test with `and` or `or`, before or after it."""
    for expr in ctx.exprs:
        if not isinstance(expr.parent, _TESTS) or getattr(expr.parent, "test", None) is not expr.node:
            continue
        for text, level, delta in known_conditions(ctx, expr):
            if text == expr.text:
                continue
            for word, bind in (("or", OR), ("and", AND)):
                old = fit(expr.text, expr.level, bind + 1)
                new = fit(text, level, bind + 1)
                yield ctx.put(
                    expr, f"{new} {word} {fit(expr.text, expr.level, bind + 1)}", bind, delta, f"{text} {word} ..."
                )
                yield ctx.put(expr, f"{old} {word} {new}", bind, delta - 0.2, f"... {word} {text}")


def known_conditions(ctx: OperatorContext, at: Expr, limit: int = 60) -> list[tuple[str, int, float]]:
    """Conditions to try near a place, best first: (text, level, adjustment)."""
    found: dict[str, tuple[int, float]] = {}

    def offer(text: str, level: int, delta: float) -> None:
        if text not in found or found[text][1] < delta:
            found[text] = (level, delta)

    for expr in ctx.deciding(is_test):
        near = -min(abs(expr.line - at.line), 20) * 0.05
        if expr is not at and not isinstance(expr.node, cst.BooleanOperation):
            offer(expr.text, expr.level, near)
    bases = operand_bases(at)
    for base in bases:
        offer(f"{base} is None", COMPARE, 0.2)
        offer(f"not {base}", NOT, 0.0)
        offer(base, 16, -0.2)
        offer(f"{base} is not None", COMPARE, 0.0)
    for name in sorted(ctx.visible(at.statement), key=lambda n: abs(ctx.visible(at.statement)[n] - at.line))[:12]:
        if name not in ("self", "cls") and ctx.names.kinds.get(name) != "func" and name not in bases:
            offer(f"not {name}", NOT, -0.6)
            offer(name, 16, -0.6)
            offer(f"{name} is None", COMPARE, -1.0)
    for text, lines in ctx.facts.conditions.items():
        offer(text, OR, -1.2 - min(200, *(abs(x - at.line) for x in lines)) * 0.005)
    ranked = sorted(found.items(), key=lambda item: -item[1][1])[:limit]
    return [(text, level, delta) for text, (level, delta) in ranked]


def operand_bases(at: Expr) -> list[str]:
    """Receivers and names that a condition reads, outermost first."""
    out: dict[str, None] = {}

    def walk(node: cst.CSTNode) -> None:
        if isinstance(node, (cst.Attribute, cst.Subscript)):
            walk(node.value)
        elif isinstance(node, cst.Name) and node.value not in ("None", "True", "False", "self"):
            out.setdefault(node.value)
        elif isinstance(node, cst.Comparison):
            walk(node.left)
            for t in node.comparisons:
                walk(t.comparator)
        elif isinstance(node, (cst.BinaryOperation, cst.BooleanOperation)):
            walk(node.left)
            walk(node.right)
        elif isinstance(node, cst.UnaryOperation):
            walk(node.expression)

    walk(at.node)
    return list(out)
