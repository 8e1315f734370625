"""Loops that forget something: to advance what their test reads, to remember what they met, to begin anew."""

import re
from collections.abc import Iterator

import libcst as cst

from localagent.edit.layout import after, before, movable, step
from localagent.edit.operator_context import Change, OperatorContext
from localagent.edit.operator_registry import operator
from localagent.edit.unit import Expr, Stmt

_SUMS, _PLACES = 6, 200  # of a loop, at most
_PLAIN = re.compile(r"""-?\d+(\.\d+)?|None|True|False|''|""|\[\]|\{\}|set\(\)|list\(\)|dict\(\)""")
_LEAVES = (cst.Return, cst.Raise, cst.Break, cst.Continue)
_GROWS = frozenset({"add", "append", "update", "extend", "insert", "appendleft", "setdefault"})


def _inside(ctx: OperatorContext, s: Stmt) -> list[Expr]:
    """Expressions of a loop's body and else blocks."""
    return [e for e in ctx.unit.exprs if s.head_end <= e.start < s.end]


def _test_names(ctx: OperatorContext, s: Stmt) -> list[str]:
    names = [e for e in ctx.unit.exprs if s.start <= e.start < s.head_end and isinstance(e.node, cst.Name)]
    called = {"len", "range", "True", "False", "None", "self", "and", "not", "min", "max"}
    return list(dict.fromkeys(e.text for e in names if e.text not in called))


def _moved(ctx: OperatorContext, s: Stmt) -> set[str]:
    """Names that the body binds, or changes by a call of one of their methods."""
    out: set[str] = set()
    for e in _inside(ctx, s):
        if e.store:
            out.update(n.text for n in ctx.unit.exprs if e.start <= n.start < e.end and isinstance(n.node, cst.Name))
        elif isinstance(e.node, cst.Name) and isinstance(e.parent, cst.Attribute) and ctx.names.kind(e.node) != "":
            out.add(e.text)
    return out


@operator("loop-advance", prior=-0.9)
def loop_advance(ctx: OperatorContext) -> Iterator[Change]:
    """A name that a `while` condition reads and the body never changes is advanced at the body's end or start."""
    for s in ctx.statements:
        if not isinstance(s.node, cst.While) or s.suites[0].inline or not s.suites[0].statements:
            continue
        rows = s.suites[0].statements
        moved = _moved(ctx, s)
        for name in [n for n in _test_names(ctx, s) if n not in moved][:4]:
            walks = any(isinstance(e.parent, cst.Attribute) and e.text == name for e in ctx.unit.exprs)
            count = 0.2 if ctx.names.kinds.get(name, "") == "int" else -0.2 if walks else 0.0
            texts = [(f"{name} += 1", count + 0.2), (f"{name} -= 1", count), (f"{name} //= 2", count - 0.6)]
            texts += [(f"{name} //= 10", count - 0.7), (f"{name} >>= 1", count - 0.8)]
            if walks:
                texts += [(f"{name} = {name}.{tail}", 0.2) for tail in ("next", "left", "right", "parent")]
            for text, delta in texts:
                if movable(rows[-1]) and not _leaves(rows[-1]):
                    yield ctx.splice(s, after(ctx, rows[-1], text), delta=delta, note=f"{text} at the loop's end")
                if movable(rows[0]):
                    yield ctx.splice(s, before(ctx, rows[0], text), delta=delta - 0.5, note=f"{text} at its start")


def _leaves(s: Stmt) -> bool:
    return isinstance(s.node, _LEAVES)


@operator("remember", prior=-0.9)
def remember(ctx: OperatorContext) -> Iterator[Change]:
    """A value looked up in a collection that never grows is added to it, after the test or at its block's end."""
    grown = {
        e.text
        for e in ctx.unit.exprs
        if isinstance(e.parent, cst.Attribute) and e.parent.value is e.node and e.parent.attr.value in _GROWS
    }
    grown |= {ctx.unit.code(e.node.value) for e in ctx.unit.exprs if e.store and isinstance(e.node, cst.Subscript)}
    for expr, node in ctx.of(cst.Comparison):
        s = expr.statement
        word = node.comparisons[0].operator
        holder = ctx.unit.code(node.comparisons[0].comparator)
        if not isinstance(word, (cst.In, cst.NotIn)) or not holder.isidentifier() or holder in grown:
            continue
        if not isinstance(s.node, cst.If) or not movable(s) or "\n" in expr.text:
            continue
        item = ctx.unit.code(node.left)
        kind = ctx.names.kinds.get(holder, "")
        if kind in ("str", "int", "tuple"):
            continue
        texts = {"set": [f"{holder}.add({item})"], "list": [f"{holder}.append({item})"]}.get(
            kind, [f"{holder}.add({item})", f"{holder}.append({item})", f"{holder}[{item}] = 1"]
        )
        if kind == "dict":
            texts = [f"{holder}[{item}] = {value}" for value in ("1", "True", "0", "None")]
        inner = s.suites[0].statements
        for place, text in enumerate(texts):
            delta = -0.2 * place
            yield ctx.splice(s, after(ctx, s, text), delta=delta, note=f"{text} after the test")
            if inner and movable(inner[0]):
                yield ctx.splice(s, before(ctx, inner[0], text), delta=delta, note=f"{text} first")
            for other in s.suites[1:]:
                branch = other.statements[0] if other.statements else None
                while branch is not None and branch.is_elif:
                    branch = next((x.statements[0] for x in branch.suites[1:] if x.statements), None)
                if branch is not None and movable(branch):
                    yield ctx.splice(s, before(ctx, branch, text), delta=delta, note=f"{text} first in the last branch")
            last = s.suite.statements[-1]
            if last is not s and movable(last) and not _leaves(last):
                yield ctx.splice(s, after(ctx, last, text), delta=delta, note=f"{text} at the end")


