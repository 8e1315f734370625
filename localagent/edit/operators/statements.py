"""Whole statements: delete, swap, move, copy."""

from collections.abc import Iterator

import libcst as cst

from localagent.domain.edit import EditEffect
from localagent.edit.layout import (
    after,
    before,
    body_statements,
    inside_function,
    is_docstring,
    movable,
    reindented,
    removed,
    text_of,
)
from localagent.edit.operator_context import Change, OperatorContext
from localagent.edit.operator_registry import operator
from localagent.edit.operators.unfilled_results import stale, unfilled
from localagent.edit.unit import Stmt
from localagent.text.visible_text import shortened

_BEGUN = 1.9  # what goes on with something that the unit begins, reads and never fills or changes
_DEFINITIONS = (cst.FunctionDef, cst.ClassDef, cst.Import, cst.ImportFrom)


def _first_line(ctx: OperatorContext, s: Stmt) -> str:
    return shortened(" ".join(text_of(ctx, s).split()), 50)


@operator("statement-delete", prior=-0.3, effects={EditEffect.DELETES})
def statement_delete(ctx: OperatorContext) -> Iterator[Change]:
    """A statement is deleted (`pass` where a block would be empty)."""
    for s in ctx.statements:
        if is_docstring(s) or isinstance(s.node, (cst.Pass, *_DEFINITIONS)) or (s.suite.owner is None and s.compound):
            continue
        size = -0.25 * min(s.end_line - s.line, 8)
        if s.is_elif:
            owner = s.suite.owner
            previous = owner.suites[0].statements[-1] if owner and owner.suites[0].statements else None
            if previous is not None and not s.suites[-1].statements:
                yield ctx.splice(s, (previous.eol, s.eol, ""), delta=size - 0.3, note="elif branch deleted")
            continue
        if s.suite.inline and len(s.suite.statements) > 1:
            continue
        yield ctx.splice(s, removed(s), delta=size, note=f"delete {_first_line(ctx, s)}")


@operator("statement-swap", prior=-0.4)
def statement_swap(ctx: OperatorContext) -> Iterator[Change]:
    """Two statements that follow each other change places."""
    for s in body_statements(ctx):
        if s.index + 1 < len(s.suite.statements):
            other = s.suite.statements[s.index + 1]
            if not movable(other) or other.line_start < s.line_end:
                continue
            a, b = text_of(ctx, s), text_of(ctx, other)
            size = -0.2 * min(other.end_line - s.line, 8)
            yield ctx.splice(
                s,
                (s.line_start, s.eol, b),
                (other.line_start, other.eol, a),
                delta=size,
                note="swap with the next statement",
            )


@operator("statement-move", prior=-1.3)
def statement_move(ctx: OperatorContext) -> Iterator[Change]:
    """A statement moves elsewhere within its block, out of its block, or to the end or start of a neighbouring one."""
    for s in body_statements(ctx):
        for target, where in _destinations(s):
            text = reindented(ctx, s, target.indent)
            if text is None:
                continue
            size = -0.15 * min(s.end_line - s.line, 8) - 0.05 * min(abs(target.line - s.line), 12)
            if where == "after":
                splice = (target.eol, target.eol, ctx.unit.newline + text)
            else:
                splice = (target.line_start, target.line_start, text + ctx.unit.newline)
            yield ctx.splice(s, removed(s), splice, delta=size, note=f"move {where} line {target.line}")


def _destinations(s: Stmt) -> Iterator[tuple[Stmt, str]]:
    for other in s.suite.statements:
        if not movable(other) or other is s:
            continue
        if other.index < s.index:
            yield other, "before"
        elif other.index > s.index:
            yield other, "after"
        if abs(other.index - s.index) == 1:
            for suite in other.suites:
                if suite.statements and movable(suite.statements[0]):
                    yield suite.statements[0], "before"
                    yield suite.statements[-1], "after"
    owner = s.suite.owner
    while owner is not None and isinstance(owner.node, (cst.If, cst.For, cst.While, cst.Try, cst.With)):
        for suite in owner.suites:
            if suite is not s.suite and suite.statements and movable(suite.statements[0]):
                yield suite.statements[0], "before"
                yield suite.statements[-1], "after"
        if movable(owner):
            yield owner, "before"
            yield owner, "after"
        owner = owner.suite.owner


