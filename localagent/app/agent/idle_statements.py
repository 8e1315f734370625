"""Statements that a change adds and that do nothing: a constant, `assert True`, `x = x`, a block that is never run.

Nobody asks for one. Left-over lines look like planted ones, and tests pass with either. By syntax alone: what a call
or an attribute does is not known, so these are never named.
"""

import ast
import operator
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from localagent.code.source_text import parse_or_none
from localagent.code.spans import Definition, all_blocks
from localagent.domain.paths import RepoPath

_COMPARES: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le,
    ast.Gt: operator.gt, ast.GtE: operator.ge, ast.Is: operator.eq, ast.IsNot: operator.ne,
}  # fmt: skip
_WORKS = (ast.Call, ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr, ast.Attribute, ast.Subscript, ast.BinOp)


def idle_statements(path: RepoPath, before: bytes, after: bytes) -> tuple[str, ...]:
    """`PATH:LINE: SOURCE` of each that did not stand before."""
    had = Counter(ast.dump(node) for node in [*_idle(before), *_docstrings(before)])
    found = []
    for node in _idle(after):
        had[ast.dump(node)] -= 1
        if had[ast.dump(node)] < 0:
            found.append(f"{path}:{node.lineno}: {ast.unparse(node).splitlines()[0]}")
    return tuple(found)


def _docstrings(source: bytes) -> Iterator[ast.stmt]:
    """Those that stood may come to stand behind a new first statement: clumsy, and nothing new."""
    tree = parse_or_none(source)
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, Definition | ast.Module) and node.body and ast.get_docstring(node) is not None:
            yield node.body[0]


def _idle(source: bytes) -> Iterator[ast.stmt]:
    tree = parse_or_none(source)
    nodes = list(ast.walk(tree)) if tree is not None else []
    tried = {id(s) for n in nodes if isinstance(n, ast.Try | ast.With) for s in n.body}  # what it raises may be awaited
    for block in (block for node in nodes for block in all_blocks(node)):
        for at, statement in enumerate(block):
            if id(statement) not in tried and _does_nothing(statement, block[at - 1] if at else None, len(block)):
                yield statement


def _does_nothing(node: ast.stmt, last: ast.stmt | None, count: int) -> bool:
    """Whether a statement of a block of `count`, after the `last` one, has no effect."""
    match node:
        case ast.Expr(value=ast.Constant(value=str())):  # a docstring, or what describes the field above it
            return last is not None and not isinstance(last, ast.Assign | ast.AnnAssign)
        case ast.Expr(value=ast.Constant(value=value)):
            return value is not ...
        case ast.Expr(value=value):
            return not _works(value)
        case ast.Assert(test=test):
            return _truth(test) is True
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Name(id=same)):
            return name == same
        case ast.Delete(targets=[ast.Name(id=name)]):
            return isinstance(last, ast.Assign) and any(isinstance(t, ast.Name) and t.id == name for t in last.targets)
        case ast.If(test=test) | ast.While(test=test):
            return not node.orelse and (_truth(test) is False or (not _works(test) and _is_empty(node.body)))
        case ast.For(iter=ast.Tuple(elts=[]) | ast.List(elts=[])):
            return True
        case ast.For(iter=values):
            return not node.orelse and not _works(values) and _is_empty(node.body)
        case ast.Pass():
            return count > 1 and not isinstance(last, ast.Expr)  # behind a docstring it is a habit
    return False


def _works(node: ast.expr) -> bool:
    return any(isinstance(n, _WORKS) for n in ast.walk(node))


def _is_empty(block: list[ast.stmt]) -> bool:
    return all(
        isinstance(s, ast.Pass) or (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant)) for s in block
    )


def _truth(test: ast.expr) -> bool | None:
    """What a condition made of constants alone comes to; None of any other."""
    match test:
        case ast.Constant(value=value):
            return bool(value)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            inner = _truth(operand)
            return None if inner is None else not inner
        case ast.Compare(left=ast.Constant(value=one), ops=[op], comparators=[ast.Constant(value=two)]):
            try:
                return bool(_COMPARES[type(op)](one, two)) if type(op) in _COMPARES else None
            except TypeError:
                return None
    return None
