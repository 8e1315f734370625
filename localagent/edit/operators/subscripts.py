"""Indexes and slices."""

from collections.abc import Iterator

import libcst as cst

from localagent.domain.edit import EditEffect
from localagent.edit.operator_context import Change, OperatorContext
from localagent.edit.operator_registry import operator
from localagent.edit.operators.variables import names_for
from localagent.edit.precedence import ATOM, fit
from localagent.edit.unit import Expr

_REST = 1.6  # what is left of a sequence of which the unit takes the other part
_SEQUENCES = frozenset({"list", "str", "tuple", "bytes", "deque", ""})


@operator("index-drop", prior=-0.3)
def index_drop(ctx: OperatorContext) -> Iterator[Change]:
    """An index or slice is dropped: `x[0]` to `x`."""
    for expr, node in ctx.of(cst.Subscript):
        if not expr.store:
            delta = (
                0.0 if isinstance(node.slice[0].slice, cst.Slice) or ctx.unit.code(node.slice[0]).isdigit() else -0.6
            )
            yield ctx.put(expr, ctx.unit.code(node.value), ATOM, delta)


@operator("index-usual", prior=-0.3)
def index_usual(ctx: OperatorContext) -> Iterator[Change]:
    """An index becomes `0`, `1`, `-1`, `-2`, its negative, or a slice from or up to it."""
    for expr, node in ctx.of(cst.Subscript):
        if len(node.slice) != 1 or not isinstance(node.slice[0].slice, cst.Index):
            continue
        index = node.slice[0].slice.value
        start, end = ctx.unit.outer(index)
        old = ctx.unit.slice(start, end)
        if old[:1] in "'\"" or "," in old:
            continue
        for new in ("0", "1", "-1", "-2"):
            if new != old:
                yield ctx.splice(expr, (start, end, new), delta=0.0, note=f"[{old}] -> [{new}]")
        if not expr.store:
            for new in (f"{old}:", f":{old}", f"{old} + 1:", f":{old} + 1"):
                yield ctx.splice(expr, (start, end, new), delta=-1.2, note=f"[{old}] -> [{new}]")


@operator("index-order", prior=-0.6)
def index_order(ctx: OperatorContext) -> Iterator[Change]:
    """Two indexes change places: `m[i][j]` to `m[j][i]`, `m[i, j]` to `m[j, i]`."""
    for expr, node in ctx.of(cst.Subscript):
        if len(node.slice) == 2:
            first, second = (ctx.unit.span(e.slice) for e in node.slice)
            a, b = ctx.unit.slice(*first), ctx.unit.slice(*second)
            yield ctx.splice(expr, (*first, b), (*second, a), note=f"[{a}, {b}] -> [{b}, {a}]")
        if isinstance(node.value, cst.Subscript) and len(node.slice) == len(node.value.slice) == 1:
            first, second = ctx.unit.span(node.value.slice[0].slice), ctx.unit.span(node.slice[0].slice)
            a, b = ctx.unit.slice(*first), ctx.unit.slice(*second)
            if a != b:
                yield ctx.splice(expr, (*first, b), (*second, a), note=f"[{a}][{b}] -> [{b}][{a}]")


@operator("slice-bounds", prior=-0.2, effects={EditEffect.MOVES_BOUNDARY})
def slice_bounds(ctx: OperatorContext) -> Iterator[Change]:
    """A bound of a slice is dropped, moved to the other side, or gets a step of -1."""
    for expr, node in ctx.of(cst.Subscript):
        if len(node.slice) != 1 or not isinstance(node.slice[0].slice, cst.Slice):
            continue
        part = node.slice[0].slice
        start, end = ctx.unit.span(part)
        low = ctx.unit.code(part.lower) if part.lower else ""
        high = ctx.unit.code(part.upper) if part.upper else ""
        step = ctx.unit.code(part.step) if part.step else ""
        tail = f":{step}" if step else ""
        offers = [("", high, tail, 0.0), (low, "", tail, 0.0), (high, low, tail, 0.0), (low, high, "", 0.0)]
        offers += [(low, high, ":-1", -1.0), (low, high, ":2", -1.5), ("", "", ":-1", -0.8)]
        if not low:
            offers += [("1", high, tail, 0.0)]
        if not high:
            offers += [(low, "-1", tail, 0.0)]
        if low and not high:
            offers += [(f"{low} + 1", "", tail, 0.0), (f"-{fit(low, 0, 13)}", "", tail, -0.6)]
        for a, b, c, delta in offers:
            yield ctx.splice(expr, (start, end, f"{a}:{b}{c}"), delta=delta, note=f"slice {a}:{b}{c}")


