"""What a change at import time matters to: lines that read what the changed statements bind.

A constant, a class attribute, a pattern, a default value runs while collecting, in no test's own lines; the tests that
a change of it may break are those that run the lines which read the name. Names are compared as text: a local variable
of the same name is a reader, too.
"""

import ast
import threading
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from localagent.code.names import imports_of
from localagent.code.source_text import parse_or_none
from localagent.code.spans import Definition, Function, first_line, head_end, last_line, lines_of
from localagent.domain.paths import RepoPath


@dataclass(frozen=True, kw_only=True, slots=True)
class _File:
    """A parsed file, and the stretches of lines that read each name."""

    tree: ast.Module
    readers: Mapping[str, Sequence[range]]


class Readers:
    """Asks one snapshot's files; each is parsed and gone through once."""

    def __init__(self) -> None:
        self._files: dict[RepoPath, _File | None] = {}
        self._one = threading.Lock()  # several candidates are checked at once

    def of(self, path: RepoPath, source: bytes, lines: range) -> frozenset[int]:
        """Lines (1-based) that read what the statements on `lines` bind.

        None for lines of a function's body, which run in tests or not at all, and in a file that does not parse.
        """
        with self._one:
            if path not in self._files:
                self._files[path] = _parsed(source)
            file = self._files[path]
        if file is None:
            return frozenset()
        try:
            names = set(_bound(file.tree, lines))
        except RecursionError:  # thousands of `elif`
            return frozenset()
        found = (stretch for name in names for stretch in file.readers.get(name, ()))
        return frozenset(n for stretch in found for n in stretch)


def _parsed(source: bytes) -> _File | None:
    tree = parse_or_none(source)
    if tree is None:
        return None
    readers: defaultdict[str, list[range]] = defaultdict(list)
    for node in ast.walk(tree):
        if isinstance(node, ast.Name | ast.Attribute) and not isinstance(node.ctx, ast.Load):
            continue
        match node:
            case (
                ast.Name(id=name)
                | ast.Attribute(attr=name)
                | ast.FunctionDef(name=name)
                | ast.AsyncFunctionDef(name=name)
            ):
                readers[name].append(lines_of(node))
            case _:
                continue
    return _File(tree=tree, readers=readers)


def _bound(node: ast.AST, lines: range) -> Iterator[str]:
    """Names bound by the innermost statements outside of functions' bodies that have one of these lines."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ExceptHandler | ast.match_case):
            yield from _bound(child, lines)
            continue
        if not isinstance(child, ast.stmt):
            continue
        first = first_line(child)
        if isinstance(child, Definition):
            if _meet(first, head_end(child), lines):
                yield child.name
            if isinstance(child, Function):
                continue
            first = head_end(child) + 1
        if _meet(first, last_line(child), lines):
            yield from _own_names(child)
            yield from _bound(child, lines)


def _meet(first: int, last: int, lines: range) -> bool:
    return first < lines.stop and last >= lines.start


def _own_names(statement: ast.stmt) -> Iterator[str]:
    match statement:
        case ast.Import() | ast.ImportFrom():
            yield from (name.bound for name in imports_of(statement))
        case ast.Assign() | ast.AnnAssign() | ast.AugAssign():
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            yield from (n.id for target in targets for n in ast.walk(target) if isinstance(n, ast.Name))
            yield from (n.attr for target in targets for n in ast.walk(target) if isinstance(n, ast.Attribute))
        case _:
            return
