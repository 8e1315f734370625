"""Arithmetic: binary and augmented operators, operands, signs, off by one."""

import re
from collections.abc import Iterator

import libcst as cst

from localagent.domain.edit import EditEffect
from localagent.edit.operator_context import Change, OperatorContext
from localagent.edit.operator_registry import operator
from localagent.edit.precedence import ADD, ATOM, MUL, UNARY, binding, fit, needed
from localagent.edit.unit import Expr

_GROUPS = ("+", "-", "*", "/", "//", "%", "**"), ("&", "|", "^", "<<", ">>")
_LIKELY = {
    ("+", "-"): 0.3,
    ("-", "+"): 0.3,
    ("*", "//"): 0.0,
    ("/", "//"): 0.3,
    ("//", "/"): 0.1,
    ("%", "//"): 0.1,
    ("//", "%"): 0.1,
    ("+", "*"): 0.0,
    ("*", "+"): 0.0,
    ("&", "|"): 0.2,
    ("|", "&"): 0.2,
    ("^", "&"): 0.2,
    ("^", "|"): 0.2,
    ("<<", ">>"): 0.3,
    (">>", "<<"): 0.3,
    ("*", "**"): -0.3,
    ("**", "*"): -0.3,
    ("*", "/"): -0.3,
    ("//", ">>"): -0.5,
    ("/", ">>"): -1.0,
    ("%", "&"): -1.0,
    ("-", "^"): -1.5,
    ("/", "*"): -0.2,
    ("//", "*"): -0.3,
    ("^", "**"): 0.2,
    ("|", "+"): -0.8,
    ("+", "|"): -0.8,
}
_NEAR = frozenset({"+-", "*/", "///", "***", "//%", "&|", "|^", "&^", "<<>>"})
_ONE = re.compile(r" *[-+] *1")
_NEVER_NUMBERS = frozenset({"str", "list", "dict", "set", "tuple", "bytes"})


def _alternatives(old: str) -> Iterator[tuple[str, float]]:
    for new in (*_GROUPS[0], *_GROUPS[1]):
        if new != old:
            same = any(old in g and new in g for g in _GROUPS)
            yield new, _LIKELY.get((old, new), -0.7 if same else -2.2)


def _kind_changed(old: str, new: str) -> frozenset[EditEffect]:
    """The effect of an operator that is seldom written for the other."""
    near = old + new in _NEAR or new + old in _NEAR
    return frozenset() if near else frozenset({EditEffect.CHANGES_ARITHMETIC})


@operator("arithmetic-swap", prior=0.0)
def arithmetic_swap(ctx: OperatorContext) -> Iterator[Change]:
    """Another binary operator: `-` for `+`, `//` for `/`, `&` for `^`; operands stay as grouped."""
    for expr, node in ctx.of(cst.BinaryOperation):
        start, end = ctx.unit.span(node.operator)
        old = ctx.unit.slice(start, end)
        kind = ctx.kind(expr)
        left, right = ctx.unit.code(node.left), ctx.unit.code(node.right)
        if isinstance(node.left, (cst.SimpleString, cst.FormattedString, cst.ConcatenatedString)) and old == "%":
            continue
        for new, likely in _alternatives(old):
            delta = likely
            if kind in _NEVER_NUMBERS and not (kind == "set" and new in "-&|^"):
                delta -= 1.5
            level = _level(new)
            text = (
                fit(left, binding(node.left), level if new != "**" else 15)
                + ctx.unit.slice(ctx.unit.outer(node.left)[1], start)
                + new
                + ctx.unit.slice(end, ctx.unit.outer(node.right)[0])
                + fit(right, binding(node.right), level + 1 if new != "**" else UNARY)
            )
            put = (expr.start, expr.end, text if level >= expr.need else f"({text})")
            splice = (*ctx.unit.span(node), text) if node.lpar else put
            yield ctx.splice(expr, splice, delta=delta, note=f"{old} -> {new}").having(*_kind_changed(old, new))


def _level(op: str) -> int:
    return {"+": ADD, "-": ADD, "*": MUL, "/": MUL, "//": MUL, "%": MUL, "**": 14, "&": 9, "|": 7, "^": 8}.get(op, 10)


_FAR = 6  # so many operands away a parenthesis is put at most


