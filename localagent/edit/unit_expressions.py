"""The expressions of a unit's statements, each at its place: span, text, binding, what the place needs."""

import libcst as cst

from localagent.edit import precedence
from localagent.edit.unit import Expr, Stmt, Unit, children, fields_of

_NOT_HEAD = ("body", "orelse", "handlers", "finalbody", "cases", "name")


class Expressions:
    """Fills a unit's `exprs`, statement by statement."""

    def __init__(self, unit: Unit) -> None:
        self.unit = unit

    def of_header(self, node: cst.CSTNode, statement: Stmt, scope: cst.CSTNode | None) -> None:
        """Those of a compound statement's own header, its except clauses and guards with it."""
        for name in fields_of(node.__class__):
            if name in _NOT_HEAD:
                continue
            value = getattr(node, name)
            for item in value if isinstance(value, (list, tuple)) else [value]:
                if isinstance(item, cst.BaseExpression):
                    self._expression(item, node, statement, scope, 0, in_fstring=False)
                elif isinstance(item, cst.CSTNode):
                    self.below(item, statement, scope, 0)
        if isinstance(node, (cst.Try, cst.TryStar)):
            for handler in node.handlers:
                if handler.type is not None:
                    self._expression(handler.type, handler, statement, scope, 0, in_fstring=False)
        if isinstance(node, cst.Match):
            for case in node.cases:
                if case.guard is not None:
                    self._expression(case.guard, case, statement, scope, 0, in_fstring=False)

    def below(
        self, node: cst.CSTNode, statement: Stmt, scope: cst.CSTNode | None, depth: int, *, in_fstring: bool = False
    ) -> None:
        """Those below a node; names that a statement only declares or imports are none."""
        if isinstance(node, (cst.Global, cst.Nonlocal, cst.Import, cst.ImportFrom)):
            return
        for child in children(node):
            if isinstance(child, cst.BaseExpression):
                self._expression(child, node, statement, scope, depth, in_fstring=in_fstring)
            else:
                self.below(child, statement, scope, depth, in_fstring=in_fstring)

    def _expression(
        self,
        node: cst.BaseExpression,
        parent: cst.CSTNode,
        statement: Stmt,
        scope: cst.CSTNode | None,
        depth: int,
        *,
        in_fstring: bool,
    ) -> None:
        start, end = self.unit.outer(node)
        if not _is_label(parent, node):
            expr = Expr(
                node=node,
                parent=parent,
                statement=statement,
                start=start,
                end=end,
                text=self.unit.slice(start, end),
                level=precedence.binding(node),
                need=precedence.needed(parent, node),
                line=self.unit.line(start),
                end_line=self.unit.line(max(start, end - 1)),
                depth=depth,
                in_fstring=in_fstring,
                scope=scope,
                store=_stored(parent, node),
            )
            self.unit.exprs.append(expr)
        quoted = isinstance(node, cst.FormattedString)
        self.below(node, statement, scope, depth + 1, in_fstring=in_fstring or quoted)


def _is_label(parent: cst.CSTNode, node: cst.BaseExpression) -> bool:
    """Whether a name stands where only a name may: an attribute's, a keyword's, a parameter's."""
    return isinstance(node, cst.Name) and (
        (isinstance(parent, cst.Attribute) and parent.attr is node)
        or (isinstance(parent, cst.Arg) and parent.keyword is node)
        or (isinstance(parent, (cst.Param, cst.NameItem, cst.FunctionDef, cst.ClassDef)) and parent.name is node)
        or isinstance(parent, cst.AsName)
    )


def _stored(parent: cst.CSTNode, node: cst.CSTNode) -> bool:
    return (
        isinstance(parent, cst.AssignTarget)
        or (
            isinstance(parent, (cst.AugAssign, cst.AnnAssign, cst.For, cst.CompFor, cst.NamedExpr))
            and parent.target is node
        )
        or isinstance(parent, cst.Del)
    )
