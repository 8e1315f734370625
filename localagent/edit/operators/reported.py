"""Edits that the failure itself suggests: its exception, its message, its lines. They come before all others."""

import re
from collections.abc import Iterator, Mapping

import libcst as cst

from localagent.domain.outcome import Failure
from localagent.edit.context import Change, Context
from localagent.edit.layout import before, body_statements, inside_function, removed, step
from localagent.edit.operators.attributes import known_attributes
from localagent.edit.operators.guards import returned_values
from localagent.edit.operators.variables import BUILTINS, likeness, names_for
from localagent.edit.precedence import ATOM, LAMBDA
from localagent.edit.registry import operator
from localagent.edit.unit import Expr, Stmt
from localagent.index.builtin_types import ATTRIBUTES, FOREIGN_NAMES, SYNONYMS

_UNDEFINED = re.compile(r"name '(\w+)' is not defined|local variable '(\w+)'|free variable '(\w+)'")
_NO_ATTRIBUTE = re.compile(r"(?:'(\w+)' object|type object '(\w+)'|module '([\w.]+)') has no attribute '(\w+)'")
_STARTS = ("0", "[]", "{}", "set()", "''", "None", "1", "False", "True", "float('inf')", "-1", "float('-inf')")


def undefined(failure: Failure) -> str:
    """The name that a failure calls undefined, or ""."""
    found = _UNDEFINED.search(failure.message)
    return next((g for g in found.groups() if g), "") if found else ""


def _placed(ctx: Context, failure: Failure, line: int, end_line: int) -> float:
    """Bonus for standing on a line of the failure's traceback, most for the innermost."""
    lines = [f.line for f in failure.frames if f.path == ctx.path]
    if lines and line <= lines[-1] <= end_line:
        return 0.5
    return 0.2 if any(line <= n <= end_line for n in lines) else 0.0


_ONE_OF_SEVERAL = 0.4  # a name that is missing in several places stays missing in the others


@operator("undefined-name", prior=2.0)
def undefined_name(ctx: Context) -> Iterator[Change]:
    """An undefined name becomes one alike in scope, a builtin, what another language means by it, or `self.x`."""
    for failure in ctx.failing_with("NameError", "UnboundLocalError"):
        name = undefined(failure)
        several = sum(e.text == name for e in ctx.unit.exprs if isinstance(e.node, cst.Name)) > 1
        for expr, node in ctx.of(cst.Name):
            if node.value != name:
                continue
            bonus = _placed(ctx, failure, expr.line, expr.end_line) - (_ONE_OF_SEVERAL if several else 0.0)
            offers = dict(names_for(ctx, expr.statement))
            offers.update({b: -0.8 for b in sorted(BUILTINS) if b not in offers and likeness(name, b) > 0.5})
            offers.update({s: -0.8 for s in _from_star_imports(ctx, name) if s not in offers})
            for other, near in offers.items():
                if other != name:
                    yield ctx.put(expr, other, ATOM, bonus + near * 0.5 + 1.2 * likeness(name, other) - 0.6)
            for text in FOREIGN_NAMES.get(name, ()):
                yield ctx.put(expr, text, ATOM, bonus + 0.8)
            if ctx.span.class_path:
                yield ctx.put(expr, f"self.{name}", ATOM, bonus + 0.4)
            for place, text in enumerate(("0", "1", "-1", "None", "[]", "''")):
                yield ctx.put(expr, text, ATOM if text != "-1" else 13, bonus - 0.8 - 0.05 * place)
            if isinstance(expr.parent, cst.BinaryOperation):
                other_side = expr.parent.right if expr.parent.left is node else expr.parent.left
                start, end = ctx.unit.outer(expr.parent)
                text = ctx.unit.code(other_side)
                yield ctx.splice(
                    expr, (start, end, f"({text})" if " " in text else text), delta=bonus - 0.4, note=f"{name} dropped"
                )


def _from_star_imports(ctx: Context, name: str) -> list[str]:
    """Names like `name` that the library's modules of the file's `from x import *` bring."""
    from localagent.index.builtin_types import IMPORTS  # noqa: PLC0415 - a large table, needed for these failures alone

    modules = set(ctx.facts.star_imports)
    if not modules:
        return []
    return [
        known
        for known, origins in IMPORTS.items()
        if likeness(name, known) > 0.5
        and any(o.partition(":")[0] in modules and o.endswith(f":{known}") for o in origins)
    ]


@operator("undefined-everywhere", prior=1.6)
def undefined_everywhere(ctx: Context) -> Iterator[Change]:
    """All uses of an undefined name in the function become one other name."""
    for failure in ctx.failing_with("NameError", "UnboundLocalError"):
        name = undefined(failure)
        uses = [e for e in ctx.unit.exprs if isinstance(e.node, cst.Name) and e.text == name]
        if len(uses) < 2:
            continue
        offers = dict(names_for(ctx, uses[0].statement))
        targets = [
            *offers,
            *_from_star_imports(ctx, name),
            *FOREIGN_NAMES.get(name, ()),
            *([f"self.{name}"] if ctx.span.class_path else []),
        ]
        foreign = FOREIGN_NAMES.get(name, ())
        told = ctx.lines_of(failure)
        at = next((e for e in uses if e.line in told), uses[0])  # the first use may stand where no test comes
        for other in dict.fromkeys(targets):
            if other != name:
                splices = tuple((e.start, e.end, other) for e in uses)
                delta = 1.6 if other in foreign else 1.2 * likeness(name, other) - 0.6
                yield ctx.splice(at, *splices, delta=delta, note=f"{name} -> {other} everywhere")


