"""Which functions differ between two texts of one file, as swap orders for the worker.

Where a program's own edits do not say it (they were made before the file could be parsed, or outside functions), both
texts are parsed and compared: everything outside function bodies must be equal, byte for byte. Answers None whenever
that is not so or cannot be told; then the program is run from scratch.
"""

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from localagent.domain.paths import RepoPath
from localagent.edit import normal

_LIMIT_BYTES = 300_000
_BOM = b"\xef\xbb\xbf"
_Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, kw_only=True, slots=True)
class Region:
    """An outermost function: `start` is the begin of its first line, its body is [body_start, end); lines 1-based."""

    name: str
    class_name: str | None
    start: int
    body_start: int
    end: int
    line: int
    body_line: int
    last_line: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Regions:
    """The outermost functions of a text in order, and the text without their bodies."""

    functions: tuple[Region, ...]
    frame: bytes


def orders(path: RepoPath, before: bytes, after: bytes, imported: frozenset[int]) -> list[dict[str, Any]] | None:
    """Swap orders that turn a live `before` into `after`; `imported` are the lines of `before` that importing ran."""
    old, new = regions(before), regions(after)
    if old is None or new is None or old.frame != new.frame or len(old.functions) != len(new.functions):
        return None
    found: list[dict[str, Any]] = []
    for a, b in zip(old.functions, new.functions, strict=True):
        if before[a.body_start : a.end] == after[b.body_start : b.end]:
            continue
        if any(a.body_line <= n <= a.last_line for n in imported):
            return None
        found.append(
            {
                "path": path,
                "name": b.name,
                "class": b.class_name,
                "line": b.line,
                "old_line": a.line,
                "text": after[b.start : b.end].decode(),
            }
        )
    return found


@lru_cache(maxsize=64)
def regions(source: bytes) -> Regions | None:
    """The functions of a text; None when it does not parse, is too long, or its offsets could be misread."""
    if len(source) > _LIMIT_BYTES or source.startswith(_BOM) or b"\r" in source.replace(b"\r\n", b"\n"):
        return None
    if b"coding" in b"\n".join(source.split(b"\n", 2)[:2]):
        return None
    try:
        source.decode()
    except UnicodeDecodeError:
        return None
    tree = normal.parse(source)
    if tree is None:
        return None
    starts = [0]
    for line in source.split(b"\n"):
        starts.append(starts[-1] + len(line) + 1)
    functions = []
    for node, class_name in _outermost(tree.body, None):
        region = _region(source, starts, node, class_name)
        if region is None:
            return None
        functions.append(region)
    pieces, at = [], 0
    for f in functions:
        pieces.append(source[at : f.body_start])
        at = f.end
    pieces.append(source[at:])
    return Regions(functions=tuple(functions), frame=b"\0".join(pieces))


def _outermost(body: list[ast.stmt], class_name: str | None) -> Iterator[tuple[_Function, str | None]]:
    for node in body:
        if isinstance(node, _Function):
            yield node, class_name
        elif isinstance(node, ast.ClassDef):
            yield from _outermost(node.body, node.name)
        else:
            for name in ("body", "orelse", "finalbody"):
                yield from _outermost(getattr(node, name, []), class_name)
            for handler in getattr(node, "handlers", []):
                yield from _outermost(handler.body, class_name)


def _region(source: bytes, starts: list[int], node: _Function, class_name: str | None) -> Region | None:
    line = min([node.lineno, *(d.lineno for d in node.decorator_list)])
    first = node.body[0]
    body_line = min([first.lineno, *(d.lineno for d in getattr(first, "decorator_list", []))])
    body_column = first.col_offset if body_line == first.lineno else 0
    if node.end_lineno is None or node.end_col_offset is None:
        return None
    start = starts[line - 1]
    head = source[start : source.find(b"\n", start)].lstrip(b" \t\f")
    if not head.startswith((b"@", b"def", b"async")):
        return None  # something else stands before it on its line
    return Region(
        name=node.name,
        class_name=class_name,
        start=start,
        body_start=starts[body_line - 1] + body_column,
        end=starts[node.end_lineno - 1] + node.end_col_offset,
        line=line,
        body_line=body_line,
        last_line=node.end_lineno,
    )


def changed(
    before: Mapping[RepoPath, bytes], after: Mapping[RepoPath, bytes], imported: Mapping[RepoPath, frozenset[int]]
) -> list[dict[str, Any]] | None:
    """Swap orders over several files with the same paths."""
    found: list[dict[str, Any]] = []
    for path, text in after.items():
        if before[path] == text:
            continue
        part = orders(path, before[path], text, imported.get(path, frozenset())) if path.endswith(".py") else None
        if part is None:
            return None
        found += part
    return found
