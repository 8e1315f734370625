"""Any expression of the function in any other's place, and new ones joined from names at hand."""

import heapq
import re
from collections.abc import Iterator, Sequence

import libcst as cst

from localagent.domain.edit import EditEffect
from localagent.edit.operator_context import Change, OperatorContext
from localagent.edit.operator_registry import operator
from localagent.edit.operators.logic import is_test, known_conditions
from localagent.edit.operators.variables import likeness, names_for
from localagent.edit.precedence import ADD, ATOM, COMPARE, fit
from localagent.edit.unit import Expr

_PER_PLACE = 70
_RELATED = 1.5  # two values that are compared are of one measure; what is made of a list is often added to it
_MAX_TEXT = 90
_ALIKE = 0.5  # what another expression of the same form gains at most by being spelt alike
_NEVER = (cst.Arg, cst.Element, cst.SimpleString, cst.Yield, cst.Tuple, cst.Annotation, cst.StarredElement)


def replaceable(expr: Expr) -> bool:
    """Whether another expression may stand in this one's place."""
    if isinstance(expr.parent, (cst.Annotation, cst.Decorator, cst.Expr, cst.Param)):
        return isinstance(expr.parent, cst.Expr) and isinstance(expr.node, cst.Call)
    if isinstance(expr.parent, cst.Call) and expr.parent.func is expr.node:
        return False
    return not expr.store and not isinstance(expr.parent, cst.ConcatenatedString)


def _usable(expr: Expr) -> bool:
    return (
        not isinstance(expr.node, _NEVER)
        and len(expr.text) <= _MAX_TEXT
        and "\n" not in expr.text
        and not expr.store
        and not isinstance(expr.parent, (cst.Annotation, cst.Decorator))
        and not (isinstance(expr.parent, cst.Call) and expr.parent.func is expr.node)
    )


@operator("ingredient", prior=-1.6, effects={EditEffect.REUSES_EXPRESSION})
def ingredient(ctx: OperatorContext) -> Iterator[Change]:
    """Any expression of the function replaces any other; same form, same kind, near and similar ones first."""
    offers = [e for e in ctx.distinct().values() if _usable(e)]
    for expr in ctx.exprs:
        if not replaceable(expr) or isinstance(expr.node, _NEVER):
            continue
        others = [e for e in offers if e.text != expr.text and _visible(ctx, e, expr)]
        for delta, other in _nearest(ctx, expr, others):
            if expr.in_fstring and set(other.text) & set("'\"{}\\:!"):
                continue
            yield ctx.put(expr, other.text, other.level, delta)


def _visible(ctx: OperatorContext, other: Expr, at: Expr) -> bool:
    local = ctx.names.comprehension.get(id(other.statement))
    if not local or other.statement is at.statement:
        return True
    return not any(name in other.text for name in local)


def _nearest(ctx: OperatorContext, at: Expr, others: Sequence[Expr]) -> list[tuple[float, Expr]]:
    """The best of them with their worth, best first; how alike two are is dear, and asked where it may matter."""
    worth = [_nearness(ctx, at, other) for other in others]
    short = len(at.text) <= _MAX_TEXT
    most = [
        w + (_ALIKE if short and type(at.node) is type(o.node) else 0.0) for w, o in zip(worth, others, strict=True)
    ]
    best: list[tuple[float, int]] = []  # (worth, -place), the worst in front
    for k in sorted(range(len(others)), key=lambda k: -most[k]):
        if len(best) == _PER_PLACE and most[k] < best[0][0]:
            break
        alike = _ALIKE * likeness(at.text, others[k].text) if most[k] > worth[k] else 0.0
        heapq.heappush(best, (worth[k] + alike, -k))
        if len(best) > _PER_PLACE:
            heapq.heappop(best)
    return [(delta, others[-k]) for delta, k in sorted(best, reverse=True)]


def _nearness(ctx: OperatorContext, at: Expr, other: Expr) -> float:
    delta = -min(abs(at.line - other.line), 40) * 0.02 - len(other.text) * 0.006
    if type(at.node) is type(other.node):
        delta += 0.5
    a, b = ctx.kind(at), ctx.kind(other)
    if a and b:
        delta += 0.2 if a == b else -0.7
    if at.text in other.text or other.text in at.text:
        delta += 0.3
    return delta


