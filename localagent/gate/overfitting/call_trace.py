"""One call of a failing test followed through a function: which conditions its input meets, what it is answered with.

Straight statements, branches, matches and loops over constants are followed with the values that the test gives; what
cannot be told is followed both ways. A value is `tainted` where an argument of the call goes into it.
Limitations: attributes, other functions, `try` and loops over what is not constant are passed over; a list that is
changed in place counts as unknown.
"""

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from localagent.code.constant_evaluation import Unknown, bound, evaluate
from localagent.code.spans import Function, blocks
from localagent.code.test_literals import NOT_KNOWN, VisibleCase

_MOST_STEPS = 600
_MOST_ROUNDS = 50
_MOST_DEPTH = 40
_CHANGES = frozenset(
    {"append", "extend", "insert", "remove", "pop", "clear", "update", "setdefault", "sort", "reverse", "add",
     "discard", "popitem", "__setitem__"}
)  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class TracedValue:
    """A name's value, and whether an argument of the call went into it."""

    value: Any
    tainted: bool


Names = dict[str, TracedValue]


@dataclass(frozen=True, kw_only=True, slots=True)
class Met:
    """A condition that the call meets. `holds` is None where that cannot be told."""

    node: ast.expr
    names: Names
    holds: bool | None


@dataclass(frozen=True, kw_only=True, slots=True)
class TracedAnswer:
    """A value that the call is answered with (or that a name is set to), and the conditions on the way there."""

    node: ast.expr
    names: Names
    way: tuple[Met, ...]
    returned: bool


@dataclass(slots=True)
class Trace:
    """What a call meets in a function."""

    met: list[Met] = field(default_factory=list)
    answers: list[TracedAnswer] = field(default_factory=list)
    steps: int = 0


def bind(function: Function, case: VisibleCase, constants: Mapping[str, Any]) -> Names | None:
    """The names of a function's parameters for a call; None if the call does not fit."""
    parameters = [a.arg for a in (*function.args.posonlyargs, *function.args.args)]
    given = list(case.arguments)
    if parameters[:1] in (["self"], ["cls"]):
        parameters = parameters[1:]
    if len(given) > len(parameters):
        return None
    every = {*parameters, *(a.arg for a in function.args.kwonlyargs)}
    if set(case.keywords) - every:
        return None
    values = {**dict(zip(parameters, given, strict=False)), **case.keywords}
    names = {name: TracedValue(value=value, tainted=False) for name, value in constants.items() if name not in every}
    names |= {name: TracedValue(value=value, tainted=True) for name, value in values.items() if value is not NOT_KNOWN}
    for name, default in _defaults(function):
        if name not in values:
            _set(names, ast.Name(name, ast.Store()), default)
    return names


def trace(function: Function, names: Names) -> Trace:
    """Follow a call whose arguments are bound to `names`."""
    found = Trace()
    _run(function.body, dict(names), (), found, 0)
    return found


def straight(body: list[ast.stmt]) -> Names:
    """The local names that are constants after some statements, whatever a function is given."""
    names: Names = {}
    for node in body:
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            _set(names, node.targets[0], node.value)
        else:
            _forget(names, node)
    return names


def tainted(node: ast.AST, names: Names) -> list[str]:
    """The names in an expression into which arguments went, or of which nothing is known but that they are names."""
    read = dict.fromkeys(n.id for n in ast.walk(node) if isinstance(n, ast.Name))
    return [name for name in read if name in names and names[name].tainted]


def value_of(node: ast.expr, names: Names, other: Mapping[str, Any] | None = None) -> Any:
    """The value of an expression on the way, some names given other values. Unknown if it cannot be told."""
    return evaluate(node, {**{name: known.value for name, known in names.items()}, **(other or {})})


def parts_of(test: ast.expr) -> Iterator[ast.expr]:
    """The conditions that a condition is made of: `and`, `or`, `not` opened up, `(x, y) == (1, 2)` part by part."""
    if isinstance(test, ast.BoolOp):
        for value in test.values:
            yield from parts_of(value)
    elif isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        yield from parts_of(test.operand)
    elif isinstance(test, ast.Compare) and len(test.ops) == 1 and (sides := _side_by_side(test)):
        for left, right in sides:
            yield ast.copy_location(ast.Compare(left, test.ops, [right]), test)
    else:
        yield test


