"""Ingredients from outside the function: how the rest of the file, and files nearby, do the same thing."""

import ast
from collections.abc import Iterator

import libcst as cst

from localagent.domain.edit import EditEffect
from localagent.edit.layout import after, before, body_statements, inside_function
from localagent.edit.operator_context import Change, OperatorContext
from localagent.edit.operator_registry import operator
from localagent.edit.operators.calls import callee_name
from localagent.edit.operators.ingredients import replaceable
from localagent.edit.operators.logic import is_test
from localagent.edit.operators.variables import BUILTINS, likeness, names_for
from localagent.edit.precedence import ATOM, LAMBDA
from localagent.text.visible_text import shortened

_PER_PLACE = 14


def _names_of(text: str) -> set[str]:
    return {n.id for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}


class _Known:
    """Texts of the file whose free names all exist at a statement."""

    def __init__(self, ctx: OperatorContext) -> None:
        self.ctx = ctx
        self._names: dict[str, set[str]] = {}

    def fits(self, text: str, scope: dict[str, float]) -> bool:
        names = self._names.get(text)
        if names is None:
            names = self._names[text] = _names_of(text)
        imported = self.ctx.facts.imports
        return all(n in scope or n in BUILTINS or n in imported or n in self.ctx.facts.module_names for n in names)


@operator("sibling-call", prior=-1.8, effects={EditEffect.REUSES_CALL, EditEffect.INVENTS})
def sibling_call(ctx: OperatorContext) -> Iterator[Change]:
    """A call becomes another call of the file: those of the same function first, then similar ones."""
    known = _Known(ctx)
    for expr, node in ctx.of(cst.Call):
        name, scope = callee_name(node), names_for(ctx, expr.statement)
        offers: list[tuple[float, str]] = []
        for text, lines in ctx.facts.calls.items():
            if text == expr.text:
                continue
            same = 1.0 if f"{name}(" in text else 0.0
            near = -0.002 * min(300, *(abs(x - expr.line) for x in lines))
            offers.append((same + near, text))
        for score, text in sorted(offers, reverse=True)[: 4 * _PER_PLACE]:
            if known.fits(text, scope):
                yield ctx.put(expr, text, ATOM, score - 0.6 + 0.4 * likeness(expr.text, text))


@operator("sibling-condition", prior=-1.8, effects={EditEffect.CHANGES_CONDITION})
def sibling_condition(ctx: OperatorContext) -> Iterator[Change]:
    """A test becomes one of the file's other tests."""
    known = _Known(ctx)
    for expr in ctx.exprs:
        if not is_test(expr):
            continue
        scope = names_for(ctx, expr.statement)
        offers = [
            (0.8 * likeness(expr.text, text) - 0.002 * min(300, *(abs(x - expr.line) for x in lines)), text)
            for text, lines in ctx.facts.conditions.items()
        ]
        for score, text in sorted(offers, reverse=True)[:_PER_PLACE]:
            if known.fits(text, scope):
                yield ctx.put(expr, text, LAMBDA, score - 0.4)


@operator("sibling-name", prior=-2.2)
def sibling_name(ctx: OperatorContext) -> Iterator[Change]:
    """An expression becomes a constant, import or other module-level name of the file."""
    names = [n for n in ctx.facts.module_names if n.isupper() or n.startswith("_")][:10]
    for expr in ctx.exprs:
        if (
            replaceable(expr)
            and isinstance(expr.node, (cst.Name, cst.Integer, cst.SimpleString, cst.Attribute))
            and not expr.in_fstring
        ):
            for name in names:
                if name != expr.text:
                    yield ctx.put(expr, name, ATOM, 0.5 * likeness(expr.text, name) - 0.3)


@operator("sibling-statement", prior=-2.6)
def sibling_statement(ctx: OperatorContext) -> Iterator[Change]:
    """A simple statement of another function of the file is put before or after a statement, or in its place."""
    known = _Known(ctx)
    first, last = ctx.span.first_line, ctx.span.last_line
    rows = {
        text: lines
        for text, lines in ctx.facts.statements.items()
        if len(text) < 100 and "\n" not in text and not all(first <= x <= last for x in lines)
    }
    for s in body_statements(ctx):
        if not inside_function(ctx, s):
            continue
        scope = names_for(ctx, s)
        old = ctx.unit.slice(s.start, s.end)
        ranked = sorted(
            rows, key=lambda t: (-likeness(t, old) if not s.compound else 0.0, min(abs(x - s.line) for x in rows[t]))
        )
        for place, text in enumerate([t for t in ranked[:60] if known.fits(t, scope)][:_PER_PLACE]):
            delta = -0.05 * place
            if not s.compound:
                yield ctx.splice(s, (s.start, s.end, text), delta=delta + 0.3, note=f"-> {shortened(text, 50)}")
            yield ctx.splice(s, before(ctx, s, text), delta=delta - 0.3, note=f"before: {shortened(text, 50)}")
            if not isinstance(s.node, (cst.Return, cst.Raise, cst.Break, cst.Continue)):
                yield ctx.splice(s, after(ctx, s, text), delta=delta - 0.3, note=f"after: {shortened(text, 50)}")
