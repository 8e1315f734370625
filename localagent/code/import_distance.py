"""How far each Python file of a repository is from some changed ones, in imports: 0 themselves, 1 what imports them.

By names in `import` statements alone, wherever in a file they stand, and pytest's rule that a test file runs with every
conftest.py above it. Limitations: modules imported by a name that is made at run time, through an installed copy, or by
an entry point are not seen; a namespace package may be found under names that it does not have. Enough for an order.
"""

import ast
from collections import defaultdict, deque
from collections.abc import Collection, Iterator, Mapping

from localagent.code.module_names import ModuleName, module_names
from localagent.code.source_text import parse_or_none
from localagent.domain.paths import RepoPath

MOST_BYTES = 32 << 20  # of all sources that are parsed; the imports of the others are unknown


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
    modules = module_names(sources)
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


def _reached(name: ModuleName, modules: Mapping[ModuleName, list[RepoPath]]) -> Iterator[RepoPath]:
    """What importing a dotted name runs: each package on the way, and the module itself."""
    for end in range(1, len(name) + 1):
        yield from modules.get(name[:end], ())


def _conftests_above(path: RepoPath, sources: Collection[RepoPath]) -> Iterator[RepoPath]:
    folders = path.parts[:-1]
    for depth in range(len(folders) + 1):
        conftest = RepoPath("/".join((*folders[:depth], "conftest.py")))
        if conftest in sources:
            yield conftest


def _imported(source: bytes, path: RepoPath) -> Iterator[ModuleName]:
    """Dotted names that a file imports; relative ones as from the repository's root, known to `module_names`, too."""
    tree = parse_or_none(source)
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.Import):
            yield from (tuple(alias.name.split(".")) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = _base(node, path)
            yield from ((*base, alias.name) for alias in node.names)


def _base(node: ast.ImportFrom, path: RepoPath) -> ModuleName:
    named = tuple(node.module.split(".")) if node.module else ()
    if not node.level:
        return named
    folders = path.parts[:-1]
    above = folders[: max(0, len(folders) - (node.level - 1))]
    return (*above, *named)
