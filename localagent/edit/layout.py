"""Where statements may be put, and how their text looks there: indentation, newlines, blocks."""

from collections.abc import Iterator

import libcst as cst

from localagent.edit.operator_context import OperatorContext, Splice3
from localagent.edit.unit import Stmt


def movable(s: Stmt) -> bool:
    """Whether a statement stands on lines of its own in a block of its own."""
    return s.alone and not s.is_elif and not s.suite.inline


def step(ctx: OperatorContext) -> str:
    """One level of indentation as this unit writes it."""
    for s in ctx.unit.statements:
        for suite in s.suites:
            if suite.statements and not suite.inline and suite.slot != "elif":
                inner = suite.statements[0].indent
                if inner.startswith(s.indent) and len(inner) > len(s.indent):
                    return inner[len(s.indent) :]
    return "    "


def text_of(ctx: OperatorContext, s: Stmt) -> str:
    """A statement's lines without the newline at the end."""
    return ctx.unit.slice(s.line_start, s.eol)


def reindented(ctx: OperatorContext, s: Stmt, indent: str) -> str | None:
    """A statement's lines at another indentation; None if a text inside it would change."""
    lines = text_of(ctx, s).split(ctx.unit.newline)
    if s.indent == indent:
        return ctx.unit.newline.join(lines)
    if len(lines) > 1 and any(q in "".join(lines) for q in ('"""', "'''")):
        return None
    out = []
    for line in lines:
        if line.strip() and not line.startswith(s.indent):
            return None
        out.append(indent + line[len(s.indent) :] if line.strip() else line)
    return ctx.unit.newline.join(out)


def before(ctx: OperatorContext, s: Stmt, *lines: str) -> Splice3:
    """Insert lines (given without indentation) before a statement."""
    return s.line_start, s.line_start, "".join(s.indent + line + ctx.unit.newline for line in lines)


def after(ctx: OperatorContext, s: Stmt, *lines: str) -> Splice3:
    """Insert lines (given without indentation) after a statement."""
    return s.eol, s.eol, "".join(ctx.unit.newline + s.indent + line for line in lines)


def removed(s: Stmt) -> Splice3:
    """Take a statement away, leaving `pass` where it was the only one of its block."""
    if len(s.suite.statements) == 1 or not movable(s):
        return s.start, s.end, "pass"
    return s.line_start, s.line_end, ""


def is_docstring(s: Stmt) -> bool:
    """Whether a statement is a bare text."""
    return isinstance(s.node, cst.Expr) and isinstance(s.node.value, (cst.SimpleString, cst.ConcatenatedString))


def inside_function(ctx: OperatorContext, s: Stmt) -> bool:
    """Whether a statement lies in a function's body."""
    return ctx.function(s) is not None


def body_statements(ctx: OperatorContext) -> Iterator[Stmt]:
    """Active statements that may be moved, copied or guarded; never a unit's own definition."""
    for s in ctx.statements:
        if movable(s) and not is_docstring(s) and not (s.suite.owner is None and ctx.span.is_function):
            yield s
