"""Control flow and assignment forms: one keyword or one target for another."""

from collections.abc import Iterator

import libcst as cst

from localagent.domain.edit import EditEffect
from localagent.edit.layout import before, body_statements, inside_function, is_docstring
from localagent.edit.operator_context import Change, OperatorContext
from localagent.edit.operator_registry import operator
from localagent.edit.operators.variables import names_for
from localagent.edit.precedence import binding
from localagent.text.visible_text import shortened

_LITERALS = ("True", "False", "0", "[]", "''", "-1", "None")  # returned at the end of a function


@operator("if-while", prior=-0.4)
def if_while(ctx: OperatorContext) -> Iterator[Change]:
    """`if` becomes `while`, and the other way round."""
    for s in ctx.statements:
        if isinstance(s.node, cst.If) and not s.is_elif and s.suites[-1].slot != "elif":
            yield ctx.splice(s, (s.start, s.start + 2, "while"), note="if -> while")
        elif isinstance(s.node, cst.While):
            yield ctx.splice(s, (s.start, s.start + 5, "if"), delta=-0.3, note="while -> if")


@operator("if-elif", prior=-0.5)
def if_elif(ctx: OperatorContext) -> Iterator[Change]:
    """`if` after an `if` becomes `elif`, `elif` becomes `if`, `else` becomes part of the block before."""
    for s in ctx.statements:
        if not isinstance(s.node, cst.If):
            continue
        if s.is_elif:
            yield ctx.splice(s, (s.start, s.start + 4, "if"), note="elif -> if")
        elif s.alone and s.index > 0 and isinstance(s.suite.statements[s.index - 1].node, cst.If):
            yield ctx.splice(s, (s.start, s.start + 2, "elif"), note="if -> elif")


@operator("for-form", prior=-1.0)
def for_form(ctx: OperatorContext) -> Iterator[Change]:
    """A loop's iteration changes form: `in x` to `in enumerate(x)` with an index, to `range(len(x))`, to a slice."""
    for s in ctx.statements:
        if not isinstance(s.node, cst.For):
            continue
        start, end = ctx.unit.outer(s.node.iter)
        text = ctx.unit.slice(start, end)
        target = ctx.unit.outer(s.node.target)
        for new, delta in (
            (f"range(len({text}))", 0.0),
            (f"range({text})", 0.0),
            (f"{text}[1:]", 0.2),
            (f"{text}[:-1]", 0.0),
        ):
            if binding(s.node.iter) >= 16:
                yield ctx.splice(s, (start, end, new), delta=delta, note=f"in {new}")
        name = ctx.unit.slice(*target)
        if name.isidentifier():
            for index in ("i", "j", "_"):
                if index != name:
                    yield ctx.splice(
                        s,
                        (*target, f"{index}, {name}"),
                        (start, end, f"enumerate({text})"),
                        delta=-0.4,
                        note="enumerate",
                    )
            yield ctx.splice(s, (*target, f"{name}, _"), (start, end, f"{text}.items()"), delta=-0.9, note="items")


