"""Code that was put out of use: inside a text nobody reads, or behind a number sign."""

import ast
import re
import textwrap
from collections.abc import Iterator

import libcst as cst

from localagent.code.source_text import parse_or_none
from localagent.edit.layout import is_docstring, movable
from localagent.edit.operator_context import Change, OperatorContext
from localagent.edit.operator_registry import operator

_COMMENT = re.compile(r"([ \t]*)#+ ?(.*)")
_MAX_RUN = 12


def _is_code(text: str) -> bool:
    """Whether a text reads as statements, not as prose."""
    tree = parse_or_none(textwrap.dedent(text))
    if tree is None or not tree.body:
        return False
    return all(not isinstance(s, ast.Expr) or isinstance(s.value, (ast.Call, ast.Yield, ast.Await)) for s in tree.body)


def _at(text: str, indent: str, newline: str) -> str:
    rows = textwrap.dedent(text).strip("\r\n").splitlines()
    return newline.join(indent + row if row.strip() else "" for row in rows)


@operator("text-to-code", prior=0.2, deep=True)
def text_to_code(ctx: OperatorContext) -> Iterator[Change]:
    """A string statement that contains code becomes that code."""
    for s in ctx.statements:
        if not is_docstring(s) or not movable(s) or not isinstance(s.node, cst.Expr):
            continue
        node = s.node.value
        if not isinstance(node, cst.SimpleString) or not isinstance(node.evaluated_value, str):
            continue
        inner = node.raw_value
        first, _, rest = inner.partition("\n")
        for text in dict.fromkeys((s.indent + inner, f"{textwrap.dedent(first)}\n{textwrap.dedent(rest)}")):
            if _is_code(text):
                new = _at(text, s.indent, ctx.unit.newline)
                yield ctx.splice(s, (s.line_start, s.eol, new), note="the text is code again")
                break


@operator("comment-to-code", prior=-0.4, deep=True)
def comment_to_code(ctx: OperatorContext) -> Iterator[Change]:
    """A comment that contains code becomes that code, alone or with neighbouring comments."""
    texts = [(e.start, e.end) for e in ctx.unit.exprs if isinstance(e.node, (cst.SimpleString, cst.FormattedString))]
    rows: list[tuple[int, int, str, str]] = []
    at = 0
    runs: list[list[tuple[int, int, str, str]]] = []
    for row in ctx.unit.text.decode("utf-8").splitlines(keepends=True):
        size = len(row.encode("utf-8"))
        body = row.rstrip("\r\n")
        found = _COMMENT.fullmatch(body)
        if found and not any(a <= at < b for a, b in texts):
            rows.append((at, at + len(body.encode("utf-8")), found.group(1), found.group(2)))
        elif rows:
            runs.append(rows)
            rows = []
        at += size
    for run in [*runs, rows]:
        for first in range(min(len(run), _MAX_RUN)):
            for end in range(len(run), first, -1):
                part = run[first:end]
                text = "\n".join(r[3] for r in part)
                line = ctx.unit.line(part[0][0])
                last = ctx.unit.line(part[-1][0])
                near = ctx.lines is None or any(line - 1 <= n <= last + 1 for n in ctx.lines)
                if not near or not _is_code(text):
                    continue
                indent = part[0][2]
                new = _at(text, indent, ctx.unit.newline)
                splice = (part[0][0], part[-1][1], new)
                whole = 0.3 if len(part) == len(run) else -0.2
                yield Change((splice,), whole, line, last, "the comment is code again")
