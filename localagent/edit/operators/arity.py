"""A call and a definition that disagree on the number or the names of arguments, as a TypeError reports it."""

import re
from collections.abc import Iterator

import libcst as cst

from localagent.domain.outcome import Failure
from localagent.edit.layout import before, movable
from localagent.edit.operator_context import Change, OperatorContext
from localagent.edit.operator_registry import operator
from localagent.edit.operators.calls import callee_name
from localagent.edit.operators.variables import BUILTINS, likeness, names_for
from localagent.edit.precedence import ATOM
from localagent.edit.unit import Expr, Stmt

_TOO_MANY = re.compile(r"([\w.<>]+)\(\) takes (?:from \d+ to )?\d+ positional arguments? but \d+ (?:was|were) given")
_TOO_FEW = re.compile(r"([\w.<>]+)\(\) missing \d+ required (?:positional|keyword-only) arguments?: (.{1,200})")
_UNEXPECTED = re.compile(r"([\w.<>]+)\(\) got an unexpected keyword argument '(\w+)'")
_VALUES = ("None", "0", "[]", "''", "False", "True", "1")


def _definitions(ctx: OperatorContext, name: str) -> Iterator[tuple[Stmt, cst.FunctionDef, int]]:
    """Functions of this name in the unit, each with the offset behind its opening parenthesis."""
    last = name.rsplit(".", 1)[-1]
    for s in ctx.unit.statements:
        if isinstance(s.node, cst.FunctionDef) and s.node.name.value == last and _near(ctx, s):
            yield s, s.node, ctx.unit.text.index(b"(", ctx.unit.span(s.node.name)[1]) + 1


def _near(ctx: OperatorContext, s: Stmt) -> bool:
    return ctx.lines is None or any(s.line <= n <= s.end_line for n in ctx.lines)


def _calls(ctx: OperatorContext, name: str, failure: Failure) -> Iterator[tuple[Expr, cst.Call, float]]:
    """Calls of a name (its class's name for `__init__`), with a bonus on the lines of the traceback."""
    parts = name.split(".")
    last = parts[-2] if parts[-1] == "__init__" and len(parts) > 1 else parts[-1]
    lines = ctx.lines_of(failure)
    for expr, node in ctx.of(cst.Call):
        if callee_name(node) == last:
            yield expr, node, 0.4 if any(n in lines for n in range(expr.line, expr.end_line + 1)) else 0.0


def _spans(ctx: OperatorContext, node: cst.Call) -> list[tuple[int, int]]:
    return [(ctx.unit.span(a)[0], ctx.unit.outer(a.value)[1]) for a in node.args]


def _is_method(ctx: OperatorContext, s: Stmt) -> bool:
    owner = s.suite.owner
    return bool(ctx.span.class_path) if owner is None else isinstance(owner.node, cst.ClassDef)


def _end_of_positional(ctx: OperatorContext, node: cst.FunctionDef, open_at: int) -> tuple[int, str] | None:
    """Where one more parameter goes and what separates it; None where a default or a star would be in its way."""
    params = [*node.params.posonly_params, *node.params.params]
    if not params:
        empty = not node.params.kwonly_params and node.params.star_kwarg is None
        return (open_at, "") if empty and not isinstance(node.params.star_arg, cst.Param) else None
    last = params[-1]
    if last.default is not None:
        return None
    return ctx.unit.outer(last.annotation.annotation if last.annotation else last.name)[1], ", "


@operator("too-many-arguments", prior=1.4)
def too_many_arguments(ctx: OperatorContext) -> Iterator[Change]:
    """More arguments than parameters: the definition takes `self` or one more, or the call passes one less."""
    for failure in ctx.failing_with("TypeError"):
        found = _TOO_MANY.search(failure.message)
        if found is None:
            continue
        name = found.group(1)
        for s, node, open_at in _definitions(ctx, name):
            first = node.params.params[0].name.value if node.params.params else ""
            if _is_method(ctx, s) and first not in ("self", "cls"):
                text = "self, " if ctx.unit.slice(open_at, s.head_end).split(")")[0].strip() else "self"
                yield ctx.splice(s, (open_at, open_at, text), delta=0.6, note="self added")
                if movable(s):
                    yield ctx.splice(s, before(ctx, s, "@staticmethod"), delta=0.2, note="@staticmethod")
            place = _end_of_positional(ctx, node, open_at)
            for rank, param in enumerate(_unbound(ctx, s, node) or ["_"]):
                if place is not None:
                    at, comma = place
                    yield ctx.splice(s, (at, at, comma + param), delta=0.4 - 0.2 * rank, note=f"parameter {param}")
        for expr, call, bonus in _calls(ctx, name, failure):
            spans = _spans(ctx, call)
            for i, (start, end) in enumerate(spans):
                low, high = (start, spans[i + 1][0]) if i + 1 < len(spans) else (spans[i - 1][1] if i else start, end)
                last = 0.2 if i + 1 == len(spans) else 0.0
                yield ctx.splice(expr, (low, high, ""), delta=bonus + last - 0.2, note="argument dropped")
            if isinstance(call.func, cst.Attribute) and ctx.unit.code(call.func.value) in ("self", "cls"):
                start, end = ctx.unit.outer(call.func)
                yield ctx.splice(
                    expr, (start, end, call.func.attr.value), delta=bonus, note=f"{call.func.attr.value} without self"
                )
            if len(spans) > 1 and not any(a.keyword or a.star for a in call.args):
                inner = (spans[0][0], spans[-1][1])
                text = ctx.unit.slice(*inner)
                yield ctx.splice(expr, (*inner, f"({text})"), delta=bonus - 0.3, note="arguments as a tuple")
                yield ctx.splice(expr, (*inner, f"[{text}]"), delta=bonus - 0.4, note="arguments as a list")


