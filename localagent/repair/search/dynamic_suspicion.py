"""Which lines a failure that moved on makes suspicious: those that ran before it and never ran in the snapshot.

The snapshot's coverage ends where it crashed. Of a candidate that got further only its failure is known, so what ran is
read from the text of the function that failed: what the line depends on more than what merely stands before it.
"""

import ast
from collections.abc import Iterator

from localagent.code.spans import Definition, Function, functions, last_line, lines_of
from localagent.repair.search.enclosing_function import parsed

AROUND = 0.7  # of the best suspicion: heads of the loops and conditions around the line
BINDING = 0.5  # statements that give the line's names their values
BEFORE = 0.3  # what else ran in the function


def reached(source: bytes, line: int, *, crashed: bool) -> dict[int, float]:
    """Shares of the best suspicion by line, for a failure at `line` (1-based); {} where no function holds it.

    Where nothing `crashed` there, the line only says which function: all of it ran.
    """
    tree = parsed(source)
    function = None if tree is None else _innermost(tree, line)
    if function is None:
        return {}
    shares: dict[int, float] = {}
    statements = list(_statements(function))
    around = [s for s in statements if _inside(s) and line in lines_of(s)]
    loops = [s for s in around if isinstance(s, ast.For | ast.AsyncFor | ast.While)]
    end = (last_line(loops[0]) if loops else line) if crashed else last_line(function)
    for s in statements:
        if s.lineno <= end:
            _raise(shares, s, BEFORE)
    if not crashed:
        return shares
    here = [s for s in statements if not _inside(s) and line in lines_of(s)]
    read = {
        n.id
        for s in here or around[-1:]
        for n in ast.walk(s)
        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)
    }
    for s in statements:
        if s.lineno <= end and not _inside(s) and read & set(_bound(s)):
            _raise(shares, s, BINDING)
    for s in around:
        _raise(shares, s, AROUND)
    return shares


def _innermost(tree: ast.Module, line: int) -> Function | None:
    holding = [f.node for f in functions(tree) if line in lines_of(f.node)]
    return max(holding, key=lambda n: n.lineno, default=None)


def _statements(function: ast.AST) -> Iterator[ast.stmt]:
    """Statements of a function, not of those that are defined in it."""
    for child in ast.iter_child_nodes(function):
        if isinstance(child, ast.stmt):
            yield child
        if not isinstance(child, Definition | ast.Lambda):
            yield from _statements(child)


def _bound(s: ast.stmt) -> Iterator[str]:
    for n in ast.walk(s):
        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store):
            yield n.id


def _raise(shares: dict[int, float], s: ast.stmt, share: float) -> None:
    """Lines of a statement, of one with blocks its head."""
    inside = _inside(s)
    last = max(s.lineno, inside - 1) if inside else last_line(s)
    for k in range(s.lineno, last + 1):
        shares[k] = max(shares.get(k, 0.0), share)


def _inside(s: ast.stmt) -> int:
    """The line where the first block of a statement begins, 0 for one without blocks."""
    if isinstance(s, ast.Match):
        return s.cases[0].pattern.lineno
    body: list[ast.stmt] = getattr(s, "body", [])
    return body[0].lineno if body else 0
