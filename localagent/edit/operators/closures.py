"""Functions made in a loop, which all see the loop's last value: each keeps the value of its own round."""

from collections.abc import Iterator

import libcst as cst

from localagent.edit.operator_context import Change, OperatorContext
from localagent.edit.operator_registry import operator
from localagent.edit.precedence import LAMBDA
from localagent.edit.unit import Expr


@operator("bind-loop-variable", prior=-0.4)
def bind_loop_variable(ctx: OperatorContext) -> Iterator[Change]:
    """A `lambda` made in a loop takes the loop's variable as the default of a parameter: `lambda x, n=n: x + n`."""
    loops = [
        (s.head_end, s.end, s.node.target)
        for s in ctx.unit.statements
        if isinstance(s.node, cst.For) and not s.suites[0].inline
    ]
    for expr in ctx.unit.exprs:
        if isinstance(expr.node, cst.ListComp | cst.SetComp | cst.GeneratorExp):
            loops.append((expr.start, expr.end, expr.node.for_in.target))
    for expr, node in ctx.of(cst.Lambda):
        bound = {n for start, end, target in loops if start <= expr.start < end for n in _names(target)}
        params = [p.name.value for p in (*node.params.params, *node.params.kwonly_params)]
        read = [n for n in dict.fromkeys(_names(node.body)) if n in bound and n not in params]
        starred = isinstance(node.params.star_arg, cst.Param) or node.params.star_kwarg is not None
        if read and not starred:
            yield ctx.put(expr, _with_defaults(ctx, expr, node, read), LAMBDA, note=f"{', '.join(read)} bound now")


def _with_defaults(ctx: OperatorContext, expr: Expr, node: cst.Lambda, names: list[str]) -> str:
    body_start = ctx.unit.outer(node.body)[0]
    head = ctx.unit.slice(expr.start, body_start).rstrip().removesuffix(":")
    taken = head.removeprefix("lambda").strip()
    params = ", ".join([*([taken] if taken else []), *(f"{n}={n}" for n in names)])
    return f"lambda {params}: {ctx.unit.code(node.body)}"


def _names(node: cst.CSTNode) -> list[str]:
    """The names in an expression, attributes and keywords apart."""
    found: list[str] = []
    if isinstance(node, cst.Name):
        return [node.value]
    for child in node.children:
        if isinstance(node, cst.Attribute) and child is node.attr:
            continue
        if isinstance(node, cst.Arg) and child is node.keyword:
            continue
        found += _names(child)
    return found
