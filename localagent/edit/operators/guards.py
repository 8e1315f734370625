"""Guards: an early return, `continue`, `break` or `raise` before a statement, from known names and conditions."""

from collections.abc import Iterator
from itertools import permutations

import libcst as cst

from localagent.domain.edit import EditEffect
from localagent.edit.layout import before, body_statements, inside_function, step
from localagent.edit.operator_context import Change, OperatorContext
from localagent.edit.operator_registry import operator
from localagent.edit.operators.logic import is_test
from localagent.edit.operators.variables import names_for
from localagent.edit.unit import Stmt

_USUAL_RETURNS = ("[]", "None", "0", "False", "True", "''", "-1", "1", "{}")


def conditions_at(ctx: OperatorContext, s: Stmt, limit: int = 24) -> list[tuple[str, float]]:
    """Conditions for a guard before a statement, best first."""
    found: dict[str, float] = {}
    read = {e.text for e in ctx.unit.exprs if e.statement is s}
    seen = ctx.visible(s)
    first_of_function = s.index == 0 or (s.suite.owner is not None and isinstance(s.suite.owner.node, cst.FunctionDef))
    for name in seen:
        if name in ("self", "cls") or ctx.names.kinds.get(name) == "func":
            continue
        near = (0.3 if name in read else -0.3) - 0.01 * min(abs(seen[name] - s.line), 40)
        found[f"not {name}"] = near + (0.3 if first_of_function else 0.0)
        found[f"{name} is None"] = near - 0.1
        kind = ctx.names.kinds.get(name, "")
        if kind in ("int", ""):
            for tail, plus in (
                ("== 0", -0.2),
                ("< 0", -0.4),
                ("<= 0", -0.5),
                ("== 1", -0.5),
                ("<= 1", -0.5),
                ("< 1", -0.8),
            ):
                found[f"{name} {tail}"] = near + plus
        if kind in ("list", "str"):
            found[f"len({name}) <= 1"] = near - 0.7
            found[f"len({name}) == 1"] = near - 0.8
        if kind in ("bool", ""):
            found[name] = near - 0.4
    for text in sorted(read):
        if "." in text and text.replace(".", "").isidentifier():
            found.setdefault(f"{text} is None", 0.0)
            found.setdefault(f"not {text}", -0.1)
    for e in ctx.deciding(is_test):
        if len(e.text) < 60:
            found[e.text] = max(found.get(e.text, -9.0), -0.02 * min(abs(e.line - s.line), 30))
    found.update(_memberships(ctx, s, seen))
    found |= {text: likely for text, likely in _lookups(ctx, s).items() if likely > found.get(text, -9.0)}
    return sorted(found.items(), key=lambda x: -x[1])[:limit]


def _memberships(ctx: OperatorContext, s: Stmt, seen: dict[str, int]) -> dict[str, float]:
    out: dict[str, float] = {}
    holders = [n for n in seen if ctx.names.kinds.get(n) in ("set", "dict", "Counter")]
    for holder in holders[:4]:
        for name in sorted(seen, key=lambda n: abs(seen[n] - s.line))[:6]:
            if name not in (holder, "self", "cls") and ctx.names.kinds.get(name) not in ("func", "list", "dict", "set"):
                out[f"{name} in {holder}"] = 0.1
                out[f"{name} not in {holder}"] = -0.1
    return out


def _lookups(ctx: OperatorContext, s: Stmt) -> dict[str, float]:
    """Of what a statement looks up, that it is not there: `k not in d` before `d[k]` is read."""
    out: dict[str, float] = {}
    for e in ctx.unit.exprs:
        node = e.node
        if e.statement is not s or e.store or not isinstance(node, cst.Subscript) or len(node.slice) != 1:
            continue
        index = node.slice[0].slice
        if not isinstance(index, cst.Index) or not isinstance(node.value, (cst.Name, cst.Attribute)):
            continue
        key = index.value
        names = isinstance(key, (cst.Name, cst.Attribute, cst.SimpleString))
        numbered = ctx.names.kind(key) in ("int", "bool") or ctx.names.kind(node.value) in (
            "list",
            "str",
            "tuple",
            "set",
        )
        if names and not numbered:
            out[f"{ctx.unit.code(key)} not in {ctx.unit.code(node.value)}"] = 0.3
    return out


def returned_values(ctx: OperatorContext, s: Stmt) -> list[tuple[str, float]]:
    """Values for an early return: those returned elsewhere in the function first, parameters, usual constants.

    Where the function returns quotients or float literals, nothing is 0.0 there and not 0.
    """
    scope = ctx.function(s)
    found: dict[str, float] = {}
    fractions = False
    for e in ctx.unit.exprs:
        if isinstance(e.parent, cst.Return) and e.scope is scope and len(e.text) < 50 and "\n" not in e.text:
            found.setdefault(e.text, 0.2)
            fractions = fractions or _fraction(e.node)
    for place, name in enumerate(ctx.names.params.get(scope, [])[:5] if scope is not None else []):
        if name not in ("self", "cls"):
            found.setdefault(name, -0.3 - 0.1 * place)
    for place, text in enumerate(_USUAL_RETURNS):
        found.setdefault("0.0" if fractions and text == "0" else text, -0.1 - 0.08 * place)
    names = sorted(names_for(ctx, s).items(), key=lambda x: -x[1])[:5]
    for name, _ in names:
        if name not in ("self", "cls"):
            found.setdefault(name, -0.7)
    return sorted(found.items(), key=lambda x: -x[1])[:10]


