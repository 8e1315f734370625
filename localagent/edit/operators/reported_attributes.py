"""Edits that a report of a missing attribute or method suggests."""

from collections.abc import Collection, Iterator, Mapping

import libcst as cst

from localagent.code.builtin_types import ATTRIBUTES, IMPORTS, SYNONYMS
from localagent.code.name_lexicon import meant_by
from localagent.domain.edit import EditEffect
from localagent.domain.outcome import Failure
from localagent.edit.edit_effects import has_arguments
from localagent.edit.failure_hints import missing_attribute, placed, undefined
from localagent.edit.operator_context import Change, OperatorContext
from localagent.edit.operator_registry import operator
from localagent.edit.operators.attributes import known_attributes, members
from localagent.edit.operators.calls import callee_name
from localagent.edit.operators.everywhere import repeated, together
from localagent.edit.operators.variables import BUILTINS, likeness
from localagent.edit.precedence import ATOM, LAMBDA, binding
from localagent.edit.unit import Expr

_CALLED = 0.6  # for what its class stores, and does not define as a method
_LEAST_LETTERS, _INSIDE = 4, 0.8
_SPELT = 0.7  # how alike a name in scope is to what was asked of `self`
_OF_NONE = 1.2  # None lacks whatever is asked of it: seldom is the attribute what is wrong


@operator("missing-attribute", prior=1.8, effects={EditEffect.MENDS_NAME, EditEffect.EXPLAINED})
def another_attribute(ctx: OperatorContext) -> Iterator[Change]:
    """An attribute that the type lacks becomes one it has, Python's form of another language's one, or is dropped."""
    for failure in ctx.failing_with("AttributeError"):
        found = missing_attribute(failure)
        if found is None:
            continue
        kind, name = found
        for expr, node in ctx.of(cst.Attribute):
            if node.attr.value != name:
                continue
            bonus = placed(ctx, failure, expr.line, expr.end_line) - (_OF_NONE if kind == "NoneType" else 0.0)
            span = ctx.unit.span(node.attr)
            methods, data, whole = members(ctx, kind)
            offers = dict.fromkeys(ATTRIBUTES.get(kind, ()), 0.0)
            for other in (*data, *methods):
                if other not in offers and not other.startswith("__"):
                    offers[other] = 0.3
            called = isinstance(expr.parent, cst.Call) and expr.parent.func is node
            if not whole:  # what stands elsewhere may be what is known of the receiver by its use
                offers = {**known_attributes(ctx, node.value, name), **offers}
            for other, near in offers.items():
                if other != name:
                    delta = bonus + near + 1.2 * _likeness(name, other) - 0.8 - (_CALLED * (called and other in data))
                    yield ctx.splice(expr, (*span, other), delta=delta, old=f".{name}", new=f".{other}")
            yield ctx.put(expr, ctx.unit.code(node.value), ATOM, bonus - 0.6)
            yield from _uncalled(ctx, expr, offers, data, bonus)
            yield ctx.put(
                expr, name, ATOM, bonus + (0.2 if name in ctx.visible(expr.statement) or name in BUILTINS else -0.8)
            )
            yield from _synonyms(ctx, expr, node, bonus)
            if isinstance(node.value, cst.Name) and node.value.value in ("self", "cls"):
                for other in ctx.visible(expr.statement):
                    if other != name and likeness(name, other) > _SPELT:
                        yield ctx.put(expr, other, ATOM, bonus + 1.2 * likeness(name, other) - 0.8)


def _likeness(name: str, other: str) -> float:
    """As `likeness`; what stands inside an invented name (`moveleft`, `left`) is alike as well."""
    inside = len(other) >= _LEAST_LETTERS and other.lower() in name.lower()
    return max(likeness(name, other), _INSIDE if inside else 0.0)


def _uncalled(
    ctx: OperatorContext, expr: Expr, offers: Mapping[str, float], data: Collection[str], bonus: float
) -> Iterator[Change]:
    """The call of a missing method becomes an attribute that is there, or the receiver."""
    node = expr.node
    if not isinstance(expr.parent, cst.Call) or expr.parent.func is not node or not isinstance(node, cst.Attribute):
        return
    start, end = ctx.unit.outer(expr.parent)
    receiver = ctx.unit.code(node.value)
    if not expr.parent.args:
        for other in offers:
            text, alike = f"{receiver}.{other}", _likeness(node.attr.value, other)
            delta = bonus + 1.2 * alike - 0.9 + (_CALLED if other in data else 0.0)
            yield ctx.splice(expr, (start, end, text), delta=delta, old=f"{expr.text}()", new=text)
        yield ctx.splice(expr, (start, end, receiver), delta=bonus - 0.6, old=f"{expr.text}()", new=receiver)


def _synonyms(ctx: OperatorContext, expr: Expr, node: cst.Attribute, bonus: float) -> Iterator[Change]:
    templates = SYNONYMS.get(node.attr.value, ())
    call = next((e for e in ctx.exprs if isinstance(e.node, cst.Call) and e.node.func is node), None)
    target = call or expr
    args = (
        [ctx.unit.code(a.value) for a in call.node.args] if call is not None and isinstance(call.node, cst.Call) else []
    )
    receiver = ctx.unit.code(node.value)
    for place, template in enumerate(templates):
        text = (
            template.replace("{x}", receiver)
            .replace("{a0}", args[0] if args else "")
            .replace("{a1}", args[1] if len(args) > 1 else "")
            .replace("{a}", ", ".join(args))
        )
        yield ctx.put(target, text, LAMBDA if " " in text else ATOM, bonus + 1.0 - 0.2 * place)
        if "=" in text and isinstance(target.parent, cst.Expr):
            yield ctx.splice(target, (target.start, target.end, text), delta=bonus + 1.0 - 0.2 * place, note=text)