@operator("loop-value", prior=0.2)
def loop_value(ctx: OperatorContext) -> Iterator[Change]:
    """A loop over values that uses them as indexes: every `xs[x]` below `for x in xs` becomes `x`."""
    for s in ctx.statements:
        if not isinstance(s.node, cst.For) or not isinstance(s.node.target, cst.Name):
            continue
        name, values = s.node.target.value, ctx.unit.code(s.node.iter)
        uses = [
            e
            for e in _inside(ctx, s)
            if isinstance(e.node, cst.Subscript) and not e.store and e.text.replace(" ", "") == f"{values}[{name}]"
        ]
        if uses:
            splices = tuple((e.start, e.end, name) for e in uses)
            yield ctx.splice(uses[0], *splices, delta=0.0, note=f"every {values}[{name}] -> {name}")


@operator("flush-after-loop", prior=-0.6)
def flush_after_loop(ctx: OperatorContext) -> Iterator[Change]:
    """What a loop hands on and begins anew when it is full is handed on after the loop too: the last part."""
    inner = step(ctx)
    for s in ctx.statements:
        if not isinstance(s.node, (cst.For, cst.While)) or s.suites[0].inline or not movable(s):
            continue
        behind = [ctx.unit.slice(x.start, x.end) for x in s.suite.statements[s.index + 1 :]]
        for full in s.suites[0].statements:
            rows = full.suites[0].statements if isinstance(full.node, cst.If) and not full.suites[0].inline else []
            begun = [ctx.unit.code(r.node.targets[0].target) for r in rows if isinstance(r.node, cst.Assign)]
            for row in rows:
                text = ctx.unit.slice(row.start, row.end)
                parts = [e.text for e in ctx.unit.exprs if e.statement is row and isinstance(e.node, cst.Name)]
                name = next((n for n in begun if n in parts), "")
                if not name or not isinstance(row.node, cst.Expr) or any(text in other for other in behind):
                    continue
                guarded = after(ctx, s, f"if {name}:", f"{inner}{text}")
                yield ctx.splice(s, guarded, delta=0.2, note=f"if {name}: {text}, after the loop")
                yield ctx.splice(s, after(ctx, s, text), note=f"{text}, after the loop")


@operator("restart", prior=-1.4)
def restart(ctx: OperatorContext) -> Iterator[Change]:
    """An accumulator is reset to its first value inside the loop, first before a block that reads it."""
    for s in ctx.statements:
        if not isinstance(s.node, (cst.For, cst.While)):
            continue
        inside = _inside(ctx, s)
        summed = dict.fromkeys(e.text for e in inside if isinstance(e.parent, cst.AugAssign) and e.store)
        summed |= dict.fromkeys(
            e.text
            for e in inside
            if isinstance(e.node, cst.Name) and isinstance(e.parent, cst.Attribute) and e.parent.attr.value in _GROWS
        )
        if not summed:
            continue
        read = {(e.text, id(e.statement.suite)) for e in inside if isinstance(e.node, cst.Name) and not e.store}
        places = [x for x in ctx.unit.statements if s.head_end <= x.start < s.end and movable(x) and x.scope is s.scope]
        known = [(name, first) for name, first in _first_values(ctx, s).items() if name in summed]
        for name, first in known[:_SUMS]:
            for place in places[:_PLACES]:
                reads = (name, id(place.suite)) in read
                adds = isinstance(place.node, cst.AugAssign) and ctx.unit.code(place.node.target) == name
                delta = (0.5 if reads and place.suite is not s.suites[0] else 0.0) - (0.3 if adds else 0.0)
                text = f"{name} = {first}"
                if not _leaves(place):
                    yield ctx.splice(place, after(ctx, place, text), delta=delta, note=f"after: {text}")
                if place.index == 0:
                    yield ctx.splice(place, before(ctx, place, text), delta=delta - 0.2, note=f"before: {text}")


def _first_values(ctx: OperatorContext, loop: Stmt) -> dict[str, str]:
    """Plain values that names are given before a loop: numbers, texts, empty containers, None."""
    values: dict[str, str] = {}
    for s in ctx.unit.statements:
        if s.start >= loop.start or not isinstance(s.node, cst.Assign) or s.scope is not loop.scope:
            continue
        for target in (t.target for t in s.node.targets):
            value: cst.BaseExpression = s.node.value
            if isinstance(target, cst.Tuple) and isinstance(value, cst.Tuple):
                pairs = list(zip(target.elements, value.elements, strict=False))
                found = [(ctx.unit.code(a.value), ctx.unit.code(b.value)) for a, b in pairs]
            else:
                found = [(ctx.unit.code(target), ctx.unit.code(value))]
            for name, text in found:
                if name.isidentifier() and _PLAIN.fullmatch(text):
                    values[name] = text
    return values
