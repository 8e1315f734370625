"""What a unit begins and never goes on with, which an inserted statement is likely to mend."""

from collections import Counter

import libcst as cst

from localagent.edit.operator_context import OperatorContext

_FILLERS = frozenset(
    {"append", "appendleft", "add", "extend", "extendleft", "insert", "update", "setdefault", "put", "push", "heappush"}
)


def unfilled(ctx: OperatorContext) -> frozenset[str]:
    """Names bound to an empty container of this unit into which nothing is ever put, though it is read again.

    Put into means: a method that fills it, a store into it, `+=`, or being given to a call that may fill it.
    """
    made = {
        target.value
        for s in ctx.unit.statements
        if isinstance(s.node, cst.Assign) and _empty(ctx, s.node.value)
        for target in (t.target for t in s.node.targets)
        if isinstance(target, cst.Name)
    }
    if not made:
        return frozenset()
    filled = {
        s.node.target.value
        for s in ctx.unit.statements
        if isinstance(s.node, cst.AugAssign) and isinstance(s.node.target, cst.Name)
    }
    read: set[str] = set()
    for expr in ctx.unit.exprs:
        node = expr.node
        if isinstance(node, cst.Call):
            filled |= {a.value.value for a in node.args if isinstance(a.value, cst.Name)} - _only_read(node)
        elif isinstance(node, cst.Name) and not expr.store:
            read.add(node.value)
        elif isinstance(node, (cst.Subscript, cst.Attribute)) and isinstance(node.value, cst.Name):
            stores = expr.store if isinstance(node, cst.Subscript) else node.attr.value in _FILLERS
            filled |= {node.value.value} if stores else set()
    return frozenset((made - filled) & read)


def _empty(ctx: OperatorContext, value: cst.BaseExpression) -> bool:
    return ctx.unit.code(value) in ("[]", "{}", "set()", "list()", "dict()", "deque()", "collections.deque()")


_READERS = frozenset(
    {"len", "sorted", "list", "set", "tuple", "sum", "any", "all", "max", "min", "reversed", "enumerate"}
)


def _only_read(call: cst.Call) -> set[str]:
    """Names among a call's arguments that the callee is known to read only."""
    if isinstance(call.func, cst.Name) and call.func.value in _READERS:
        return {a.value.value for a in call.args if isinstance(a.value, cst.Name)}
    return set()


def stale(ctx: OperatorContext) -> frozenset[str]:
    """Names that are given a plain first value before a loop, read inside it, and never changed again."""
    binds: Counter[str] = Counter()
    first: dict[str, int] = {}
    for expr in ctx.unit.exprs:
        if isinstance(expr.node, cst.Name) and expr.store:
            binds[expr.text] += 1
            parent = expr.parent
            plain = isinstance(parent, cst.AssignTarget) and isinstance(expr.statement.node, cst.Assign)
            if plain and _plain(expr.statement.node):
                first[expr.text] = expr.statement.start
    loops = [s for s in ctx.unit.statements if isinstance(s.node, (cst.For, cst.While))]
    return frozenset(
        expr.text
        for expr in ctx.unit.exprs
        if isinstance(expr.node, cst.Name)
        and not expr.store
        and binds[expr.text] == 1
        and any(first.get(expr.text, s.end) < s.start and s.head_end <= expr.start < s.end for s in loops)
    )


def _plain(node: cst.CSTNode) -> bool:
    value = node.value if isinstance(node, cst.Assign) else None
    return isinstance(value, (cst.Integer, cst.Float, cst.SimpleString)) or (
        isinstance(value, cst.Name) and value.value in ("None", "True", "False")
    )
