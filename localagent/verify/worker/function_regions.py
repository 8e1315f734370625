"""Which functions differ between two texts of one file, as swap orders for the worker.

Where a program's own edits do not say it (they were made before the file could be parsed, or outside functions), both
texts are parsed and compared: everything outside function bodies must be equal, byte for byte. Answers None whenever
that is not so or cannot be told; then the program is run from scratch.
"""

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from localagent.code.source_text import line_starts, parse_or_none, read_source
from localagent.code.spans import Function, FunctionSpan, byte_span, first_line, last_line, outermost_functions
from localagent.domain.paths import RepoPath

_LIMIT_BYTES = 300_000
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, kw_only=True, slots=True)
class FunctionRegion:
    """An outermost function: `start` is the begin of its first line, its body is [body_start, end); lines 1-based.

    `kept` is what stays with the live function when its code is replaced: decorators and default values.
    """

    name: str
    class_name: str | None
    start: int
    body_start: int
    end: int
    line: int
    body_line: int
    last_line: int
    kept: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Regions:
    """The outermost functions of a text in order, the text without their bodies, and without the whole of them."""

    functions: tuple[FunctionRegion, ...]
    frame: bytes
    outline: bytes


def orders(
    path: RepoPath, before: bytes, after: bytes, imported: frozenset[int], *, heads: bool = False
) -> list[dict[str, Any]] | None:
    """Swap orders that turn a live `before` into `after`; `imported` are the lines of `before` that importing ran.

    With `heads`, names and annotations of parameters may differ too. The live functions then keep their old
    annotations: good for calls, not for whoever looks at signatures.
    """
    old, new = regions(before), regions(after)
    if old is None or new is None or len(old.functions) != len(new.functions):
        return None
    if old.outline != new.outline if heads else old.frame != new.frame:
        return None
    found: list[dict[str, Any]] = []
    for a, b in zip(old.functions, new.functions, strict=True):
        if (a.name, a.kept) != (b.name, b.kept):
            return None
        first, second = (a.start, b.start) if heads else (a.body_start, b.body_start)
        if before[first : a.end] == after[second : b.end]:
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
    text = read_source(source)
    if text is None or text.encoding != "utf-8":
        return None
    tree = parse_or_none(source)
    if tree is None:
        return None
    starts = line_starts(source)
    functions = []
    for function in outermost_functions(tree):
        region = _region(source, starts, function)
        if region is None:
            return None
        functions.append(region)
    frame = _without(source, [(f.body_start, f.end) for f in functions])
    outline = _without(source, [(f.start, f.end) for f in functions])
    return Regions(functions=tuple(functions), frame=frame, outline=outline)


def _without(source: bytes, spans: Sequence[tuple[int, int]]) -> bytes:
    pieces, at = [], 0
    for start, end in spans:
        pieces.append(source[at:start])
        at = end
    return b"\0".join([*pieces, source[at:]])


def _region(source: bytes, starts: Sequence[int], function: FunctionSpan) -> FunctionRegion | None:
    node, first = function.node, function.node.body[0]
    line, body_line = first_line(node), first_line(first)
    body_column = first.col_offset if body_line == first.lineno else 0
    start = starts[line - 1]
    head = source[start : source.find(b"\n", start)].lstrip(b" \t\f")
    if not head.startswith((b"@", b"def", b"async")):
        return None  # something else stands before it on its line
    return FunctionRegion(
        name=node.name,
        class_name=function.class_name,
        start=start,
        body_start=starts[body_line - 1] + body_column,
        end=byte_span(node, starts)[1],
        line=line,
        body_line=body_line,
        last_line=last_line(node),
        kept=_signature_text(node),
    )


def _signature_text(node: Function) -> str:
    args = node.args
    stays = (*node.decorator_list, None, *args.defaults, None, *args.kw_defaults)
    return " ".join("-" if n is None else ast.dump(n) for n in stays)


def changed(
    before: Mapping[RepoPath, bytes],
    after: Mapping[RepoPath, bytes],
    imported: Mapping[RepoPath, frozenset[int]],
    *,
    heads: bool = False,
) -> list[dict[str, Any]] | None:
    """Swap orders over several files with the same paths; `heads` as in `orders`."""
    found: list[dict[str, Any]] = []
    for path, text in after.items():
        if before[path] == text:
            continue
        if not path.endswith(".py"):
            return None
        part = orders(path, before[path], text, imported.get(path, frozenset()), heads=heads)
        if part is None:
            return None
        found += part
    return found
