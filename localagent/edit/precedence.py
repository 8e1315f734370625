"""How tightly Python expressions bind, so that a text put in an expression's place keeps its own tree.

Levels grow with tightness. A replacement is parenthesised when its level is below what the place needs.
"""

import libcst as cst

LOOSE, LAMBDA, TERNARY, OR, AND, NOT, COMPARE = -1, 1, 2, 3, 4, 5, 6
BITOR, BITXOR, BITAND, SHIFT, ADD, MUL, UNARY, POWER, AWAIT, ATOM = 7, 8, 9, 10, 11, 12, 13, 14, 15, 16

_BINARY: dict[type[cst.BaseBinaryOp], int] = {
    cst.BitOr: BITOR,
    cst.BitXor: BITXOR,
    cst.BitAnd: BITAND,
    cst.LeftShift: SHIFT,
    cst.RightShift: SHIFT,
    cst.Add: ADD,
    cst.Subtract: ADD,
    cst.Multiply: MUL,
    cst.Divide: MUL,
    cst.FloorDivide: MUL,
    cst.Modulo: MUL,
    cst.MatrixMultiply: MUL,
    cst.Power: POWER,
}


def binding(node: cst.CSTNode) -> int:
    """How tightly an expression's text binds as it stands (its own parentheses included)."""
    if getattr(node, "lpar", ()):
        return ATOM
    if isinstance(node, cst.BinaryOperation):
        return _BINARY[type(node.operator)]
    if isinstance(node, cst.BooleanOperation):
        return OR if isinstance(node.operator, cst.Or) else AND
    if isinstance(node, cst.UnaryOperation):
        return NOT if isinstance(node.operator, cst.Not) else UNARY
    if isinstance(node, (cst.Tuple, cst.Yield, cst.NamedExpr)):
        return LOOSE
    simple: dict[type, int] = {
        cst.Comparison: COMPARE,
        cst.IfExp: TERNARY,
        cst.Lambda: LAMBDA,
        cst.Await: AWAIT,
        cst.ConcatenatedString: AWAIT,
        cst.Integer: AWAIT,
        cst.Float: AWAIT,
    }
    return simple.get(type(node), ATOM)


def needed(parent: cst.CSTNode, node: cst.CSTNode) -> int:
    """The level that `parent` needs of what stands in `node`'s place."""
    if isinstance(parent, cst.BinaryOperation):
        level = _BINARY[type(parent.operator)]
        if level == POWER:
            return AWAIT if node is parent.left else UNARY
        return level if node is parent.left else level + 1
    if isinstance(parent, cst.BooleanOperation):
        level = OR if isinstance(parent.operator, cst.Or) else AND
        return level if node is parent.left else level + 1
    if isinstance(parent, cst.UnaryOperation):
        return NOT if isinstance(parent.operator, cst.Not) else UNARY
    if isinstance(parent, (cst.Comparison, cst.ComparisonTarget, cst.StarredElement, cst.StarredDictElement)):
        return BITOR
    if isinstance(parent, (cst.Attribute, cst.Subscript, cst.Call, cst.Await)):
        return ATOM
    if isinstance(parent, cst.IfExp):
        return LAMBDA if node is parent.orelse else OR
    if isinstance(parent, (cst.CompFor, cst.CompIf, cst.FormattedStringExpression)):
        return OR
    return LAMBDA


def fit(text: str, level: int, need: int) -> str:
    """`text` as it may stand in a place that needs `need`; texts over several lines are parenthesised."""
    if level >= need and ("\n" not in text and "\r" not in text):
        return text
    if level == ATOM and need == ATOM and text[:1] in "([{" and text[-1:] in ")]}":
        return text
    if level == AWAIT and need == ATOM and text.isidentifier():
        return text
    return f"({text})"