def _unbound(ctx: OperatorContext, s: Stmt, node: cst.FunctionDef) -> list[str]:
    """Names that a function reads and nobody around it binds."""
    known = {*ctx.names.visible(node), *ctx.facts.module_names, *ctx.facts.imports, *BUILTINS}
    out: dict[str, None] = {}
    for e in ctx.unit.exprs:
        inside = isinstance(e.node, cst.Name) and s.start <= e.start < s.end and not e.store
        if inside and e.text not in known and e.text not in ("self", "cls"):
            out.setdefault(e.text)
    return list(out)[:4]


@operator("too-few-arguments", prior=1.4)
def too_few_arguments(ctx: OperatorContext) -> Iterator[Change]:
    """Fewer arguments than parameters: the call passes one more or uses `self`, or the parameter becomes optional."""
    for failure in ctx.failing_with("TypeError"):
        found = _TOO_FEW.search(failure.message)
        if found is None:
            continue
        name, missing = found.group(1), re.findall(r"'(\w+)'", found.group(2))
        for s, node, open_at in _definitions(ctx, name):
            params = list(node.params.params)
            names = [p.name.value for p in params]
            if names[:1] == ["self"] and not _is_method(ctx, s):
                end = ctx.unit.span(params[1])[0] if len(params) > 1 else ctx.unit.span(params[0].name)[1]
                yield ctx.splice(s, (open_at, end, ""), delta=0.6, note="self removed")
            for at, param in enumerate(params):
                if param.name.value not in missing or param.default is not None:
                    continue
                end = ctx.unit.outer(param.annotation.annotation if param.annotation else param.name)[1]
                if all(p.default is not None for p in params[at + 1 :]):
                    for rank, value in enumerate(_VALUES):
                        yield ctx.splice(s, (end, end, f"={value}"), delta=-0.1 * rank, note=f"{names[at]}={value}")
                start = ctx.unit.span(param)[0]
                low, high = (start, ctx.unit.span(params[at + 1])[0]) if at + 1 < len(params) else (start, end)
                if low == start and high == end and at:
                    low = ctx.unit.text.rfind(b",", 0, start)
                yield ctx.splice(s, (low, high, ""), delta=-0.3, note=f"parameter {names[at]} dropped")
        for expr, call, bonus in _calls(ctx, name, failure):
            yield from _fed(ctx, expr, call, missing, bonus)


def _fed(ctx: OperatorContext, expr: Expr, node: cst.Call, missing: list[str], bonus: float) -> Iterator[Change]:
    spans = _spans(ctx, node)
    close = spans[-1][1] if spans else ctx.unit.span(node)[1] - 1
    comma = ", " if spans else ""
    known = names_for(ctx, expr.statement)
    offers: dict[str, float] = {}
    if len(missing) > 1 and all(m in known for m in missing):
        offers[", ".join(missing)] = 0.8
    for wanted in missing[:1]:
        for other, near in known.items():
            if ctx.names.kinds.get(other) != "func":
                offers[other] = near + likeness(other, wanted) - 0.2
        for rank, value in enumerate(_VALUES):
            offers.setdefault(value, -0.2 - 0.1 * rank)
        if ctx.span.class_path:
            offers[f"self.{wanted}"] = 0.0
    for text, delta in offers.items():
        yield ctx.splice(expr, (close, close, comma + text), delta=bonus + delta, note=f"argument {text}")
        if spans:
            yield ctx.splice(
                expr, (spans[0][0], spans[0][0], f"{text}, "), delta=bonus + delta - 0.3, note=f"argument {text} first"
            )
    if isinstance(node.func, cst.Attribute) and ctx.span.class_path:
        receiver = node.func.value
        if isinstance(receiver, cst.Name) and receiver.value == ctx.span.class_path[-1]:
            span = ctx.unit.outer(receiver)
            for text in ("self", f"{receiver.value}()"):
                yield ctx.splice(expr, (*span, text), delta=bonus + 0.6, note=f"{receiver.value} -> {text}")


