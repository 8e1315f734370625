"""Names of a test file that are made to stand for something else: the quietest way to have a test pass.

Judges what module and class bodies bind. Not seen: what other modules do to each other while they are imported.
"""

import ast
import builtins
from collections.abc import Iterable, Iterator

from localagent.code.names import ASSIGNING, bound_name, imports_of

_BUILTINS = frozenset(dir(builtins))


def bound(statements: Iterable[ast.stmt]) -> Iterator[tuple[str, ast.stmt]]:
    """Every name that statements bind, with the statement; `*` for what a star import may bring."""
    for statement in statements:
        for node in ast.walk(statement):
            if isinstance(node, ASSIGNING) and (name := bound_name(node)):
                yield name, statement


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
    mine = _brought(statement, name)
    return bool(mine) and mine <= {brought for s in before for brought in _brought(s, name)}


def _brought(statement: ast.stmt, name: str) -> set[tuple[bool, str]]:
    """What an import binds a name to; `from a import b` and `import a.b as b` may bring different things."""
    return {(bool(found.item), found.origin) for found in imports_of(statement) if found.bound == name}
