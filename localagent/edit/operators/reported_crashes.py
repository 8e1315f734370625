"""Edits that a report of a crash suggests: an index out of bounds, a recursion without end, a wrong type."""

import re
from collections.abc import Iterator

import libcst as cst

from localagent.domain.edit import EditEffect
from localagent.edit.layout import before, body_statements, inside_function, step
from localagent.edit.operator_context import Change, OperatorContext
from localagent.edit.operator_registry import operator
from localagent.edit.operators.arithmetic import one_dropped
from localagent.edit.operators.calls import callee_name
from localagent.edit.operators.constants import whole_number
from localagent.edit.operators.guards import returned_values
from localagent.edit.precedence import ATOM
from localagent.edit.unit import Expr, Stmt

_WORD = re.compile(r"[^\W\d]\w*")
_UNORDERED = re.compile(r"'(?:dict_\w+|set|frozenset|map|filter|zip|generator)'")
_TOO_MANY = re.compile(r"too many values to unpack \(expected (\d+)")
_STRICT = {"<=": "<", ">=": ">"}


@operator("reported-bounds", prior=1.0, effects={EditEffect.GUARDS_BOUNDS, EditEffect.INVENTS})
def reported_bounds(ctx: OperatorContext) -> Iterator[Change]:
    """IndexError: a length guard at the line that raised; for KeyError one for the key, for a division the divisor."""
    inner = step(ctx)
    for failure in ctx.failing_with("IndexError", "KeyError", "ZeroDivisionError"):
        lines = ctx.lines_of(failure)
        for expr, node in ctx.of(cst.Subscript):
            if expr.line not in lines or len(node.slice) != 1 or not isinstance(node.slice[0].slice, cst.Index):
                continue
            base, index = ctx.unit.code(node.value), ctx.unit.code(node.slice[0].slice.value)
            s = expr.statement
            if failure.exception == "KeyError" and not expr.store:
                for default in ("0", "None", "[]", "''"):
                    yield ctx.put(expr, f"{base}.get({index}, {default})", ATOM, -0.1)
            if not s.alone or s.is_elif or s.suite.inline or not inside_function(ctx, s) or "\n" in expr.text:
                continue
            conditions = (
                [f"{index} not in {base}"]
                if failure.exception == "KeyError"
                else [f"{index} >= len({base})", f"not {base}"]
            )
            for condition in conditions:
                for value, plus in returned_values(ctx, s)[:6]:
                    action = "return" if value == "None" else f"return {value}"
                    rows = (f"if {condition}:", f"{inner}{action}")
                    yield ctx.splice(s, before(ctx, s, *rows), delta=plus - 0.6, note=f"{rows[0]} {action}")
                if s.in_loop:
                    for word in ("continue", "break"):
                        rows = (f"if {condition}:", f"{inner}{word}")
                        yield ctx.splice(s, before(ctx, s, *rows), delta=-0.4, note=f"{rows[0]} {word}")
        for expr, division in ctx.of(cst.BinaryOperation):
            if failure.exception == "ZeroDivisionError" and expr.line in lines and expr.statement.alone:
                divisor = ctx.unit.code(division.right)
                if (
                    isinstance(division.operator, (cst.Divide, cst.FloorDivide, cst.Modulo))
                    and not expr.statement.is_elif
                ):
                    for value, plus in returned_values(ctx, expr.statement)[:6]:
                        action = "return" if value == "None" else f"return {value}"
                        rows = (f"if {divisor} == 0:", f"{inner}{action}")
                        note = f"{rows[0]} {action}"
                        yield ctx.splice(expr, before(ctx, expr.statement, *rows), delta=plus, note=note)


@operator("reported-index", prior=1.0, effects={EditEffect.MOVES_BOUNDARY, EditEffect.SHIFTS_NUMBER})
def reported_index(ctx: OperatorContext) -> Iterator[Change]:
    """An index out of range, or a missing key, is lowered: `d[3]` to `d[2]`, `x.pop(i)` to `x.pop()`."""
    for failure in ctx.failing_with("IndexError", "KeyError"):
        lines, popped = ctx.lines_of(failure), failure.message.startswith("pop index")
        for expr, node in ctx.of_any(cst.Subscript, cst.Call):
            index = _popped(node) if popped else _index(node)
            if index is None or expr.line not in lines or (failure.exception == "KeyError" and _joins(ctx, index)):
                continue
            span = ctx.unit.outer(index)
            old = ctx.unit.slice(*span)
            if popped and isinstance(node, cst.Call):
                comma = node.args[0].comma  # goes with the argument
                end = ctx.unit.span(comma)[1] if isinstance(comma, cst.Comma) else span[1]
                yield ctx.splice(expr, (span[0], end, ""), delta=0.6, note=f"{old} -> none")
            for text, delta in _nearer(ctx, index):
                if text != old:
                    change = ctx.splice(expr, (*span, text), delta=delta, note=f"{old} -> {text}")
                    yield change.having(*one_dropped(old, text))


