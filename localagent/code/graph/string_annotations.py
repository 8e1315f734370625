"""Annotations that are written as strings: their trees, with the places that their names have in the file."""

import ast
from collections.abc import Iterator

from localagent.code.graph.fact_rows import FactRows
from localagent.code.names import last_name
from localagent.code.source_text import parse_or_none
from localagent.code.spans import last_line

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_ANNOTATED = frozenset((*_FUNCTIONS, ast.arg, ast.AnnAssign))
_LONGEST_ANNOTATION = 1_000


def annotations_in_strings(rows: FactRows) -> list[ast.AST]:
    """The nodes of all annotations that are strings, with parents and scopes as if they were written out."""
    added: list[ast.AST] = []
    for constant in _strings_in_annotations(rows):
        tree = _parsed(rows, constant)
        if tree is None:
            continue
        rows.written[constant] = tree
        scope = rows.walk.scope[constant]
        stack: list[tuple[ast.AST, ast.AST]] = [(tree, constant)]
        while stack:
            node, parent = stack.pop()
            added.append(node)
            rows.walk.parent[node] = parent
            rows.walk.scope[node] = scope
            stack += [(child, node) for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)]
    return added


def _strings_in_annotations(rows: FactRows) -> Iterator[ast.Constant]:
    for node in rows.walk.nodes:
        if node.__class__ not in _ANNOTATED:
            continue
        part = getattr(node, "annotation", None) or (node.returns if isinstance(node, _FUNCTIONS) else None)
        stack = [part] if isinstance(part, ast.expr) else []
        while stack:
            inner = stack.pop()
            if isinstance(inner, ast.Constant) and isinstance(inner.value, str):
                yield inner
            elif isinstance(inner, ast.Subscript):
                rows.annotating.add(inner)
                stack.append(inner.value)
                holds = last_name(inner.value)
                if holds == "Annotated" and isinstance(inner.slice, ast.Tuple):
                    stack.append(inner.slice.elts[0])
                elif holds != "Literal":
                    stack.append(inner.slice)
            else:
                stack += [child for child in ast.iter_child_nodes(inner) if isinstance(child, ast.expr)]


def _parsed(rows: FactRows, constant: ast.Constant) -> ast.expr | None:
    """An annotation's tree with the places that its names have in the file; None where it is no expression."""
    value = str(constant.value)
    margin = len(value) - len(value.lstrip())
    tree = parse_or_none(value[margin:]) if len(value) <= _LONGEST_ANNOTATION else None
    if tree is None or len(tree.body) != 1 or not isinstance(tree.body[0], ast.Expr):
        return None
    start = rows.text.offset(constant.lineno, constant.col_offset)
    quotes = rows.text.utf8[start : rows.text.offset(last_line(constant), constant.end_col_offset or 0)]
    written = quotes.find(value.encode("utf-8", "surrogatepass"))
    simple = written >= 0 and "\n" not in value
    for node in ast.walk(tree):
        if isinstance(node, ast.expr):
            shift = constant.col_offset + written + margin
            columns = (node.col_offset, node.end_col_offset or 0)
            ast.copy_location(node, constant)
            if simple:
                node.col_offset, node.end_col_offset = (column + shift for column in columns)
    return tree.body[0].value
