"""What names and attributes are bound to: assignments, loops, contexts, handlers, patterns, results."""

import ast
import re

from localagent.code.graph.export_facts import exports, is_all
from localagent.code.graph.fact_rows import FactRows
from localagent.code.graph.facts import ExpressionKind, UseKind
from localagent.code.spans import last_line


def assigned(rows: FactRows, node: ast.Assign | ast.NamedExpr) -> None:
    """What an assignment binds."""
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    for target in targets:
        _assign(rows, target, node.value, rows.of(node.value))
        if is_all(target):
            exports(rows, node, [node.value], add=False)


def annotated(rows: FactRows, node: ast.AnnAssign) -> None:
    """What an assignment with an annotation binds."""
    if isinstance(node.target, ast.Name | ast.Attribute):
        typed = rows.row(ExpressionKind.INSTANCE, rows.of(node.annotation))
        rows.bind(rows.of(node.target), rows.union((typed, rows.of(node.value))), node.lineno)
    if node.value is not None and is_all(node.target):
        exports(rows, node, [node.value], add=False)


def augmented(rows: FactRows, node: ast.AugAssign) -> None:
    """What `a += b` binds."""
    if isinstance(node.target, ast.Name | ast.Attribute):
        rows.bind(rows.of(node.target), -1, node.lineno)
    if is_all(node.target):
        exports(rows, node, [node.value], add=True)


def _assign(rows: FactRows, target: ast.expr, value: ast.expr | None, whole: int) -> None:
    """Binds a target, pair by pair where both sides are displays of one length."""
    if isinstance(target, ast.Name | ast.Attribute):
        rows.bind(rows.of(target), whole, target.lineno)
    elif isinstance(target, ast.Tuple | ast.List):
        starred = any(isinstance(x, ast.Starred) for x in target.elts)
        paired = isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(target.elts) and not starred
        for at, part in enumerate(target.elts):
            if paired:
                inner = value.elts[at]  # type: ignore[union-attr]
                _assign(rows, part, inner, rows.of(inner))
            else:
                known = whole >= 0 and not starred
                _assign(rows, part, None, rows.row(ExpressionKind.ITEM, whole, at) if known else -1)
    elif isinstance(target, ast.Starred):
        _assign(rows, target.value, None, -1)


def looped(rows: FactRows, node: ast.For | ast.AsyncFor | ast.comprehension) -> None:
    """What a loop binds."""
    value = rows.of(node.iter)
    rows.implicit(node.iter, node.iter, "__iter__")
    _assign(rows, node.target, None, rows.row(ExpressionKind.ELEMENT, value) if value >= 0 else -1)


def entered(rows: FactRows, node: ast.withitem) -> None:
    """What `with` binds."""
    for method in ("__enter__", "__exit__"):
        rows.implicit(node.context_expr, node.context_expr, method)
    if node.optional_vars is not None:
        value = rows.of(node.context_expr)
        _assign(rows, node.optional_vars, None, rows.row(ExpressionKind.ENTER, value) if value >= 0 else -1)


def handler(rows: FactRows, node: ast.ExceptHandler) -> None:
    """What `except ... as` binds."""
    if node.name is None:
        return
    target = rows.name_in(rows.walk.scope[node], node.name)
    start = rows.text.offset(last_line(node.type or node), getattr(node.type, "end_col_offset", 0) or 0)
    found = re.compile(rb"\bas\b(?:\s|\\\r?\n)+").search(rows.text.utf8, start)
    if found is not None:
        rows.use_at(UseKind.WRITE, found.end(), node, target)
    types = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
    value = rows.union(rows.of(one) for one in types)
    rows.bind(target, rows.row(ExpressionKind.INSTANCE, value) if value >= 0 else -1, node.lineno)


def captured(rows: FactRows, node: ast.MatchAs | ast.MatchStar | ast.MatchMapping) -> None:
    """What a pattern binds."""
    name = node.rest if isinstance(node, ast.MatchMapping) else node.name
    if name is None:
        return
    target = rows.name_in(rows.walk.scope[node], name)
    if not isinstance(node, ast.MatchMapping):
        rows.use_at_end(UseKind.WRITE, node, name, target)
    of_class = node.pattern if isinstance(node, ast.MatchAs) else None
    value = rows.of(of_class.cls) if isinstance(of_class, ast.MatchClass) else -1
    rows.bind(target, rows.row(ExpressionKind.INSTANCE, value) if value >= 0 else -1, node.lineno)


def result(rows: FactRows, node: ast.Return | ast.Yield | ast.YieldFrom) -> None:
    """What a function gives back."""
    function = rows.walk.scope[node].function.node
    returned, yielded = rows.results.setdefault(function, ([], []))
    value = rows.of(node.value)
    if value < 0:
        return
    if isinstance(node, ast.Return):
        returned.append(value)
    else:
        yielded.append(value if isinstance(node, ast.Yield) else rows.row(ExpressionKind.ELEMENT, value))
