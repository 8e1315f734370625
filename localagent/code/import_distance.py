"""How far each Python file of a repository is from some changed ones, in imports: 0 themselves, 1 what imports them.

By names in `import` statements alone, wherever in a file they stand, and pytest's rule that a test file runs with every
conftest.py above it. Limitations: modules imported by a name that is made at run time, through an installed copy, or by
an entry point are not seen; a namespace package may be found under names that it does not have. Enough for an order.
"""

import ast
from collections import defaultdict, deque
from collections.abc import Collection, Iterator, Mapping

from localagent.code.source_text import parse_or_none
from localagent.domain.paths import RepoPath

MOST_BYTES = 32 << 20  # of all sources that are parsed; the imports of the others are unknown

_Name = tuple[str, ...]


def import_distances(changed: Collection[RepoPath], sources: Mapping[RepoPath, bytes]) -> dict[RepoPath, int]:
    """How many imports lie between a file and the nearest changed one; files that reach none are left out."""
    importers = _importers(sources)
    found = dict.fromkeys(changed, 0)
    queue = deque(sorted(found))
    while queue:
        path = queue.popleft()
        for importer in importers.get(path, ()):
            if importer not in found:
                found[importer] = found[path] + 1
                queue.append(importer)
    return found


def _importers(sources: Mapping[RepoPath, bytes]) -> Mapping[RepoPath, list[RepoPath]]:
    """By file: the files that import it, in order of their paths."""
    modules = _modules(sources)
    found: defaultdict[RepoPath, list[RepoPath]] = defaultdict(list)
    left = MOST_BYTES
    for path in sorted(sources):
        source = sources[path]
        left -= len(source)
        named = _imported(source, path) if left >= 0 else ()
        conftests = _conftests_above(path, sources)
        reached = {other for name in named for other in _reached(name, modules)}
        for other in sorted({*reached, *conftests} - {path}):
            found[other].append(path)
    return found


def _modules(sources: Collection[RepoPath]) -> Mapping[_Name, list[RepoPath]]:
    """Files by the dotted names that they may have: from the root, and from each folder above that is no package."""
    found: defaultdict[_Name, list[RepoPath]] = defaultdict(list)
    packages = {path.parts[:-1] for path in sources if path.name == "__init__.py"}
    for path in sorted(sources):
        name = (*path.parts[:-1], path.name.removesuffix(".py"))
        name = name[:-1] if name[-1] == "__init__" else name
        for top in range(len(name)):
            if not top or name[:top] not in packages:
                found[name[top:]].append(path)
    return found


def _reached(name: _Name, modules: Mapping[_Name, list[RepoPath]]) -> Iterator[RepoPath]:
    """What importing a dotted name runs: each package on the way, and the module itself."""
    for end in range(1, len(name) + 1):
        yield from modules.get(name[:end], ())


def _conftests_above(path: RepoPath, sources: Collection[RepoPath]) -> Iterator[RepoPath]:
    folders = path.parts[:-1]
    for depth in range(len(folders) + 1):
        conftest = RepoPath("/".join((*folders[:depth], "conftest.py")))
        if conftest in sources:
            yield conftest


def _imported(source: bytes, path: RepoPath) -> Iterator[_Name]:
    """Dotted names that a file imports; relative ones as from the repository's root, which `_modules` knows as well."""
    tree = parse_or_none(source)
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.Import):
            yield from (tuple(alias.name.split(".")) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = _base(node, path)
            yield from ((*base, alias.name) for alias in node.names)


def _base(node: ast.ImportFrom, path: RepoPath) -> _Name:
    named = tuple(node.module.split(".")) if node.module else ()
    if not node.level:
        return named
    folders = path.parts[:-1]
    above = folders[: max(0, len(folders) - (node.level - 1))]
    return (*above, *named)
