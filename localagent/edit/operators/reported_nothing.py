"""Edits that None or an empty container suggests, where a crash tells of one: ask for it in a test, or leave before."""

import re
from collections.abc import Iterator
from typing import NamedTuple

import libcst as cst

from localagent.edit.context import Change, Context
from localagent.edit.layout import before, inside_function, movable, step
from localagent.edit.operators.guards import returned_values
from localagent.edit.precedence import AND, OR, TERNARY, binding, fit
from localagent.edit.registry import operator
from localagent.edit.reports import missing_attribute
from localagent.edit.unit import Expr, Stmt

_TAKERS = frozenset({"pop", "popleft", "popitem"})
_NONE_IS_NO = re.compile(r"'NoneType' (?:object is not|is not) (\w+)|NoneType' has no len")
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
def reported_empty(ctx: Context) -> Iterator[Change]:
    """Something was taken from an empty container: the loop, branch or a guard before the taking asks for it."""
    for failure in ctx.failing_with("IndexError", "KeyError", "ValueError"):
        lines = ctx.lines_of(failure)
        for expr in ctx.exprs:
            if expr.line not in lines:
                continue
            holder, told = _holder(ctx, expr)
            if holder and len(holder) <= _LONGEST and told and told in failure.message:
                yield from _asked(ctx, _Lack(expr, holder, (holder,), (f"not {holder}",)))
            elif _UNPACKED.search(failure.message) and _unpacked(expr):
                yield from _asked(ctx, _Lack(expr, expr.text, (expr.text,), (f"not {expr.text}",)))


@operator("reported-none", prior=1.0)
def reported_none(ctx: Context) -> Iterator[Change]:
    """Something was asked of None: the test, loop, branch or a guard before asks whether there is something."""
    for failure in ctx.failing_with("AttributeError", "TypeError"):
        found = missing_attribute(failure)
        name = found[1] if found and found[0] == "NoneType" else ""
        refused = _NONE_IS_NO.search(failure.message)
        lines = ctx.lines_of(failure)
        for expr in ctx.exprs:
            if expr.line not in lines or not (name or refused):
                continue
            held = _none_held(ctx, expr, name)
            if held and "(" not in held and len(held) <= _LONGEST and held not in ("self", "cls"):
                lack = _Lack(expr, held, (f"{held} is not None", held), (f"{held} is None", f"not {held}"))
                yield from _asked(ctx, lack)
                called = isinstance(expr.parent, cst.Call) and expr.parent.func is expr.node
                if name and not expr.store and not expr.in_fstring and not called:
                    yield ctx.put(expr, f"{fit(expr.text, expr.level, OR)} if {held} else None", TERNARY, -0.4)


def _holder(ctx: Context, expr: Expr) -> tuple[str, str]:
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


def _none_held(ctx: Context, expr: Expr, name: str) -> str:
    """What may have been None in an expression: the receiver of the attribute that was missing, or what was refused."""
    node = expr.node
    if name:
        return ctx.unit.code(node.value) if isinstance(node, cst.Attribute) and node.attr.value == name else ""
    if isinstance(node, cst.Subscript):
        return ctx.unit.code(node.value)
    iterated = isinstance(expr.parent, (cst.For, cst.CompFor)) and expr.parent.iter is node
    measured = isinstance(expr.parent, cst.Arg) and isinstance(node, (cst.Name, cst.Attribute))
    return expr.text if iterated or measured else ""


def _asked(ctx: Context, lack: _Lack) -> Iterator[Change]:
    """The tests around a place ask for what it lacks, or a guard before it leaves."""
    inner = step(ctx)
    s = lack.at.statement
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
