"""The literals of the failing tests, and the calls that they make, read from their sources without running them.

What stands as an argument of a call is an input, what a result is compared with is expected; literals of tables and
elsewhere in the test count as both. A `VisibleCase` is one call with what the test expects of it, rows of
`parametrize` and of plain local names put in.
Limitations: data files, values that are computed, fixtures of other files and helpers of the test are not seen.
"""

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from localagent.code.constant_evaluation import Unknown, evaluate
from localagent.code.names import last_name
from localagent.code.source_text import parse_or_none
from localagent.code.spans import Function, first_line, last_line
from localagent.domain.outcome import Baseline, TestResult
from localagent.domain.paths import RepoPath
from localagent.ports import Sources
from localagent.text.int_digit_limit import unwritable

_MOST_BYTES = 2_000_000
_MOST_LITERALS = 200_000
_MOST_PARTS = 500
_MOST_DEPTH = 60
_MOST_CASES = 200
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_EQUALS = re.compile(r"assert\w*(equal|same|is)\w*", re.IGNORECASE)

NOT_KNOWN = object()
"""Stands for an argument, or an expected value, that the source does not tell."""


@dataclass(frozen=True, kw_only=True, slots=True)
class VisibleCase:
    """One call of a failing test: the last name of what is called, what it is given, what is expected of it.

    Arguments that cannot be told are NOT_KNOWN, and so is what nothing is compared with.
    """

    function: str
    arguments: tuple[Any, ...]
    keywords: Mapping[str, Any] = field(default_factory=dict)
    expected: Any = NOT_KNOWN


@dataclass(frozen=True, kw_only=True, slots=True)
class Literals:
    """Keys (see `literal`) of what the failing tests put in and of what they expect, and their calls."""

    inputs: set[str] = field(default_factory=set)
    expected: set[str] = field(default_factory=set)
    cases: list[VisibleCase] = field(default_factory=list)

    def __contains__(self, key: object) -> bool:
        return key in self.inputs or key in self.expected


def literal(node: ast.AST | None, depth: int = 0) -> str | None:
    """A key for a constant or a display of constants, equal for equal values; None for anything computed."""
    if depth > _MOST_DEPTH:
        return None
    if isinstance(node, ast.Constant):
        value = node.value
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        return repr(value)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        inner = literal(node.operand, depth + 1)
        return None if inner is None else inner if isinstance(node.op, ast.UAdd) else f"-{inner}"
    if isinstance(node, ast.Tuple | ast.List | ast.Set) and len(node.elts) <= _MOST_PARTS:
        parts = [literal(item, depth + 1) for item in node.elts]
        return None if None in parts else f"[{', '.join(str(p) for p in parts)}]"
    if isinstance(node, ast.Dict) and len(node.keys) <= _MOST_PARTS:
        pairs = [(literal(k, depth + 1), literal(v, depth + 1)) for k, v in zip(node.keys, node.values, strict=True)]
        return (
            None
            if any(None in pair for pair in pairs)
            else f"{{{', '.join(f'{k}: {v}' for k, v in sorted(pairs, key=_by_texts))}}}"
        )
    return None


def _by_texts(pair: tuple[str | None, str | None]) -> tuple[str, str]:
    return str(pair[0]), str(pair[1])


def key_of(value: object, depth: int = 0) -> str:
    """The key that `literal` gives for a value's display."""
    if depth > _MOST_DEPTH:
        return "..."
    if isinstance(value, float) and value.is_integer():
        return repr(int(value))
    if isinstance(value, tuple | list):
        return f"[{', '.join(key_of(v, depth + 1) for v in value)}]"
    if isinstance(value, set | frozenset):
        return f"[{', '.join(sorted(key_of(v, depth + 1) for v in value))}]"
    if isinstance(value, dict):
        pairs = sorted((key_of(k, depth + 1), key_of(v, depth + 1)) for k, v in value.items())
        return f"{{{', '.join(f'{k}: {v}' for k, v in pairs)}}}"
    return repr(value)


TRIVIAL = frozenset({"0", "1", "-1", "-0", "''", "b''", "None", "True", "False", "[]", "{}", "Ellipsis"})


