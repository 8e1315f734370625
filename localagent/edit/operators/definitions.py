"""Definitions: defaults, `self`, decorators, `nonlocal` and `global`, a function's place."""

from collections.abc import Iterator
from itertools import pairwise

import libcst as cst

from localagent.edit.layout import before, is_docstring, movable, reindented, step
from localagent.edit.operator_context import Change, OperatorContext
from localagent.edit.operator_registry import operator
from localagent.edit.unit import Stmt
from localagent.text.visible_text import shortened


def _functions(ctx: OperatorContext) -> Iterator[tuple[Stmt, cst.FunctionDef, Stmt]]:
    """Functions of the unit that hold an active statement, each with the first statement of its body."""
    active = {s.scope for s in ctx.statements} | {s.node for s in ctx.statements}
    for s in ctx.unit.statements:
        if isinstance(s.node, cst.FunctionDef) and s.suites[0].statements and s.node in active:
            rows = s.suites[0].statements
            first = rows[1] if is_docstring(rows[0]) and len(rows) > 1 else rows[0]
            yield s, s.node, first


@operator("mutable-default", prior=-0.8)
def mutable_default(ctx: OperatorContext) -> Iterator[Change]:
    """A mutable default becomes `None`, and the body makes a fresh one."""
    inner = step(ctx)
    for s, node, first in _functions(ctx):
        if not movable(first):
            continue
        for param in (*node.params.params, *node.params.kwonly_params):
            if param.default is None:
                continue
            span = ctx.unit.outer(param.default)
            text, name = ctx.unit.slice(*span), param.name.value
            if text in ("[]", "{}", "set()", "list()", "dict()"):
                guard = before(ctx, first, f"if {name} is None:", f"{inner}{name} = {text}")
                yield ctx.splice(s, (*span, "None"), guard, note=f"{name}=None and a fresh {text}")


@operator("shared-attribute", prior=-0.8)
def shared_attribute(ctx: OperatorContext) -> Iterator[Change]:
    """A container of the class body, which all instances share, is created for each instance in `__init__`."""
    own = ctx.facts.classes.get(ctx.span.class_path[-1]) if ctx.span.class_path else None
    for s, node, first in _functions(ctx):
        if own is None or node.name.value != "__init__" or not movable(first):
            continue
        taken = (*node.params.posonly_params, *node.params.params)
        if not taken or s.suite.owner is not None:
            continue
        head = taken[0].name.value
        for name, text in own.containers:
            line = f"{head}.{name} = {text}"
            yield ctx.splice(s, before(ctx, first, line), note=f"{line} for each instance")


@operator("default-change", prior=-1.2)
def default_change(ctx: OperatorContext) -> Iterator[Change]:
    """A parameter's default becomes another usual value, or a parameter gets or loses one."""
    for s, node, _ in _functions(ctx):
        params = list(node.params.params)
        for at, param in enumerate(params):
            if param.name.value in ("self", "cls"):
                continue
            if param.default is not None:
                span = ctx.unit.outer(param.default)
                old = ctx.unit.slice(*span)
                for text in ("None", "0", "1", "True", "False", "''", "[]", "-1"):
                    if text != old:
                        yield ctx.splice(s, (*span, text), note=f"{param.name.value}={text}")
            elif all(p.default is not None for p in params[at + 1 :]):
                end = ctx.unit.outer(param.annotation.annotation if param.annotation else param.name)[1]
                for text in ("None", "0", "1", "True", "False", "''", "()"):
                    yield ctx.splice(s, (end, end, f"={text}"), delta=-0.6, note=f"{param.name.value}={text}")


