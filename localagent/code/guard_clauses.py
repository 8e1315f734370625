"""When a function refuses, and when it says yes: every such condition together with those that stand around it.

A guard is one whether it is written as `if bad: raise`, `if good: return x` before a raise, `assert good`, or in an
`else`. A condition, a loop, or a handler that is put around it makes it refuse less often.
"""

import ast
import builtins
import re
from collections.abc import Iterator
from typing import NamedTuple

from localagent.code.condition_implication import (
    ALWAYS,
    NEVER,
    WHO,
    Condition,
    Names,
    atom,
    condition_of,
    denied,
    every,
    implies,
    narrower,
    opened,
    some,
)
from localagent.code.regions import walk
from localagent.code.spans import blocks

_NOTHING = (None, False, "", 0)
_LEAVES = (ast.Return, ast.Raise, ast.Continue, ast.Break)
_RAISES = (ast.Raise, ast.Assert)
_KIND = re.compile(
    r"Call\(func=Name\(id='(?:isinstance|issubclass|callable|hasattr)'"
    r"|Constant\(value=.* == |.* == Constant\(value=|.* in (?:Tuple|List|Set)\("
)
_MOST = 60


class GuardClause(NamedTuple):
    """Under what something is refused, and the expression that decides it. `otherwise`: what no branch takes."""

    when: Condition
    node: ast.AST
    otherwise: bool = False


def refusals(function: ast.AST, names: Names) -> list[GuardClause]:
    """Every condition under which a function refuses; either side of an `or` counts by itself."""
    found: list[GuardClause] = []
    for refusal in _within(getattr(function, "body", []), names, ()):
        parts = sorted(refusal.when.parts, key=str) if refusal.when.how == "or" else [refusal.when]
        found += [refusal._replace(when=part) for part in parts or [NEVER]]
    return found


def _within(body: list[ast.stmt], names: Names, above: tuple[Condition, ...]) -> Iterator[GuardClause]:
    for at, node in enumerate(body):
        if isinstance(node, ast.If):
            test = condition_of(node.test, names)
            yield from _branches(node, test, body[at + 1 :], names, above)
            if _goes(node.body) and not _is_refusing(node.body):
                above = (*above, denied(test))
        elif isinstance(node, ast.Assert):
            yield GuardClause(every(*above, denied(condition_of(node.test, names))), node.test)
        elif isinstance(node, ast.Match):
            for case in node.cases:
                yield from _within(case.body, names, (*above, atom(f"case {ast.dump(case.pattern)}")))
        elif isinstance(node, ast.For | ast.AsyncFor):
            yield from _within(node.body, names, (*above, _each(node.iter)))
            yield from _within(node.orelse, names, above)
        elif isinstance(node, ast.While):
            yield from _within(node.body, names, (*above, condition_of(node.test, names)))
        elif isinstance(node, ast.With | ast.AsyncWith):
            quiet = [atom(ast.dump(i.context_expr)) for i in node.items if "suppress" in ast.dump(i.context_expr)]
            yield from _within(node.body, names, (*above, *quiet))
        elif isinstance(node, ast.Try | ast.TryStar):
            lets = [h for h in node.handlers if _lets(h) and _may_catch(h, node.body)]
            caught = tuple(atom(f"not caught {ast.dump(h.type) if h.type else ''}") for h in lets)
            yield from _within(node.body, names, (*above, *caught))
            for handler in node.handlers:
                yield from _within(handler.body, names, (*above, atom("caught")))
            yield from _within([*node.orelse, *node.finalbody], names, above)
        if isinstance(node, _LEAVES):
            return