def failing_literals(baseline: Baseline, sources: Sources) -> Literals:
    """The literals of every failing test whose source is at hand."""
    failing = set(baseline.failing)
    names: dict[RepoPath, set[str]] = {}
    for test in baseline.tests:
        if test.id in failing and test.path is not None:
            names.setdefault(test.path, set()).add(_function_name(test))
    found = Literals()
    for path, functions in names.items():
        source = sources.get(path)
        if source is not None:
            read_tests(source, lambda n, functions=functions: n.name in functions, found)  # type: ignore[misc]
    return found


def changed_literals(tests: Iterable[tuple[bytes, bytes]]) -> Literals:
    """The literals of the test functions that are new or otherwise in (before, after) sources of tests."""
    found = Literals()
    for before, after in tests:
        stood = _function_texts(before)
        lines = after.splitlines()
        read_tests(
            after,
            lambda n, stood=stood, lines=lines: n.name.startswith("test") and _text(n, lines) not in stood,  # type: ignore[misc]
            found,
            whole=False,
        )
    return found


def _function_texts(source: bytes) -> set[bytes]:
    """The text of every function of a source, decorators included."""
    tree, lines = parsed(source), source.splitlines()
    return {_text(n, lines) for n in ast.walk(tree) if isinstance(n, _FUNCTIONS)} if tree else set()


def _text(node: Function, lines: list[bytes]) -> bytes:
    return b"\n".join(lines[first_line(node) - 1 : last_line(node)])


def _function_name(test: TestResult) -> str:
    """`tests/test_a.py::TestA::test_b[1-2]` -> `test_b`."""
    head = test.id.split("[", 1)[0]
    return head.rsplit("::", 1)[-1]


def parsed(source: bytes) -> ast.Module | None:
    """The syntax tree of a source, however deep; None where there is none, or the source is too large."""
    if len(source) > _MOST_BYTES or unwritable(source):
        return None
    return parse_or_none(source)


def read_tests(source: bytes, wanted: Callable[[Any], bool], found: Literals, *, whole: bool = True) -> None:
    """Add the literals and cases of the wanted test functions of a source; of the `whole` file where none is wanted."""
    tree = parsed(source)
    if tree is None:
        return
    tables = {
        t.id: n.value for n in tree.body if isinstance(n, ast.Assign) for t in n.targets if isinstance(t, ast.Name)
    }
    functions = [n for n in ast.walk(tree) if isinstance(n, _FUNCTIONS)]
    tests: list[ast.AST] = [n for n in functions if wanted(n)]
    if not tests and whole:
        _take(tree, tables, found)
        tests = [n for n in functions if n.name.startswith("test")] or [tree]
    for test in tests:
        _take(test, tables, found)
        for case in islice(_cases(test, tables), _MOST_CASES - len(found.cases)):
            found.cases.append(case)
            if len(case.arguments) > 1 and not any(a is NOT_KNOWN for a in case.arguments):
                found.inputs.add(key_of(case.arguments))


def _take(test: ast.AST, tables: Mapping[str, ast.expr], found: Literals) -> None:
    roots: list[ast.AST] = [test]
    named = {n.id for n in ast.walk(test) if isinstance(n, ast.Name)}
    for _ in range(3):  # tables made of tables
        fresh = named & tables.keys()
        roots += [tables[name] for name in sorted(fresh)]
        named = {n.id for name in fresh for n in ast.walk(tables[name]) if isinstance(n, ast.Name)} - fresh
    only_inputs: set[int] = set()
    only_expected: set[int] = set()
    for node in ast.walk(test):
        for call, answer in _comparisons(node):
            if literal(answer) is not None and any(isinstance(n, ast.Call) for n in ast.walk(call)):
                only_inputs.update(id(n) for n in ast.walk(call))
                only_expected.update(id(n) for n in ast.walk(answer))
    for root in roots:
        for node in ast.walk(root):
            key = literal(node)
            if key is None or len(found.inputs) + len(found.expected) > _MOST_LITERALS:
                continue
            if id(node) not in only_expected:
                found.inputs.add(key)
            if id(node) not in only_inputs:
                found.expected.add(key)


