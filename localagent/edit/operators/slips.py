"""Slips that many make with what Python's calls mean: `rstrip` for a suffix, a set for an order, a name for a copy."""

import ast
from collections.abc import Iterator

import libcst as cst

from localagent.code.source_text import parse_or_none
from localagent.edit.operator_context import Change, OperatorContext, Splice3
from localagent.edit.operator_registry import operator
from localagent.edit.operators.calls import callee_name
from localagent.edit.precedence import AND, ATOM, OR, UNARY, binding, fit
from localagent.edit.unit import Stmt

_AFFIXES = {"rstrip": ("removesuffix",), "lstrip": ("removeprefix",), "strip": ("removeprefix", "removesuffix")}
_CHANGES = frozenset(
    {
        "append",
        "extend",
        "insert",
        "remove",
        "pop",
        "clear",
        "sort",
        "reverse",
        "update",
        "setdefault",
        "add",
        "discard",
    }
)
_HOLDS = ("list", "tuple")
_SHORT = 120  # characters of a comparison
_ORDERING = frozenset({"sorted", "sort", "min", "max", "nlargest", "nsmallest"})


@operator("strip-affix", prior=0.2)
def strip_affix(ctx: OperatorContext) -> Iterator[Change]:
    """`rstrip(".py")`, which takes any of these letters away, becomes `removesuffix(".py")`."""
    for expr, node in ctx.of(cst.Call):
        text = node.args[0].value if len(node.args) == 1 else None
        value = text.evaluated_value if isinstance(text, cst.SimpleString) else None
        if isinstance(node.func, cst.Attribute) and isinstance(value, str) and len(value) > 1:
            for name in _AFFIXES.get(node.func.attr.value, ()):
                start, end = ctx.unit.span(node.func.attr)
                yield ctx.splice(expr, (start, end, name), old=node.func.attr.value, new=name)


@operator("set-order", prior=-0.2)
def set_order(ctx: OperatorContext) -> Iterator[Change]:
    """`list(set(x))`, which has no order, becomes `list(dict.fromkeys(x))`, or is sorted."""
    for expr, node in ctx.of(cst.Call):
        inner = node.args[0].value if len(node.args) == 1 else None
        if callee_name(node) in _HOLDS and isinstance(inner, cst.Call) and callee_name(inner) == "set" and inner.args:
            start, end = ctx.unit.span(inner.func)
            yield ctx.splice(expr, (start, end, "dict.fromkeys"), old="set", new="dict.fromkeys")
            yield ctx.put(expr, f"sorted({ctx.unit.code(inner)})", ATOM, -0.2)


@operator("ceil-division", prior=-0.6)
def ceil_division(ctx: OperatorContext) -> Iterator[Change]:
    """A division that rounds down rounds up: `-(-a // b)`."""
    for expr, node in ctx.of(cst.BinaryOperation):
        if isinstance(node.operator, cst.FloorDivide):
            left = fit(ctx.unit.code(node.left), binding(node.left), UNARY)
            yield ctx.put(expr, f"-(-{left} // {ctx.unit.code(node.right)})", UNARY)


@operator("copy-first", prior=-0.8)
def copy_first(ctx: OperatorContext) -> Iterator[Change]:
    """What a function takes from elsewhere under a name of its own, and changes, is copied first."""
    for s in ctx.statements:
        if not isinstance(s.node, cst.Assign) or len(s.node.targets) != 1:
            continue
        target, value = s.node.targets[0].target, s.node.value
        plain = isinstance(value, cst.Name | cst.Attribute) and ctx.function(s) is not None
        if plain and isinstance(target, cst.Name) and _is_changed(ctx, s, target.value):
            end = ctx.unit.outer(value)[1]
            text = f"{ctx.unit.code(value)}.copy()"
            yield ctx.splice(s, (end, end, ".copy()"), old=ctx.unit.code(value), new=text)


def _is_changed(ctx: OperatorContext, s: Stmt, name: str) -> bool:
    """Whether the function changes, in place, what a name stands for after a statement."""
    for e in ctx.unit.exprs:
        if e.start <= s.end or not isinstance(e.node, cst.Name) or e.text != name:
            continue
        if isinstance(e.parent, cst.Attribute) and e.parent.value is e.node and e.parent.attr.value in _CHANGES:
            return True
    stored = (e.node for e in ctx.unit.exprs if e.store and e.start > s.end and isinstance(e.node, cst.Subscript))
    return any(isinstance(node.value, cst.Name) and node.value.value == name for node in stored)


