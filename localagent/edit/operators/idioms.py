"""Small habits of real fixes: a type or None check in front, a wider type, a view of a mapping, a text's prefix."""

import re
from collections.abc import Iterator

import libcst as cst

from localagent.domain.edit import EditEffect
from localagent.edit.layout import before, movable
from localagent.edit.operator_context import Change, OperatorContext
from localagent.edit.operator_registry import operator
from localagent.edit.operators.calls import callee_name
from localagent.edit.operators.logic import operand_bases
from localagent.edit.precedence import AND, ATOM, LOOSE, NOT, binding, fit

_WIDER = {
    "list": ("(list, tuple)",),
    "tuple": ("(list, tuple)", "(tuple, list)"),
    "int": ("(int, float)",),
    "float": ("(int, float)", "(float, int)"),
    "str": ("(str, bytes)",),
    "bytes": ("(bytes, bytearray)", "(bytes, str)"),
    "set": ("(set, frozenset)",),
}
_ENDS = {"0": "startswith", "-1": "endswith"}
_HOLE = re.compile(r"\{([A-Za-z_]\w*)[^{}]*\}")


@operator("condition-type", prior=-2.2, effects={EditEffect.CHANGES_CONDITION})
def condition_type(ctx: OperatorContext) -> Iterator[Change]:
    """A condition first checks its operand: `isinstance(x, T) and`, `self.x is not None and`, `self.x and`."""
    known = [t for text in ctx.facts.calls for t in re.findall(r"^isinstance\(.*, (\w+)\)$", text)]
    types = list(dict.fromkeys([*known, "str", "list", "dict", "int"]))[:6]
    for expr in ctx.exprs:
        if not isinstance(expr.parent, (cst.If, cst.While, cst.IfExp, cst.CompIf)) or expr.parent.test is not expr.node:
            continue
        old = fit(expr.text, expr.level, AND)
        for base in operand_bases(expr)[:3]:
            for place, kind in enumerate(types):
                text = f"isinstance({base}, {kind})"
                plus = (0.2 if kind in known else 0.0) - 0.05 * place
                yield ctx.put(expr, f"{text} and {old}", AND, plus, f"{text} and ...")
                yield ctx.put(expr, f"{old} and {text}", AND, plus, f"... and {text}")
        held = {e.text for e in ctx.unit.exprs if e.statement is expr.statement and isinstance(e.node, cst.Attribute)}
        for text in sorted(t for t in held if t.replace(".", "").isidentifier() and f"{t}(" not in expr.text)[:3]:
            for check in (f"{text} is not None", text):
                yield ctx.put(expr, f"{check} and {old}", AND, 0.2, f"{check} and ...")


_TYPE_TESTS = (cst.Is, cst.IsNot, cst.Equal, cst.NotEqual, cst.In, cst.NotIn)


@operator("type-widen", prior=-0.6)
def type_widen(ctx: OperatorContext) -> Iterator[Change]:
    """`isinstance(x, list)` takes a tuple too, `int` a float, `str` bytes; `type(x) is T` becomes `isinstance`."""
    for expr, compared in ctx.of(cst.Comparison):
        left = compared.left
        if len(compared.comparisons) != 1 or not isinstance(left, cst.Call) or callee_name(left) != "type":
            continue
        target = compared.comparisons[0]
        if len(left.args) != 1 or not isinstance(target.operator, _TYPE_TESTS):
            continue
        held = target.comparator
        types = ctx.unit.code(held)
        if isinstance(held, (cst.List, cst.Set)):
            types = f"({', '.join(ctx.unit.code(e.value) for e in held.elements)})"
        test = f"isinstance({ctx.unit.code(left.args[0].value)}, {types})"
        negated = isinstance(target.operator, (cst.IsNot, cst.NotEqual, cst.NotIn))
        yield ctx.put(expr, f"not {test}" if negated else test, NOT if negated else ATOM, 0.2)
    for expr, node in ctx.of(cst.Call):
        if callee_name(node) != "isinstance" or len(node.args) != 2:
            continue
        span = ctx.unit.outer(node.args[1].value)
        old = ctx.unit.slice(*span)
        for text in _WIDER.get(old, ()):
            yield ctx.splice(expr, (*span, text), note=f"{old} -> {text}")


@operator("view-of", prior=-1.5)
def view_of(ctx: OperatorContext) -> Iterator[Change]:
    """A loop goes over a mapping's `.values()`, `.items()` or `.keys()`, or over another of them."""
    for expr in ctx.exprs:
        parent = expr.parent
        if not isinstance(parent, (cst.For, cst.CompFor)) or parent.iter is not expr.node:
            continue
        pairs = isinstance(parent.target, cst.Tuple) and len(parent.target.elements) == 2
        if isinstance(expr.node, (cst.Name, cst.Attribute, cst.Subscript)):
            likely = 0.4 if ctx.kind(expr) in ("dict", "Counter") else 0.0 if not ctx.kind(expr) else -1.5
            for view in ("items", "values", "keys"):
                plus = 0.8 if pairs and view == "items" else 0.2 if not pairs and view == "values" else -0.4
                yield ctx.put(expr, f"{expr.text}.{view}()", ATOM, likely + plus)


