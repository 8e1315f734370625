"""The dynamic slice of a failure: statements that wrote, through data and control, what the failing expression reads.

Backward over the events of one traced run (Korel and Laski, Dynamic program slicing, 1988), with names of attributes
and changed containers taken together over all objects. A distance counts the statements between. Pure.
"""

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from localagent.code.names import last_name
from localagent.code.source_text import parse_or_none
from localagent.code.spans import blocks, clauses, head_end
from localagent.domain.failure_run import RETURN_NAME, FailureRun, TraceKind
from localagent.domain.paths import RepoPath

CONTROL_COST = 2


@dataclass(frozen=True, kw_only=True, slots=True)
class VariableAccess:
    """What a statement reads and writes (`attributes` are names behind a dot), and the head that decides it runs."""

    line: int
    reads: frozenset[str]
    writes: frozenset[str]
    attribute_reads: frozenset[str]
    attribute_writes: frozenset[str]
    control: int
    returns: bool  # it may give a value to the caller
    stored: frozenset[str]  # attributes of names that it sets, as `self.count`


def accesses(source: bytes) -> Mapping[int, VariableAccess]:
    """Every line of a file to the statement that it belongs to."""
    tree = parse_or_none(source)
    found: dict[int, VariableAccess] = {}
    waiting: list[tuple[ast.stmt, int]] = [(s, 0) for s in tree.body] if tree is not None else []
    while waiting:
        node, control = waiting.pop()
        access = _access(node, control)
        for line in range(node.lineno, head_end(node) + 1):
            found[line] = access
        inner = node.lineno if isinstance(node, ast.If | ast.While | ast.For | ast.AsyncFor | ast.Match) else control
        inner = 0 if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) else inner
        waiting += [(s, inner) for block in blocks(node) for s in block]
        waiting += [(s, inner) for clause in clauses(node) for s in clause.body]
    return found


def _access(node: ast.stmt, control: int) -> VariableAccess:
    names: dict[bool, set[str]] = {True: set(), False: set()}
    attributes: dict[bool, set[str]] = {True: set(), False: set()}
    for part in own_parts(node):
        if isinstance(part, ast.Name):
            names[isinstance(part.ctx, ast.Load)].add(part.id)
        elif isinstance(part, ast.Attribute):
            attributes[isinstance(part.ctx, ast.Load)].add(part.attr)
        elif isinstance(part, ast.Subscript) and not isinstance(part.ctx, ast.Load):
            changed = part.value
            (attributes if isinstance(changed, ast.Attribute) else names)[False].add(last_name(changed))
        elif isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute):
            changed = part.func.value  # a method may change its object
            (attributes if isinstance(changed, ast.Attribute) else names)[False].add(last_name(changed))
    if isinstance(node, ast.AugAssign):
        for target in ast.walk(node.target):
            if isinstance(target, ast.Name):
                names[True].add(target.id)
            elif isinstance(target, ast.Attribute):
                attributes[True].add(target.attr)
    return VariableAccess(
        line=node.lineno,
        reads=frozenset(names[True]),
        writes=frozenset(names[False] - {""}),
        attribute_reads=frozenset(attributes[True]),
        attribute_writes=frozenset(attributes[False] - {""}),
        control=control,
        stored=frozenset(
            f"{part.value.id}.{part.attr}"
            for part in own_parts(node)
            if isinstance(part, ast.Attribute) and isinstance(part.ctx, ast.Store) and isinstance(part.value, ast.Name)
        ),
        returns=any(isinstance(part, ast.Return | ast.Yield | ast.YieldFrom) for part in own_parts(node)),
    )


def own_parts(node: ast.stmt) -> Iterator[ast.AST]:
    """The parts of a statement without the statements of its body."""
    waiting: list[ast.AST] = [node]
    while waiting:
        part = waiting.pop()
        yield part
        if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        waiting += [
            c for c in ast.iter_child_nodes(part) if not isinstance(c, ast.stmt | ast.ExceptHandler | ast.match_case)
        ]


@dataclass(slots=True)
class _Instance:
    """One run of a statement: its events [start, end) with those of the frames it called."""

    frame: int
    path: RepoPath
    access: VariableAccess
    start: int
    end: int
    last: bool = False  # in its frame


@dataclass(slots=True)
class _Wanted:
    names: dict[int, dict[str, int]] = field(default_factory=dict)
    attributes: dict[str, int] = field(default_factory=dict)
    results: dict[int, int] = field(default_factory=dict)
    heads: dict[int, dict[int, int]] = field(default_factory=dict)


