"""Expressions that say nothing as they stand (`x and x`, `a == a`, `a - a`, `max(a, a)`): one side is mistaken."""

from collections.abc import Iterator

import libcst as cst

from localagent.edit.unit import Unit

_CANCELLING = (cst.Subtract, cst.Divide, cst.FloorDivide, cst.Modulo, cst.BitAnd, cst.BitOr, cst.BitXor)
_OF_DIFFERENT = frozenset({"min", "max", "isinstance", "issubclass", "gcd"})


def pointless(unit: Unit) -> tuple[tuple[int, int], ...]:
    """Spans, in unit offsets, of a unit's expressions that hold the same operand twice where that says nothing."""
    return tuple((e.start, e.end) for e in unit.exprs if _twice(e.node, [unit.code(o) for o in _operands(e.node)]))


def _operands(node: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    if isinstance(node, cst.BooleanOperation):
        yield from _joined(node, type(node.operator))
    elif isinstance(node, cst.Comparison) and len(node.comparisons) == 1:
        yield from (node.left, node.comparisons[0].comparator)
    elif isinstance(node, cst.BinaryOperation) and isinstance(node.operator, _CANCELLING):
        yield from (node.left, node.right)
    elif isinstance(node, cst.Call) and isinstance(node.func, cst.Name) and node.func.value in _OF_DIFFERENT:
        yield from (a.value for a in node.args)


def _joined(node: cst.BaseExpression, word: type[cst.BaseBooleanOp]) -> Iterator[cst.BaseExpression]:
    """The operands of a chain of one word, `and` or `or`."""
    if isinstance(node, cst.BooleanOperation) and isinstance(node.operator, word) and not node.lpar:
        yield from _joined(node.left, word)
        yield from _joined(node.right, word)
    else:
        yield node


def _twice(node: cst.BaseExpression, texts: list[str]) -> bool:
    """Whether two operands are one text; calls may answer otherwise the second time, and `x != x` asks for NaN."""
    if isinstance(node, cst.Comparison) and isinstance(node.comparisons[0].operator, cst.NotEqual):
        return False
    if isinstance(node, (cst.Comparison, cst.BinaryOperation)):
        texts = [text for text in texts if "(" not in text]
    return len(set(texts)) < len(texts)
