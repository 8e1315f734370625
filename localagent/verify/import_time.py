"""What a change at import time matters to: lines that read what the changed statements bind.

A constant, a class attribute, a pattern, a default value runs while collecting, in no test's own lines; the tests that
a change of it may break are those that run the lines which read the name. Names are compared as text: a local variable
of the same name is a reader, too.
"""

import ast
import threading
import warnings
from collections.abc import Iterator

from localagent.domain.paths import RepoPath

_Function = ast.FunctionDef | ast.AsyncFunctionDef


class Readers:
    """Asks one snapshot's files; each is parsed once, and asked once about the same lines."""

    def __init__(self) -> None:
        self._trees: dict[RepoPath, ast.Module | None] = {}
        self._known: dict[tuple[RepoPath, range], frozenset[int]] = {}
        self._one = threading.Lock()  # several candidates are checked at once

    def of(self, path: RepoPath, source: bytes, lines: range) -> frozenset[int]:
        """Lines (1-based) that read what the statements on `lines` bind; none in a file that does not parse."""
        with self._one:
            if (path, lines) not in self._known:
                self._known[path, lines] = self._found(path, source, lines)
            return self._known[path, lines]

    def _found(self, path: RepoPath, source: bytes, lines: range) -> frozenset[int]:
        if path not in self._trees:
            try:
                with warnings.catch_warnings(action="ignore"):
                    self._trees[path] = ast.parse(source)
            except (SyntaxError, ValueError, RecursionError, MemoryError):
                self._trees[path] = None
        tree = self._trees[path]
        if tree is None:
            return frozenset()
        names = frozenset(_bound(tree, lines))
        return frozenset(n for node in ast.walk(tree) for n in _reading(node, names))


def _reading(node: ast.AST, names: frozenset[str]) -> range:
    """The lines of a node that reads one of the names, or of a function that bears one."""
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in names:
        return range(node.lineno, node.lineno + 1)
    if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load) and node.attr in names:
        return range(node.lineno, (node.end_lineno or node.lineno) + 1)
    if isinstance(node, _Function) and node.name in names:
        return range(node.lineno, (node.end_lineno or node.lineno) + 1)
    return range(0)


def _bound(node: ast.AST, lines: range) -> Iterator[str]:
    """Names bound by the innermost statements outside functions that have one of these lines."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ExceptHandler | ast.match_case):
            yield from _bound(child, lines)
            continue
        if not isinstance(child, ast.stmt):
            continue
        decorators = child.decorator_list if isinstance(child, _Function | ast.ClassDef) else []
        first = min([child.lineno, *(d.lineno for d in decorators)])
        if first >= lines.stop or (child.end_lineno or first) < lines.start:
            continue
        inner = [] if isinstance(child, _Function) else list(_bound(child, lines))
        yield from inner or _own_names(child)


def _own_names(statement: ast.stmt) -> Iterator[str]:
    match statement:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            yield statement.name
        case ast.Import() | ast.ImportFrom():
            yield from ((alias.asname or alias.name).partition(".")[0] for alias in statement.names)
        case ast.Assign() | ast.AnnAssign() | ast.AugAssign():
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            yield from (n.id for target in targets for n in ast.walk(target) if isinstance(n, ast.Name))
            yield from (n.attr for target in targets for n in ast.walk(target) if isinstance(n, ast.Attribute))
        case _:
            return