def _fraction(node: cst.BaseExpression) -> bool:
    """Whether an expression is a float by its form: a literal, or a quotient."""
    if isinstance(node, cst.BinaryOperation):
        return isinstance(node.operator, cst.Divide)
    return isinstance(node, cst.Float)


_ERRORS = ("Exception", "Error")


@operator("guard-return", prior=-2.6, effects={EditEffect.ADDS_GUARD, EditEffect.LEAVES_EARLY})
def guard_return(ctx: OperatorContext) -> Iterator[Change]:
    """`if condition: return value` before a statement."""
    inner = step(ctx)
    for s in body_statements(ctx):
        if not inside_function(ctx, s):
            continue
        body = s.suite.owner is not None and isinstance(s.suite.owner.node, cst.FunctionDef)
        place = 0.4 if body and s.index == 0 else 0.1 if body else 0.0
        values = returned_values(ctx, s)
        for condition, likely in conditions_at(ctx, s):
            for value, plus in values:
                line = "return" if value == "None" else f"return {value}"
                yield ctx.splice(
                    s,
                    before(ctx, s, f"if {condition}:", f"{inner}{line}"),
                    delta=place + likely + plus,
                    note=f"if {condition}: {line}",
                )


@operator("guard-loop", prior=-2.3, effects={EditEffect.ADDS_GUARD, EditEffect.LEAVES_EARLY})
def guard_loop(ctx: OperatorContext) -> Iterator[Change]:
    """`if condition: continue` or `break` before a statement of a loop."""
    inner = step(ctx)
    for s in body_statements(ctx):
        if s.in_loop and inside_function(ctx, s):
            for condition, likely in conditions_at(ctx, s):
                for word in ("continue", "break"):
                    yield ctx.splice(
                        s,
                        before(ctx, s, f"if {condition}:", f"{inner}{word}"),
                        delta=likely,
                        note=f"if {condition}: {word}",
                    )


@operator("guard-raise", prior=-3.2, effects={EditEffect.ADDS_GUARD})
def guard_raise(ctx: OperatorContext) -> Iterator[Change]:
    """`if condition: raise SomeError(message)` before a statement, with exceptions and messages of the file."""
    inner = step(ctx)
    raises = [t for t in ctx.facts.statements if t.startswith("raise ") and len(t) < 80][:6]
    raises += [f"raise {name}" for name, _ in ctx.facts.exceptions.most_common(3)]
    raises += ["raise ValueError", "raise IndexError", "raise TypeError"]
    for s in body_statements(ctx):
        if s.suite.owner is not None and isinstance(s.suite.owner.node, cst.FunctionDef) and s.index < 3:
            for condition, likely in conditions_at(ctx, s, 14):
                for place, text in enumerate(dict.fromkeys(raises)):
                    yield ctx.splice(
                        s,
                        before(ctx, s, f"if {condition}:", f"{inner}{text}"),
                        delta=likely - 0.1 * place,
                        note=f"if {condition}: {text}",
                    )
            yield from _own_errors(ctx, s, inner)


def _own_errors(ctx: OperatorContext, s: Stmt, inner: str) -> Iterator[Change]:
    """`if a > b: raise OwnError` for exceptions that the file defines: what is given against what is held."""
    own = [name for name, found in ctx.facts.classes.items() if any(b.endswith(_ERRORS) for b in found.bases)]
    scope = ctx.function(s)
    given = [name for name in ctx.names.params.get(scope, ()) if name not in ("self", "cls")] if scope else []
    read = sorted(e.text for e in ctx.unit.exprs if e.statement is s and e.text.startswith("self."))
    for place, (one, other) in enumerate(permutations(dict.fromkeys((*given[:3], *read[:2])), 2)):
        for name in own[:3]:
            condition, text = f"{one} > {other}", f"raise {name}"
            splice = before(ctx, s, f"if {condition}:", f"{inner}{text}")
            yield ctx.splice(s, splice, delta=0.4 - 0.1 * place, note=f"if {condition}: {text}")


@operator("guard-assign", prior=-3.0, effects={EditEffect.ADDS_GUARD})
def guard_assign(ctx: OperatorContext) -> Iterator[Change]:
    """`if name is None: name = value` (or `if not name`) before a statement near the function's start."""
    inner = step(ctx)
    for s in body_statements(ctx):
        if s.suite.owner is None or not isinstance(s.suite.owner.node, cst.FunctionDef) or s.index > 2:
            continue
        scope = ctx.function(s)
        for name in ctx.names.params.get(scope, []) if scope is not None else []:
            if name in ("self", "cls"):
                continue
            for condition in (f"{name} is None", f"not {name}"):
                for place, value in enumerate(("[]", "{}", "''", "0", "set()")):
                    yield ctx.splice(
                        s,
                        before(ctx, s, f"if {condition}:", f"{inner}{name} = {value}"),
                        delta=-0.1 * place,
                        note=f"if {condition}: {name} = {value}",
                    )
