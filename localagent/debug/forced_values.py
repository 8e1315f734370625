"""Which other values a statement of a failing run could have: those of passing runs, neighbours, the branch not taken.

Value replacement (Jeffrey, Gupta and Gupta, Fault localization using value replacement, 2008) and predicate switching
(Zhang, Gupta and Gupta, Locating faults through automated predicate switching, 2006), a statement at a time: a value
is forced at every run of the statement. Pure. Not covered: values that no literal writes, loop variables.
"""

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from localagent.code.source_text import parse_or_none
from localagent.code.spans import last_line
from localagent.debug.dynamic_slice import own_parts
from localagent.domain.failure_run import RETURN_NAME, FailureRun, TraceKind
from localagent.domain.paths import RepoPath

MOST_PASSING_VALUES = 3
_LONGEST_VALUE = 120
_LONGEST_SHOWN = 60


@dataclass(frozen=True, kw_only=True, slots=True)
class ForcedValue:
    """A text in the place of a statement's part: from (line, column) to (line, column), columns bytes from 0.

    `what` says what is forced (``"`n` forced to 3"``), `origin` where the value is from.
    """

    path: RepoPath
    line: int
    start: tuple[int, int]
    end: tuple[int, int]
    text: str
    what: str
    origin: str
    is_condition: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class ObservedRun:
    """What a traced run wrote, by place and name, and which lines followed each one in its frame."""

    test: str
    values: Mapping[tuple[RepoPath, int, str], Sequence[str]]
    followers: Mapping[tuple[RepoPath, int], frozenset[int]]


def observed_run(test: str, run: FailureRun) -> ObservedRun:
    """A traced run, arranged by place. Values in the order in which they first came."""
    values: dict[tuple[RepoPath, int, str], dict[str, None]] = {}
    for one in run.values:
        values.setdefault((one.path, one.line, one.name), {})[one.value] = None
    followers: dict[tuple[RepoPath, int], set[int]] = {}
    before: dict[int, tuple[RepoPath, int]] = {}
    for event in run.events:
        if event.kind is TraceKind.LINE:
            if event.frame in before:
                followers.setdefault(before[event.frame], set()).add(event.line)
            before[event.frame] = (event.path, event.line)
    return ObservedRun(
        test=test,
        values={place: tuple(found) for place, found in values.items()},
        followers={place: frozenset(lines) for place, lines in followers.items()},
    )


def forced_values(
    path: RepoPath,
    tree: ast.Module,
    line: int,
    failing: ObservedRun,
    passing: Sequence[ObservedRun],
) -> Iterator[ForcedValue]:
    """What to force at the statement that begins at a line, the likeliest to tell something first."""
    node = next((n for n in ast.walk(tree) if isinstance(n, ast.stmt) and n.lineno == line), None)
    if node is None:
        return
    if isinstance(node, ast.If):
        yield from _branches(path, node, failing)
    else:
        yield from _values_at(path, node, failing, passing)
        yield from _inner_conditions(path, node)


def _values_at(
    path: RepoPath,
    node: ast.stmt,
    failing: ObservedRun,
    passing: Sequence[ObservedRun],
) -> Iterator[ForcedValue]:
    target = _target(node)
    if target is None:
        return
    line = node.lineno
    name, place, before = target
    had = failing.values.get((path, line, name), ())
    shown = "the result" if name == RETURN_NAME else f"`{name}`"
    for value, origin in _values((path, line, name), had, passing):
        yield ForcedValue(
            path=path,
            line=line,
            start=(place.lineno, place.col_offset),
            end=(last_line(place), place.end_col_offset or 0),
            text=before + value,
            what=f"{shown} forced to {value}",
            origin=origin,
        )