def _branches(
    node: ast.If, test: Condition, rest: list[ast.stmt], names: Names, above: tuple[Condition, ...]
) -> Iterator[GuardClause]:
    if _is_refusing(node.body):
        yield GuardClause(every(*above, test), node.test)
    else:
        yield from _within(node.body, names, (*above, test))
    if node.orelse and _is_refusing(node.orelse):
        yield GuardClause(every(*above, denied(test)), node.test, otherwise=True)
    elif node.orelse:
        yield from _within(node.orelse, names, (*above, denied(test)))
    elif _goes(node.body) and not _is_refusing(node.body) and rest and isinstance(rest[0], ast.Raise):
        yield GuardClause(every(*above, denied(test)), node.test, otherwise=True)


def _each(iterated: ast.expr) -> Condition:
    if isinstance(iterated, ast.Tuple | ast.List | ast.Set):
        return ALWAYS if iterated.elts else NEVER
    return atom(f"each {ast.dump(iterated)}")


def _lets(handler: ast.ExceptHandler) -> bool:
    """Whether a handler goes on after what was raised."""
    return not any(isinstance(n, ast.Raise) for s in handler.body for n in walk(s))


def _may_catch(handler: ast.ExceptHandler, body: list[ast.stmt]) -> bool:
    """Whether what a block raises itself may end in a handler: only of Python's own exceptions is it known."""
    types: list[ast.expr | None] = [*handler.type.elts] if isinstance(handler.type, ast.Tuple) else [handler.type]
    raised = [n.exc if isinstance(n, ast.Raise) else None for s in body for n in walk(s) if isinstance(n, _RAISES)]
    return any(not _is_known_apart(kind, what) for kind in types for what in raised)


def _is_known_apart(kind: ast.expr | None, raised: ast.expr | None) -> bool:
    thrown = raised.func if isinstance(raised, ast.Call) else raised
    known = [getattr(builtins, n.id, None) if isinstance(n, ast.Name) else None for n in (kind, thrown)]
    first, second = known
    return isinstance(first, type) and isinstance(second, type) and not issubclass(second, first)


def _goes(body: list[ast.stmt]) -> bool:
    return bool(body) and isinstance(body[-1], _LEAVES)


def _is_refusing(body: list[ast.stmt]) -> bool:
    """Whether a block ends in a raise, or answers nothing."""
    last = body[-1]
    if isinstance(last, ast.Return):
        value = last.value
        empty = isinstance(value, ast.Tuple | ast.List | ast.Set) and not value.elts
        return value is None or empty or (isinstance(value, ast.Constant) and value.value in _NOTHING)
    return isinstance(last, ast.Raise)


def refused_less(old: ast.AST, new: ast.AST, names: tuple[Names, Names]) -> Iterator[ast.AST]:
    """Guards that refuse in plainly fewer cases than one in whose place they stand."""
    had, now = refusals(old, names[0]), refusals(new, names[1])
    kept = {r.when for r in had} & {r.when for r in now}
    gone = [r for r in had if r.when not in kept]
    come = [r for r in now if r.when not in kept]
    if len(gone) * len(come) > _MOST * _MOST:
        yield come[0].node  # so much has changed that nobody can say what is let through
        return
    yield from _shorter(had, now)
    whole = some(*(r.when for r in now))
    told: set[int] = set()
    for refusal in gone:
        if not implies(refusal.when, whole):
            for other in come:
                if id(other.node) in told or (other.otherwise and _is_another_kind(refusal.when, other.when)):
                    continue
                if narrower(other.when, refusal.when):
                    told.add(id(other.node))
                    yield other.node


def _is_another_kind(old: Condition, new: Condition) -> bool:
    """Whether one kind of value more has its branch: an ordinary change, where it is not about who asks."""
    had, now = (c.parts if c.how == "and" else frozenset({c}) for c in (old, new))
    return had < now and all(_is_of_kind(a) for part in now - had for a in _atoms(part))


def _atoms(condition: Condition) -> Iterator[Condition]:
    if condition.how == "is":
        yield condition
    for part in condition.parts:
        yield from _atoms(part)


def _is_of_kind(asked: Condition) -> bool:
    return _KIND.match(asked.what) is not None and not WHO.search(asked.what)


