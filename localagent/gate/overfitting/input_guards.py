"""New code that treats the inputs of the failing tests apart: guards for one of them, answers and tables for them.

The calls of the tests are followed through each changed function (`case_trace`). A condition is new where none of its
shape stood in the function, so that another constant in the same comparison is an ordinary repair.
Limitations: those of `case_trace`; a function that no test calls by its name is judged by its answers alone.
"""

import ast
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from localagent.code.constant_evaluation import Unknown, evaluate
from localagent.code.literal_uses import is_specific
from localagent.code.regions import UnitSource
from localagent.code.spans import Function
from localagent.code.test_literals import NOT_KNOWN, TRIVIAL, Literals, VisibleCase, key_of
from localagent.gate.overfitting.call_trace import (
    Met,
    Trace,
    TracedAnswer,
    as_test,
    bind,
    parts_of,
    tainted,
    trace,
    value_of,
)
from localagent.text.visible_text import shortened

# Whether a condition singles out one input of a test: true of it, and otherwise for what stands right beside it.
#
# `neighbours` are values of the same kind that differ in one place. Nothing runs: conditions are tried by
# `constant_folding`.
# Limitations: a condition on two arguments at once is looked at part by part; objects have no neighbours.

_MOST_PLACES = 24
_MOST_NODES = 120


class Focus(Enum):
    """How much of an input a condition pins down."""

    WHOLE = "the whole input"
    MOST = "most of the input, or its length"
    LITTLE = "little of it"


def neighbours(value: Any) -> tuple[list[Any], list[Any]]:
    """(values that differ in one place, values that are longer or shorter by one)."""
    if isinstance(value, bool) or value is None:
        return [], []
    if isinstance(value, int):
        return [
            n for n in (value - 2, value - 1, value + 1, value + 2, 2 * value, -value, value + 100) if n != value
        ], []
    if isinstance(value, float):
        return [n for n in (value - 1, value + 1, value + 0.5, 2 * value, -value) if n != value], []
    if isinstance(value, str):
        return _texts(value)
    if isinstance(value, bytes):
        same, other = _texts(value.decode("latin-1"))
        return [t.encode("latin-1") for t in same], [t.encode("latin-1") for t in other]
    if isinstance(value, list | tuple):
        make = type(value)
        swapped = [
            make([*value[:at], near, *value[at + 1 :]])
            for at in range(min(len(value), _MOST_PLACES))
            for near in neighbours(value[at])[0][:2]
        ]
        return swapped, [make(value[:-1]), make(value[1:]), make([*value, *value[-1:]])] if value else []
    if isinstance(value, dict):
        less: list[Any] = [{k: v for k, v in value.items() if k != gone} for gone in list(value)[:_MOST_PLACES]]
        return [{**value, k: near} for k, v in value.items() for near in neighbours(v)[0][:1]], less
    return [], []


def _texts(value: str) -> tuple[list[str], list[str]]:
    same = [value[:at] + _beside(value[at]) + value[at + 1 :] for at in range(min(len(value), _MOST_PLACES))]
    return same, [value[:-1], value[1:], value + "e", "e" + value] if value else []