@operator("parameter-rename", prior=1.4)
def parameter_rename(ctx: Context) -> Iterator[Change]:
    """A parameter takes the undefined name that the body reads, in the definition alone or wherever it is used."""
    for failure in ctx.failing_with("NameError"):
        name = undefined(failure)
        if not name or not any(e.text == name for e in ctx.unit.exprs):
            continue
        for s in ctx.statements:
            if not isinstance(s.node, cst.FunctionDef):
                continue
            taken = ctx.names.params.get(s.node, [])
            for param in s.node.params.params:
                old = param.name.value
                if old in ("self", "cls") or name in taken:
                    continue
                uses = [
                    (e.start, e.end, name)
                    for e in ctx.unit.exprs
                    if isinstance(e.node, cst.Name) and e.text == old and s.start <= e.start < s.end
                ]
                own = (*ctx.unit.span(param.name), name)
                delta = 0.8 * likeness(old, name) + (-0.2 if uses else 0.6) - 0.4
                yield ctx.splice(s, own, *uses, delta=delta, note=f"parameter {old} -> {name} everywhere")
                if uses:
                    yield ctx.splice(s, own, delta=delta - 0.4, note=f"parameter {old} -> {name}")


@operator("undefined-initialise", prior=1.2)
def undefined_initialise(ctx: Context) -> Iterator[Change]:
    """An undefined name is initialised before its first use, at the function's start or before its loop."""
    for failure in ctx.failing_with("NameError", "UnboundLocalError"):
        name = undefined(failure)
        use = next((e for e in ctx.unit.exprs if isinstance(e.node, cst.Name) and e.text == name), None)
        if use is None or not name:
            continue
        kind = ctx.names.kinds.get(name, "")
        likely = {"list": "[]", "dict": "{}", "set": "set()", "int": "0", "str": "''"}.get(kind, "")
        extra = ("defaultdict(list)", "defaultdict(int)", "deque()", "Counter()")
        usable = [t for t in extra if t.split("(")[0] in ctx.facts.imports or "collections" in ctx.facts.star_imports]
        names = [n for n in ctx.visible(use.statement) if n not in (name, "self", "cls")][:8]
        values = [*_STARTS, *usable, *(f"len({n})" for n in names), *names]
        for at, place in _places_before(use.statement):
            for rank, value in enumerate(values):
                delta = 0.6 if value == likely else -0.04 * rank
                yield ctx.splice(
                    at, before(ctx, at, f"{name} = {value}"), delta=delta - place, note=f"{name} = {value}"
                )


def _places_before(s: Stmt) -> Iterator[tuple[Stmt, float]]:
    place, at = 0.0, s
    while True:
        if at.alone and not at.is_elif and not at.suite.inline:
            yield at, place
            place += 0.2
        owner = at.suite.owner
        if owner is None or isinstance(owner.node, cst.FunctionDef):
            break
        at = owner
    first = at.suite.statements[0]
    if first is not at and first.alone and not first.suite.inline:
        yield first, place


@operator("undefined-drop", prior=0.8)
def undefined_drop(ctx: Context) -> Iterator[Change]:
    """The statement, the argument or the element that holds an undefined name is dropped."""
    for failure in ctx.failing_with("NameError", "UnboundLocalError", "AttributeError", "TypeError"):
        name = undefined(failure)
        lines = ctx.lines_of(failure)
        for s in ctx.statements:
            if s.compound or not (s.line in lines or (name and f"{name}" in ctx.unit.slice(s.start, s.end).split())):
                continue
            if not (s.suite.inline and len(s.suite.statements) > 1):
                delta = 0.0 if name else -0.8
                yield ctx.splice(
                    s, removed(s), delta=delta + _placed(ctx, failure, s.line, s.end_line) - 0.4, note="deleted"
                )
            if isinstance(s.node, cst.Expr) and isinstance(s.node.value, cst.Call):
                yield ctx.splice(s, (s.start, s.end, "pass"), delta=-1.0, note="pass")


