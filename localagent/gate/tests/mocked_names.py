"""Names of a test file that are made to stand for something else: the quietest way to have a test pass.

Judges what module and class bodies bind. Not seen: what other modules do to each other while they are imported.
"""

import ast
import builtins
from collections.abc import Iterable, Iterator

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_BUILTINS = frozenset(dir(builtins))


def bound(statements: Iterable[ast.stmt]) -> Iterator[tuple[str, ast.stmt]]:
    """Every name that statements bind, with the statement; `*` for what a star import may bring."""
    for statement in statements:
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
                yield node.id, statement
            elif isinstance(node, ast.alias):
                yield node.asname or node.name.split(".", 1)[0], statement
            elif isinstance(node, _DEFINITIONS):
                yield node.name, statement


def shadowed(
    before: Iterable[ast.stmt], functions: Iterable[str], fresh: Iterable[ast.stmt], added: Iterable[str]
) -> Iterator[tuple[str, ast.stmt | None]]:
    """Names that stood for something and are bound anew, by fresh statements or by functions that were added.

    `functions` and `added` are names of functions before and of new ones. Builtins and assertions stand always.
    """
    before = list(before)
    again = {ast.dump(s) for s in before}
    known = {name for name, _ in bound(before)} | {name.rsplit(".", 1)[-1] for name in functions}
    for name, statement in bound(fresh):
        if ast.dump(statement) in again or _same_import(name, statement, before):
            continue
        if name in known or name in _BUILTINS or name.startswith("assert") or name == "*":
            yield name, statement
    for name in added:
        last = name.rsplit(".", 1)[-1]
        if last in {n for n, _ in bound(before)} or last in _BUILTINS or last.startswith("assert"):
            yield last, None


def _same_import(name: str, statement: ast.stmt, before: list[ast.stmt]) -> bool:
    """Whether an import brings what one brought before: `from a import b, c` that was `from a import b`."""
    mine = set(_brought(statement, name))
    return bool(mine) and mine <= {origin for s in before for origin in _brought(s, name)}


def _brought(statement: ast.stmt, name: str) -> Iterator[tuple[str, str, int]]:
    if isinstance(statement, ast.Import | ast.ImportFrom):
        for alias in statement.names:
            if (alias.asname or alias.name.split(".", 1)[0]) == name:
                module = statement.module or "" if isinstance(statement, ast.ImportFrom) else ""
                level = statement.level if isinstance(statement, ast.ImportFrom) else 0
                whole = alias.name if alias.asname or isinstance(statement, ast.ImportFrom) else name
                yield module, whole, level