@operator("missing-method-meaning", prior=1.8, effects={EditEffect.MENDS_NAME})
def missing_method_meaning(ctx: OperatorContext) -> Iterator[Change]:
    """A call of a missing function becomes what the words of its name mean: `a % b` for `self.remainder(a, b)`."""
    for failure in ctx.failing_with("AttributeError", "NameError"):
        for expr, node, name in _called(ctx, failure):
            if name in IMPORTS or any(a.keyword is not None or a.star for a in node.args):
                continue
            given = [*_receiver(ctx, node), *(a.value for a in node.args)]
            said = {}
            for value, bare, operand in zip(given, ("a0", "a1"), ("x", "y"), strict=False):
                said[bare] = text = ctx.unit.code(value)
                said[operand] = text if binding(value) == ATOM or text.isdigit() else f"({text})"
            bonus = placed(ctx, failure, expr.line, expr.end_line)
            for template, less in meant_by(name, len(given), alone=isinstance(expr.parent, cst.Expr)):
                text = template.format(**said)
                level = _level(text)
                if level is not None:
                    yield ctx.put(expr, text, level, bonus - less)


def _receiver(ctx: OperatorContext, node: cst.Call) -> Iterator[cst.BaseExpression]:
    """The object of a method, which is one of its arguments; not `self`, a class or a module."""
    if isinstance(node.func, cst.Attribute):
        value = node.func.value
        namespaces = ("self", "cls", *ctx.facts.classes, *ctx.facts.imports)
        if not (isinstance(value, cst.Name) and value.value in namespaces):
            yield value


def _level(text: str) -> int | None:
    """How tightly an expression binds; None where the text is none (`2.copy()`)."""
    try:
        return binding(cst.parse_expression(text))
    except cst.ParserSyntaxError:
        return None


def _called(ctx: OperatorContext, failure: Failure) -> Iterator[tuple[Expr, cst.Call, str]]:
    """The calls of what a failure says is missing, and its name."""
    found = missing_attribute(failure)
    name = found[1] if found else undefined(failure)
    for expr, node in ctx.of(cst.Call):
        if name and callee_name(node) == name:
            yield expr, node, name


@operator("missing-everywhere", prior=2.0, effects={EditEffect.MENDS_NAME})
def missing_everywhere(ctx: OperatorContext) -> Iterator[Change]:
    """A missing name or attribute is corrected at all its places in a function at once."""
    for name in ("missing-attribute", "missing-method-meaning"):
        for changes in repeated(ctx, name):
            yield together(changes, max(c.delta for c in changes))


@operator(
    "missing-method-body", prior=1.0, effects={EditEffect.REPLACES_CALL, EditEffect.MENDS_NAME, EditEffect.INVENTS}
)
def missing_method_body(ctx: OperatorContext) -> Iterator[Change]:
    """A call of a missing function becomes one of its arguments, a known function of them, or a value."""
    for change in _bodies(ctx):
        lost = () if "(" in change.new else (EditEffect.DROPS_CALL,)
        calls = (EditEffect.CALLS_WITH_ARGUMENTS,) if has_arguments(change.new) else ()
        yield change.having(*lost, *calls)


def _bodies(ctx: OperatorContext) -> Iterator[Change]:
    for failure in ctx.failing_with("AttributeError", "NameError"):
        for expr, node, name in _called(ctx, failure):
            bonus = placed(ctx, failure, expr.line, expr.end_line)
            args = [ctx.unit.code(a.value) for a in node.args]
            for place, text in enumerate(args):
                yield ctx.put(expr, text, LAMBDA, bonus + 0.4 - 0.2 * place)
            for text in args[:1]:
                for wrap in ("len", "sorted", "list", "sum", "max", "min", "set", "str", "int", "abs"):
                    yield ctx.put(expr, f"{wrap}({text})", ATOM, bonus + 0.3 * likeness(wrap, name))
                    yield ctx.put(expr, f"list({text}.values())", ATOM, bonus - 0.2)
                for method in ("lower", "upper", "strip", "sort", "copy", "values", "keys", "items", "pop", "reverse"):
                    delta = bonus + 0.8 * likeness(method, name) - 0.3
                    yield ctx.put(expr, f"{text}.{method}()", ATOM, delta)
            if len(args) == 2:
                for op in ("+", "-", "*", "//", "%", "in", "==", "<", ">", "and", "or"):
                    yield ctx.put(expr, f"({args[0]} {op} {args[1]})", ATOM, bonus - 0.3)
            for other in ctx.facts.functions:
                if other != name and not other.startswith("__"):
                    prefix = "self." if ctx.facts.functions[other][0].is_method else ""
                    text = f"{prefix}{other}({', '.join(args)})"
                    yield ctx.put(expr, text, ATOM, bonus + 0.8 * likeness(other, name) - 0.2)
            for constant in (*list(ctx.facts.constants)[:20], "''", "0", "[]"):
                alike = likeness(constant.strip("'\"").lower(), name.lower())
                yield ctx.put(expr, constant, ATOM, bonus + alike - 0.5)