def _joins(ctx: OperatorContext, index: cst.BaseExpression) -> bool:
    """Whether a key is put together of texts, which no number brings nearer."""
    sides = (index.left, index.right) if isinstance(index, cst.BinaryOperation) else ()
    return any(ctx.names.kind(side) == "str" for side in sides)


def _index(node: cst.CSTNode) -> cst.BaseExpression | None:
    """The one index of a subscript."""
    if not isinstance(node, cst.Subscript) or len(node.slice) != 1:
        return None
    inside = node.slice[0].slice
    return inside.value if isinstance(inside, cst.Index) else None


def _popped(node: cst.CSTNode) -> cst.BaseExpression | None:
    """The one argument of a method `pop`."""
    if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute) or node.func.attr.value != "pop":
        return None
    return node.args[0].value if len(node.args) == 1 and not node.args[0].star and not node.args[0].keyword else None


def _nearer(ctx: OperatorContext, index: cst.BaseExpression) -> Iterator[tuple[str, float]]:
    """What an index may be that reaches less far, and how likely."""
    number = whole_number(index) or 0
    if number > 0:
        yield from ((str(number - 1), 0.3), ("0", 0.1), ("-1", -0.2))
    elif isinstance(index, cst.UnaryOperation) and isinstance(index.operator, cst.Minus):
        number = whole_number(index.expression) or 0
        yield from ((str(1 - number), 0.3), ("-1", 0.1)) if number > 1 else ()
    elif isinstance(index, cst.BinaryOperation) and isinstance(index.operator, cst.Add | cst.Subtract):
        left, right = (ctx.unit.slice(*ctx.unit.outer(side)) for side in (index.left, index.right))
        yield left, 0.2
        yield f"{left} {'-' if isinstance(index.operator, cst.Add) else '+'} {right}", 0.0
        number = whole_number(index.right) or 0
        if number > 1:
            yield f"{left} {'+' if isinstance(index.operator, cst.Add) else '-'} {number - 1}", 0.2
        elif isinstance(index.operator, cst.Add):
            yield f"{left} + {right} - 1", -0.3


@operator("reported-reach", prior=1.2, effects={EditEffect.MOVES_BOUNDARY})
def reported_reach(ctx: OperatorContext) -> Iterator[Change]:
    """IndexError: the bound of the loop or condition around the line is lowered by one."""
    for failure in ctx.failing_with("IndexError"):
        lines = ctx.lines_of(failure)
        for expr, node in ctx.of(cst.Subscript):
            if expr.line not in lines or len(node.slice) != 1 or not isinstance(node.slice[0].slice, cst.Index):
                continue
            base, index = ctx.unit.code(node.value), ctx.unit.code(node.slice[0].slice.value)
            around = _around(expr.statement)
            for other in ctx.unit.exprs:
                if not any(other.statement is s and other.start < s.head_end for s in around):
                    continue
                if isinstance(other.node, cst.Comparison):
                    yield from _one_nearer(ctx, other, other.node, base, index)
                elif isinstance(other.node, cst.Call) and ctx.unit.code(other.node.func) == "range":
                    yield from _one_fewer(ctx, other, other.node, base, index)


def _around(s: Stmt) -> list[Stmt]:
    """The statements with blocks that hold a statement, itself among them, up to its function."""
    found, at = [], s
    while not isinstance(at.node, (cst.FunctionDef, cst.ClassDef)):
        if at.compound:
            found.append(at)
        if at.suite.owner is None:
            break
        at = at.suite.owner
    return found


