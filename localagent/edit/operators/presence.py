"""Nothing and empty are two things: what asks for truth asks for None, and the other way round."""

from collections.abc import Iterator

import libcst as cst

from localagent.edit.operator_context import Change, OperatorContext
from localagent.edit.operator_registry import operator
from localagent.edit.operators.logic import is_test
from localagent.edit.precedence import COMPARE, NOT, OR, TERNARY, binding, fit
from localagent.edit.unit import Expr

_HELD = (cst.Name, cst.Attribute, cst.Subscript, cst.Call)
_PLAIN = (cst.Name, cst.Attribute, cst.Subscript)  # read twice, they are the same; a call need not be
_NEVER_NONE = -1.5  # for what is known to be a number or a truth value


@operator("none-or-empty", prior=-1.0)
def none_or_empty(ctx: OperatorContext) -> Iterator[Change]:
    """A truth test becomes a test for None, or the other way round: `x is not None` for `x`, also behind `or`."""
    for expr in ctx.exprs:
        node = expr.node
        if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Not):
            if isinstance(node.expression, _HELD):
                yield ctx.put(expr, f"{ctx.unit.code(node.expression)} is None", COMPARE)
        elif isinstance(node, _HELD) and is_test(expr) and not isinstance(expr.parent, cst.UnaryOperation):
            yield ctx.put(expr, f"{expr.text} is not None", COMPARE, _likely(ctx, expr))
        elif isinstance(node, cst.NamedExpr) and is_test(expr):
            named = f"{ctx.unit.code(node.target)} := {ctx.unit.code(node.value)}"
            yield ctx.put(expr, f"({named}) is not None", COMPARE)
        elif isinstance(node, cst.BooleanOperation) and isinstance(node.operator, cst.Or):
            if isinstance(node.left, _PLAIN) and not is_test(expr):
                left = ctx.unit.code(node.left)
                right = fit(ctx.unit.code(node.right), binding(node.right), TERNARY)
                yield ctx.put(expr, f"{left} if {left} is not None else {right}", TERNARY, 0.2)
        elif isinstance(node, cst.Comparison) and (held := _none_test_prefix(node)) is not None:
            yield ctx.put(expr, f"not {fit(ctx.unit.code(held), binding(held), NOT)}", NOT)
        elif isinstance(node, cst.IfExp) and (alone := _or_else(ctx, node)):
            yield ctx.put(expr, alone, OR)


def _likely(ctx: OperatorContext, expr: Expr) -> float:
    return _NEVER_NONE if ctx.kind(expr) in ("int", "float", "bool") else 0.0


def _none_test_prefix(node: cst.Comparison) -> cst.BaseExpression | None:
    """What stands in front of a lone `is None`."""
    if len(node.comparisons) != 1 or not isinstance(node.comparisons[0].operator, cst.Is):
        return None
    other = node.comparisons[0].comparator
    return node.left if isinstance(other, cst.Name) and other.value == "None" else None


def _or_else(ctx: OperatorContext, node: cst.IfExp) -> str:
    """`a or b` for `a if a is not None else b`; "" for what is no such thing."""
    test = node.test
    if not isinstance(test, cst.Comparison) or len(test.comparisons) != 1:
        return ""
    target = test.comparisons[0]
    if not isinstance(target.operator, cst.IsNot) or ctx.unit.code(target.comparator) != "None":
        return ""
    if not isinstance(node.body, _PLAIN) or ctx.unit.code(test.left) != ctx.unit.code(node.body):
        return ""
    return f"{ctx.unit.code(node.body)} or {fit(ctx.unit.code(node.orelse), binding(node.orelse), OR + 1)}"
