"""What imports bind, and the dotted names that they use."""

import ast
import re

from localagent.code.graph.fact_rows import FactRows
from localagent.code.graph.facts import ExpressionKind, ImportContext, ImportFact, UseKind
from localagent.code.names import imports_of, last_name
from localagent.code.spans import last_line

_FROM = re.compile(rb"from(?:\s|\\\r?\n)*(?:\.(?:\s|\\\r?\n)*)*")


def imported(rows: FactRows, node: ast.Import | ast.ImportFrom) -> None:
    """The names that an import binds, with what they are."""
    scope = rows.walk.scope[node]
    context = _context(rows, node)
    if isinstance(node, ast.ImportFrom):
        _module_uses(rows, node)
    for alias, name in zip(node.names, imports_of(node), strict=True):
        at = rows.scope_of(node)
        rows.imports.append(ImportFact(name.module, name.item, name.bound, at, node.lineno, int(context)))
        if name.item == "*":
            continue
        offset = rows.text.offset(alias.lineno, alias.col_offset)
        if name.item:
            value = rows.row(ExpressionKind.ATTRIBUTE, rows.module(name.module), rows.name(name.item))
            rows.use_at(UseKind.IMPORT, offset, node, value)
        else:
            rows.name(name.module)
            _dotted_uses(rows, node, offset, name.module, "")
            value = rows.module(name.origin)
        target = rows.name_in(scope, name.bound)
        stop = rows.text.offset(last_line(alias), alias.end_col_offset or 0)  # type: ignore[arg-type]
        if b"as" in rows.text.utf8[offset:stop].split():
            rows.use_at_end(UseKind.WRITE, alias, name.bound, target)
        rows.bind(target, value, node.lineno)


def _module_uses(rows: FactRows, node: ast.ImportFrom) -> None:
    found = _FROM.match(rows.text.utf8, rows.text.offset(node.lineno, node.col_offset))
    if found is not None and node.module:
        _dotted_uses(rows, node, found.end(), node.module, "." * node.level)


def _dotted_uses(rows: FactRows, node: ast.stmt, offset: int, dotted: str, dots: str) -> None:
    """Uses of `a`, `a.b` and `a.b.c` of a dotted name that begins at an offset."""
    whole = dots
    for part in dotted.split("."):
        found = re.compile(whole_name(part)).search(rows.text.utf8, offset)
        if found is None:
            return
        whole += part
        rows.use_at(UseKind.IMPORT, found.start(), node, rows.module(whole))
        whole += "."
        offset = found.end()


def _context(rows: FactRows, node: ast.AST) -> ImportContext:
    around = rows.walk.parent.get(node)
    while around is not None and around not in rows.walk.own:
        if isinstance(around, ast.If):
            checking = last_name(around.test) == "TYPE_CHECKING"
            return ImportContext.TYPE_CHECKING if checking else ImportContext.CONDITIONAL
        if isinstance(around, ast.Try | ast.TryStar):
            return ImportContext.TRY
        around = rows.walk.parent.get(around)
    return ImportContext.PLAIN


def whole_name(name: str) -> bytes:
    """A pattern for a name that stands as a word of its own."""
    return rb"(?<![\w\x80-\xff])" + re.escape(name.encode()) + rb"(?![\w\x80-\xff])"