def _one_nearer(ctx: OperatorContext, expr: Expr, node: cst.Comparison, base: str, index: str) -> Iterator[Change]:
    if len(node.comparisons) != 1:
        return
    target = node.comparisons[0]
    start, end = ctx.unit.span(target.operator)
    sign, left, right = ctx.unit.slice(start, end), ctx.unit.code(node.left), ctx.unit.code(target.comparator)
    low, high = (left, right) if sign.startswith("<") else (right, left)
    if low not in (index, *_WORD.findall(index)) or (sign not in _STRICT and high != f"len({base})"):
        return
    if sign in _STRICT:
        delta = 0.3 if high == f"len({base})" else -0.4
        yield ctx.splice(expr, (start, end, _STRICT[sign]), delta=delta, note=f"{sign} -> {_STRICT[sign]}")
    elif sign in _STRICT.values() and low != index:
        side = ctx.unit.outer(target.comparator if high == right else node.left)
        yield ctx.splice(expr, (*side, f"{high} - 1"), delta=0.0, note=f"{high} -> {high} - 1")


def _one_fewer(ctx: OperatorContext, expr: Expr, node: cst.Call, base: str, index: str) -> Iterator[Change]:
    if not 1 <= len(node.args) <= 2 or any(a.star or a.keyword for a in node.args):
        return
    stop = node.args[-1].value
    text = ctx.unit.code(stop)
    if text.endswith(("+ 1", "+1")):
        less = text[: text.rindex("+")].rstrip()
        delta = 0.3 if less == f"len({base})" else -0.2
    elif text == f"len({base})" and "+" in index:
        less, delta = f"{text} - 1", 0.0
    else:
        return
    yield ctx.splice(expr, (*ctx.unit.outer(stop), less), delta=delta, note=f"{text} -> {less}")


@operator("reported-recursion", prior=0.6)
def reported_recursion(ctx: OperatorContext) -> Iterator[Change]:
    """RecursionError: a base case at the function's start, or an argument of the recursive call that gets smaller."""
    inner = step(ctx)
    if not any(True for _ in ctx.failing_with("RecursionError")):
        return
    for s in body_statements(ctx):
        owner = s.suite.owner
        if owner is None or not isinstance(owner.node, cst.FunctionDef) or s.index > 1:
            continue
        for name in ctx.names.params.get(owner.node, ()):
            for condition in (f"not {name}", f"{name} <= 0", f"{name} <= 1", f"{name} is None", f"{name} == 0"):
                for value, plus in returned_values(ctx, s)[:8]:
                    if name not in ("self", "cls"):
                        action = "return" if value == "None" else f"return {value}"
                        rows = (f"if {condition}:", f"{inner}{action}")
                        yield ctx.splice(s, before(ctx, s, *rows), delta=plus, note=f"{rows[0]} {action}")
    for expr, node in ctx.of(cst.Call):
        scope = ctx.function(expr.statement)
        if scope is not None and isinstance(node.func, cst.Name) and node.func.value == scope.name.value:
            for arg in node.args:
                span = ctx.unit.outer(arg.value)
                text = ctx.unit.slice(*span)
                for tail in (" - 1", " + 1", "[1:]", "[:-1]", " // 2", ".next"):
                    if text.isidentifier():
                        yield ctx.splice(expr, (*span, text + tail), delta=0.4, note=f"{text}{tail}")


@operator("changed-while-iterated", prior=1.6, effects={EditEffect.WRAPS, EditEffect.EXPLAINED})
def changed_while_iterated(ctx: OperatorContext) -> Iterator[Change]:
    """What a loop changes while it runs over it is copied first: `for k in list(d)`."""
    for failure in ctx.failing_with("RuntimeError"):
        if "during iteration" not in failure.message:
            continue
        lines = ctx.lines_of(failure)
        for expr in ctx.exprs:
            if isinstance(expr.parent, cst.For) and expr.parent.iter is expr.node and expr.line in lines:
                yield ctx.put(expr, f"list({expr.text})", ATOM, 0.4)


@operator("none-in-order", prior=1.2, effects={EditEffect.EXPLAINED})
def none_in_order(ctx: OperatorContext) -> Iterator[Change]:
    """What orders values of which some are None puts these last, or first: `key=lambda v: (v is None, v)`."""
    for failure in ctx.failing_with("TypeError"):
        if "NoneType" not in failure.message or "not supported between" not in failure.message:
            continue
        lines = ctx.lines_of(failure)
        for expr, node in ctx.of(cst.Call):
            if callee_name(node) not in ("sorted", "sort") or expr.line not in lines:
                continue
            key = next((a for a in node.args if a.keyword is not None and a.keyword.value == "key"), None)
            for word, delta in (("is", 0.2), ("is not", 0.1)):
                if key is not None and isinstance(key.value, cst.Lambda):
                    body = ctx.unit.code(key.value.body)
                    splice = (*ctx.unit.outer(key.value.body), f"({body} {word} None, {body})")
                    yield ctx.splice(expr, splice, delta=delta, note=f"{splice[2]} as the key")
                elif key is None and node.args:
                    end = ctx.unit.outer(node.args[-1].value)[1]
                    text = f"key=lambda v: (v {word} None, v)"
                    yield ctx.splice(expr, (end, end, f", {text}"), delta=delta, note=text)


