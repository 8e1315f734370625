"""Caches that forget nothing, and what fills a store. Part of `unbounded_growth`."""

import ast

from localagent.code.names import callee_name
from localagent.gate.review.source_change import Signs

FILLS = frozenset({"append", "add", "extend", "setdefault", "update", "insert", "appendleft", "put"})
"""Methods that put something into a store."""


def base_of(node: ast.AST) -> str:
    """The name that an attribute, an entry or a call hangs on."""
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Starred):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def forgetless(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> Signs:
    """Caches of methods that forget nothing, and so keep every object alive."""
    if isinstance(node, ast.ClassDef) or not node.args.args or node.args.args[0].arg not in ("self", "cls"):
        return
    for decorator in node.decorator_list:
        if isinstance(decorator, ast.Call):
            sizes = [*decorator.args, *(k.value for k in decorator.keywords if k.arg == "maxsize")]
            if (
                callee_name(decorator.func) == "lru_cache"
                and sizes
                and isinstance(sizes[0], ast.Constant)
                and sizes[0].value is None
            ):
                yield "a cache that forgets nothing", decorator
        elif callee_name(decorator) == "cache":
            yield "a cache that forgets nothing", decorator
