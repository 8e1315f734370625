"""Doctests: which of the collected tests are some, and whose expectations a patch alters.

One whose expectation was altered passes before the patch and after it, and proves nothing of what it keeps.

Pure: compared are the examples of docstrings and text files, as `doctest` reads them. Not seen: examples that stand in
`__test__`, or in docstrings that are put together while the program runs.
"""

import ast
from collections.abc import Collection, Iterator, Mapping

from localagent.code.source_text import parse_or_none
from localagent.domain.paths import RepoPath

_OWNERS = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
_BODIES = (ast.stmt, ast.ExceptHandler, ast.match_case)
_Examples = tuple[tuple[str, str], ...]


def altered(texts: Mapping[RepoPath, tuple[bytes, bytes]], ids: Collection[str]) -> tuple[str, ...]:
    """Those of the collected ids that are doctests and miss an example, or ask it otherwise. `texts`: before, after."""
    by_path = _by_path(ids)
    found = []
    for path, (before, after) in sorted(texts.items()):
        items = by_path.get(path, [])
        now = dict(_examples(path, after)) if items else {}
        for owner, examples in _examples(path, before) if items else ():
            if not _within(examples, now.get(owner, ())):
                found += [f"{path}::{item}" for item in items if _is_of(item, owner)]
    return tuple(dict.fromkeys(found))


def only_doctests(path: RepoPath, text: bytes, ids: Collection[str]) -> bool:
    """Whether all tests collected from a Python source are the examples of its docstrings: it is no test file then."""
    items = _by_path(ids).get(path, [])
    owners = [owner for owner, _ in _examples(path, text)] if path.is_python and items else []
    return bool(owners) and all(any(_is_of(item, owner) for owner in owners) for item in items)


def _by_path(ids: Collection[str]) -> dict[str, list[str]]:
    """What stands behind the path in each id."""
    found: dict[str, list[str]] = {}
    for name in ids:
        path, _, item = name.partition("::")
        found.setdefault(path, []).append(item)
    return found


def _is_of(item: str, owner: str) -> bool:
    return item == owner or item.endswith(f".{owner}")


def _examples(path: RepoPath, text: bytes) -> Iterator[tuple[str, _Examples]]:
    """(name of whose examples they are, the examples), where there are some."""
    if not path.is_python:
        yield path.name, _read(text.decode("utf-8", "replace"))
        return
    tree = parse_or_none(text)
    if tree is None:
        return
    stem = path.name.removesuffix(".py")
    if stem == "__init__":
        stem = path.rpartition("/")[0].rpartition("/")[2]
    yield from _of(tree, stem)


def _of(tree: ast.Module, stem: str) -> Iterator[tuple[str, _Examples]]:
    """Of the module, its classes and functions, whatever statements these stand in."""
    open_ones: list[tuple[ast.AST, str]] = [(tree, stem)]
    while open_ones:
        node, name = open_ones.pop()
        if isinstance(node, _OWNERS):
            examples = _read(ast.get_docstring(node, clean=False) or "")
            if examples:
                yield name, examples
        for child in ast.iter_child_nodes(node):
            if isinstance(child, _BODIES):
                inner = f"{name}.{child.name}" if isinstance(child, _OWNERS[1:]) else name
                open_ones.append((child, inner))


def _read(text: str) -> _Examples:
    if ">>>" not in text:
        return ()
    from doctest import DocTestParser  # noqa: PLC0415 - with it come pdb and unittest; few files have an example

    try:
        return tuple((e.source, e.want) for e in DocTestParser().get_examples(text))
    except ValueError:
        return ()  # as doctest would: it cannot be run


def _within(examples: _Examples, now: _Examples) -> bool:
    """Whether every example still stands, in order, with others between or not; or its answer is read to the end."""
    rest = iter(now)
    return all(any(other in (one, _read_out(one)) for other in rest) for one in examples)


def _read_out(example: tuple[str, str]) -> tuple[str, str]:
    """`list(f())` with what was wanted of `f()`, which gives its values one by one now."""
    return f"list({example[0].rstrip()})\n", example[1]
