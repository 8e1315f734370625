"""Attributes and methods that the receiver is known to have."""

from collections.abc import Iterator

import libcst as cst

from localagent.code.builtin_types import ATTRIBUTES, PAIRS
from localagent.edit.failure_hints import missing_attribute
from localagent.edit.operator_context import Change, OperatorContext
from localagent.edit.operator_registry import operator
from localagent.edit.operators.variables import likeness
from localagent.edit.precedence import ATOM, fit

_MOST_CLASSES = 8  # a class and its bases
_LACKING = 2.0  # for what the type is known to lack as well
_SAME_ROLE = 0.8  # a name that this unit calls where one is called, or reads where one is read
_PAIRED: dict[str, dict[str, float]] = {}
for _group in PAIRS:
    for _at, _name in enumerate(_group):
        for _other_at, _other in enumerate(_group):
            if _other != _name:
                _PAIRED.setdefault(_name, {}).setdefault(_other, 0.1 - 0.05 * abs(_at - _other_at))


def known_attributes(ctx: OperatorContext, receiver: cst.BaseExpression, old: str = "") -> dict[str, float]:
    """Attributes to try on a receiver: paired, of its kind, of its class, seen on it, seen at all."""
    found: dict[str, float] = dict(_PAIRED.get(old, {}))
    kind = ctx.names.kind(receiver)
    for name in ATTRIBUTES.get(kind, ()):
        found.setdefault(name, -0.9)
    last = receiver.value if isinstance(receiver, cst.Name) else ""
    if isinstance(receiver, cst.Attribute):
        last = receiver.attr.value
    if last in ("self", "cls") and ctx.span.class_path:
        own = ctx.facts.classes.get(ctx.span.class_path[-1])
        for name in (*own.attributes, *own.methods) if own else ():
            found[name] = max(found.get(name, -9.0), -0.1)
    for facts, less in ((ctx.facts, 0.0), *((f, 0.6) for f in ctx.nearby)):
        for name in facts.attributes_of.get(last, ()):
            found[name] = max(found.get(name, -9.0), -0.2 - less)
    if not kind:
        for name, count in ctx.facts.attributes.most_common(80):
            found.setdefault(name, -1.2 + min(count, 10) * 0.02)
        for owner in ctx.facts.classes.values():
            for name in (*owner.attributes, *owner.methods):
                found.setdefault(name, -1.2)
    found.pop(old, None)
    return found


def members(ctx: OperatorContext, kind: str) -> tuple[dict[str, None], dict[str, None], bool]:
    """The methods of a class of this file or one nearby and of its bases, what else they store, and if that is all.

    It is not all where a base, or the class, stands somewhere else and is none of Python's common types.
    """
    methods: dict[str, None] = {}
    stored: dict[str, None] = {}
    todo, seen, whole = [kind], set[str](), True
    while todo:
        name = todo.pop(0)
        if name in seen or name == "object":
            continue
        seen.add(name)
        owners = (facts.classes.get(name) for facts in (ctx.facts, *ctx.nearby))
        owner = next((each for each in owners if each is not None), None)
        if owner is not None and len(seen) <= _MOST_CLASSES:
            methods |= dict.fromkeys(owner.methods)
            stored |= dict.fromkeys(owner.attributes)
            todo += owner.bases
        else:
            methods |= dict.fromkeys(ATTRIBUTES.get(name, ()))
            whole = whole and name in ATTRIBUTES
    return methods, {name: None for name in stored if name not in methods}, whole


def _had(ctx: OperatorContext) -> dict[str, set[str]]:
    """Of attributes that a failure says are lacking: what else the type has, where that is known."""
    found: dict[str, set[str]] = {}
    for failure in ctx.failing_with("AttributeError"):
        kind, name = missing_attribute(failure) or ("", "")
        methods, stored, whole = members(ctx, kind)
        if whole:
            found.setdefault(name, set()).update(methods, stored)
    return found


def _roles(ctx: OperatorContext) -> dict[bool, set[str]]:
    """Attribute names of the unit: those that it calls (True) and those that it only reads or stores (False)."""
    roles: dict[bool, set[str]] = {True: set(), False: set()}
    for expr in ctx.unit.exprs:
        if isinstance(expr.node, cst.Attribute):
            roles[expr.is_called].add(expr.node.attr.value)
    return roles