@operator("unexpected-keyword", prior=1.4)
def unexpected_keyword(ctx: OperatorContext) -> Iterator[Change]:
    """A keyword that the callee does not take is renamed, made positional or dropped, or the callee takes it."""
    for failure in ctx.failing_with("TypeError"):
        found = _UNEXPECTED.search(failure.message)
        if found is None:
            continue
        name, keyword = found.groups()
        last = name.rsplit(".", 1)[-1]
        for s, node, open_at in _definitions(ctx, name):
            params = list(node.params.params)
            if params and node.params.star_kwarg is None and not node.params.kwonly_params:
                tail = params[-1]
                held = tail.default or (tail.annotation.annotation if tail.annotation else tail.name)
                end = ctx.unit.outer(held)[1]
                for rank, value in enumerate(_VALUES):
                    text = f", {keyword}={value}"
                    yield ctx.splice(s, (end, end, text), delta=0.0 - 0.1 * rank, note=text[2:])
            for param in params:
                if param.name.value not in ("self", "cls") and param.default is not None:
                    uses = [e for e in ctx.unit.exprs if isinstance(e.node, cst.Name) and e.text == param.name.value]
                    spans = [ctx.unit.span(param.name), *((e.start, e.end) for e in uses if s.start <= e.start < s.end)]
                    splices = sorted((a, b, keyword) for a, b in spans)
                    alike = likeness(param.name.value, keyword)
                    yield ctx.splice(s, *splices, delta=alike - 0.6, note=f"{param.name.value} -> {keyword}")
            del open_at
        for expr, call, bonus in _calls(ctx, name, failure):
            spans = _spans(ctx, call)
            for i, arg in enumerate(call.args):
                if arg.keyword is None or arg.keyword.value != keyword:
                    continue
                start, end = spans[i]
                low, high = (start, spans[i + 1][0]) if i + 1 < len(spans) else (spans[i - 1][1] if i else start, end)
                yield ctx.splice(expr, (low, high, ""), delta=bonus, note=f"{keyword} dropped")
                if i == 0 or call.args[i - 1].keyword is None:
                    value = ctx.unit.code(arg.value)
                    yield ctx.splice(expr, (start, end, value), delta=bonus, note=f"{keyword}= dropped")
                others = {
                    p
                    for facts in (ctx.facts, *ctx.nearby)
                    for known in facts.functions.get(last, [])
                    for p in (*known.params, *known.keyword_only)
                }
                for other in sorted(others - {"self", "cls"}):
                    delta = bonus + likeness(other, keyword) - 0.3
                    span = ctx.unit.span(arg.keyword)
                    yield ctx.splice(expr, (*span, other), delta=delta, note=f"{keyword}= -> {other}=")


@operator("call-through-self", prior=1.2)
def call_through_self(ctx: OperatorContext) -> Iterator[Change]:
    """All calls of a bare name that only the class defines go through `self`, or all lose it."""
    own = ctx.facts.classes.get(ctx.span.class_path[-1]) if ctx.span.class_path else None
    for failure in ctx.failing_with("NameError", "AttributeError", "UnboundLocalError"):
        found = re.search(r"name '(\w+)' is not defined|has no attribute '(\w+)'", failure.message)
        name = next((g for g in found.groups() if g), "") if found else ""
        if not name or own is None:
            continue
        bare = [e for e in ctx.unit.exprs if isinstance(e.node, cst.Name) and e.text == name and not e.store]
        through = [e for e in ctx.unit.exprs if e.text == f"self.{name}" and not e.store]
        if name in own.methods and bare and failure.exception != "AttributeError":
            splices = tuple((e.start, e.end, f"self.{name}") for e in bare)
            yield ctx.splice(bare[0], *splices, delta=0.4, note=f"self.{name} everywhere")
        if through and name not in own.methods:
            there = name in ctx.facts.functions or name in BUILTINS
            splices = tuple((e.start, e.end, name) for e in through)
            yield ctx.splice(through[0], *splices, delta=0.4 if there else -0.4, note=f"{name} without self")
            if len(through) == 1:
                yield ctx.put(through[0], name, ATOM, 0.4 if there else -0.4)