def _shorter(had: list[GuardClause], now: list[GuardClause]) -> Iterator[ast.AST]:
    """Guards of several sides that lost one, or several, and got none for it."""
    whole = {refusal.when for refusal in now}
    before = [parts for _, parts in _sides(had)]
    for node, parts in _sides(now):
        longer = [had for had in before if parts < had]
        if longer and parts not in before and not any(had <= whole for had in longer):
            yield node


def _sides(refusals: list[GuardClause]) -> list[tuple[ast.AST, set[Condition]]]:
    found: dict[int, tuple[ast.AST, set[Condition]]] = {}
    for when, node, _ in refusals:
        found.setdefault(id(node), (node, set()))[1].add(when)
    return list(found.values())


def says_yes(function: ast.AST, names: Names) -> Condition | None:
    """When a function whose every answer is yes or no says yes; None for any other function."""
    answers = [n for n in walk(function) if isinstance(n, ast.Return)]
    if not answers or not all(n.value is not None and _is_yes_or_no(n.value, names) for n in answers):
        return None
    if not any(isinstance(_named(n.value, names), ast.Compare | ast.BoolOp) or _is_bool(n.value) for n in answers):
        return None
    found: list[Condition] = []
    _yes(getattr(function, "body", []), names, [], found)
    return opened(some(*found))


def _yes(body: list[ast.stmt], names: Names, above: list[Condition], found: list[Condition]) -> None:
    """Adds the ways to a yes; a way that passes by a no has its denial in it. `above` is what a caller has passed."""
    for node in body:
        if isinstance(node, ast.Return) and node.value is not None:
            found.append(every(*above, condition_of(node.value, names)))
        elif isinstance(node, ast.If):
            test = condition_of(node.test, names)
            _yes(node.body, names, [*above, test], found)
            _yes(node.orelse, names, [*above, denied(test)], found)
            if _is_no(node.body):
                above.append(denied(test))
            if _is_no(node.orelse):
                above.append(test)
        elif isinstance(node, ast.For | ast.AsyncFor | ast.While | ast.With | ast.AsyncWith | ast.Try | ast.TryStar):
            for block in blocks(node):
                _yes(block, names, [*above], found)
            for handler in getattr(node, "handlers", []):
                _yes(handler.body, names, [*above, atom("caught")], found)
            above += [atom(f"passed {ast.dump(n)}") for n in _noes(node)]
        elif isinstance(node, ast.Match):
            for case in node.cases:
                _yes(case.body, names, [*above, atom(f"case {ast.dump(case.pattern)}")], found)
        if isinstance(node, _LEAVES):
            return


def _noes(node: ast.AST) -> list[ast.expr]:
    """The tests inside a loop or an attempt that answer no."""
    return [n.test for n in walk(node) if isinstance(n, ast.If) and _is_no(n.body)]


def _is_no(body: list[ast.stmt]) -> bool:
    return bool(body) and (
        isinstance(body[-1], ast.Raise)
        or (isinstance(body[-1], ast.Return) and isinstance(body[-1].value, ast.Constant) and not body[-1].value.value)
    )


def _named(node: ast.expr | None, names: Names) -> ast.expr | None:
    return names.get(node.id, node) if isinstance(node, ast.Name) else node


def _is_bool(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, bool)


def _is_yes_or_no(node: ast.expr, names: Names) -> bool:
    node = names.get(node.id, node) if isinstance(node, ast.Name) else node
    if isinstance(node, ast.BoolOp):
        return all(_is_yes_or_no(v, names) for v in node.values)
    if isinstance(node, ast.IfExp):
        return _is_yes_or_no(node.body, names) and _is_yes_or_no(node.orelse, names)
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.BitOr | ast.BitAnd) and _is_yes_or_no(node.left, names)
    if isinstance(node, ast.Constant):
        return isinstance(node.value, bool)
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.op, ast.Not)
    return isinstance(node, ast.Compare | ast.Attribute | ast.Call)
