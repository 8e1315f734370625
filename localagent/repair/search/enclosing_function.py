"""The function around a line, of a source that may not parse."""

import ast
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache

from localagent.code.source_text import parse_or_none
from localagent.code.spans import Function, last_line, lines_of, outermost_functions


@lru_cache(maxsize=4)
def parsed(source: bytes) -> ast.Module | None:
    """The tree of a source, which nobody may change; None where it does not parse."""
    return parse_or_none(source)


def outermost_function(source: bytes, line: int) -> Function | None:
    """The outermost function whose lines (1-based) hold `line`; None where there is none, or nothing that parses."""
    tree = parsed(source)
    found = outermost_functions(tree) if tree is not None else ()
    return next((f.node for f in found if line in lines_of(f.node)), None)


@dataclass(frozen=True, kw_only=True, slots=True)
class Changed:
    """An outermost function by name and the line of its `def`; what stands outside has no name, and line 0."""

    name: str
    line: int


def changed_functions(before: bytes, after: bytes) -> tuple[Changed, ...]:
    """The outermost functions of `after` that do not stand so in `before`, and the module where the rest differs.

    The whole module, too, where nothing parses, and where functions went and none came.
    """
    new, old = _functions(after), _functions(before)
    module = Changed(name="", line=0)
    if new is None or old is None:
        return (module,)
    known = Counter(text for _, text in old)
    found = []
    for place, text in new:
        if known[text]:
            known[text] -= 1
        else:
            found.append(place)
    if not found or _outside(before, old) != _outside(after, new):
        found.append(module)
    return tuple(found)


def _functions(source: bytes) -> list[tuple[Changed, bytes]] | None:
    """Every outermost function with its text, decorators left out; None where the source does not parse."""
    tree = parsed(source)
    if tree is None:
        return None
    lines = source.splitlines(keepends=True)
    return [
        (
            Changed(name=f.qualname, line=f.node.lineno),
            b"".join(lines[f.node.lineno - 1 : last_line(f.node)]),
        )
        for f in outermost_functions(tree)
    ]


def _outside(source: bytes, functions: list[tuple[Changed, bytes]]) -> list[bytes]:
    """The lines that belong to no function, blank ones left out."""
    lines = source.splitlines(keepends=True)
    for place, text in functions:
        for at in range(place.line - 1, place.line - 1 + text.count(b"\n") + (not text.endswith(b"\n"))):
            lines[at] = b""
    return [line.strip() for line in lines if line.strip()]