def _side_by_side(test: ast.Compare) -> list[tuple[ast.expr, ast.expr]]:
    left, right = test.left, test.comparators[0]
    if (
        isinstance(left, ast.Tuple | ast.List)
        and isinstance(right, ast.Tuple | ast.List)
        and len(left.elts) == len(right.elts)
        and isinstance(test.ops[0], ast.Eq | ast.NotEq)
    ):
        return list(zip(left.elts, right.elts, strict=True))
    return []


def _defaults(function: Function) -> Iterator[tuple[str, ast.expr]]:
    plain = [*function.args.posonlyargs, *function.args.args]
    for argument, default in zip(plain[::-1], function.args.defaults[::-1], strict=False):
        yield argument.arg, default
    for argument, given in zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True):
        if given is not None:
            yield argument.arg, given


def _set(names: Names, target: ast.expr, value: ast.expr) -> None:
    try:
        made = bound(target, value_of(value, names))
    except Unknown:
        _forget(names, target)
        return
    into = bool(tainted(value, names))
    names.update({name: TracedValue(value=item, tainted=into) for name, item in made.items()})


def _forget(names: Names, node: ast.AST) -> None:
    """Drop every name that is set, or changed in place, somewhere in a node."""
    for part in ast.walk(node):
        if isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Load):
            names.pop(part.id, None)
        elif isinstance(part, ast.Attribute) and part.attr in _CHANGES and isinstance(part.value, ast.Name):
            names.pop(part.value.id, None)
        elif isinstance(part, ast.Subscript) and not isinstance(part.ctx, ast.Load):
            for inner in ast.walk(part.value):
                if isinstance(inner, ast.Name):
                    names.pop(inner.id, None)


def _meets(test: ast.expr, names: Names, found: Trace) -> tuple[bool | None, tuple[Met, ...]]:
    """Whether a condition holds, and the parts of it that were met."""
    met = tuple(Met(node=part, names=dict(names), holds=_holds(part, names)) for part in parts_of(test))
    found.met += met
    return _holds(test, names), met


def _holds(test: ast.expr, names: Names) -> bool | None:
    try:
        return bool(value_of(test, names))
    except Unknown:
        return None


def _looks(node: ast.AST, names: Names, found: Trace) -> None:
    """The comparisons and calls that are asked anywhere in a statement that is no branch itself."""
    for part in ast.walk(node):
        if isinstance(part, ast.IfExp):
            _meets(part.test, names, found)
        elif isinstance(part, ast.Compare):
            _meets(part, names, found)


def _run(body: list[ast.stmt], names: Names, way: tuple[Met, ...], found: Trace, depth: int) -> tuple[bool, Any]:
    """Follow statements. (False, ...) where they end in a return, a raise or a jump; else the conditions so far."""
    if depth > _MOST_DEPTH:
        return True, way
    for node in body:
        found.steps += 1
        if found.steps > _MOST_STEPS:
            return False, way
        if isinstance(node, ast.If | ast.While):
            goes_on, way = _branch(node, names, way, found, depth)
            if not goes_on:
                return False, way
        elif isinstance(node, ast.Match):
            goes_on, way = _match(node, names, way, found, depth)
            if not goes_on:
                return False, way
        elif isinstance(node, ast.For):
            goes_on, way = _loop(node, names, way, found, depth)
            if not goes_on:
                return False, way
        elif isinstance(node, ast.Return):
            if node.value is not None:
                _answer(node.value, names, way, found, returned=True)
            return False, way
        elif isinstance(node, ast.Raise | ast.Break | ast.Continue):
            _looks(node, names, found)
            return False, way
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            _assign(node, names, way, found)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.pop(node.name, None)
        elif isinstance(node, ast.With | ast.Try):
            _forget(names, node)
            for block in blocks(node):
                _run(block, dict(names), way, found, depth + 1)
        else:
            _looks(node, names, found)
            _forget(names, node)
            if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
                names.pop(node.target.id, None)
    return True, way


def _assign(node: ast.Assign | ast.AnnAssign, names: Names, way: tuple[Met, ...], found: Trace) -> None:
    if node.value is None:
        return
    _answer(node.value, names, way, found, returned=False)
    for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
        if isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
            _put(names, target, node.value)
        else:
            _set(names, target, node.value)