@operator("operand-add", prior=-2.2)
def operand_add(ctx: OperatorContext) -> Iterator[Change]:
    """A name in scope is added to or subtracted from a number, or joined to a list or string; related names first."""
    related = _related(ctx)
    for expr in ctx.exprs:
        if not replaceable(expr) or expr.in_fstring or not isinstance(expr.node, _JOINABLE):
            continue
        if expr.text in ("self", "cls", "True", "False", "None") or ctx.kind(expr) in ("bool", "func", "dict", "none"):
            continue
        kind = ctx.kind(expr)
        if isinstance(expr.parent, (cst.Attribute, cst.BooleanOperation)):
            continue
        base = fit(expr.text, expr.level, ADD)
        for name, near in _operands(ctx, expr):
            other = ctx.names.kinds.get(name, "")
            delta = near + (0.3 if kind and kind == other else -0.8 if kind and other else 0.0)
            if name in related.get(expr.text, ()):
                delta += _RELATED
            for op in "+-" if kind in ("int", "float", "") else "+":
                yield ctx.put(expr, f"{base} {op} {name}", ADD, delta - (0.2 if op == "-" else 0.0))
            if kind in ("list", "str", "") and other in ("list", "str", ""):
                yield ctx.put(expr, f"{name} + {fit(expr.text, expr.level, ADD + 1)}", ADD, delta - 0.4)
            if kind in ("int", "float", "") and other in ("int", "float", ""):
                yield ctx.put(expr, f"{fit(expr.text, expr.level, 12)} * {name}", 12, delta - 0.8)


def _related(ctx: OperatorContext) -> dict[str, set[str]]:
    """What goes with what, by text: of `k >= n`, n with k and k with n; with a list comprehension what it walks."""
    found: dict[str, set[str]] = {}
    for expr in ctx.unit.exprs:
        if isinstance(expr.node, cst.Comparison) and len(expr.node.comparisons) == 1:
            left, right = ctx.unit.code(expr.node.left), ctx.unit.code(expr.node.comparisons[0].comparator)
            found.setdefault(left, set()).add(right)
            found.setdefault(right, set()).add(left)
        elif isinstance(expr.node, cst.ListComp):
            found.setdefault(expr.text, set()).add(ctx.unit.code(expr.node.for_in.iter))
    return found


_JOINABLE = (
    cst.Name,
    cst.Call,
    cst.Subscript,
    cst.BinaryOperation,
    cst.Attribute,
    cst.List,
    cst.ListComp,
    cst.SimpleString,
    cst.Integer,
)


def _operands(ctx: OperatorContext, expr: Expr) -> list[tuple[str, float]]:
    seen = ctx.visible(expr.statement)
    names = [(n, d) for n, d in names_for(ctx, expr.statement).items() if n in seen and n not in ("self", "cls")]
    names = [(n, d) for n, d in names if ctx.names.kinds.get(n, "") not in ("bool", "func", "dict", "set", "none")]
    return sorted(names, key=lambda x: -x[1])[:8]


@operator("element-add", prior=-2.0)
def element_add(ctx: OperatorContext) -> Iterator[Change]:
    """A list, tuple or set display gets a name in scope or a known constant as another element; `[]` its first."""
    for expr, node in ctx.of_any(cst.List, cst.Tuple, cst.Set):
        if expr.store:
            continue
        yield from _constant_added(ctx, expr, node)
        if len(node.elements) > 5:
            continue
        names = [n for n, _ in _operands(ctx, expr)]
        if not node.elements:
            for text in (*names, "0", "1", "''", "[]"):
                yield ctx.put(expr, f"[{text}]", ATOM, 0.2)
        else:
            end = ctx.unit.outer(node.elements[-1].value)[1]
            for text in (*names, "0", "1"):
                yield ctx.splice(expr, (end, end, f", {text}"), delta=-0.4, note=f"..., {text}")


def _constant_added(ctx: OperatorContext, expr: Expr, node: cst.List | cst.Tuple | cst.Set) -> Iterator[Change]:
    """What holds numbers or texts gets one more of them: of the statement first, then of the file's, the nearest."""
    held = [e.value for e in node.elements]
    if not held or not all(isinstance(value, (cst.Integer, cst.SimpleString)) for value in held):
        return
    known = {ctx.unit.code(value) for value in held}
    form = _form(ctx.unit.code(held[0]))
    literals = (e for e in ctx.unit.exprs if isinstance(e.node, (cst.Integer, cst.SimpleString)))
    beside = [e.text for e in literals if e.statement is expr.statement and _form(e.text) == form]
    texts = {text: lines for text, lines in ctx.facts.constant_lines.items() if _form(text) == form}
    near = sorted(texts, key=lambda text: min(abs(line - expr.line) for line in texts[text]))
    end = ctx.unit.outer(held[-1])[1]
    for place, text in enumerate([t for t in dict.fromkeys([*beside, *near[:12]]) if t not in known][:8]):
        delta = (0.4 if text in beside else -0.2) - 0.05 * place
        yield ctx.splice(expr, (end, end, f", {text}"), delta=delta, note=f"..., {text}")