@operator("regroup", prior=-0.9)
def regroup(ctx: OperatorContext) -> Iterator[Change]:
    """The same operands grouped otherwise: `(a + b) * c` for `a + b * c`, parentheses put or removed."""
    for expr, node in ctx.of(cst.BinaryOperation):
        for side in (node.left, node.right):
            if isinstance(side, cst.BinaryOperation) and side.lpar:
                (start, end), (inner_start, inner_end) = ctx.unit.outer(side), ctx.unit.span(side)
                yield ctx.splice(expr, (start, end, ctx.unit.slice(inner_start, inner_end)), note="parentheses removed")
        whole_start, whole_end = ctx.unit.outer(node.left)[0], ctx.unit.outer(node.right)[1]
        for away, operand in enumerate(_operands(node.right)[-2::-1][:_FAR]):
            splices = (whole_start, whole_start, "("), (ctx.unit.outer(operand)[1],) * 2 + (")",)
            yield ctx.splice(expr, *splices, delta=-0.15 * away, note="left operands grouped")
        for away, operand in enumerate(_operands(node.left)[:0:-1][:_FAR]):
            splices = (ctx.unit.outer(operand)[0],) * 2 + ("(",), (whole_end, whole_end, ")")
            yield ctx.splice(expr, *splices, delta=-0.15 * away, note="right operands grouped")


def _operands(node: cst.BaseExpression) -> list[cst.BaseExpression]:
    """The operands of a chain of binary operations without parentheses, as written."""
    if isinstance(node, cst.BinaryOperation) and not node.lpar:
        return [*_operands(node.left), *_operands(node.right)]
    return [node]


@operator("operand-order", prior=-0.2)
def operand_order(ctx: OperatorContext) -> Iterator[Change]:
    """The two operands of `-`, `/`, `//`, `%`, `**`, shifts or concatenation change places."""
    for expr, node in ctx.of(cst.BinaryOperation):
        commutes = isinstance(node.operator, (cst.Add, cst.Multiply, cst.BitAnd, cst.BitOr, cst.BitXor))
        if commutes and ctx.kind(expr) not in _NEVER_NUMBERS:
            continue
        a, b = ctx.unit.code(node.left), ctx.unit.code(node.right)
        if a == b:
            continue
        first = fit(b, binding(node.right), needed(node, node.left))
        second = fit(a, binding(node.left), needed(node, node.right))
        left, right = ctx.unit.outer(node.left), ctx.unit.outer(node.right)
        yield ctx.splice(expr, (*left, first), (*right, second), note=f"operands of {expr.text} swapped")


@operator("operand-drop", prior=-0.1)
def operand_drop(ctx: OperatorContext) -> Iterator[Change]:
    """One operand of a binary operation is dropped: `n - 1` to `n`."""
    for expr, node in ctx.of(cst.BinaryOperation):
        for side, delta in ((node.left, 0.0), (node.right, -0.5)):
            other = node.right if side is node.left else node.left
            small = 0.3 if isinstance(other, cst.Integer) else -0.4
            change = ctx.put(expr, ctx.unit.code(side), binding(side), delta + small)
            yield change.having(*one_dropped(change.old, change.new))


def one_dropped(old: str, new: str) -> frozenset[EditEffect]:
    """The effect of an expression that loses `+ 1` or `- 1`."""
    gone = old.startswith(new) and _ONE.fullmatch(old, len(new)) is not None
    return frozenset({EditEffect.DROPS_ONE}) if gone else frozenset()


@operator("off-by-one", prior=0.0, effects={EditEffect.MOVES_BOUNDARY, EditEffect.SHIFTS_NUMBER, EditEffect.INVENTS})
def off_by_one(ctx: OperatorContext) -> Iterator[Change]:
    """`+ 1` or `- 1` at an index, a slice or range bound, an argument, a returned or compared number."""
    for expr in ctx.exprs:
        delta = _countable(ctx, expr)
        if delta is None:
            continue
        if isinstance(expr.node, cst.Integer):
            continue
        tight = " " if " " in ctx.unit.slice(expr.statement.start, expr.statement.end) else ""
        for sign in "+-":
            text = (
                f"{fit(expr.text, expr.level, ADD)} {sign} 1" if tight else f"{fit(expr.text, expr.level, ADD)}{sign}1"
            )
            yield ctx.put(expr, text, ADD, delta, f"{sign} 1")