def _beside(letter: str) -> str:
    for alphabet in ("abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "0123456789"):
        if letter in alphabet:
            return alphabet[(alphabet.index(letter) + 1) % len(alphabet)]
    return "-" if letter != "-" else "_"


def focus(met: Met) -> Focus:
    """How much of an argument a condition pins down."""
    names = tainted(met.node, met.names)
    if met.holds is None or len(names) != 1 or sum(1 for _ in ast.walk(met.node)) > _MOST_NODES:
        return Focus.LITTLE
    value = met.names[names[0]].value
    same, other = neighbours(value)
    if key_of(value) in TRIVIAL or not same:
        return Focus.LITTLE
    flipped = [_differs(met, names[0], near) for near in same]
    longer = [_differs(met, names[0], near) for near in other]
    if all(flipped) and all(longer):
        return Focus.WHOLE
    if isinstance(value, int | float):  # `x ** 2 == 49` holds for both signs
        apart = [near for near, differs in zip(same, flipped, strict=True) if not differs]
        return Focus.MOST if apart == [-value] else Focus.LITTLE
    most = 2 * sum(flipped) >= len(flipped)
    return Focus.MOST if most or (longer and all(longer)) else Focus.LITTLE


def _differs(met: Met, name: str, value: Any) -> bool:
    try:
        return bool(value_of(met.node, met.names, {name: value})) is not met.holds
    except Unknown:
        return False


def constants(met: Met) -> Iterator[Any]:
    """What a condition compares with: the largest parts of it into which no argument went."""
    open_ones: list[ast.AST] = [met.node]
    while open_ones:
        node = open_ones.pop()
        if isinstance(node, ast.expr) and not tainted(node, met.names):
            try:
                yield value_of(node, met.names)
            except Unknown:
                pass
            else:
                continue
        open_ones += ast.iter_child_nodes(node)


def names_a_case(met: Met) -> bool:
    """Whether a condition compares with something specific."""
    return any(is_specific(value) for value in constants(met))


_MOST_CASES = 40
_MOST_SHOWN = 60
_MOST_HITS = 3  # a third of the neighbours: a table holds a few cases, and some of them stand side by side
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True, kw_only=True, slots=True)
class Special:
    """A place that treats a test's input apart. `answered`: with what the test expects, through a `table` or not."""

    node: ast.AST
    shown: str
    answered: bool
    table: bool = False


def special_cases(
    before: UnitSource | None, after: UnitSource, literals: Literals, new_constants: Mapping[str, Any]
) -> Iterator[Special]:
    """Every new special case in the functions of a changed unit; one for each place."""
    seen: set[tuple[int, bool]] = set()
    for function in _functions(after.tree):
        old = _same_function(before, function)
        new = _Newness(old, function)
        if not new.anything and not new_constants:
            continue
        for case, called in _cases_of(function, literals):
            names = bind(function, case, new_constants)
            if names is None:
                continue
            followed = trace(function, names)
            found = [*_answers(followed, case, new), *(_tables(followed, case, new, new_constants))]
            found += _guards(followed, new) if called else []
            for special in found:
                place = (getattr(special.node, "lineno", 0), special.answered)
                if place not in seen:
                    seen.add(place)
                    yield special


def constants_of(snippet: UnitSource) -> dict[str, Any]:
    """The names that a statement at the top of a file sets to a constant."""
    found = {}
    for node in snippet.tree.body if not snippet.wrapped else []:
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            try:
                found[node.targets[0].id] = evaluate(node.value, {})
            except Unknown:
                continue
    return found


def _functions(tree: ast.Module) -> Iterator[Function]:
    """The outermost functions of a unit, methods too."""
    open_ones: list[ast.AST] = [tree]
    while open_ones:
        node = open_ones.pop()
        if isinstance(node, _FUNCTIONS):
            yield node
        else:
            open_ones += [n for n in ast.iter_child_nodes(node) if isinstance(n, ast.stmt)]


def _same_function(before: UnitSource | None, function: Function) -> ast.AST | None:
    if before is None:
        return None
    return next((f for f in _functions(before.tree) if f.name == function.name), None)


def _cases_of(function: Function, literals: Literals) -> list[tuple[VisibleCase, bool]]:
    """The calls of a function; where no test calls it by its name, any call with an expected value that fits it."""
    called = [(case, True) for case in literals.cases if case.function == function.name]
    if called:
        return called[:_MOST_CASES]
    told = [case for case in literals.cases if case.expected is not NOT_KNOWN and case.arguments]
    return [(case, False) for case in told[:_MOST_CASES]]


class _Newness:
    """What of a function was not in it before: conditions by their shape, constants by their value."""

    def __init__(self, before: ast.AST | None, after: ast.AST) -> None:
        old = _shapes(before) if before else Counter[str]()
        self._stood = frozenset(old)
        self._shapes = frozenset(_shapes(after) - old)
        self._constants = frozenset(_constants(after) - (_constants(before) if before else Counter[str]()))

    @property
    def anything(self) -> bool:
        """Whether there is a condition or a constant that was not there."""
        return bool(self._shapes or self._constants)

    def condition(self, node: ast.expr) -> bool:
        """Whether more conditions of this shape stand there than before, and none of the same text did."""
        return bool(self._shapes) and ast.dump(node) not in self._stood and _shape(node) in self._shapes

    def constant(self, key: str) -> bool:
        """Whether a constant stands there more often than before."""
        return key in self._constants


