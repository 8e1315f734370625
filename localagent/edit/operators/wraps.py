"""Calls and accesses put around a value, or taken off it."""

from collections.abc import Iterator

import libcst as cst

from localagent.domain.edit import EditEffect
from localagent.edit.operator_context import Change, OperatorContext
from localagent.edit.operator_registry import operator
from localagent.edit.operators.ingredients import replaceable
from localagent.edit.precedence import ATOM, LOOSE, MUL, OR, binding, fit
from localagent.edit.unit import Expr

_BY_KIND: dict[str, tuple[str, ...]] = {
    "list": (
        "len",
        "sorted",
        "set",
        "sum",
        "max",
        "min",
        "list",
        "tuple",
        "reversed",
        "enumerate",
        "range(len)",
        "any",
        "all",
    ),
    "str": ("len", "int", "list", "sorted", "set", "reversed", "ord", "float", "repr"),
    "int": ("str", "abs", "range", "int", "max0", "min0", "bool", "chr", "float"),
    "float": ("int", "abs", "round", "str", "max0", "math.floor", "math.ceil"),
    "dict": ("len", "list", "sorted", "set", "dict", "max", "min"),
    "set": ("len", "list", "sorted", "max", "min"),
    "bool": ("int",),
    "tuple": ("list", "len", "sorted", "set", "max", "min"),
    "deque": ("list", "len"),
    "Counter": ("len", "max", "dict"),
    "": (
        "len",
        "list",
        "str",
        "int",
        "sorted",
        "set",
        "abs",
        "max0",
        "tuple",
        "range",
        "sum",
        "max",
        "min",
        "reversed",
    ),
}
_ITERATED = ("sorted", "reversed", "enumerate", "range", "range(len)", "list", "set", "zip1")


def _wrapped(text: str, wrap: str) -> str:
    if wrap == "max0":
        return f"max({text}, 0)"
    if wrap == "min0":
        return f"min({text}, 0)"
    if wrap == "range(len)":
        return f"range(len({text}))"
    return f"{wrap}({text})"


@operator("wrap", prior=-1.6, effects={EditEffect.WRAPS})
def wrap(ctx: OperatorContext) -> Iterator[Change]:
    """A value is put into a usual call: `len`, `sorted`, `list`, `set`, `str`, `abs`, `max(..., 0)`, `enumerate`."""
    for expr in ctx.exprs:
        if not replaceable(expr) or expr.in_fstring or isinstance(expr.parent, cst.Attribute):
            continue
        if expr.text in ("self", "cls", "None", "True", "False") or isinstance(expr.node, (cst.Lambda, cst.Yield)):
            continue
        if isinstance(expr.node, (cst.Integer, cst.Float)):
            continue
        iterated = isinstance(expr.parent, (cst.For, cst.CompFor)) and expr.parent.iter is expr.node
        wraps = _ITERATED if iterated else _BY_KIND.get(ctx.kind(expr), _BY_KIND[""])
        outer = expr.parent
        for place, name in enumerate(wraps):
            if name == "zip1" or (isinstance(outer, cst.Arg) and _already(ctx, expr, name)):
                continue
            yield ctx.put(
                expr, _wrapped(expr.text, name), ATOM, -0.04 * place - 0.05 * expr.depth + (0.3 if iterated else 0)
            )


def _already(ctx: OperatorContext, expr: Expr, name: str) -> bool:
    return ctx.unit.text.endswith(f"{name}(".encode(), 0, expr.start)


@operator("keep-extreme", prior=-1.8)
def keep_extreme(ctx: OperatorContext) -> Iterator[Change]:
    """An assigned or returned value becomes the larger or smaller of two: `m = max(m, x)`, `max(0, x)`."""
    for expr in ctx.exprs:
        if (
            not isinstance(expr.parent, (cst.Assign, cst.Return))
            or expr.store
            or ctx.kind(expr) not in ("int", "float", "")
        ):
            continue
        if isinstance(expr.node, (cst.Tuple, cst.Yield, cst.Comparison)) or expr.text in ("None", "True", "False"):
            continue
        stored = isinstance(expr.parent, cst.Assign)
        targets = [ctx.unit.code(t.target) for t in expr.parent.targets] if isinstance(expr.parent, cst.Assign) else []
        names = [n for n in ctx.visible(expr.statement) if ctx.names.kinds.get(n, "") in ("int", "float")][:6]
        for other in dict.fromkeys([*targets, "0", *names]):
            for word in ("max", "min"):
                if other != expr.text:
                    delta = 0.4 if other in targets else 0.0 if stored else -0.3
                    yield ctx.put(expr, f"{word}({other}, {expr.text})", ATOM, delta)


_USED_ELSEWHERE = 1.4  # the file calls the method of a value of that name, as `name.lower()` where names are kept


@operator("wrap-method", prior=-2.0, effects={EditEffect.WRAPS})
def wrap_method(ctx: OperatorContext) -> Iterator[Change]:
    """A value gets a usual method call or default: `.copy()`, `.strip()`, `.lower()`, `.items()`, `or []`, `or 0`."""
    methods = {
        "str": (".lower()", ".upper()", ".strip()", ".split()", ".encode()"),
        "list": (".copy()", "[:]", "[::-1]"),
        "dict": (".copy()", ".items()", ".values()", ".keys()"),
        "set": (".copy()",),
        "bytes": (".decode()",),
        "": (".items()", ".copy()", ".strip()", ".lower()", ".values()", "[:]", "[::-1]"),
    }
    for expr in ctx.exprs:
        if not replaceable(expr) or expr.in_fstring or isinstance(expr.parent, (cst.Attribute, cst.Subscript)):
            continue
        if not isinstance(expr.node, (cst.Name, cst.Attribute, cst.Subscript, cst.Call)) or expr.text in (
            "self",
            "None",
        ):
            continue
        base = fit(expr.text, expr.level, ATOM)
        for tail in methods.get("" if ctx.kind(expr) == "none" else ctx.kind(expr), ()):  # None is a default
            known = _USED_ELSEWHERE if base + tail in ctx.facts.calls else 0.0
            yield ctx.put(expr, base + tail, ATOM, known - 0.05 * expr.depth)
        for other in ("[]", "''", "0", "{}", "None"):
            if ctx.kind(expr) in ("", "none") and not isinstance(
                expr.parent, (cst.If, cst.While, cst.BooleanOperation)
            ):
                yield ctx.put(expr, f"{fit(expr.text, expr.level, OR)} or {other}", OR, -1.0)