@operator("range-bounds", prior=-0.1, effects={EditEffect.MOVES_BOUNDARY})
def range_bounds(ctx: OperatorContext) -> Iterator[Change]:
    """`range` gets or loses a start, an end one further, or runs backwards."""
    for expr, node in ctx.of(cst.Call):
        if (
            not isinstance(node.func, cst.Name)
            or node.func.value != "range"
            or any(a.star or a.keyword for a in node.args)
        ):
            continue
        texts = [ctx.unit.code(a.value) for a in node.args]
        offers: list[tuple[str, float]] = []
        if len(texts) == 1:
            stop = texts[0]
            offers = [
                (f"1, {stop}", 0.2),
                (f"1, {stop} + 1", 0.1),
                (f"{stop} + 1", 0.2),
                (f"{stop} - 1", 0.2),
                (f"0, {stop}, 2", -1.0),
            ]
            offers += [
                (f"{stop} - 1, -1, -1", -0.3),
                (f"2, {stop}", -0.5),
                (f"2, {stop} + 1", -0.5),
                (f"{stop}, 0, -1", -0.5),
            ]
        elif len(texts) == 2:
            low, high = texts
            offers = [
                (f"{low}, {high} + 1", 0.2),
                (f"{low} + 1, {high}", 0.2),
                (f"{low}, {high} - 1", 0.1),
                (high, 0.0),
            ]
            offers += [(f"{low} - 1, {high}", 0.0), (f"{low}, {high}, -1", 0.0), (f"{low} + 1, {high} + 1", -0.2)]
            offers += [(f"{high} - 1, {low} - 1, -1", -0.5), (f"{low}, {high}, 2", -0.8)]
        elif len(texts) == 3:
            low, high, pace = texts
            offers = [(f"{low}, {high}", 0.0), (f"{low}, {high} - 1, {pace}", 0.1), (f"{low}, {high} + 1, {pace}", 0.1)]
            offers += [
                (f"{low} - 1, {high}, {pace}", 0.0),
                (f"{low} + 1, {high}, {pace}", 0.0),
                (f"{low}, -1, {pace}", 0.0),
            ]
            offers += (
                [(f"{low}, {high}, -{pace}", 0.0)] if pace.isdigit() else [(f"{low}, {high}, {pace.lstrip('-')}", 0.0)]
            )
        for text, delta in offers:
            yield ctx.put(expr, f"range({text})", 16, delta)


@operator("break-continue", prior=0.0, deep=True)
def break_continue(ctx: OperatorContext) -> Iterator[Change]:
    """`break`, `continue`, `pass` and `return` for one another."""
    words = ("break", "continue", "pass", "return")
    for s in ctx.statements:
        old = ctx.unit.slice(s.start, s.end)
        if old in words:
            for new in words:
                if new != old:
                    delta = {"pass": -0.6, "return": -0.8}.get(new, 0.2)
                    yield ctx.splice(s, (s.start, s.end, new), delta=delta, note=f"{old} -> {new}")


@operator("return-yield", prior=-0.4, deep=True)
def return_yield(ctx: OperatorContext) -> Iterator[Change]:
    """`return x` becomes `yield x`, `yield x` becomes `yield from x`, and back; a bare expression is returned."""
    for s in ctx.statements:
        node = s.node
        if isinstance(node, cst.Return) and node.value is not None:
            value = ctx.unit.slice(*ctx.unit.outer(node.value))
            for word, delta in (("yield", 0.0), ("yield from", -0.3)):
                yield ctx.splice(s, (s.start, s.end, f"{word} {value}"), delta=delta, note=f"return -> {word}")
            yield ctx.splice(s, (s.start, s.end, value), delta=-0.6, note="return dropped")
            yield ctx.splice(s, (s.start, s.end, "return"), delta=-0.8, note="value dropped")
        elif isinstance(node, cst.Return):
            for text in ("None", "[]", "0", "False", "True", "''", "-1"):
                yield ctx.splice(s, (s.start, s.end, f"return {text}"), delta=-0.3, note=f"return {text}")
        elif isinstance(node, cst.Expr) and isinstance(node.value, cst.Yield) and node.value.value is not None:
            inner = node.value.value
            is_from = isinstance(inner, cst.From)
            value = ctx.unit.code(inner.item if isinstance(inner, cst.From) else inner)
            for word in ("return", "yield" if is_from else "yield from"):
                yield ctx.splice(s, (s.start, s.end, f"{word} {value}"), note=f"-> {word}")
        elif isinstance(node, cst.Expr) and not is_docstring(s) and inside_function(ctx, s):
            value = ctx.unit.slice(s.start, s.end)
            for word, delta in (("return", 0.2), ("yield", -0.8), ("yield from", -0.6)):
                if not isinstance(node.value, (cst.Yield, cst.Ellipsis)):
                    yield ctx.splice(s, (s.start, s.end, f"{word} {value}"), delta=delta, note=f"{word} ...")