def _comparisons(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Both sides of `f(1) == 2` and `assertEqual(f(1), 2)`, either way round."""
    sides: list[ast.expr] = []
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], ast.Eq | ast.Is | ast.NotEq):
        sides = [node.left, node.comparators[0]]
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and len(node.args) >= 2:
        sides = node.args[:2] if _EQUALS.fullmatch(node.func.attr) else []
    if len(sides) == 2:
        yield sides[0], sides[1]
        yield sides[1], sides[0]


def _cases(test: ast.AST, tables: Mapping[str, ast.expr]) -> Iterator[VisibleCase]:
    """The calls of a test; each with the first thing that it, or the local name that it is set to, is compared with."""
    if not isinstance(test, (*_FUNCTIONS, ast.Module)):
        return
    used = {n.id for n in ast.walk(test) if isinstance(n, ast.Name)}
    known = _values((name, node) for name, node in tables.items() if name in used)
    local, called = _locals(test)
    names = {**known, **_values(local.items(), known)}
    compared: dict[int, ast.expr] = {}
    for node in ast.walk(test):
        for one, other in _comparisons(node):
            one = called.get(one.id, one) if isinstance(one, ast.Name) else one  # noqa: PLW2901
            if isinstance(one, ast.Call) and not isinstance(other, ast.Call):
                compared.setdefault(id(one), other)
    rows = list(_rows(test, known))
    for node in ast.walk(test):
        if isinstance(node, ast.Call) and (name := last_name(node.func)) and not _EQUALS.fullmatch(name):
            for row in rows:
                yield _case(node, name, compared.get(id(node)), {**names, **row})


def _case(node: ast.Call, name: str, expected: ast.expr | None, names: Mapping[str, Any]) -> VisibleCase:
    return VisibleCase(
        function=name,
        arguments=tuple(_value_of(a, names) for a in node.args),
        keywords={k.arg: _value_of(k.value, names) for k in node.keywords if k.arg is not None},
        expected=NOT_KNOWN if expected is None else _value_of(expected, names),
    )


def _value_of(node: ast.expr, names: Mapping[str, Any]) -> Any:
    try:
        return evaluate(node, names)
    except Unknown:
        return NOT_KNOWN


def _values(named: Iterable[tuple[str, ast.expr]], names: Mapping[str, Any] | None = None) -> dict[str, Any]:
    found = {name: _value_of(node, names or {}) for name, node in named}
    return {name: value for name, value in found.items() if value is not NOT_KNOWN}


def _locals(test: ast.AST) -> tuple[dict[str, ast.expr], dict[str, ast.Call]]:
    """What local names are set to that are set once: values, and results of calls."""
    made: dict[str, list[ast.expr]] = {}
    for node in ast.walk(test):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    made.setdefault(target.id, []).append(node.value)
    once = {name: values[0] for name, values in made.items() if len(values) == 1}
    return once, {name: node for name, node in once.items() if isinstance(node, ast.Call)}


def _rows(test: ast.AST, known: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The names that `parametrize` gives a test, a row at a time; one empty row where there is no such table."""
    count = 0
    for decorator in getattr(test, "decorator_list", []):
        if isinstance(decorator, ast.Call) and last_name(decorator.func) == "parametrize" and len(decorator.args) >= 2:
            names = _value_of(decorator.args[0], known)
            names = [n.strip() for n in names.split(",")] if isinstance(names, str) else names
            rows = decorator.args[1]
            rows = rows if isinstance(rows, ast.List | ast.Tuple) else ast.List([])
            table = _value_of(decorator.args[1], known)
            values = table if isinstance(table, list | tuple) else [_row(r, known) for r in rows.elts[:_MOST_CASES]]
            for value in values if isinstance(names, list | tuple) else ():
                parts = [value] if len(names) == 1 else value
                if isinstance(parts, list | tuple) and len(parts) == len(names) and count < _MOST_CASES:
                    count += 1
                    yield {str(n): v for n, v in zip(names, parts, strict=True) if v is not NOT_KNOWN}
    if not count:
        yield {}


def _row(node: ast.expr, known: Mapping[str, Any]) -> Any:
    """One row of a table, `pytest.param(...)` too, with NOT_KNOWN for what its source does not tell."""
    if isinstance(node, ast.Call) and last_name(node.func) == "param":
        return tuple(_value_of(a, known) for a in node.args)
    if isinstance(node, ast.Tuple | ast.List):
        return tuple(_value_of(a, known) for a in node.elts)
    return _value_of(node, known)
