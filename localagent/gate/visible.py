"""The literals of the failing tests, read from their sources without running them.

What stands as an argument of a call is an input, what a result is compared with is expected; literals of tables and
elsewhere in the test count as both. Not seen: data files, values that are computed, fixtures of other files.
"""

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from localagent.domain.outcome import Baseline, TestResult
from localagent.domain.paths import RepoPath
from localagent.gate.source import DoesNotParse, decode_source, parse
from localagent.ports import Sources

_MOST_BYTES = 2_000_000
_MOST_LITERALS = 200_000
_MOST_PARTS = 500
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_EQUALS = re.compile(r"assert\w*(equal|same|is)\w*", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True, slots=True)
class Literals:
    """Keys (see `literal`) of what the failing tests put in and of what they expect."""

    inputs: set[str] = field(default_factory=set)
    expected: set[str] = field(default_factory=set)

    def __contains__(self, key: object) -> bool:
        return key in self.inputs or key in self.expected


def literal(node: ast.AST | None) -> str | None:
    """A key for a constant or a display of constants, equal for equal values; None for anything computed."""
    if isinstance(node, ast.Constant):
        value = node.value
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        return repr(value)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        inner = literal(node.operand)
        return None if inner is None else inner if isinstance(node.op, ast.UAdd) else f"-{inner}"
    if isinstance(node, ast.Tuple | ast.List | ast.Set) and len(node.elts) <= _MOST_PARTS:
        parts = [literal(item) for item in node.elts]
        return None if None in parts else f"[{', '.join(str(p) for p in parts)}]"
    if isinstance(node, ast.Dict) and len(node.keys) <= _MOST_PARTS:
        pairs = [(literal(k), literal(v)) for k, v in zip(node.keys, node.values, strict=True)]
        return (
            None
            if any(None in pair for pair in pairs)
            else f"{{{', '.join(f'{k}: {v}' for k, v in sorted(pairs, key=str))}}}"
        )
    return None


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
        if source is not None and len(source) <= _MOST_BYTES:
            _read(source, functions, found)
    return found


def _function_name(test: TestResult) -> str:
    """`tests/test_a.py::TestA::test_b[1-2]` -> `test_b`."""
    head = test.id.split("[", 1)[0]
    return head.rsplit("::", 1)[-1]


def _read(source: bytes, functions: set[str], found: Literals) -> None:
    try:
        tree = parse(decode_source(source))
    except DoesNotParse:
        return
    tables = {
        t.id: n.value for n in tree.body if isinstance(n, ast.Assign) for t in n.targets if isinstance(t, ast.Name)
    }
    tests: list[ast.AST] = [n for n in ast.walk(tree) if isinstance(n, _FUNCTIONS) and n.name in functions]
    tests = tests or [tree]
    for test in tests:
        _take(test, tables, found)


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
    """(the side with a call, the literal side) of `f(1) == 2` and `assertEqual(f(1), 2)`, either way round."""
    sides: list[ast.expr] = []
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], ast.Eq | ast.Is | ast.NotEq):
        sides = [node.left, node.comparators[0]]
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and len(node.args) >= 2:
        sides = node.args[:2] if _EQUALS.fullmatch(node.func.attr) else []
    if len(sides) == 2:
        for one, other in (sides, sides[::-1]):
            if literal(other) is not None and any(isinstance(n, ast.Call) for n in ast.walk(one)):
                yield one, other
