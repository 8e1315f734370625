"""What a module says that it exports, in `__all__`."""

import ast
from collections.abc import Iterable

from localagent.code.graph.fact_rows import FactRows


def exports(rows: FactRows, node: ast.AST, values: Iterable[ast.expr], *, add: bool) -> None:
    """What values add to `__all__`, or make it; of the module's own level only."""
    if rows.walk.scope[node] is not rows.walk.root:
        return
    if rows.exports is None or not add:
        rows.exports, rows.export_sources = rows.exports or [], rows.export_sources
    stack = list(values)
    while stack:
        value = stack.pop(0)
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            rows.exports.append(value.value)
            rows.exported.add(value)
        elif isinstance(value, ast.Tuple | ast.List | ast.Set):
            stack += value.elts
        elif isinstance(value, ast.BinOp):
            stack += [value.left, value.right]
        elif isinstance(value, ast.Starred):
            stack.append(value.value)
        elif isinstance(value, ast.Call) and value.args:
            stack += value.args  # list(...), sorted(...)
        elif rows.of(value) >= 0:
            rows.export_sources.append(rows.of(value))


def is_all(node: ast.expr) -> bool:
    """Whether an expression is the name `__all__`."""
    return isinstance(node, ast.Name) and node.id == "__all__"