@operator("return-value", prior=-0.6)
def return_value(ctx: OperatorContext) -> Iterator[Change]:
    """A returned value becomes a name in scope or a usual constant."""
    for expr in ctx.exprs:
        if not isinstance(expr.parent, cst.Return):
            continue
        scope = ctx.visible(expr.statement)
        for name, near in names_for(ctx, expr.statement).items():
            if name in scope and name not in ("self", "cls") and ctx.names.kinds.get(name) != "func":
                yield ctx.put(expr, name, 16, near - 0.2)
        for text in ("None", "[]", "0", "False", "True", "''", "-1", "1"):
            yield ctx.put(expr, text, 13 if text == "-1" else 15, -0.9)


@operator("return-missing", prior=-1.4, deep=True)
def return_missing(ctx: OperatorContext) -> Iterator[Change]:
    """A function that ends without `return` returns a name it binds, a parameter or a usual constant."""
    for s in ctx.unit.statements:
        suite = next((x for x in s.suites if x.slot == "body"), None)
        if not isinstance(s.node, cst.FunctionDef) or suite is None or not suite.statements or suite.inline:
            continue
        last = suite.statements[-1]
        if isinstance(last.node, (cst.Return, cst.Raise)) or not _near_lines(ctx, last.end_line):
            continue
        names = sorted(ctx.names.bound.get(s.node, {}).items(), key=lambda x: x[1])
        texts = [n for n, _ in names if n not in ("self", "cls")][:10]
        texts += [*_LITERALS, "self"]
        for place, text in enumerate(texts):
            insertion = (last.eol, last.eol, f"{ctx.unit.newline}{last.indent}return {text}")
            change = ctx.splice(last, insertion, delta=-0.04 * place, note=f"return {text} at the end")
            yield change.having(EditEffect.RETURNS_LITERAL) if text in _LITERALS else change


def _near_lines(ctx: OperatorContext, line: int) -> bool:
    return ctx.lines is None or any(abs(line - n) <= 3 for n in ctx.lines) or bool(ctx.statements)


@operator("target-swap", prior=-0.9)
def target_swap(ctx: OperatorContext) -> Iterator[Change]:
    """An assignment stores to another attribute or item that the function assigns."""
    targets = {e.text: e for e in ctx.unit.exprs if e.store and not isinstance(e.node, (cst.Tuple, cst.Name))}
    for expr in ctx.exprs:
        if not expr.store or isinstance(expr.parent, (cst.CompFor, cst.Del)):
            continue
        if isinstance(expr.node, cst.Tuple):
            continue
        for text, other in targets.items():
            if text != expr.text:
                yield ctx.put(expr, text, other.level, -0.02 * min(abs(other.line - expr.line), 30))


@operator("assign-split", prior=-1.5)
def assign_split(ctx: OperatorContext) -> Iterator[Change]:
    """A tuple assignment is done one after the other, or two assignments at once."""
    for s in body_statements(ctx):
        node = s.node
        if not isinstance(node, cst.Assign) or len(node.targets) != 1:
            continue
        target, value = node.targets[0].target, node.value
        if (
            isinstance(target, cst.Tuple)
            and isinstance(value, cst.Tuple)
            and len(target.elements) == len(value.elements) == 2
        ):
            rows = [
                f"{ctx.unit.code(t.value)} = {ctx.unit.code(v.value)}"
                for t, v in zip(target.elements, value.elements, strict=True)
            ]
            for order in (rows, rows[::-1]):
                text = (ctx.unit.newline + s.indent).join(order)
                yield ctx.splice(s, (s.start, s.end, text), note="one after the other")
        following = s.suite.statements[s.index + 1] if s.index + 1 < len(s.suite.statements) else None
        if following is None or not isinstance(following.node, cst.Assign) or len(following.node.targets) != 1:
            continue
        if isinstance(target, cst.Tuple) or isinstance(value, cst.Tuple) or not following.alone:
            continue
        other = following.node
        if isinstance(other.targets[0].target, cst.Tuple) or isinstance(other.value, cst.Tuple):
            continue
        left = f"{ctx.unit.code(target)}, {ctx.unit.code(other.targets[0].target)}"
        text = f"{left} = {ctx.unit.code(value)}, {ctx.unit.code(other.value)}"
        yield ctx.splice(s, (s.start, following.end, text), delta=-0.2, note="both at once")