@operator("wrap-arithmetic", prior=-2.2, effects={EditEffect.WRAPS})
def wrap_arithmetic(ctx: OperatorContext) -> Iterator[Change]:
    """A number is doubled, halved, or taken modulo ten, two, or a constant the file names."""
    limits = [n for n in ctx.facts.module_names if n.isupper()] + [n for n in ctx.names.kinds if "mod" in n.lower()]
    for expr in ctx.exprs:
        if not replaceable(expr) or expr.in_fstring or ctx.kind(expr) not in ("int", "float", ""):
            continue
        if not isinstance(expr.node, (cst.Name, cst.BinaryOperation, cst.Call, cst.Subscript)):
            continue
        if not isinstance(
            expr.parent, (cst.Return, cst.Assign, cst.AugAssign, cst.Arg, cst.BinaryOperation, cst.Index)
        ):
            continue
        base = fit(expr.text, expr.level, MUL)
        for tail in ("* 2", "** 2", "// 2", "% 2", "% 10", "// 10", *(f"% {n}" for n in dict.fromkeys(limits[:4]))):
            if tail == "** 2":
                yield ctx.put(expr, f"{fit(expr.text, expr.level, ATOM)} ** 2", 14, -0.1 * expr.depth)
                continue
            yield ctx.put(expr, f"{base} {tail}", MUL, -0.1 * expr.depth)
        if isinstance(expr.parent, (cst.Return, cst.Assign)):
            for text in (f"1 - {fit(expr.text, expr.level, MUL)}", f"0 - {fit(expr.text, expr.level, MUL)}"):
                yield ctx.put(expr, text, 11, -0.3)


@operator("unwrap", prior=-0.5, effects={EditEffect.WRAPS})
def unwrap(ctx: OperatorContext) -> Iterator[Change]:
    """A call, display or ternary is reduced to its content: `len(x)` to `x`, `[x]` to `x`, `a if c else b` to `a`."""
    for expr in ctx.exprs:
        node = expr.node
        if isinstance(node, cst.Call):
            for arg in node.args[:4]:
                yield ctx.put(expr, ctx.unit.code(arg.value), binding(arg.value), -0.3 * (len(node.args) > 1))
        elif isinstance(node, cst.IfExp):
            for part in (node.body, node.orelse):
                yield ctx.put(expr, ctx.unit.code(part), binding(part), 0.0)
            body, test, orelse = (ctx.unit.outer(n) for n in (node.body, node.test, node.orelse))
            yield ctx.splice(
                expr,
                (*body, ctx.unit.slice(*orelse)),
                (*orelse, fit(ctx.unit.slice(*body), binding(node.body), OR)),
                note="branches of the ternary swapped",
            )
            del test
        elif isinstance(node, cst.Lambda):
            yield ctx.put(expr, ctx.unit.code(node.body), binding(node.body), -1.0)
        elif isinstance(node, (cst.ListComp, cst.SetComp, cst.GeneratorExp)):
            yield ctx.put(expr, ctx.unit.code(node.for_in.iter), binding(node.for_in.iter), -0.8)
            for test_part in node.for_in.ifs:
                start = ctx.unit.span(test_part)[0]
                end = ctx.unit.outer(test_part.test)[1]
                yield ctx.splice(expr, (start, end, ""), note="filter dropped")


@operator("filter-add", prior=-2.6)
def filter_add(ctx: OperatorContext) -> Iterator[Change]:
    """A comprehension gets a filter: its variable, or a condition known in the function."""
    for expr, node in ctx.of_any(cst.ListComp, cst.SetComp, cst.GeneratorExp, cst.DictComp):
        if node.for_in.ifs:
            continue
        at = ctx.unit.outer(node.for_in.iter)[1]
        target = ctx.unit.code(node.for_in.target)
        offers = [target, f"{target} is not None", f"not {target}", f"{target} > 0"] if target.isidentifier() else []
        offers += [
            e.text for e in ctx.distinct().values() if isinstance(e.node, cst.Comparison) and "\n" not in e.text
        ][:12]
        for place, text in enumerate(offers):
            yield ctx.splice(expr, (at, at, f" if {text}"), delta=-0.05 * place, note=f"if {text}")


@operator("display-wrap", prior=-1.9, effects={EditEffect.WRAPS})
def display_wrap(ctx: OperatorContext) -> Iterator[Change]:
    """A value is wrapped in a list or tuple: `x` to `[x]`, `(x,)`."""
    places = (cst.Return, cst.Assign, cst.Arg, cst.BinaryOperation, cst.AugAssign)
    for expr, _ in ctx.of_any(cst.Name, cst.Call, cst.Integer, cst.Subscript):
        if replaceable(expr) and not expr.in_fstring and isinstance(expr.parent, places) and expr.level > LOOSE:
            yield ctx.put(expr, f"[{expr.text}]", ATOM)
            yield ctx.put(expr, f"({expr.text},)", ATOM, -0.8)
