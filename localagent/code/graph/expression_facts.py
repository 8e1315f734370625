"""The row that each expression is, by the kind of its node."""

import ast
from collections.abc import Callable
from typing import Any

from localagent.code.graph.fact_rows import FactRows
from localagent.code.graph.facts import ExpressionKind

_MOST_JOINED = 8  # values of one display, statements of one function


def _constant(rows: FactRows, node: ast.Constant) -> int:
    if node in rows.written:
        return rows.of(rows.written[node])
    return rows.literal(type(node.value).__name__)


def _call(rows: FactRows, node: ast.Call) -> int:
    if isinstance(node.func, ast.Name) and node.func.id == "super":
        return rows.row(ExpressionKind.SUPER, rows.scope_index[rows.walk.scope[node].function])
    first = node.args[0] if node.args and not isinstance(node.args[0], ast.Starred) else None
    return rows.row(ExpressionKind.CALL, rows.of(node.func), rows.of(first))


def _subscript(rows: FactRows, node: ast.Subscript) -> int:
    index = node.slice.value if isinstance(node.slice, ast.Constant) else None
    at = index if type(index) is int and 0 <= index < _MOST_JOINED else -1
    value = rows.of(node.value)
    if value < 0:
        return -1
    if isinstance(node.slice, ast.Slice):
        return value
    if index is None or isinstance(index, str):
        return rows.row(ExpressionKind.SUBSCRIPT, value, rows.of(node.slice))
    return rows.row(ExpressionKind.ITEM, value, at)


def _tuple(rows: FactRows, node: ast.Tuple) -> int:
    whole = rows.row(ExpressionKind.TUPLE)
    for item in reversed(node.elts[:_MOST_JOINED]):
        whole = rows.row(ExpressionKind.TUPLE, rows.of(item), whole)
    return whole


def _operation(rows: FactRows, node: ast.BinOp) -> int:
    return rows.union((rows.of(node.left), rows.of(node.right))) if isinstance(node.op, ast.BitOr) else -1


def _list(kind: str) -> Callable[[FactRows, ast.AST], int]:
    def made(rows: FactRows, node: ast.AST) -> int:
        items: list[ast.expr] = getattr(node, "elts", None) or [getattr(node, "elt", ast.Tuple(elts=[]))]
        return rows.row(
            ExpressionKind.LIST, rows.union(rows.of(item) for item in items[:_MOST_JOINED]), rows.name(kind)
        )

    return made


def _dict(rows: FactRows, node: ast.Dict) -> int:
    keys = rows.union(rows.of(key) for key in node.keys[:_MOST_JOINED])
    return rows.row(ExpressionKind.DICT, keys, rows.union(rows.of(value) for value in node.values[:_MOST_JOINED]))


EXPRESSIONS: dict[type[ast.AST], Callable[[FactRows, Any], int]] = {
    ast.Name: lambda rows, node: rows.name_in(rows.walk.scope[node], node.id),
    ast.Attribute: lambda rows, node: rows.row(ExpressionKind.ATTRIBUTE, rows.of(node.value), rows.name(node.attr)),
    ast.Call: _call,
    ast.Subscript: _subscript,
    ast.Constant: _constant,
    ast.JoinedStr: lambda rows, _: rows.literal("str"),
    ast.Await: lambda rows, node: rows.row(ExpressionKind.AWAIT, rows.of(node.value)),
    ast.NamedExpr: lambda rows, node: rows.of(node.value),
    ast.IfExp: lambda rows, node: rows.union((rows.of(node.body), rows.of(node.orelse))),
    ast.BoolOp: lambda rows, node: rows.union(rows.of(value) for value in node.values),
    ast.BinOp: _operation,
    ast.Tuple: _tuple,
    ast.List: _list("list"),
    ast.Set: _list("set"),
    ast.ListComp: _list("list"),
    ast.SetComp: _list("set"),
    ast.GeneratorExp: _list("generator"),
    ast.Dict: _dict,
    ast.DictComp: lambda rows, node: rows.row(ExpressionKind.DICT, rows.of(node.key), rows.of(node.value)),
    ast.Lambda: lambda rows, node: rows.row(ExpressionKind.DEFINED, rows.definition_index[node]),
    ast.Compare: lambda rows, _: rows.literal("bool"),
}