@operator("self-parameter", prior=-1.2)
def self_parameter(ctx: OperatorContext) -> Iterator[Change]:
    """A method gets the `self` parameter it lacks, becomes a `@staticmethod`, or a function loses `self`."""
    for s, node, _ in _functions(ctx):
        at = ctx.unit.span(node.name)[1]
        open_at = ctx.unit.text.index(b"(", at) + 1
        names = [p.name.value for p in node.params.params]
        is_method = bool(ctx.span.class_path) and s.suite.owner is None
        if is_method and "self" not in names[:1] and "cls" not in names[:1]:
            has_more = bool(ctx.unit.text[open_at : s.head_end].split(b")")[0].strip())
            yield ctx.splice(s, (open_at, open_at, "self, " if has_more else "self"), note="self added")
            if not node.decorators:
                yield ctx.splice(s, before(ctx, s, "@staticmethod"), delta=-0.2, note="@staticmethod")
        elif names[:1] == ["self"] and not is_method:
            end = (
                ctx.unit.span(node.params.params[1])[0]
                if len(names) > 1
                else ctx.unit.span(node.params.params[0].name)[1]
            )
            yield ctx.splice(s, (open_at, end, ""), note="self removed")
        if is_method and not node.decorators and len(names) <= 1:
            yield ctx.splice(s, before(ctx, s, "@property"), delta=-1.0, note="@property")
        if node.decorators and is_method:
            first = ctx.unit.span(node.decorators[0])[0]
            name_line = ctx.unit.text.rfind(b"def ", 0, at)
            is_async = node.asynchronous is not None
            if not is_async and name_line > first:
                yield ctx.splice(s, (first, name_line, ""), delta=-0.8, note="decorators removed")


@operator("decorator-drop", prior=-1.8)
def decorator_drop(ctx: OperatorContext) -> Iterator[Change]:
    """A function loses one of its decorators."""
    for s, node, _ in _functions(ctx):
        for decorator in node.decorators:
            start, end = ctx.unit.span(decorator)
            low = ctx.unit.text.rfind(b"\n", 0, start) + 1
            high = ctx.unit.text.find(b"\n", end) + 1
            if high and not ctx.unit.slice(low, start).strip() and not ctx.unit.slice(end, high).strip():
                yield ctx.splice(s, (low, high, ""), note=f"{shortened(ctx.unit.slice(start, end), 40)} dropped")


@operator("parameter-order", prior=-1.2)
def parameter_order(ctx: OperatorContext) -> Iterator[Change]:
    """Two parameters of a definition change places, or one more is taken."""
    for s, node, _ in _functions(ctx):
        params = [p for p in node.params.params if p.name.value not in ("self", "cls")]
        for first, second in pairwise(params):
            if (first.default is None) == (second.default is None):
                a = (ctx.unit.span(first)[0], _param_end(ctx, first))
                b = (ctx.unit.span(second)[0], _param_end(ctx, second))
                yield ctx.splice(s, (*a, ctx.unit.slice(*b)), (*b, ctx.unit.slice(*a)), note="parameters swapped")


def _param_end(ctx: OperatorContext, param: cst.Param) -> int:
    if param.default is not None:
        return ctx.unit.outer(param.default)[1]
    return ctx.unit.outer(param.annotation.annotation if param.annotation else param.name)[1]


@operator("outer-name", prior=-1.0, deep=True)
def outer_name(ctx: OperatorContext) -> Iterator[Change]:
    """A name that a function binds and reads is declared `nonlocal` or `global`, or such a declaration is removed."""
    for s, node, first in _functions(ctx):
        if not movable(first):
            continue
        own = ctx.names.bound.get(node, {})
        outer = ctx.names.visible(s.scope) if s.scope is not None else {}
        params = set(ctx.names.params.get(node, ()))
        for name in own:
            if name in params:
                continue
            if name in outer:
                yield ctx.splice(first, before(ctx, first, f"nonlocal {name}"), delta=0.2, note=f"nonlocal {name}")
            if name in ctx.facts.module_names:
                yield ctx.splice(first, before(ctx, first, f"global {name}"), note=f"global {name}")


@operator("function-move", prior=-1.8, deep=True)
def function_move(ctx: OperatorContext) -> Iterator[Change]:
    """An inner definition moves to the start of the function's body."""
    for s, _, first in _functions(ctx):
        for inner in s.suites[0].statements:
            if isinstance(inner.node, cst.FunctionDef) and inner is not first and movable(inner) and movable(first):
                text = reindented(ctx, inner, first.indent)
                if text is not None:
                    splices = (
                        (first.line_start, first.line_start, text + ctx.unit.newline),
                        (inner.line_start, inner.line_end, ""),
                    )
                    yield ctx.splice(s, *splices, note="inner definition moved to the start")