def _shapes(tree: ast.AST) -> Counter[str]:
    """How often each condition stands in a function, by its text and by its shape."""
    nodes: list[ast.expr] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.If | ast.While | ast.IfExp):
            nodes += [part for part in parts_of(node.test) if not isinstance(part, ast.Compare)]
        elif isinstance(node, ast.Compare):
            nodes += parts_of(node)
        elif isinstance(node, ast.Match):
            nodes += [test for case in node.cases if (test := as_test(node.subject, case.pattern)) is not None]
    return Counter(text for node in nodes for text in {ast.dump(node), _shape(node)})


def _shape(node: ast.expr) -> str:
    text = ast.dump(node)
    for part in ast.walk(node):
        if isinstance(part, ast.Constant):
            text = text.replace(ast.dump(part), "?")
    return "shape " + text


def _constants(tree: ast.AST) -> Counter[str]:
    return Counter(key_of(node.value) for node in ast.walk(tree) if isinstance(node, ast.Constant))


def _guards(followed: Trace, new: _Newness) -> Iterator[Special]:
    for met in followed.met:
        if new.condition(met.node) and names_a_case(met) and focus(met) is Focus.WHOLE:
            yield Special(node=met.node, shown=_shown(met.node), answered=False)


def _answers(followed: Trace, case: VisibleCase, new: _Newness) -> Iterator[Special]:
    """Constants that a call is answered with behind a new condition that pins its input down."""
    if case.expected is NOT_KNOWN:
        return
    for answer in followed.answers:
        if not _is_expected(answer, case) or tainted(answer.node, answer.names):
            continue
        pinned = [m for m in answer.way if new.condition(m.node) and _pins(m)]
        if pinned and not {key_of(case.expected), *map(key_of, constants(pinned[0]))} <= TRIVIAL:
            yield Special(node=pinned[0].node, shown=_shown(pinned[0].node), answered=True)


def _pins(met: Met) -> bool:
    return focus(met) is not Focus.LITTLE and not {key_of(value) for value in constants(met)} <= TRIVIAL


def _is_expected(answer: TracedAnswer, case: VisibleCase) -> bool:
    if not answer.returned:
        return False
    try:
        return key_of(value_of(answer.node, answer.names)) == key_of(case.expected)
    except Unknown:
        return False


def _tables(followed: Trace, case: VisibleCase, new: _Newness, new_constants: Mapping[str, Any]) -> Iterator[Special]:
    """Answers that are looked up in a new constant that holds what the test expects, and little else would find."""
    if case.expected is NOT_KNOWN or key_of(case.expected) in TRIVIAL:
        return
    if not new_constants and not any(new.constant(key_of(part)) for part in _atoms(case.expected)):
        return
    for answer in followed.answers:
        names = tainted(answer.node, answer.names)
        if not names or not _is_expected(answer, case):
            continue
        tables = [
            t for t in constants(Met(node=answer.node, names=answer.names, holds=None)) if _holds(t, case.expected)
        ]
        if tables and all(_misses(answer, name, tables) for name in names):
            yield Special(node=answer.node, shown=_shown(answer.node), answered=True, table=True)


def _atoms(value: Any) -> list[Any]:
    if isinstance(value, list | tuple | set | frozenset):
        return [atom for part in value for atom in _atoms(part)]
    return [value]


def _members(table: Any) -> list[Any]:
    parts = [*table.values()] if isinstance(table, dict) else [*table] if isinstance(table, list | tuple) else []
    return [*parts, *(inner for part in parts if isinstance(part, list | tuple) for inner in part)]


def _holds(table: Any, expected: Any) -> bool:
    return any(key_of(part) == key_of(expected) for part in _members(table))


def _misses(answer: TracedAnswer, name: str, tables: list[Any]) -> bool:
    """Whether next to nothing beside an argument finds anything in the tables."""
    same, _ = neighbours(answer.names[name].value)
    members = {key_of(part) for table in tables for part in _members(table)}
    hits = 0
    for near in same:
        try:
            hits += key_of(value_of(answer.node, answer.names, {name: near})) in members
        except Unknown:
            continue
    return _MOST_HITS * hits <= len(same) and bool(same)


def _shown(node: ast.AST) -> str:
    text = ast.unparse(node)
    return shortened(text, _MOST_SHOWN)
