"""Which test files have to do with some changed modules: they changed themselves, bear its name, or import it.

By names alone, cheap. Not promised: tests that reach a module through another one, or by a name made at run time.
"""

import ast
from collections.abc import Collection, Iterable, Iterator, Mapping

from localagent.code.source_text import parse_or_none
from localagent.domain.paths import RepoPath

MOST_READ = 2_000


def is_test(path: RepoPath) -> bool:
    """Whether pytest takes a file for one of tests by its name."""
    return path.endswith(".py") and (path.name.startswith("test_") or path.name.endswith("_test.py"))


def related_tests(
    changed: Collection[RepoPath], sources: Mapping[RepoPath, bytes], *, most: int
) -> tuple[RepoPath, ...]:
    """At most `most` test files: changed ones, then those named like a changed module, then those importing it."""
    tests = sorted(path for path in sources if is_test(path))
    modules = [path for path in changed if path.endswith(".py") and not is_test(path)]
    named = {form for path in modules for form in _named(path)}
    own = [path for path in tests if path in changed]
    alike = [path for path in tests if path.name in named]
    words = {path: _module(path) for path in modules}
    importing = (path for path in tests[:MOST_READ] if _imports(sources[path], words.values()))
    found = dict.fromkeys((*own, *alike))
    for path in importing:
        if len(found) >= most:
            break
        found[path] = None
    return tuple(found)[:most]


def _module(path: RepoPath) -> tuple[str, ...]:
    """A module's dotted name from the repository's root, in parts."""
    parts = (*path.parts[:-1], path.name.removesuffix(".py"))
    return parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts


def _named(path: RepoPath) -> tuple[str, str]:
    stem = _module(path)[-1]
    return f"test_{stem}.py", f"{stem}_test.py"


def _imports(source: bytes, modules: Iterable[tuple[str, ...]]) -> bool:
    """Whether a file imports one of some modules by a dotted name that it may have."""
    wanted = [m for m in modules if m[-1].encode() in source]
    if not wanted:
        return False
    tree = parse_or_none(source)
    names = set(_imported(tree)) if tree is not None else set()
    return any(parts[-len(name) :] == name for parts in wanted for name in names if len(name) <= len(parts))


def _imported(tree: ast.Module) -> Iterator[tuple[str, ...]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield tuple(alias.name.split("."))
        elif isinstance(node, ast.ImportFrom):
            base = tuple(node.module.split(".")) if node.module else ()
            if base:
                yield base
            for alias in node.names:
                yield (*base, alias.name)