@operator("first-or", prior=-1.9)
def first_or(ctx: OperatorContext) -> Iterator[Change]:
    """`x[0]` becomes `x[0] if x else None`, or another usual default."""
    for expr, node in ctx.of(cst.Subscript):
        index = node.slice[0].slice if len(node.slice) == 1 else None
        if (
            expr.store
            or not isinstance(index, cst.Index)
            or not isinstance(expr.parent, (cst.Assign, cst.Return, cst.Arg))
        ):
            continue
        if ctx.unit.code(index.value) not in ("0", "-1") or "\n" in expr.text or expr.in_fstring:
            continue
        base = ctx.unit.code(node.value)
        for place, value in enumerate(("None", "0", "''", "[]")):
            yield ctx.put(expr, f"{expr.text} if {base} else {value}", LOOSE, -0.15 * place)


@operator("text-end", prior=-1.4)
def text_end(ctx: OperatorContext) -> Iterator[Change]:
    """`x[0] == "a"` becomes `x.startswith("a")`, which an empty string does not break; `x[-1]` likewise `endswith`."""
    for expr, node in ctx.of(cst.Comparison):
        read = node.left
        if len(node.comparisons) != 1 or not isinstance(read, cst.Subscript) or len(read.slice) != 1:
            continue
        target, index = node.comparisons[0], read.slice[0].slice
        end = _ENDS.get(ctx.unit.code(index.value)) if isinstance(index, cst.Index) else None
        if end is None or not isinstance(target.operator, (cst.Equal, cst.NotEqual)):
            continue
        if isinstance(target.comparator, (cst.Integer, cst.Float)) or ctx.names.kind(read.value) in ("list", "tuple"):
            continue
        base = fit(ctx.unit.code(read.value), binding(read.value), ATOM)
        text = f"{base}.{end}({ctx.unit.code(target.comparator)})"
        negated = isinstance(target.operator, cst.NotEqual)
        yield ctx.put(expr, f"not {text}" if negated else text, NOT if negated else ATOM)


@operator("text-prefix", prior=-0.9)
def text_prefix(ctx: OperatorContext) -> Iterator[Change]:
    """A string with a name in braces becomes an f-string, a plain one raw, and an f-string plain."""
    for expr, node in ctx.of(cst.SimpleString):
        if expr.in_fstring:
            continue
        holes = _HOLE.findall(node.raw_value)
        if holes and not node.prefix:
            bound = all(h in ctx.visible(expr.statement) or h in ctx.facts.module_names for h in holes)
            yield ctx.put(expr, f"f{expr.text}", ATOM, 0.8 if bound else -0.8)
        if "\\" in node.raw_value and not node.prefix:
            yield ctx.splice(expr, (expr.start, expr.start, "r"), note="raw text")
    for expr, shown in ctx.of(cst.FormattedString):
        if shown.start.lower().startswith("f") and not shown.lpar:
            yield ctx.splice(expr, (expr.start, expr.start + 1, ""), delta=-0.6, note="not an f-string")


@operator("receiver-parameter", prior=-1.6)
def receiver_parameter(ctx: OperatorContext) -> Iterator[Change]:
    """A literal receiver or argument of a method call becomes a parameter that the function does not use."""
    for expr, _ in ctx.of(cst.SimpleString):
        scope = ctx.function(expr.statement)
        if scope is None or not isinstance(expr.parent, (cst.Attribute, cst.Arg, cst.BinaryOperation, cst.Assign)):
            continue
        for name in ctx.names.params.get(scope, ()):
            if name in ("self", "cls"):
                continue
            used = any(isinstance(e.node, cst.Name) and e.text == name and e.scope is scope for e in ctx.unit.exprs)
            yield ctx.put(expr, name, ATOM, -0.6 if used else 1.0)


@operator("super-init", prior=-1.8, deep=True)
def super_init(ctx: OperatorContext) -> Iterator[Change]:
    """`super().__init__()` is called first in a constructor that does not call it."""
    own = ctx.facts.classes.get(ctx.span.class_path[-1]) if ctx.span.class_path else None
    if own is None or b"super()" in ctx.unit.text:
        return
    for s in ctx.statements:
        if isinstance(s.node, cst.FunctionDef) and s.node.name.value == "__init__" and s.suites[0].statements:
            first = s.suites[0].statements[0]
            if movable(first):
                params = [p for p in ctx.names.params.get(s.node, ()) if p not in ("self", "cls")]
                plus = 0.6 if own.bases and "object" not in own.bases else -1.5
                for args in dict.fromkeys(("", ", ".join(params), *params[:3])):
                    line = f"super().__init__({args})"
                    yield ctx.splice(s, before(ctx, first, line), delta=plus - (0.3 if args else 0.0), note=line)