@operator("not-serializable", prior=1.2, effects={EditEffect.EXPLAINED})
def not_serializable(ctx: OperatorContext) -> Iterator[Change]:
    """A value that JSON does not know is written as its text: `json.dumps(..., default=str)`."""
    for failure in ctx.failing_with("TypeError"):
        if "is not JSON serializable" not in failure.message:
            continue
        lines = ctx.lines_of(failure)
        for expr, node in ctx.of(cst.Call):
            name = callee_name(node)
            told = {a.keyword.value for a in node.args if a.keyword is not None}
            if name in ("dumps", "dump") and expr.line in lines and node.args and not told & {"default", "cls"}:
                end = ctx.unit.outer(node.args[-1].value)[1]
                splice = (end, end, ", default=str")
                yield ctx.splice(expr, splice, delta=0.2, note="default=str")


@operator("reported-type", prior=0.8)
def reported_type(ctx: OperatorContext) -> Iterator[Change]:
    """TypeError: conversions, a subscript for a call or a call for a subscript, at the line that raised."""
    for failure in ctx.failing_with("TypeError"):
        lines, message = ctx.lines_of(failure), failure.message
        for expr in ctx.exprs:
            if expr.line not in lines or expr.store or expr.in_fstring:
                continue
            node = expr.node
            if "not callable" in message and isinstance(node, cst.Call):
                args = ", ".join(ctx.unit.code(a.value) for a in node.args)
                yield ctx.put(
                    expr, f"{ctx.unit.code(node.func)}[{args}]" if args else ctx.unit.code(node.func), ATOM, 0.6
                )
                yield ctx.put(expr, ctx.unit.code(node.func), ATOM, 0.2)
            if "not subscriptable" in message and isinstance(node, cst.Subscript):
                inner = ", ".join(ctx.unit.code(e.slice) for e in node.slice)
                yield ctx.put(expr, f"{ctx.unit.code(node.value)}({inner})", ATOM, 0.6)
                yield ctx.put(expr, ctx.unit.code(node.value), ATOM, 0.4)
                if _UNORDERED.search(message):
                    yield ctx.put(expr, f"list({ctx.unit.code(node.value)})[{inner}]", ATOM, 0.6)
            if "not iterable" in message and isinstance(node, cst.Subscript):
                yield ctx.put(expr, ctx.unit.code(node.value), ATOM, 0.4)
            if isinstance(node, (cst.Name, cst.Call, cst.Subscript, cst.BinaryOperation, cst.Attribute)):
                wanted = [
                    w
                    for w in ("str", "int", "list", "tuple", "float", "set", "len", "range")
                    if w in message or w == "len"
                ]
                if not isinstance(expr.parent, (cst.Attribute, cst.Call)) and expr.text not in ("self", "None"):
                    for wrap in wanted:
                        yield ctx.put(expr, f"{wrap}({expr.text})", ATOM, 0.0)


@operator("split-once", prior=1.2)
def split_once(ctx: OperatorContext) -> Iterator[Change]:
    """Too many parts to unpack: `line.split("=")` stops after as many as are expected, `line.split("=", 1)`."""
    for failure in ctx.failing_with("ValueError"):
        told, lines = _TOO_MANY.search(failure.message), ctx.lines_of(failure)
        most = int(told[1]) - 1 if told is not None else 0
        for expr, node in ctx.of(cst.Call) if most > 0 else ():
            if expr.line not in lines or callee_name(node) not in ("split", "rsplit") or len(node.args) > 1:
                continue
            if not isinstance(node.func, cst.Attribute) or any(a.keyword or a.star for a in node.args):
                continue
            separator = ctx.unit.code(node.args[0].value) if node.args else "None"
            for name in ("split", "rsplit"):
                text = f"{ctx.unit.code(node.func.value)}.{name}({separator}, {most})"
                yield ctx.put(expr, text, ATOM, 0.0 if name == node.func.attr.value else -0.8)