def _form(literal: str) -> str:
    """What kind of literal it is: a whole number, another number, or a text by its prefix."""
    if literal[:1].isdigit():
        return "whole" if literal.isdigit() else "number"
    return "text " + re.split("['\"]", literal, maxsplit=1)[0].lower()


@operator("element-drop", prior=-0.9)
def element_drop(ctx: OperatorContext) -> Iterator[Change]:
    """A list, tuple, set or dict display loses an element, or is reduced to one of them."""
    for expr, table in ctx.of(cst.Dict):
        entries = [ctx.unit.span(e) for e in table.elements]
        for i, (start, end) in enumerate(entries if 1 < len(entries) <= 8 else ()):
            low, high = (start, entries[i + 1][0]) if i + 1 < len(entries) else (entries[i - 1][1], end)
            yield ctx.splice(expr, (low, high, ""), note="entry dropped")
    for expr, node in ctx.of_any(cst.List, cst.Tuple, cst.Set):
        if expr.store or not node.elements or len(node.elements) > 8:
            continue
        spans = [ctx.unit.outer(e.value) for e in node.elements]
        for i, (start, end) in enumerate(spans):
            if len(spans) > 1:
                low, high = (start, spans[i + 1][0]) if i + 1 < len(spans) else (spans[i - 1][1], end)
                yield ctx.splice(expr, (low, high, ""), note="element dropped")
            if isinstance(node.elements[i], cst.Element):
                yield ctx.put(expr, ctx.unit.slice(start, end), -1, -0.3 if len(spans) > 1 else 0.2)


@operator("condition-new", prior=-2.4, effects={EditEffect.CHANGES_CONDITION})
def condition_new(ctx: OperatorContext) -> Iterator[Change]:
    """A test, or a returned truth value, becomes a condition known in the file or made of a name in scope."""
    for expr in ctx.exprs:
        returned = isinstance(expr.parent, (cst.Return, cst.Assign)) and ctx.kind(expr) in ("bool", "none")
        if not returned and not is_test(expr):
            continue
        for text, level, delta in known_conditions(ctx, expr, 40):
            if text != expr.text:
                yield ctx.put(expr, text, level, delta)
        for name, near in _operands(ctx, expr):
            for tail, plus in (
                ("== 0", 0.0),
                ("> 0", -0.2),
                ("!= 0", -0.2),
                (">= 0", -0.5),
                ("< 0", -0.4),
                ("<= 1", -0.5),
            ):
                if ctx.names.kinds.get(name, "") in ("int", "float", ""):
                    yield ctx.put(expr, f"{name} {tail}", COMPARE, near + plus)
            if ctx.names.kinds.get(name, "") in ("list", "str", "deque", "tuple"):
                yield ctx.put(expr, f"len({name}) == 0", COMPARE, near - 0.3)


@operator("element-of", prior=-2.6)
def element_of(ctx: OperatorContext) -> Iterator[Change]:
    """A new access of two names in scope: `x[i]`, `x.attr`, for a name or a constant."""
    for expr in ctx.exprs:
        if not replaceable(expr) or not isinstance(expr.node, (cst.Name, cst.Subscript, cst.Integer, cst.Attribute)):
            continue
        if expr.in_fstring or isinstance(expr.parent, (cst.Attribute, cst.Subscript)):
            continue
        seen = ctx.visible(expr.statement)
        for base in [n for n in seen if ctx.names.kinds.get(n, "") in ("list", "dict", "str", "")][:8]:
            if base in ("self", "cls") or f"{base}[" not in "".join(ctx.distinct()):
                continue
            for index in [n for n in seen if ctx.names.kinds.get(n, "") in ("int", "")][:8]:
                if index != base and index not in ("self", "cls"):
                    yield ctx.put(expr, f"{base}[{index}]", ATOM, 0.0)
