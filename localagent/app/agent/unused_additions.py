"""Names that a change adds to modules and that nothing uses: no code, no test, not the instruction speaks of them.

Left-over helpers and planted lines look alike: nobody asked for them, and no test would miss them. By words, not by
resolution: a name that stands anywhere else in the tree, also as a text, counts as used. Members of classes and what
tests define are not looked at.
"""

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from localagent.code.names import bound_name, imports_of
from localagent.code.source_text import parse_or_none
from localagent.domain.paths import RepoPath

_WORD = re.compile(rb"\w+")
_SKIPPED = re.compile(r"__\w+__|_|\*|pytest_\w+|test_\w+|Test\w*|main")
_BLOCKS = (ast.stmt, ast.ExceptHandler, ast.match_case)


def unused_additions(
    before: Mapping[RepoPath, bytes | None],
    after: Mapping[RepoPath, bytes],
    others: Iterable[bytes],
    instruction: str,
) -> tuple[str, ...]:
    """`PATH:LINE: NAME` of each. `after` are the changed sources, `others` everything else that may speak of them."""
    new: dict[str, str] = {}
    for path, text in after.items():
        known = {name for name, _ in _bound(before.get(path) or b"")}
        new |= {n: f"{path}:{line}: {n}" for n, line in _bound(text) if n not in known and not _SKIPPED.fullmatch(n)}
    asked = {*re.findall(r"\w+", instruction)}
    left = {name.encode(): where for name, where in new.items() if name not in asked}
    if not left:
        return ()
    seen = Counter[bytes]()
    for text in (*after.values(), *others):
        seen.update(word for word in _WORD.findall(text) if word in left)
    own = Counter[bytes]()
    for text in after.values():
        own.update(_in_own_statements(text))
    return tuple(where for name, where in left.items() if seen[name] <= max(1, own[name]))


def _in_own_statements(source: bytes) -> Iterator[bytes]:
    """The names that statements of a module set or delete, each time they stand in one that sets nothing else."""
    tree = parse_or_none(source)
    for node in tree.body if tree is not None else ():
        if isinstance(node, ast.Assign | ast.Delete | ast.AugAssign):
            targets = [node.target] if isinstance(node, ast.AugAssign) else node.targets
            roots = {n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name)}
            if len(roots) == 1:
                yield from (n.id.encode() for n in ast.walk(node) if isinstance(n, ast.Name) and n.id in roots)


def _bound(source: bytes) -> Iterator[tuple[str, int]]:
    """The names that the statements of a module bind, each with its line; conditional ones too."""
    tree = parse_or_none(source)
    waiting: list[ast.AST] = list(tree.body) if tree is not None else []
    while waiting:
        node = waiting.pop(0)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            if not node.decorator_list:  # a decorator may hand it on
                yield node.name, node.lineno
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                yield from ((n.id, n.lineno) for n in ast.walk(target) if isinstance(n, ast.Name) and bound_name(n))
        elif isinstance(node, ast.Import | ast.ImportFrom):
            yield from ((one.bound, node.lineno) for one in imports_of(node))
        else:
            waiting += [n for n in ast.iter_child_nodes(node) if isinstance(n, _BLOCKS)]