@operator("missing-attribute", prior=1.8)
def missing_attribute(ctx: Context) -> Iterator[Change]:
    """An attribute the type lacks becomes one it has, what another language means by it, or is dropped."""
    for failure in ctx.failing_with("AttributeError"):
        found = _NO_ATTRIBUTE.search(failure.message)
        if found is None:
            continue
        kind, name = next((g for g in found.groups()[:3] if g), ""), found.group(4)
        for expr, node in ctx.of(cst.Attribute):
            if node.attr.value != name:
                continue
            bonus = _placed(ctx, failure, expr.line, expr.end_line)
            span = ctx.unit.span(node.attr)
            offers = dict.fromkeys(ATTRIBUTES.get(kind, ()), 0.0)
            own = ctx.facts.classes.get(kind)
            for other in (*own.attributes, *own.methods) if own else ():
                offers[other] = 0.3
            if not offers:
                offers = known_attributes(ctx, node.value, name)
            for other, near in offers.items():
                if other != name:
                    delta = bonus + near + 1.2 * likeness(name, other) - 0.8
                    yield ctx.splice(expr, (*span, other), delta=delta, note=f".{name} -> .{other}")
            yield ctx.put(expr, ctx.unit.code(node.value), ATOM, bonus - 0.6)
            yield from _uncalled(ctx, expr, offers, bonus)
            yield ctx.put(
                expr, name, ATOM, bonus + (0.2 if name in ctx.visible(expr.statement) or name in BUILTINS else -0.8)
            )
            yield from _synonyms(ctx, expr, node, bonus)


def _uncalled(ctx: Context, expr: Expr, offers: Mapping[str, float], bonus: float) -> Iterator[Change]:
    """The call of a missing method becomes an attribute that is there, or the receiver."""
    node = expr.node
    if not isinstance(expr.parent, cst.Call) or expr.parent.func is not node or not isinstance(node, cst.Attribute):
        return
    start, end = ctx.unit.outer(expr.parent)
    receiver = ctx.unit.code(node.value)
    if not expr.parent.args:
        for other in offers:
            text, alike = f"{receiver}.{other}", likeness(node.attr.value, other)
            yield ctx.splice(expr, (start, end, text), delta=bonus + 1.2 * alike - 0.9, note=f"{expr.text}() -> {text}")
        yield ctx.splice(expr, (start, end, receiver), delta=bonus - 0.6, note=f"{expr.text}() -> {receiver}")


def _synonyms(ctx: Context, expr: Expr, node: cst.Attribute, bonus: float) -> Iterator[Change]:
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


@operator("missing-method-body", prior=1.0)
def missing_method_body(ctx: Context) -> Iterator[Change]:
    """A call of what does not exist becomes one of its arguments, a known function of them, or a value."""
    for failure in ctx.failing_with("AttributeError", "NameError"):
        found = _NO_ATTRIBUTE.search(failure.message)
        name = found.group(4) if found else undefined(failure)
        for expr, node in ctx.of(cst.Call):
            func = node.func
            called = (
                func.attr.value if isinstance(func, cst.Attribute) else func.value if isinstance(func, cst.Name) else ""
            )
            if called != name or not name:
                continue
            bonus = _placed(ctx, failure, expr.line, expr.end_line)
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


@operator("missing-import", prior=1.4)
def missing_import(ctx: Context) -> Iterator[Change]:
    """An undefined name is imported inside the function, from where other files or the library have it."""
    from localagent.index.builtin_types import IMPORTS  # noqa: PLC0415 - a large table, needed for this failure alone

    for failure in ctx.failing_with("NameError"):
        name = undefined(failure)
        sources = [facts.imports[name] for facts in ctx.nearby if name in facts.imports]
        for s in ctx.unit.statements:
            if not isinstance(s.node, cst.FunctionDef) or s.suite.owner is not None or not s.suites[0].statements:
                continue
            first = s.suites[0].statements[0]
            uses = any(e.text == name for e in ctx.unit.exprs if isinstance(e.node, cst.Name))
            if not uses or not first.alone or s.suites[0].inline:
                continue
            for place, origin in enumerate(dict.fromkeys([*sources, *IMPORTS.get(name, ())])):
                module, _, member = origin.partition(":")
                if module.startswith("."):
                    line = f"from {module} import {member}"
                elif member:
                    line = f"from {module} import {member}" + (f" as {name}" if member != name else "")
                else:
                    line = f"import {module}" + (f" as {name}" if module.split(".")[0] != name else "")
                yield ctx.splice(first, before(ctx, first, line), delta=0.6 - 0.1 * place, note=line)


@operator("reported-bounds", prior=1.0)
def reported_bounds(ctx: Context) -> Iterator[Change]:
    """IndexError: an index one less, zero or last, a guard on the length, at the line that raised."""
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


@operator("reported-recursion", prior=0.6)
def reported_recursion(ctx: Context) -> Iterator[Change]:
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


@operator("reported-type", prior=0.8)
def reported_type(ctx: Context) -> Iterator[Change]:
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
            if isinstance(node, (cst.Name, cst.Call, cst.Subscript, cst.BinaryOperation, cst.Attribute)):
                wanted = [
                    w
                    for w in ("str", "int", "list", "tuple", "float", "set", "len", "range")
                    if w in message or w == "len"
                ]
                if not isinstance(expr.parent, (cst.Attribute, cst.Call)) and expr.text not in ("self", "None"):
                    for wrap in wanted:
                        yield ctx.put(expr, f"{wrap}({expr.text})", ATOM, 0.0)
