"""Edits that None or an empty container suggests, where a crash tells of one: ask for it in a test, or leave before."""

import re
from collections.abc import Iterator
from typing import NamedTuple, cast

import libcst as cst

from localagent.edit.failure_hints import missing_attribute
from localagent.edit.layout import before, inside_function, movable, step
from localagent.edit.operator_context import Change, OperatorContext
from localagent.edit.operator_registry import operator
from localagent.edit.operators.guards import returned_values
from localagent.edit.precedence import AND, OR, TERNARY, binding, fit
from localagent.edit.unit import Expr, Stmt

_TAKERS = frozenset({"pop", "popleft", "popitem"})
_NONE_IS_NO = re.compile(
    r"'NoneType' (?:object )?(?:is not|does not support) (?:a )?(\w+)"
    r"|NoneType' has no len|unpack non-iterable (NoneType)"
)
_UNPACKED = re.compile(r"not enough values to unpack \(expected (?:at least )?\d+, got 0\)")
_REACH = 3
_LONGEST = 60


class _Lack(NamedTuple):
    """What may be missing at a place: the expression that reads it, and how code asks whether it is there or not."""

    at: Expr
    held: str
    there: tuple[str, ...]
    gone: tuple[str, ...]


@operator("reported-empty", prior=1.0)
def reported_empty(ctx: OperatorContext) -> Iterator[Change]:
    """An empty container was read: the loop, branch or a new guard before it checks for that."""
    for failure in ctx.failing_with("IndexError", "KeyError", "ValueError"):
        lines = ctx.lines_of(failure)
        for expr in ctx.exprs:
            if not _on(expr, lines):
                continue
            holder, told = _holder(ctx, expr)
            if holder and len(holder) <= _LONGEST and told and told in failure.message:
                yield from _has_guard(ctx, _Lack(expr, holder, (holder,), (f"not {holder}",)))
            elif _UNPACKED.search(failure.message) and _unpacked(expr):
                yield from _has_guard(ctx, _Lack(expr, expr.text, (expr.text,), (f"not {expr.text}",)))


@operator("reported-none", prior=1.0)
def reported_none(ctx: OperatorContext) -> Iterator[Change]:
    """An operation on None failed: the condition, loop, branch or a new guard before it checks for None."""
    for failure in ctx.failing_with("AttributeError", "TypeError"):
        found = missing_attribute(failure)
        name = found[1] if found and found[0] == "NoneType" else ""
        no = _NONE_IS_NO.search(failure.message)
        refused = (no[1] or no[2] or "measurable") if no else ""
        lines = ctx.lines_of(failure)
        for expr in ctx.exprs:
            if not (name or refused) or not _on(expr, lines):
                continue
            held = _none_candidates(ctx, expr, name, refused)
            if held and "(" not in held and len(held) <= _LONGEST and held not in ("self", "cls"):
                lack = _Lack(expr, held, (f"{held} is not None", held), (f"{held} is None", f"not {held}"))
                yield from _has_guard(ctx, lack)
                called = isinstance(expr.parent, cst.Call) and expr.parent.func is expr.node
                if name and not expr.store and not expr.in_fstring and not called:
                    yield ctx.put(expr, f"{fit(expr.text, expr.level, OR)} if {held} else None", TERNARY, -0.4)


def _holder(ctx: OperatorContext, expr: Expr) -> tuple[str, str]:
    """What a call takes from and a word of the error when that is empty; "" for what takes from nothing."""
    call = expr.node
    if not isinstance(call, cst.Call):
        return "", ""
    func = call.func
    if isinstance(func, cst.Attribute) and func.attr.value in _TAKERS:
        return ctx.unit.code(func.value), "empty"
    name = func.attr.value if isinstance(func, cst.Attribute) else func.value if isinstance(func, cst.Name) else ""
    told = {"heappop": "out of range", "min": "empty", "max": "empty"}.get(name, "")
    return (ctx.unit.code(call.args[0].value), told) if told and len(call.args) == 1 else ("", "")


def _unpacked(expr: Expr) -> bool:
    """Whether an expression is the value of an assignment to several targets at once."""
    parent = expr.parent
    return isinstance(parent, cst.Assign) and isinstance(parent.targets[0].target, (cst.Tuple, cst.List))


