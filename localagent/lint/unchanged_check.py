"""Proof that a repair changed nothing else: both trees are equal but for the elements that hold the cuts."""

import ast
from collections.abc import Iterable, Sequence
from typing import Any

from localagent.lint.file_view import FileView
from localagent.lint.lint_rule import Cut


def same_outside(before: FileView, after: FileView, repairs: Sequence[tuple[ast.AST, Sequence[Cut]]]) -> bool:
    """Whether the trees differ inside the anchors only. An anchor whose place moved gives way to what is around."""
    cuts = sorted(cut for _, own in repairs for cut in own)
    places = _nodes_by_span(after)
    marked: dict[ast.AST, ast.AST] = {}
    for anchor, _ in repairs:
        pair = _pair(before, anchor, cuts, places)
        if pair is None:
            return False
        marked[pair[0]] = pair[1]
    return _equal(before.tree, after.tree, marked)


def _nodes_by_span(view: FileView) -> dict[tuple[int, int, bool], ast.AST]:
    """The outermost statement and expression at each span."""
    found: dict[tuple[int, int, bool], ast.AST] = {}
    for node in view.walk.nodes:
        if isinstance(node, ast.expr | ast.stmt) and node not in view.walk.quoted:
            found.setdefault((view.start(node), view.end(node), isinstance(node, ast.stmt)), node)
    return found


def _pair(
    before: FileView, node: ast.AST, cuts: Iterable[Cut], places: dict[tuple[int, int, bool], ast.AST]
) -> tuple[ast.AST, ast.AST] | None:
    """An anchor and what stands at its place afterwards; None where only the whole module does."""
    for element in (node, *before.parents(node)):
        if not isinstance(element, ast.expr | ast.stmt):
            continue
        start, end = before.start(element), before.end(element)
        first = start + sum(len(c[2].encode()) - (c[1] - c[0]) for c in cuts if c[0] < start)
        last = end + sum(len(c[2].encode()) - (c[1] - c[0]) for c in cuts if c[1] <= end)
        other = places.get((first, last, isinstance(element, ast.stmt)))
        if other is not None:
            return element, other
    return None


def _equal(one: ast.AST, two: ast.AST, marked: dict[ast.AST, ast.AST]) -> bool:
    """The classes decide, exactly: nothing of another class is equal. Plain values count as they are written."""
    stack: list[tuple[Any, Any]] = [(one, two)]
    while stack:
        a, b = stack.pop()
        if a is None or a is b:
            if a is not b:
                return False
            continue
        kind = a.__class__
        if kind is not b.__class__:
            if not isinstance(a, ast.AST) or marked.get(a) is not b:
                return False
            continue
        if kind is str:
            if a != b:
                return False
        elif kind is list:
            if len(a) != len(b):
                return False
            stack += zip(a, b, strict=True)
        elif isinstance(a, ast.AST):
            other = marked.get(a)
            if other is None:
                stack += [(getattr(a, name, None), getattr(b, name, None)) for name in a._fields]
            elif other is not b:
                return False
        elif repr(a) != repr(b):
            return False
    return True
