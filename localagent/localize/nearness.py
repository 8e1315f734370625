"""Distance of functions from the failing tests by the names that tests and functions mention.

Names only: no types, no resolution. A name that several functions bear says the less of each of them.
"""

import ast
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from localagent.code.source_text import parse_or_none
from localagent.code.statements import Statement, statements_of
from localagent.domain.outcome import Baseline, TestResult
from localagent.domain.paths import RepoPath
from localagent.ports import Sources

_PER_CALL = 0.7
_CONSTRUCTOR = 0.8
_OTHER_METHOD = 0.6
_ELSEWHERE_IN_FILE = 0.5
_RINGS = 6
_ENTRIES = frozenset({"__init__", "__new__", "__call__", "__post_init__"})

Function = tuple[RepoPath, str]


@dataclass(frozen=True, kw_only=True, slots=True)
class Mentioned:
    """Names in the failing tests' own bodies, and names in their files."""

    own: frozenset[str]
    file: frozenset[str]

    @property
    def all(self) -> frozenset[str]:
        """Both."""
        return self.own | self.file


def mentioned_by(failing: Iterable[TestResult], baseline: Baseline, sources: Sources) -> Mentioned:
    """What the failing tests mention; all test files when no failing test has one."""
    tests = [t for t in failing if t.path is not None]
    own: set[str] = set()
    file: set[str] = set()
    known: dict[RepoPath, dict[str, list[Statement]]] = {}
    for path in {t.path for t in tests if t.path is not None} or set(baseline.test_files):
        if path in sources:
            statements = statements_of(sources[path])
            file.update(n for s in statements for n in s.names)
            known[path] = _by_function(statements)
    for path, name, line in dict.fromkeys((t.path, _function_of(t), t.line) for t in tests if t.path is not None):
        own.update(n for s in _body_of(name, line, known.get(path, {}).get(name, [])) for n in s.names)
    return Mentioned(own=frozenset(own), file=frozenset(file))


def imported_by(source: bytes) -> Iterator[str]:
    """Last parts of the names of modules that a file imports, or imports from; nothing where it does not parse."""
    tree = parse_or_none(source)
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.ImportFrom):
            yield (node.module or "").rpartition(".")[2]
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name.rpartition(".")[2] for alias in node.names)


def _function_of(test: TestResult) -> str:
    """The test function's qualified name, of all its parameters; "" for what is none."""
    return ".".join(test.id.partition("[")[0].split("::")[1:])


def _by_function(statements: Iterable[Statement]) -> dict[str, list[Statement]]:
    """Statements by the qualified name of each function (and class) that they stand in."""
    found: dict[str, list[Statement]] = defaultdict(list)
    for s in statements:
        name = s.function
        while name:
            found[name].append(s)
            name = name.rpartition(".")[0]
    return found


def _body_of(name: str, line: int, body: list[Statement]) -> list[Statement]:
    """The test's own statements, decorators included: by its name, then by its line where several bear it."""
    starts = sorted({s.function_line for s in body if s.function == name})
    if len(starts) > 1:
        start = min((k for k in starts if k >= line), default=starts[-1])  # the line may be a decorator's
        after = min((k for k in starts if k > start), default=1 << 60)
        body = [s for s in body if start <= s.function_line < after]
    return body


def nearness(functions: Mapping[Function, frozenset[str]], mentioned: Mentioned) -> dict[Function, float]:
    """In [0, 1] per function (given with the names it mentions): 1 if a failing test's own body alone names it."""
    by_name: dict[str, list[Function]] = defaultdict(list)
    classes: dict[str, list[Function]] = defaultdict(list)
    for key in functions:
        parts = key[1].split(".")
        by_name[parts[-1]].append(key)
        if len(parts) > 1:
            classes[parts[-2]].append(key)
    reached: dict[Function, float] = {}
    ring: dict[Function, float] = {}

    def spread(names: Iterable[str], weight: float) -> None:
        for name in sorted(names):  # nearly equal weights: the first stays
            found = [(k, 1.0) for k in by_name.get(name, ())]
            found += [(k, _part_of_class(k)) for k in classes.get(name, ())]
            share = weight / math.sqrt(max(1, len(by_name.get(name, ()))))
            for key, part in found:
                if part * share > max(reached.get(key, 0.0), ring.get(key, 0.0)) + 1e-9:
                    ring[key] = part * share

    spread(mentioned.own, 1.0)
    spread(mentioned.file - mentioned.own, _ELSEWHERE_IN_FILE if mentioned.own else 1.0)
    for _ in range(_RINGS):
        if not ring:
            break
        now, ring = ring, {}
        reached.update(now)
        for key, weight in now.items():
            spread(functions[key], weight * _PER_CALL)
    return reached


def _part_of_class(method: Function) -> float:
    return _CONSTRUCTOR if method[1].rpartition(".")[2] in _ENTRIES else _OTHER_METHOD


def only_for_display(functions: Mapping[Function, frozenset[str]], mentioned: Mentioned) -> frozenset[Function]:
    """Functions that only `__repr__` leads to: the report of the failure runs them, and the failing test does not."""
    if "repr" in mentioned.own or "__repr__" in mentioned.own:
        return frozenset()
    found = {key for key in functions if key[1].rpartition(".")[2] == "__repr__"}
    users: dict[str, set[Function]] = defaultdict(set)
    for key, names in functions.items():
        for name in names:
            users[name].add(key)
    grown = bool(found)
    while grown:
        called = {name for key in found for name in functions[key]} - mentioned.own
        more = {
            key
            for key in functions
            if key not in found
            and (name := key[1].rpartition(".")[2]) in called
            and all(user in found or user == key for user in users[name])
        }
        found |= more
        grown = bool(more)
    return frozenset(found)