@operator("attribute-swap", prior=0.0)
def attribute_swap(ctx: OperatorContext) -> Iterator[Change]:
    """An attribute or method becomes another one of its object; opposites, similar ones and those used here first."""
    roles, had = _roles(ctx), _had(ctx)
    for expr, node in ctx.of(cst.Attribute):
        span = ctx.unit.span(node.attr)
        old = node.attr.value
        called = expr.is_called
        same_role = roles[called]
        for name, delta in known_attributes(ctx, node.value, old).items():
            likely = delta + 0.4 * likeness(old, name) - 0.15
            if name in same_role:
                likely += _SAME_ROLE
            if name.startswith("__") or (called and name.isupper()):
                likely -= 1.0
            if old in had and name not in had[old]:
                likely -= _LACKING
            yield ctx.splice(expr, (*span, name), delta=likely, note=f".{old} -> .{name}")


@operator("attribute-drop", prior=-0.8)
def attribute_drop(ctx: OperatorContext) -> Iterator[Change]:
    """An attribute access or a method call is dropped: `x.next` to `x`, `x.copy()` to `x`."""
    for expr, node in ctx.of_any(cst.Attribute, cst.Call):
        if isinstance(node, cst.Attribute):
            if not (isinstance(expr.parent, cst.Call) and expr.parent.func is node):
                yield ctx.put(expr, ctx.unit.code(node.value), ATOM)
        elif isinstance(node.func, cst.Attribute):
            yield ctx.put(expr, ctx.unit.code(node.func.value), ATOM, -0.2)
            yield ctx.put(expr, ctx.unit.code(node.func), ATOM, -0.6)


@operator("attribute-add", prior=-1.6)
def attribute_add(ctx: OperatorContext) -> Iterator[Change]:
    """A name gets an attribute seen on it, or its kind's usual method: `node` to `node.next`, `d` to `d.items()`."""
    methods = {"dict": ("items()", "values()", "keys()", "copy()"), "list": ("copy()", "pop()"), "set": ("copy()",)}
    methods |= {
        "str": ("lower()", "strip()", "split()", "upper()"),
        "Counter": ("items()", "values()", "most_common()"),
    }
    for expr in ctx.exprs:
        node = expr.node
        if not isinstance(node, (cst.Name, cst.Attribute, cst.Subscript)) or isinstance(
            expr.parent, (cst.Attribute, cst.Annotation, cst.Decorator, cst.Param)
        ):
            continue
        if isinstance(expr.parent, cst.Call) and expr.parent.func is node:
            continue
        base = fit(expr.text, expr.level, ATOM)
        last = node.value if isinstance(node, cst.Name) else node.attr.value if isinstance(node, cst.Attribute) else ""
        if last in ("self", "cls", "True", "False", "None"):
            continue
        for name, count in ctx.facts.attributes_of.get(str(last), {}).items():
            yield ctx.put(expr, f"{base}.{name}", ATOM, min(count, 6) * 0.05)
        if not expr.store:
            for name in methods.get(ctx.kind(expr), ()):
                yield ctx.put(expr, f"{base}.{name}", ATOM, -0.2)


@operator("call-add", prior=-1.2)
def call_add(ctx: OperatorContext) -> Iterator[Change]:
    """A method that is only named gets its call: `x.keys` to `x.keys()`; a call without arguments loses it."""
    for expr, node in ctx.of_any(cst.Attribute, cst.Name):
        if expr.store or isinstance(expr.parent, (cst.Call, cst.Attribute, cst.Annotation, cst.Decorator)):
            continue
        name = node.attr.value if isinstance(node, cst.Attribute) else node.value
        known = name in ctx.facts.functions or any(name in a for a in ATTRIBUTES.values())
        if known and (isinstance(node, cst.Attribute) or name in ctx.facts.functions):
            yield ctx.put(expr, f"{expr.text}()", ATOM, 0.3 if isinstance(node, cst.Attribute) else -0.6)
    for expr, call in ctx.of(cst.Call):
        if not call.args and not isinstance(expr.parent, cst.Expr):
            yield ctx.put(expr, ctx.unit.code(call.func), ATOM, -0.6)