@operator("expression-assign", prior=-1.2)
def expression_assign(ctx: OperatorContext) -> Iterator[Change]:
    """The value of a bare call is assigned (`x = f(x)` for `f(x)`), or an assignment dropped."""
    for s in ctx.statements:
        node = s.node
        if isinstance(node, cst.Expr) and isinstance(node.value, cst.Call):
            call = node.value
            names = [n.value for n in (a.value for a in call.args) if isinstance(n, cst.Name)]
            if isinstance(call.func, cst.Attribute):
                names.insert(0, ctx.unit.code(call.func.value))
            near = sorted(names_for(ctx, s).items(), key=lambda x: -x[1])[:5]
            for place, name in enumerate(dict.fromkeys([*names, *(n for n, _ in near)])):
                if name.replace(".", "").isidentifier() and name not in ("self", "cls"):
                    yield ctx.splice(s, (s.start, s.start, f"{name} = "), delta=-0.1 * place, note=f"{name} = ...")
                    yield ctx.splice(
                        s, (s.start, s.start, f"{name} += "), delta=-0.4 - 0.1 * place, note=f"{name} += ..."
                    )
        elif isinstance(node, cst.Assign) and isinstance(node.value, cst.Call):
            yield ctx.splice(s, (s.start, ctx.unit.outer(node.value)[0], ""), delta=-0.6, note="assignment dropped")


@operator("subscript-store", prior=-1.6)
def subscript_store(ctx: OperatorContext) -> Iterator[Change]:
    """`d[k] = v` becomes `d[k].append(v)`; `d.append(v)` becomes `d += v`, `d = v`, `d.insert(0, v)`."""
    for s in ctx.statements:
        node = s.node
        if (
            isinstance(node, cst.Assign)
            and isinstance(node.targets[0].target, cst.Subscript)
            and len(node.targets) == 1
        ):
            target, value = node.targets[0].target, ctx.unit.code(node.value)
            text, base = ctx.unit.code(target), ctx.unit.code(target.value)
            for new in (f"{text}.append({value})", f"{base}.append({value})", f"{text}.add({value})"):
                yield ctx.splice(s, (s.start, s.end, new), note=shortened(new, 50))
        elif (
            isinstance(node, cst.Expr)
            and isinstance(node.value, cst.Call)
            and isinstance(node.value.func, cst.Attribute)
        ):
            call = node.value
            if len(call.args) == 1 and node.value.func.attr.value in ("append", "add", "extend"):
                base, value = ctx.unit.code(node.value.func.value), ctx.unit.code(call.args[0].value)
                for new in (
                    f"{base} += {value}",
                    f"{base} += [{value}]",
                    f"{base} = {value}",
                    f"{base}.insert(0, {value})",
                ):
                    yield ctx.splice(s, (s.start, s.end, new), delta=-0.3, note=shortened(new, 50))


@operator("initialise", prior=-2.8)
def initialise(ctx: OperatorContext) -> Iterator[Change]:
    """A name is reset before a statement, as it is initialised elsewhere in the function: `count = 0`."""
    starts: dict[str, None] = {}
    for s in ctx.unit.statements:
        if isinstance(s.node, cst.Assign) and s.line == s.end_line and s.scope is not None:
            value = ctx.unit.code(s.node.value)
            if value in ("0", "1", "-1", "[]", "{}", "''", '""', "set()", "None", "False", "True"):
                starts.setdefault(ctx.unit.slice(s.start, s.end))
    for s in body_statements(ctx):
        if inside_function(ctx, s):
            for text in starts:
                yield ctx.splice(s, before(ctx, s, text), note=f"before: {text}")