def _put(names: Names, target: ast.Subscript, value: ast.expr) -> None:
    """`table[key] = value` of a table that is known."""
    name = target.value.id if isinstance(target.value, ast.Name) else ""
    known = names.pop(name, None)
    if known is None or not isinstance(known.value, dict):
        return
    try:
        made = {**known.value, value_of(target.slice, names): value_of(value, names)}
    except (Unknown, TypeError):
        return
    into = known.tainted or bool(tainted(value, names)) or bool(tainted(target.slice, names))
    names[name] = TracedValue(value=made, tainted=into)


def _answer(node: ast.expr, names: Names, way: tuple[Met, ...], found: Trace, *, returned: bool) -> None:
    """An answer, conditional expressions in it followed like branches."""
    if isinstance(node, ast.IfExp):
        holds, met = _meets(node.test, names, found)
        if holds is not False:
            _answer(node.body, names, (*way, *met), found, returned=returned)
        if holds is not True:
            _answer(node.orelse, names, (*way, *met), found, returned=returned)
        return
    _looks(node, names, found)
    found.answers.append(TracedAnswer(node=node, names=dict(names), way=way, returned=returned))


def _branch(
    node: ast.If | ast.While, names: Names, way: tuple[Met, ...], found: Trace, depth: int
) -> tuple[bool, tuple[Met, ...]]:
    holds, met = _meets(node.test, names, found)
    way = (*way, *met)
    if isinstance(node, ast.While):
        _run(node.body, dict(names), way, found, depth + 1) if holds is not False else None
        _forget(names, node)
        return True, way
    if holds is not None:
        return _run(node.body if holds else node.orelse, names, way, found, depth + 1)
    one = _run(node.body, dict(names), way, found, depth + 1)[0]
    two = _run(node.orelse, dict(names), way, found, depth + 1)[0]
    _forget(names, node)
    return one or two, way


def _match(
    node: ast.Match, names: Names, way: tuple[Met, ...], found: Trace, depth: int
) -> tuple[bool, tuple[Met, ...]]:
    for case in node.cases:
        test = as_test(node.subject, case.pattern)
        if test is None:
            _forget(names, case)
            break
        holds, met = _meets(test, names, found)
        way = (*way, *met)
        if holds is None:
            _run(case.body, dict(names), way, found, depth + 1)
            _forget(names, case)
        elif holds and case.guard is None:
            return _run(case.body, names, way, found, depth + 1)
    return True, way


def as_test(subject: ast.expr, pattern: ast.pattern) -> ast.expr | None:
    """The comparison that a pattern of constants is; None for any other."""
    if isinstance(pattern, ast.MatchValue):
        return ast.copy_location(ast.Compare(subject, [ast.Eq()], [pattern.value]), subject)
    if isinstance(pattern, ast.MatchOr):
        values = [p.value for p in pattern.patterns if isinstance(p, ast.MatchValue)]
        if len(values) == len(pattern.patterns):
            offered = ast.Tuple(list(values), ast.Load())
            return ast.copy_location(ast.Compare(subject, [ast.In()], [offered]), subject)
    if isinstance(pattern, ast.MatchSequence):
        values = [p.value for p in pattern.patterns if isinstance(p, ast.MatchValue)]
        if len(values) == len(pattern.patterns):
            kind = ast.Tuple if isinstance(subject, ast.Tuple) else ast.List
            return ast.copy_location(ast.Compare(subject, [ast.Eq()], [kind(list(values), ast.Load())]), subject)
    return None


def _loop(node: ast.For, names: Names, way: tuple[Met, ...], found: Trace, depth: int) -> tuple[bool, tuple[Met, ...]]:
    """Round by round where the loop goes over a constant, else once with nothing known of its target."""
    try:
        items = list(value_of(node.iter, names))[:_MOST_ROUNDS] if not tainted(node.iter, names) else None
    except (Unknown, TypeError):
        items = None
    if items is None:
        inner = dict(names)
        _forget(inner, node)
        _looks(node.iter, names, found)
        _run(node.body, inner, way, found, depth + 1)
        _forget(names, node)
        return True, way
    for item in items:
        inner = dict(names)
        try:
            inner.update({n: TracedValue(value=v, tainted=False) for n, v in bound(node.target, item).items()})
        except Unknown:
            break
        before = len(found.answers)
        goes_on, further = _run(node.body, inner, way, found, depth + 1)
        if not goes_on and len(found.answers) > before:
            return False, further
    _forget(names, node)
    return True, way
