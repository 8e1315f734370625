"""Words that were left out: `self.`, `await`, `return`, `not`, an import."""

from collections.abc import Iterator

import libcst as cst

from localagent.edit.operator_context import Change, OperatorContext
from localagent.edit.operator_registry import operator
from localagent.edit.operators.variables import BUILTINS
from localagent.edit.precedence import ATOM, AWAIT, fit


@operator("self-add", prior=-0.4)
def self_add(ctx: OperatorContext) -> Iterator[Change]:
    """A bare name that the class defines gets `self.`; the call of an inner function loses it."""
    own = ctx.facts.classes.get(ctx.span.class_path[-1]) if ctx.span.class_path else None
    known = {*own.attributes, *own.methods} if own else set()
    for expr, node in ctx.of_any(cst.Name, cst.Attribute):
        if isinstance(node, cst.Name):
            if node.value in ("self", "cls", "True", "False", "None") or isinstance(
                expr.parent, (cst.Annotation, cst.Param)
            ):
                continue
            bound = node.value in ctx.visible(expr.statement)
            if node.value in known:
                yield ctx.put(expr, f"self.{node.value}", ATOM, -0.5 if bound else 0.8)
            elif own and not bound and node.value not in BUILTINS:
                yield ctx.put(expr, f"self.{node.value}", ATOM, -0.8)
        elif isinstance(node.value, cst.Name) and node.value.value in ("self", "cls"):
            name = node.attr.value
            there = name in ctx.visible(expr.statement) or name in ctx.facts.module_names or name in BUILTINS
            yield ctx.put(expr, name, ATOM, 0.6 if there and name not in known else -0.8)


@operator("await", prior=-0.6, deep=True)
def await_keyword(ctx: OperatorContext) -> Iterator[Change]:
    """`await` is put before a call in an async function, or dropped."""
    for expr, node in ctx.of_any(cst.Call, cst.Await):
        if isinstance(node, cst.Await):
            yield ctx.put(expr, ctx.unit.code(node.expression), ATOM)
            continue
        scope = ctx.function(expr.statement)
        if scope is not None and scope.asynchronous is not None and not isinstance(expr.parent, cst.Await):
            yield ctx.put(expr, f"await {fit(expr.text, expr.level, ATOM)}", AWAIT, 0.3)
