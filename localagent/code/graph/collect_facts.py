"""Collects the facts of one Python file from its syntax tree: one walk for expressions, one for what is done with them.

Limitations: `exec`, names made at run time and comments that give types are not followed. Where Python 3.11 does not
tell the place of a name inside an f-string rightly, the use is there and its place is that of the string.
"""

import ast
from collections.abc import Callable
from operator import itemgetter
from typing import Any

from localagent.code.graph import definition_facts, import_facts, use_facts, value_facts
from localagent.code.graph.definition_facts import definition
from localagent.code.graph.expression_facts import EXPRESSIONS
from localagent.code.graph.fact_rows import FactRows
from localagent.code.graph.facts import Expression, ModuleFacts, Unreadable
from localagent.code.graph.string_annotations import annotations_in_strings
from localagent.code.source_text import parse_or_reason, read_source

_STATEMENTS: dict[type[ast.AST], Callable[[FactRows, Any], None]] = {
    ast.Name: use_facts.named,
    ast.Attribute: use_facts.attribute,
    ast.Call: use_facts.call,
    ast.Constant: use_facts.constant,
    ast.Subscript: use_facts.subscripted,
    ast.BinOp: use_facts.operated,
    ast.Compare: use_facts.compared,
    ast.FormattedValue: use_facts.formatted,
    ast.FunctionDef: definition_facts.defines,
    ast.AsyncFunctionDef: definition_facts.defines,
    ast.ClassDef: definition_facts.defines,
    ast.Lambda: definition_facts.lambdas,
    ast.Import: import_facts.imported,
    ast.ImportFrom: import_facts.imported,
    ast.Global: use_facts.declared,
    ast.Nonlocal: use_facts.declared,
    ast.Assign: value_facts.assigned,
    ast.NamedExpr: value_facts.assigned,
    ast.AnnAssign: value_facts.annotated,
    ast.AugAssign: value_facts.augmented,
    ast.For: value_facts.looped,
    ast.AsyncFor: value_facts.looped,
    ast.comprehension: value_facts.looped,
    ast.withitem: value_facts.entered,
    ast.ExceptHandler: value_facts.handler,
    ast.MatchAs: value_facts.captured,
    ast.MatchStar: value_facts.captured,
    ast.MatchMapping: value_facts.captured,
    ast.Return: value_facts.result,
    ast.Yield: value_facts.result,
    ast.YieldFrom: value_facts.result,
}


def collect_facts(source: bytes, tree: ast.Module | str | None = None) -> ModuleFacts | Unreadable:
    """The facts of a file's bytes, or why there are none. Never raises, whatever the bytes.

    `tree` is what `parse_or_reason` said of them, where that is known.
    """
    text = read_source(source)
    if text is None:
        return Unreadable(reason="its encoding is unknown, or does not fit its bytes")
    if tree is None:
        tree = parse_or_reason(source)
    if isinstance(tree, str):
        return Unreadable(reason=tree)
    try:
        return _facts(FactRows(tree, text))
    except (RecursionError, MemoryError):
        return Unreadable(reason="nested too deeply")


def _facts(rows: FactRows) -> ModuleFacts:
    nodes = [*rows.walk.nodes, *annotations_in_strings(rows)]
    for node in reversed(nodes):
        make = EXPRESSIONS.get(node.__class__)
        if make is not None:
            rows.value[node] = make(rows, node)
    for node in nodes:
        handle = _STATEMENTS.get(node.__class__)
        if handle is not None:
            handle(rows, node)
    rows.uses.sort(key=itemgetter(1, 2))  # line and column
    definitions = tuple(definition(rows, node) for node in rows.definition_index)
    return ModuleFacts(
        names=tuple(rows.names),
        scopes=tuple(rows.scope_rows()),
        expressions=tuple(Expression(*row) for row in rows.rows),
        definitions=definitions,
        bindings=tuple(rows.bindings),
        imports=tuple(rows.imports),
        uses=tuple(rows.uses),
        exports=None if rows.exports is None else tuple(rows.exports),
        export_sources=tuple(rows.export_sources),
    )
