"""Containers that a unit makes and uses and never fills: what an inserted statement is likely to mend."""

import libcst as cst

from localagent.edit.context import Context

_FILLERS = frozenset(
    {"append", "appendleft", "add", "extend", "extendleft", "insert", "update", "setdefault", "put", "push", "heappush"}
)


def unfilled(ctx: Context) -> frozenset[str]:
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


def _empty(ctx: Context, value: cst.BaseExpression) -> bool:
    return ctx.unit.code(value) in ("[]", "{}", "set()", "list()", "dict()", "deque()", "collections.deque()")


_READERS = frozenset(
    {"len", "sorted", "list", "set", "tuple", "sum", "any", "all", "max", "min", "reversed", "enumerate"}
)


def _only_read(call: cst.Call) -> set[str]:
    """Names among a call's arguments that the callee is known to read only."""
    if isinstance(call.func, cst.Name) and call.func.value in _READERS:
        return {a.value.value for a in call.args if isinstance(a.value, cst.Name)}
    return set()