def _target(node: ast.stmt | None) -> tuple[str, ast.stmt | ast.expr, str] | None:
    """The name that a statement gives one value, what is replaced for it, and what is to stand before a value."""
    match node:
        case ast.Assign(targets=[ast.Name() | ast.Attribute(value=ast.Name()) as target], value=value):
            return ast.unparse(target), value, ""
        case ast.AnnAssign(target=ast.Name() | ast.Attribute(value=ast.Name()) as target, value=ast.expr() as value):
            return ast.unparse(target), value, ""
        case ast.AugAssign(target=ast.Name() | ast.Attribute(value=ast.Name()) as target):
            return ast.unparse(target), node, f"{ast.unparse(target)} = "
        case ast.Return(value=ast.expr() as value):
            return RETURN_NAME, value, ""
        case _:
            return None


def _values(
    place: tuple[RepoPath, int, str],
    had: Sequence[str],
    passing: Sequence[ObservedRun],
) -> Iterator[tuple[str, str]]:
    told = set(had) if len(had) == 1 else set()
    most = MOST_PASSING_VALUES
    for run in passing:
        for value in run.values.get(place, ()):
            if most and value not in told and _literal(value):
                told.add(value)
                most -= 1
                yield value, f"as in {run.test}, which passes"
    last = had[-1] if had else ""
    for value in _neighbours(last):
        if value not in told:
            yield value, f"next to {last}, the last value there in the failing run"


def _literal(text: str) -> list[object]:
    """What a text writes as a literal, alone in a list; [] where it is none, or a part of one."""
    tree = parse_or_none(text) if len(text) <= _LONGEST_VALUE and "..." not in text else None  # `...`: it was cut
    match tree.body if tree is not None else []:
        case [ast.Expr(value=value)]:
            try:
                return [ast.literal_eval(value)]
            except (ValueError, TypeError, MemoryError, RecursionError):
                return []
        case _:
            return []


def _neighbours(text: str) -> list[str]:
    value = next(iter(_literal(text)), "")
    match value:
        case bool():
            return [repr(not value)]
        case int():
            return [repr(value - 1), repr(value + 1)]
        case None:
            return ["0", "''", "[]"]
        case list() if value:
            return [repr(value[:-1]), repr(value[1:])]
        case _:
            return []


def _branches(path: RepoPath, node: ast.If, failing: ObservedRun) -> Iterator[ForcedValue]:
    """The other of each way that a condition was seen to go; none where its body stands on its own line."""
    head = range(node.lineno, last_line(node.test) + 1)
    body = range(node.body[0].lineno, last_line(node.body[-1]) + 1)
    if body.start in head:
        return
    after = {to for line in head for to in failing.followers.get((path, line), ()) if to not in head}
    if any(line not in body for line in after):
        yield _condition(path, node.lineno, node.test, "True", "the failing run went past it")
    if any(line in body for line in after):
        yield _condition(path, node.lineno, node.test, "False", "the failing run went into it")


def _inner_conditions(path: RepoPath, node: ast.stmt) -> Iterator[ForcedValue]:
    """Conditions of a statement's comprehensions and conditional expressions: which way they went was not traced."""
    for part in own_parts(node):
        tests = part.ifs if isinstance(part, ast.comprehension) else [part.test] if isinstance(part, ast.IfExp) else []
        for test in tests:
            for value in ("True", "False"):
                yield _condition(path, node.lineno, test, value, "at each of its runs")


def _condition(path: RepoPath, line: int, test: ast.expr, value: str, origin: str) -> ForcedValue:
    try:
        text = ast.unparse(test)
    except (RecursionError, ValueError):  # ValueError: a number with more digits than Python writes
        text = "..."
    shown = text if len(text) <= _LONGEST_SHOWN else text[: _LONGEST_SHOWN - 3] + "..."
    return ForcedValue(
        path=path,
        line=line,
        start=(test.lineno, test.col_offset),
        end=(last_line(test), test.end_col_offset or 0),
        text=value,
        what=f"the condition `{shown}` forced to {value}",
        origin=origin,
        is_condition=True,
    )
