"""The function around a line, of a source that may not parse."""

import ast
import warnings
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache


@lru_cache(maxsize=4)
def parsed(source: bytes) -> ast.Module | None:
    """The tree of a source, which nobody may change; None where it does not parse."""
    with warnings.catch_warnings(action="ignore"):
        try:
            return ast.parse(source)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None


def outermost_function(source: bytes, line: int) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    """The outermost function whose lines (1-based) hold `line`; None where there is none, or nothing that parses."""
    tree = parsed(source)
    if tree is None:
        return None
    around = [
        n
        for n in ast.walk(tree)
        if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef) and n.lineno <= line <= (n.end_lineno or n.lineno)
    ]
    return min(around, key=lambda n: n.lineno, default=None)


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
    found: list[tuple[Changed, bytes]] = []
    waiting: list[tuple[str, ast.AST]] = [("", node) for node in reversed(tree.body)]
    while waiting:
        inside, node = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            text = b"".join(lines[node.lineno - 1 : node.end_lineno])
            found.append((Changed(name=inside + node.name, line=node.lineno), text))
        else:
            within = f"{inside}{node.name}." if isinstance(node, ast.ClassDef) else inside
            waiting += [(within, child) for child in reversed(list(ast.iter_child_nodes(node)))]
    return found


def _outside(source: bytes, functions: list[tuple[Changed, bytes]]) -> list[bytes]:
    """The lines that belong to no function, blank ones left out."""
    lines = source.splitlines(keepends=True)
    for place, text in functions:
        for at in range(place.line - 1, place.line - 1 + text.count(b"\n") + (not text.endswith(b"\n"))):
            lines[at] = b""
    return [line.strip() for line in lines if line.strip()]