@operator("statement-copy", prior=-2.4)
def statement_copy(ctx: OperatorContext) -> Iterator[Change]:
    """A short statement of the function is repeated before or after another one."""
    offers: dict[str, Stmt] = {}
    for s in ctx.unit.statements:
        short = s.end_line - s.line <= 1 and movable(s) and not is_docstring(s)
        if short and not isinstance(s.node, (cst.Pass, *_DEFINITIONS)) and inside_function(ctx, s):
            offers.setdefault(text_of(ctx, s).strip(), s)
    for s in body_statements(ctx):
        if not inside_function(ctx, s):
            continue
        near = sorted(offers.values(), key=lambda o: abs(o.line - s.line))[:40]
        for other in near:
            if isinstance(other.node, (cst.Break, cst.Continue)) and not s.in_loop:
                continue
            text = reindented(ctx, other, s.indent)
            if text is None:
                continue
            delta = -0.02 * min(abs(other.line - s.line), 30)
            plain = text[len(s.indent) :]
            yield ctx.splice(s, before(ctx, s, plain), delta=delta, note=f"before: {shortened(plain, 50)}")
            if not isinstance(s.node, (cst.Return, cst.Raise, cst.Break, cst.Continue)):
                yield ctx.splice(s, after(ctx, s, plain), delta=delta, note=f"after: {shortened(plain, 50)}")


@operator("statement-replace", prior=-1.9)
def statement_replace(ctx: OperatorContext) -> Iterator[Change]:
    """A simple statement becomes another simple statement of the function."""
    offers: dict[str, Stmt] = {}
    for s in ctx.unit.statements:
        if not s.compound and s.line == s.end_line and not is_docstring(s) and not isinstance(s.node, _DEFINITIONS):
            offers.setdefault(ctx.unit.slice(s.start, s.end), s)
    for s in ctx.statements:
        if s.compound or is_docstring(s) or isinstance(s.node, _DEFINITIONS):
            continue
        for text, other in sorted(offers.items(), key=lambda o: abs(o[1].line - s.line))[:30]:
            if isinstance(other.node, (cst.Break, cst.Continue)) and not s.in_loop:
                continue
            same = 0.4 if type(other.node) is type(s.node) else 0.0
            delta = same - 0.02 * min(abs(other.line - s.line), 30)
            yield ctx.splice(s, (s.start, s.end, text), delta=delta, note=f"-> {shortened(text, 50)}")


@operator("call-statement", prior=-2.6)
def call_statement(ctx: OperatorContext) -> Iterator[Change]:
    """A usual mutation of a name in scope is inserted (`seen.add(x)`, `i += 1`); names never changed first."""
    empty, still = unfilled(ctx), stale(ctx)
    for s in body_statements(ctx):
        if not inside_function(ctx, s):
            continue
        seen = {n: line for n, line in ctx.visible(s).items() if n not in ("self", "cls")}
        names = sorted(seen, key=lambda n: abs(seen[n] - s.line))[:8]
        texts: list[str] = []
        for base in names:
            kind = ctx.names.kinds.get(base, "")
            if kind == "set":
                texts += [f"{base}.add({x})" for x in names if x != base]
            elif kind in ("list", "deque"):
                texts += [f"{base}.append({x})" for x in names if x != base]
                texts += [f"{base}.pop()", f"{base}.sort()", f"{base}.reverse()"]
            elif kind == "int":
                texts += [f"{base} += 1", f"{base} -= 1", f"{base} = 0"]
        texts += [f"{a} = {b}" for a in names for b in names if a != b and ctx.names.kinds.get(a) != "func"]
        for place, text in enumerate(texts[:70]):
            base, _, call = text.partition(".")
            fills = _BEGUN if base in empty and call.startswith(("append(", "add(")) else 0.0
            moves = _BEGUN if s.in_loop and text.partition(" = ")[0] in still else 0.0
            delta = max(fills, moves) - 0.01 * place
            yield ctx.splice(s, before(ctx, s, text), delta=delta, note=f"before: {text}")
            if not isinstance(s.node, (cst.Return, cst.Raise, cst.Break, cst.Continue)):
                yield ctx.splice(s, after(ctx, s, text), delta=delta, note=f"after: {text}")
