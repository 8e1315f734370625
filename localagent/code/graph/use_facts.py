"""Where names are used: read, written, called, quoted, and methods that Python calls by itself."""

import ast
import re

from localagent.code.graph.export_facts import exports, is_all
from localagent.code.graph.fact_rows import FactRows
from localagent.code.graph.facts import ExpressionKind, UseKind
from localagent.code.graph.import_facts import whole_name
from localagent.code.spans import last_line

_DOTTED = re.compile(r"[^\W\d]\w*(?:[.:][^\W\d]\w*)*")
_BUILTIN_METHODS = {
    f: f"__{f}__" for f in ("len", "str", "repr", "iter", "next", "bool", "hash", "int", "bytes", "dir")
}
_ITEM_METHODS = {ast.Load: "__getitem__", ast.Store: "__setitem__", ast.Del: "__delitem__"}
_OPERATOR_METHODS = {
    ast.Add: "__add__", ast.Sub: "__sub__", ast.Mult: "__mul__", ast.MatMult: "__matmul__", ast.Div: "__truediv__",
    ast.Mod: "__mod__", ast.Pow: "__pow__", ast.LShift: "__lshift__", ast.RShift: "__rshift__", ast.BitOr: "__or__",
    ast.BitXor: "__xor__", ast.BitAnd: "__and__", ast.FloorDiv: "__floordiv__",
}  # fmt: skip
_COMPARISON_METHODS = {
    ast.Eq: "__eq__", ast.NotEq: "__eq__", ast.Lt: "__lt__", ast.LtE: "__le__", ast.Gt: "__gt__", ast.GtE: "__ge__",
}  # fmt: skip
_LONGEST_STRING = 200


def named(rows: FactRows, node: ast.Name) -> None:
    """The use that a name is."""
    kind = _kind(rows, node)
    rows.use_at_end(kind, node, node.id, rows.value[node])


def attribute(rows: FactRows, node: ast.Attribute) -> None:
    """The use that an attribute is."""
    rows.use_at_end(_kind(rows, node), node, node.attr, rows.value[node])


def _kind(rows: FactRows, node: ast.Name | ast.Attribute) -> UseKind:
    if isinstance(node.ctx, ast.Store):
        return UseKind.WRITE
    if isinstance(node.ctx, ast.Del):
        return UseKind.DELETE
    if node in rows.decorating:
        return UseKind.DECORATOR
    return UseKind.CALL if node in rows.called else UseKind.READ


def call(rows: FactRows, node: ast.Call) -> None:
    """A call's keywords, methods that builtins call, `isinstance`, and changes of `__all__`."""
    func = node.func
    if isinstance(func, ast.Name | ast.Attribute):
        rows.called.add(func)
    else:
        rows.use(UseKind.CALL, node.lineno, node.col_offset, 0, node, rows.of(func))
    for keyword in node.keywords:
        if keyword.arg is not None:
            expression = rows.row(ExpressionKind.KEYWORD, rows.of(func), rows.name(keyword.arg))
            rows.use_at(UseKind.KEYWORD, rows.text.offset(keyword.lineno, keyword.col_offset), node, expression)
    if isinstance(func, ast.Name) and func.id in _BUILTIN_METHODS and node.args:
        rows.implicit(node, node.args[0], _BUILTIN_METHODS[func.id])
    if isinstance(func, ast.Name) and func.id == "isinstance" and len(node.args) == 2:
        _narrowed(rows, *node.args)
    if isinstance(func, ast.Attribute) and func.attr in ("extend", "append") and is_all(func.value):
        exports(rows, node, node.args, add=True)


def subscripted(rows: FactRows, node: ast.Subscript) -> None:
    """The method behind `a[b]`."""
    if node not in rows.annotating:
        rows.implicit(node, node.value, _ITEM_METHODS[type(node.ctx)])


def operated(rows: FactRows, node: ast.BinOp) -> None:
    """The method behind an operator."""
    rows.implicit(node, node.left, _OPERATOR_METHODS[type(node.op)])


def compared(rows: FactRows, node: ast.Compare) -> None:
    """The methods behind comparisons."""
    for left, operator, right in zip([node.left, *node.comparators], node.ops, node.comparators, strict=False):
        if isinstance(operator, ast.In | ast.NotIn):
            rows.implicit(node, right, "__contains__")
        elif type(operator) in _COMPARISON_METHODS:
            rows.implicit(node, left, _COMPARISON_METHODS[type(operator)])


def formatted(rows: FactRows, node: ast.FormattedValue) -> None:
    """The method that an f-string calls."""
    rows.implicit(node, node.value, "__repr__" if node.conversion == ord("r") else "__str__")


def _narrowed(rows: FactRows, value: ast.expr, asked: ast.expr) -> None:
    if isinstance(value, ast.Name | ast.Attribute):
        for one in asked.elts if isinstance(asked, ast.Tuple) else [asked]:
            if rows.of(one) >= 0:
                rows.bind(rows.of(value), rows.row(ExpressionKind.NARROWED, rows.of(one)), value.lineno)


def constant(rows: FactRows, node: ast.Constant) -> None:
    """A text that looks like a name."""
    value = node.value
    if not isinstance(value, str) or node in rows.written or len(value) > _LONGEST_STRING:
        return
    if node in rows.walk.quoted or not _DOTTED.fullmatch(value):
        return
    start = rows.text.offset(node.lineno, node.col_offset)
    stop = rows.text.offset(last_line(node), node.end_col_offset or 0)
    place = rows.text.utf8.find(value.encode(), start, stop)
    kind = UseKind.EXPORT if node in rows.exported else UseKind.STRING
    line, column = rows.position(place) if place >= 0 else (node.lineno, node.col_offset)
    length = len(value.encode()) if place >= 0 else -1
    rows.use(kind, line, column, length, node, rows.row(ExpressionKind.STRING, -1, rows.name(value)))


def declared(rows: FactRows, node: ast.Global | ast.Nonlocal) -> None:
    """The names of `global` and `nonlocal`."""
    offset = rows.text.offset(node.lineno, node.col_offset)
    for name in node.names:
        found = re.compile(whole_name(name)).search(rows.text.utf8, offset)
        if found is not None:
            offset = found.end()
            rows.use_at(UseKind.DECLARE, found.start(), node, rows.name_in(rows.walk.scope[node], name))