@operator("wider-key", prior=-0.8)
def wider_key(ctx: OperatorContext) -> Iterator[Change]:
    """What a function remembers by one parameter is remembered by another one too: `memo[(a, b)]` for `memo[b]`."""
    for s in ctx.statements:
        node = s.node
        if not isinstance(node, cst.Assign) or not isinstance(node.targets[0].target, cst.Subscript):
            continue
        target = node.targets[0].target
        index = target.slice[0].slice if len(target.slice) == 1 else None
        function = ctx.function(s)
        if not isinstance(index, cst.Index) or not isinstance(index.value, cst.Name) or function is None:
            continue
        holder, key = ctx.unit.code(target.value), index.value.value
        places = [ctx.unit.span(name) for name in _keys(ctx, holder) if name.value == key]
        taken = [p.name.value for p in (*function.params.params, *function.params.kwonly_params)]
        used = {e.text for e in ctx.unit.exprs if e.statement is s and isinstance(e.node, cst.Name)}
        for other in [n for n in taken if n in used and n not in (key, "self", "cls") and n != holder][:3]:
            order = sorted((other, key), key=taken.index) if key in taken else [other, key]
            text = f"({', '.join(order)})"
            splices: list[Splice3] = sorted((start, end, text) for start, end in places)
            if len(splices) > 1:
                yield Change(tuple(splices), 0.0, s.line, s.end_line, f"{holder} by {text}", old=key, new=text)


def _keys(ctx: OperatorContext, holder: str) -> Iterator[cst.Name]:
    """The names that are keys of a container: in brackets, asked with `in`, or given to `get` or `pop`."""
    for e in ctx.unit.exprs:
        found: cst.BaseExpression | None = None
        match e.node:
            case cst.Subscript(value=value, slice=[cst.SubscriptElement(slice=cst.Index(value=found))]):
                pass
            case cst.Comparison(left=found, comparisons=[cst.ComparisonTarget(cst.In() | cst.NotIn(), value)]):
                pass
            case cst.Call(func=cst.Attribute(value=value, attr=cst.Name("get" | "pop")), args=[cst.Arg(found), *_]):
                pass
            case _:
                continue
        if isinstance(found, cst.Name) and ctx.unit.code(value) == holder:
            yield found


@operator("descending-key", prior=-0.5)
def descending_key(ctx: OperatorContext) -> Iterator[Change]:
    """A part of a sort key changes its sign, to order from the greatest down: `key=lambda j: (-j.rank, j.name)`."""
    for expr, node in ctx.of(cst.Call):
        for key in (a.value for a in node.args if a.keyword is not None and a.keyword.value == "key"):
            if callee_name(node) not in _ORDERING or not isinstance(key, cst.Lambda):
                continue
            body = key.body
            for part in [e.value for e in body.elements] if isinstance(body, cst.Tuple) else [body]:
                if isinstance(part, cst.Name | cst.Attribute | cst.Subscript | cst.Call):
                    old = ctx.unit.code(part)
                    new = f"-{fit(old, binding(part), UNARY)}"
                    yield ctx.splice(expr, (*ctx.unit.outer(part), new), old=old, new=new)


@operator("both-ways", prior=-0.8)
def both_ways(ctx: OperatorContext) -> Iterator[Change]:
    """A comparison of two parameters is asked of both in turn: `a.start < b.end and b.start < a.end`."""
    for expr, _ in ctx.of(cst.Comparison):
        function = ctx.function(expr.statement)
        taken = [p.name.value for p in function.params.params] if function is not None else []
        if len(taken) != 2 or len(expr.text) > _SHORT or isinstance(expr.parent, cst.BooleanOperation):
            continue
        parsed = parse_or_none(f"({expr.text})".encode())
        tree = parsed.body[0].value if parsed is not None and isinstance(parsed.body[0], ast.Expr) else None
        sides = (tree.left, *tree.comparators) if isinstance(tree, ast.Compare) else ()
        if len(sides) != 2 or sorted(named for side in sides for named in _named(side) & set(taken)) != sorted(taken):
            continue
        if tree is not None and any(not isinstance(side, ast.Name) for side in sides):
            for name in (n for n in ast.walk(tree) if isinstance(n, ast.Name) and n.id in taken):
                name.id = taken[1 - taken.index(name.id)]
            yield ctx.put(expr, f"{expr.text} and {ast.unparse(tree)}", AND)
            yield ctx.put(expr, f"{expr.text} or {ast.unparse(tree)}", OR, -0.3)


def _named(node: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