def slice_of(
    run: FailureRun, tables: Mapping[RepoPath, Mapping[int, VariableAccess]]
) -> Mapping[tuple[RepoPath, int], int]:
    """Statements (path, first line) to their distance from the failing one, which has 0. {} without a failure."""
    if not run.frames:
        return {}
    instances, callers = _instances(run, tables)
    failing = run.frames[-1]
    start = next((i for i in reversed(instances) if i.path == failing.path and _holds(tables, i, failing.line)), None)
    if start is None:
        return {}
    wanted = _Wanted()
    found: dict[tuple[RepoPath, int], int] = {}
    called: dict[int, list[int]] = {}
    for frame, caller in callers.items():
        called.setdefault(id(caller), []).append(frame)
    included: set[int] = set()

    def include(instance: _Instance, distance: int) -> None:
        key = (instance.path, instance.access.line)
        found[key] = min(distance, found.get(key, distance))
        included.add(id(instance))
        names = wanted.names.setdefault(instance.frame, {})
        for name in instance.access.reads:
            names[name] = min(distance + 1, names.get(name, distance + 1))
        for name in instance.access.attribute_reads:
            wanted.attributes[name] = min(distance + 1, wanted.attributes.get(name, distance + 1))
        for frame in called.get(id(instance), ()):
            wanted.results[frame] = min(distance + 1, wanted.results.get(frame, distance + 1))
        if instance.access.control:
            heads = wanted.heads.setdefault(instance.frame, {})
            heads.setdefault(instance.access.control, distance + CONTROL_COST)

    include(start, 0)
    touched: set[int] = {start.frame}
    for instance in sorted((i for i in instances if i.start < start.end), key=lambda i: (-i.end, -i.start)):
        for frame in called.get(id(instance), ()):  # its callees come later here: only those that are wanted already
            if frame in touched and id(instance) not in included:
                include(instance, found.get((instance.path, instance.access.line), 1))
        distance = _nearest_want(instance, wanted)
        if distance is not None and instance is not start:
            include(instance, distance)
            touched.add(instance.frame)
        if id(instance) in included:
            for name in instance.access.writes - instance.access.reads:
                wanted.names.get(instance.frame, {}).pop(name, None)
    for frame in list(touched):  # how the program came there: the calls around what was found
        outer = callers.get(frame)
        while outer is not None:
            key = (outer.path, outer.access.line)
            found.setdefault(key, 4)
            outer = callers.get(outer.frame)
    return found


def _nearest_want(instance: _Instance, wanted: _Wanted) -> int | None:
    """The least distance at which something wants what an instance did."""
    names = wanted.names.get(instance.frame, {})
    found = [names[name] for name in instance.access.writes if name in names]
    found += [wanted.attributes[name] for name in instance.access.attribute_writes if name in wanted.attributes]
    if instance.access.returns and instance.last and instance.frame in wanted.results:
        found.append(wanted.results[instance.frame])
    head = wanted.heads.get(instance.frame, {}).pop(instance.access.line, None)
    return min([*found, *([head] if head is not None else [])], default=None)


def _holds(tables: Mapping[RepoPath, Mapping[int, VariableAccess]], instance: _Instance, line: int) -> bool:
    access = tables.get(instance.path, {}).get(line)
    return access is not None and access.line == instance.access.line


def _instances(
    run: FailureRun, tables: Mapping[RepoPath, Mapping[int, VariableAccess]]
) -> tuple[list[_Instance], Mapping[int, _Instance]]:
    """Runs of statements in order, and for each frame the one that called it."""
    found: list[_Instance] = []
    current: dict[int, _Instance] = {}
    callers: dict[int, _Instance] = {}
    stack: list[int] = []
    for at, event in enumerate(run.events):
        if event.kind is TraceKind.CALL:
            if stack and stack[-1] in current:
                callers[event.frame] = current[stack[-1]]
            stack.append(event.frame)
            continue
        while stack and stack[-1] != event.frame and event.frame in stack:
            stack.pop()
        access = tables.get(event.path, {}).get(event.line)
        open_one = current.get(event.frame)
        if event.kind is TraceKind.RETURN:
            if open_one is not None:
                open_one.end, open_one.last = at, True
            if event.frame in stack:
                stack.remove(event.frame)
            continue
        if access is None or (open_one is not None and open_one.access is access and open_one.end == at - 1):
            continue
        if open_one is not None:
            open_one.end = at
        one = _Instance(frame=event.frame, path=event.path, access=access, start=at, end=len(run.events))
        current[event.frame] = one
        found.append(one)
    return found, callers


def written_names(table: Mapping[int, VariableAccess]) -> Mapping[int, Sequence[str]]:
    """Names and attributes of names that each statement sets, by its first line; `RETURN_NAME` where it may return.

    `table` is of one file, by line.
    """
    found = {a.line: [*sorted(a.writes | a.stored)[:8], *([RETURN_NAME] if a.returns else [])] for a in table.values()}
    return {line: names for line, names in found.items() if names}