@operator("slice-bound-name", prior=-2.0)
def slice_bound_name(ctx: OperatorContext) -> Iterator[Change]:
    """A missing bound of a slice becomes a name in scope, alone or with one added or taken."""
    for expr, node in ctx.of(cst.Subscript):
        if len(node.slice) != 1 or not isinstance(node.slice[0].slice, cst.Slice):
            continue
        part = node.slice[0].slice
        start, end = ctx.unit.span(part)
        low = ctx.unit.code(part.lower) if part.lower else ""
        high = ctx.unit.code(part.upper) if part.upper else ""
        for name, near in _counts(ctx, expr):
            for text, delta in ((name, 0.0), (f"{name} + 1", -0.3), (f"{name} - 1", -0.5)):
                if not high:
                    yield ctx.splice(expr, (start, end, f"{low}:{text}"), delta=near + delta, note=f"up to {text}")
                if not low:
                    yield ctx.splice(expr, (start, end, f"{text}:{high}"), delta=near + delta, note=f"from {text}")


def _counts(ctx: OperatorContext, expr: Expr) -> list[tuple[str, float]]:
    statement = expr.statement
    names = names_for(ctx, statement).items()
    usable = [(n, d) for n, d in names if ctx.names.kinds.get(n, "") in ("int", "") and n not in ("self", "cls")]
    return sorted((x for x in usable if x[0] in ctx.visible(statement)), key=lambda x: -x[1])[:8]


def _rests(ctx: OperatorContext) -> dict[str, list[str]]:
    """What the unit's slices leave over, by what is sliced: `x[:k]` leaves `k:`, `x[k:]` leaves `:k`."""
    found: dict[str, list[str]] = {}
    for expr in ctx.unit.exprs:
        if isinstance(expr.node, cst.Subscript) and len(expr.node.slice) == 1:
            part = expr.node.slice[0].slice
            if not isinstance(part, cst.Slice) or part.step is not None or (part.lower and part.upper):
                continue
            if (bound := part.upper or part.lower) is not None:
                rest = f"{ctx.unit.code(bound)}:" if part.upper is bound else f":{ctx.unit.code(bound)}"
                offers = found.setdefault(ctx.unit.code(expr.node.value), [])
                if rest not in offers:
                    offers.append(rest)
    return found


@operator("index-add", prior=-1.8)
def index_add(ctx: OperatorContext) -> Iterator[Change]:
    """A name gets an index or slice: `x` to `x[0]`, `x[-1]`, `x[i]`, `x[1:]`, `x[k:]`; rests of slices first."""
    rests = _rests(ctx)
    for expr in ctx.exprs:
        if not isinstance(expr.node, (cst.Name, cst.Attribute, cst.Subscript)) or expr.in_fstring:
            continue
        if isinstance(expr.parent, (cst.Attribute, cst.Call, cst.Annotation, cst.Decorator, cst.Param)):
            continue
        if expr.text in ("True", "False", "None", "self", "cls") or ctx.kind(expr) in ("int", "bool", "func", "float"):
            continue
        base = fit(expr.text, expr.level, ATOM)
        delta = 0.3 if ctx.kind(expr) in _SEQUENCES - {""} else 0.0
        for text, plus in (("0", 0.1), ("-1", 0.1), ("1", -0.3)):
            yield ctx.put(expr, f"{base}[{text}]", ATOM, delta + plus)
        if not expr.store:
            for text, plus in (("1:", 0.2), (":-1", 0.1), ("::-1", -0.2), (":", -0.5)):
                yield ctx.put(expr, f"{base}[{text}]", ATOM, delta + plus)
        if not expr.store:
            for text in rests.get(expr.text, ()):
                yield ctx.put(expr, f"{base}[{text}]", ATOM, delta + _REST)
        for name, near in _counts(ctx, expr):
            if name in expr.text.split("."):
                continue
            yield ctx.put(expr, f"{base}[{name}]", ATOM, delta + near)
            if not expr.store:
                yield ctx.put(expr, f"{base}[{name}:]", ATOM, delta + near - 0.5)
                yield ctx.put(expr, f"{base}[:{name}]", ATOM, delta + near - 0.5)