def _countable(ctx: OperatorContext, expr: Expr) -> float | None:
    """How likely a number stands here, as an adjustment; None where none can."""
    node, parent = expr.node, expr.parent
    if expr.store or expr.in_fstring or not isinstance(node, _NUMERIC) or ctx.kind(expr) in _NOT_COUNTS:
        return None
    if isinstance(node, cst.BinaryOperation) and isinstance(node.right, cst.Integer) and node.right.value == "1":
        return -1.0 if isinstance(node.operator, (cst.Add, cst.Subtract)) else 0.0
    if isinstance(parent, (cst.Index, cst.Slice)):
        return 0.1
    if isinstance(parent, cst.Arg):
        return 0.0
    if isinstance(parent, (cst.Comparison, cst.ComparisonTarget)):
        return -0.2
    if isinstance(parent, (cst.Return, cst.Assign, cst.AugAssign, cst.AnnAssign, cst.Element)):
        return -0.3
    if isinstance(parent, cst.BinaryOperation):
        return -0.5
    return -1.0 if isinstance(parent, (cst.Yield, cst.IfExp)) else None


_NUMERIC = (cst.Name, cst.BinaryOperation, cst.Call, cst.Subscript, cst.Attribute, cst.UnaryOperation)
_NOT_COUNTS = frozenset(
    {"str", "list", "dict", "set", "tuple", "bool", "func", "none", "deque", "Counter", "bytes", "file"}
)


@operator("sign", prior=-0.8)
def sign(ctx: OperatorContext) -> Iterator[Change]:
    """A number's sign changes: `x` to `-x`, `-1` to `1`, `~x` to `x`."""
    for expr in ctx.exprs:
        node = expr.node
        if isinstance(node, cst.UnaryOperation) and not isinstance(node.operator, cst.Not):
            yield ctx.put(expr, ctx.unit.code(node.expression), binding(node.expression), 0.4)
        elif isinstance(expr.parent, cst.UnaryOperation) or _countable(ctx, expr) is None:
            if isinstance(node, (cst.Integer, cst.Float)) and not isinstance(expr.parent, cst.UnaryOperation):
                yield ctx.put(expr, f"-{expr.text}", UNARY, 0.2)
        else:
            yield ctx.put(expr, f"-{fit(expr.text, expr.level, UNARY)}", UNARY, 0.0)


@operator("sign-inside-text", prior=0.0)
def sign_inside_text(ctx: OperatorContext) -> Iterator[Change]:
    """The sign inside `float("inf")` changes, or `float("-inf")` replaces a bare infinity."""
    for expr, node in ctx.of(cst.Call):
        if isinstance(node.func, cst.Name) and node.func.value == "float" and len(node.args) == 1:
            text = ctx.unit.code(node.args[0].value)
            if "inf" in text.lower():
                new = text.replace("-", "") if "-" in text else text[0] + "-" + text[1:]
                yield ctx.put(expr, f"float({new})", ATOM)


@operator("augmented-swap", prior=0.0)
def augmented_swap(ctx: OperatorContext) -> Iterator[Change]:
    """Another augmented operator: `-=` for `+=`."""
    for statement in ctx.statements:
        node = statement.node
        if isinstance(node, cst.AugAssign):
            start, end = ctx.unit.span(node.operator)
            old = ctx.unit.slice(start, end)
            for new, delta in _alternatives(old[:-1]):
                change = ctx.splice(statement, (start, end, new + "="), delta=delta, note=f"{old} -> {new}=")
                yield change.having(*_kind_changed(old[:-1], new))


@operator("assign-augment", prior=0.0)
def assign_augment(ctx: OperatorContext) -> Iterator[Change]:
    """`=` becomes `+=` (or another augmented form), and the other way round."""
    for statement in ctx.statements:
        node = statement.node
        if isinstance(node, cst.AugAssign):
            start, end = ctx.unit.span(node.operator)
            yield ctx.splice(statement, (start, end, "="), delta=-0.3, note=f"{ctx.unit.slice(start, end)} -> =")
        elif isinstance(node, cst.Assign) and len(node.targets) == 1:
            target = node.targets[0].target
            if isinstance(target, (cst.Name, cst.Attribute, cst.Subscript)):
                at = ctx.unit.outer(target)[1]
                equal = ctx.unit.text.index(b"=", at)
                for op, delta in (("+", -0.2), ("-", -0.8), ("*", -1.2), ("|", -1.5), ("//", -1.5), ("%", -2.0)):
                    yield ctx.splice(statement, (equal, equal + 1, op + "="), delta=delta, note=f"= -> {op}=")
