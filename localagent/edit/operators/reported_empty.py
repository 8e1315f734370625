"""Edits that taking from an empty container suggests: the loop or the branch asks first whether something is left."""

from collections.abc import Iterator

import libcst as cst

from localagent.edit.context import Change, Context
from localagent.edit.layout import before, inside_function, movable, step
from localagent.edit.operators.guards import returned_values
from localagent.edit.precedence import AND, binding, fit
from localagent.edit.registry import operator
from localagent.edit.unit import Stmt

_TAKERS = frozenset({"pop", "popleft", "popitem"})
_REACH = 3


@operator("reported-empty", prior=1.0)
def reported_empty(ctx: Context) -> Iterator[Change]:
    """Something was taken from an empty container: the loop, branch or a guard before the taking asks for it."""
    inner = step(ctx)
    for failure in ctx.failing_with("IndexError", "KeyError"):
        lines = ctx.lines_of(failure)
        for expr, node in ctx.of(cst.Call):
            holder, told = _holder(ctx, node)
            if not holder or expr.line not in lines or told not in failure.message:
                continue
            for s, away in _around(expr.statement):
                test = s.node.test if isinstance(s.node, (cst.If, cst.While)) else None
                if test is None:
                    continue
                span = ctx.unit.outer(test)
                old = ctx.unit.slice(*span)
                if old in ("True", "1"):
                    yield ctx.splice(s, (*span, holder), delta=0.5 - away, note=f"{old} -> {holder}")
                    continue
                level = binding(test)
                for text, plus in ((f"{holder} and {fit(old, level, AND + 1)}", 0.2), (holder, -0.2)):
                    yield ctx.splice(s, (*span, text), delta=plus - away, note=f"{old} -> {text}")
            s = expr.statement
            if movable(s) and inside_function(ctx, s):
                actions = [("break", 0.0), ("continue", -0.4)] if s.in_loop else []
                for value, plus in returned_values(ctx, s)[:5]:
                    actions.append(("return" if value == "None" else f"return {value}", plus - 0.3))
                for action, plus in actions:
                    rows = (f"if not {holder}:", f"{inner}{action}")
                    yield ctx.splice(s, before(ctx, s, *rows), delta=plus, note=f"{rows[0]} {action}")


def _holder(ctx: Context, call: cst.Call) -> tuple[str, str]:
    """What a call takes from (`x.pop()`, `heappop(x)`) and a word of the error when it is empty; "" for no taking."""
    func = call.func
    if isinstance(func, cst.Attribute) and func.attr.value in _TAKERS:
        return ctx.unit.code(func.value), "empty"
    name = func.attr.value if isinstance(func, cst.Attribute) else func.value if isinstance(func, cst.Name) else ""
    return ctx.unit.code(call.args[0].value) if name == "heappop" and call.args else "", "out of range"


def _around(s: Stmt) -> Iterator[tuple[Stmt, float]]:
    """A statement's owners, inside out, each with how much less likely it is; the statement itself first."""
    at: Stmt | None = s
    for place in range(_REACH + 1):
        if at is None or isinstance(at.node, (cst.FunctionDef, cst.ClassDef)):
            return
        yield at, 0.2 * place
        at = at.suite.owner
