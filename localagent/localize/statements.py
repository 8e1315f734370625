"""Statement spans of a source file: the places that are ranked.

A simple statement is one place; a compound statement counts with its header lines only, its body's statements are
places of their own. Files that do not parse have no statements here; the caller falls back to lines.
"""

import ast
import warnings
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Statement:
    """Lines [line, end_line] (1-based, inclusive) of one statement and the qualified name of the function around it."""

    line: int
    end_line: int
    function: str
    function_line: int
    names: frozenset[str]


def parse_quietly(source: bytes) -> ast.Module | None:
    """The module's tree, or None when the source does not parse or nests too deeply for the parser."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ast.parse(source)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None


def statements_of(source: bytes) -> tuple[Statement, ...]:
    """All statements of a file in order of appearance; empty when it does not parse."""
    tree = parse_quietly(source)
    if tree is None:
        return ()
    found: list[Statement] = []
    _walk(tree.body, "", 0, found)
    return tuple(found)


def _walk(body: list[ast.stmt], function: str, function_line: int, found: list[Statement]) -> None:
    stack: list[tuple[ast.stmt, str, int]] = [(s, function, function_line) for s in reversed(body)]
    while stack:
        node, name, line = stack.pop()
        inner, inner_line = name, line
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            inner = f"{name}.{node.name}" if name else node.name
            inner_line = node.lineno
        children = _children(node)
        end = (node.end_lineno or node.lineno) if not children else max(node.lineno, children[0].lineno - 1)
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.append(
                Statement(
                    line=node.lineno,
                    end_line=end,
                    function=name,
                    function_line=line,
                    names=_names(node, bool(children)),
                )
            )
        stack.extend((c, inner, inner_line) for c in reversed(children))


def _children(node: ast.stmt) -> list[ast.stmt]:
    out: list[ast.stmt] = []
    for field in ("body", "orelse", "finalbody"):
        value = getattr(node, field, None)
        if isinstance(value, list):
            out.extend(c for c in value if isinstance(c, ast.stmt))
    for handler in getattr(node, "handlers", []):
        out.extend(handler.body)
    for case in getattr(node, "cases", []):
        out.extend(case.body)
    return sorted(out, key=lambda s: (s.lineno, s.col_offset))


def _names(node: ast.stmt, compound: bool) -> frozenset[str]:
    """Names and attributes a statement (its header, when compound) mentions: what it may call."""
    roots: list[ast.AST] = [node]
    if compound:
        roots = [c for c in ast.iter_child_nodes(node) if not isinstance(c, ast.stmt | ast.ExceptHandler)]
    return frozenset(
        n.id if isinstance(n, ast.Name) else n.attr
        for root in roots
        for n in ast.walk(root)
        if isinstance(n, ast.Name | ast.Attribute)
    )