def _on(expr: Expr, lines: set[int]) -> bool:
    return not lines.isdisjoint(range(expr.line, expr.end_line + 1))


def _none_candidates(ctx: OperatorContext, expr: Expr, name: str, refused: str) -> str:
    """What may have been None in an expression: the receiver of the attribute that was missing, or what was refused."""
    node, parent = expr.node, expr.parent
    if name:
        return ctx.unit.code(node.value) if isinstance(node, cst.Attribute) and node.attr.value == name else ""
    if refused == "callable":
        return ctx.unit.code(node.func) if isinstance(node, cst.Call) else ""
    if refused == "NoneType":
        return expr.text if _unpacked(expr) else ""
    if isinstance(node, cst.Subscript):
        return ctx.unit.code(node.value)
    iterated = isinstance(parent, (cst.For, cst.CompFor)) and parent.iter is node
    searched = isinstance(parent, cst.ComparisonTarget) and isinstance(parent.operator, (cst.In, cst.NotIn))
    measured = isinstance(parent, cst.Arg) and isinstance(node, (cst.Name, cst.Attribute))
    return expr.text if iterated or measured or (searched and refused in ("iterable", "container")) else ""


def _comprehended(ctx: OperatorContext, lack: _Lack) -> cst.CompFor | None:
    """The loop of a comprehension that binds the name which a lacking expression hangs on, if one does."""
    name = re.split(r"[.\[]", lack.held, maxsplit=1)[0]
    if name not in ctx.names.comprehension.get(id(lack.at.statement), ()):
        return None
    for expr in ctx.unit.exprs:
        loop = expr.parent
        own = expr.statement is lack.at.statement and isinstance(loop, cst.CompFor) and loop.target is expr.node
        if own and name in re.findall(r"\w+", expr.text):
            return cast("cst.CompFor", loop)
    return None


def _has_guard(ctx: OperatorContext, lack: _Lack) -> Iterator[Change]:
    """The tests around a place ask for what it lacks, or a guard before it leaves."""
    inner = step(ctx)
    s = lack.at.statement
    loop = _comprehended(ctx, lack)
    if loop is not None:
        at = ctx.unit.outer(loop.iter)[1]
        for place, there in enumerate(lack.there):
            yield ctx.splice(lack.at, (at, at, f" if {there}"), delta=0.2 - 0.1 * place, note=f"if {there}")
        return
    for owner, away in _around(s):
        if not isinstance(owner.node, (cst.If, cst.While)):
            continue
        span = ctx.unit.outer(owner.node.test)
        old, level = ctx.unit.slice(*span), binding(owner.node.test)
        for place, (there, gone) in enumerate(zip(lack.there, lack.gone, strict=True)):
            if old in ("True", "1"):
                offers = [(there, 0.5)]
            else:
                offers = [(f"{there} and {fit(old, level, AND + 1)}", 0.2), (there, -0.2)]
                if isinstance(owner.node, cst.If):
                    offers.append((f"{gone} or {fit(old, level, OR + 1)}", 0.2))
            for text, plus in offers:
                delta = plus - away - 0.1 * place
                yield ctx.splice(owner, (*span, text), delta=delta, note=f"{old} -> {text}")
    if movable(s) and inside_function(ctx, s):
        actions = [("break", 0.0), ("continue", -0.3)] if s.in_loop else []
        values = [v for v in returned_values(ctx, s) if lack.at.text not in v[0] and f"{lack.held}." not in v[0]]
        for value, plus in values[:5]:
            actions.append(("return" if value == "None" else f"return {value}", plus - 0.3))
        for action, plus in actions:
            for place, gone in enumerate(lack.gone):
                rows = (f"if {gone}:", f"{inner}{action}")
                yield ctx.splice(s, before(ctx, s, *rows), delta=plus - 0.1 * place, note=f"{rows[0]} {action}")


def _around(s: Stmt) -> Iterator[tuple[Stmt, float]]:
    """A statement and its owners, inside out, each with how much less likely it is; none beyond the function."""
    at: Stmt | None = s
    for place in range(_REACH + 1):
        if at is None or isinstance(at.node, (cst.FunctionDef, cst.ClassDef)):
            return
        yield at, 0.2 * place
        at = at.suite.owner
