"""The function around a line, of a source that may not parse."""

import ast
import warnings
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
