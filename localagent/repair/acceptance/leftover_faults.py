"""Faults that a definition still holds after a repair and that show without running it; each is nearly always one.

Loops whose condition nothing in them changes, loops that index one beyond the end, methods that a value's type
lacks. Of 611 right programs of the development cases none held one; of 809 with one fault left
46 did. Not seen: whatever needs values, other files or types that are not written down.
"""

import ast
import collections
from collections import defaultdict
from collections.abc import Iterator

from localagent.code.spans import Definition
from localagent.domain.edit import Candidate
from localagent.repair.acceptance.undefined_names import changed_definitions

_PURE = frozenset(
    {"len", "abs", "int", "any", "all", "isinstance", "min", "max", "bool", "sum", "print", "range", "str"}
)
_ORDERING = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_WAYS_OUT = (ast.Break, ast.Return, ast.Raise, ast.Yield, ast.YieldFrom, ast.Await)
_TYPES: dict[str, type] = {
    "list": list, "dict": dict, "set": set, "str": str, "int": int, "deque": collections.deque,
    "defaultdict": collections.defaultdict, "Counter": collections.Counter,
}  # fmt: skip
_DISPLAYS: dict[type[ast.expr], str] = {
    ast.List: "list", ast.ListComp: "list", ast.Dict: "dict", ast.DictComp: "dict", ast.Set: "set", ast.SetComp: "set",
}  # fmt: skip


def left_faults(candidate: Candidate) -> int:
    """How many such faults the definitions hold that a candidate changes."""
    found = 0
    for change in candidate.patch.changes:
        found += sum(
            1
            for d in changed_definitions(change.before, change.after)
            for _ in (*_endless(d), *_stuck(d), *_beyond(d), *_untyped(d))
        )
    return found


def _endless(definition: Definition) -> Iterator[ast.While]:
    """Loops that nothing leaves, and nothing in them changes what their condition asks about."""
    for loop in ast.walk(definition):
        if isinstance(loop, ast.While):
            inside = [n for s in loop.body for n in ast.walk(s)]
            asked = _names(loop.test)
            unknown = (ast.Call, ast.NamedExpr, ast.Await, ast.Attribute, ast.Subscript)  # others may change these
            opaque = any(isinstance(n, unknown) and not _is_pure(n) for n in ast.walk(loop.test))
            if not opaque and not any(isinstance(n, _WAYS_OUT) or _alters(n, asked) for n in inside):
                yield loop


def _stuck(definition: Definition) -> Iterator[ast.While]:
    """Loops that go on while a name is less or more than something, and set it to nothing but constants."""
    for loop in ast.walk(definition):
        if not isinstance(loop, ast.While):
            continue
        inside = [n for s in loop.body for n in ast.walk(s)]
        for asked in ast.walk(loop.test):
            if not isinstance(asked, ast.Compare) or not all(isinstance(op, _ORDERING) for op in asked.ops):
                continue
            sides = [asked.left, *asked.comparators]
            bounds = {n for side in sides if not isinstance(side, ast.Name) for n in _names(side)}
            for name in (side.id for side in sides if isinstance(side, ast.Name)):
                others = bounds | {side.id for side in sides if isinstance(side, ast.Name) and side.id != name}
                values = list(_values(inside, name))
                still = not any(_alters(n, others) for n in inside)
                if others and values and still and all(isinstance(v, ast.Constant) for v in values):
                    yield loop


def _values(inside: list[ast.AST], name: str) -> Iterator[ast.expr | None]:
    """What a name is given, None for what is no plain value."""
    plain: set[int] = set()
    for n in inside:
        if isinstance(n, ast.Assign) and any(isinstance(t, ast.Name) and t.id == name for t in n.targets):
            plain |= {id(t) for t in n.targets}
            yield n.value
    if any(
        isinstance(n, ast.Name) and n.id == name and not isinstance(n.ctx, ast.Load) and id(n) not in plain
        for n in inside
    ):
        yield None


def _is_pure(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _PURE


def _alters(node: ast.AST, asked: set[str]) -> bool:
    """Whether a node binds or changes one of these names, or hands one to what may change it."""
    if isinstance(node, ast.Name | ast.Attribute | ast.Subscript):
        return not isinstance(node.ctx, ast.Load) and bool(_names(node) & asked)
    if not isinstance(node, ast.Call) or _is_pure(node):
        return False
    if isinstance(node.func, ast.Name) or not asked:
        return True  # a function of the same file may change what stands around it
    handed = [
        a for a in (*node.args, *(k.value for k in node.keywords)) if not isinstance(a, ast.Subscript | ast.Constant)
    ]
    return any(_names(part) & asked for part in (node.func, *handed)) or "self" in _names(node.func)


def _names(node: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}


def _beyond(definition: Definition) -> Iterator[ast.AST]:
    """`for i in range(len(xs) + 1)` with a plain `xs[i]` in it that nothing asks about before."""
    for loop in ast.walk(definition):
        if not isinstance(loop, ast.For) or not isinstance(loop.target, ast.Name):
            continue
        held = _measured(loop.iter)
        inside = [n for s in loop.body for n in ast.walk(s)]
        name = loop.target.id
        if held and not any(isinstance(n, ast.Compare | ast.Try) and _asks_alone(n, name) for n in inside):
            parts = [n for n in inside if isinstance(n, ast.Subscript) and ast.dump(n.value) == held]
            yield from [n for n in parts if isinstance(n.slice, ast.Name) and n.slice.id == name][:1]


def _measured(iterated: ast.expr) -> str:
    """What `range(len(xs) + 1)` measures, as a dump; "" for anything else."""
    if not (isinstance(iterated, ast.Call) and isinstance(iterated.func, ast.Name) and iterated.func.id == "range"):
        return ""
    stop = iterated.args[:2][-1] if iterated.args else None
    if not isinstance(stop, ast.BinOp) or not isinstance(stop.op, ast.Add) or not isinstance(stop.right, ast.Constant):
        return ""
    length = stop.left
    is_len = isinstance(length, ast.Call) and isinstance(length.func, ast.Name) and length.func.id == "len"
    return ast.dump(length.args[0]) if isinstance(length, ast.Call) and is_len and length.args else ""


def _asks_alone(node: ast.AST, name: str) -> bool:
    """Whether a comparison asks about a name itself, not only about what stands at that place; or a fault is caught."""
    if isinstance(node, ast.Try):
        return True
    indexes = {id(n) for s in ast.walk(node) if isinstance(s, ast.Subscript) for n in ast.walk(s)}
    return any(isinstance(n, ast.Name) and n.id == name and id(n) not in indexes for n in ast.walk(node))


def _untyped(definition: Definition) -> Iterator[ast.expr]:
    """Attributes of names that only ever hold one type that lacks them: `stack = []` and `stack.push(1)`; calls too."""
    for function in _outermost(definition):
        kinds = _kinds(function)
        for node in ast.walk(function):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                held = kinds.get(node.func.id, {""})
                if len(held) == 1 and next(iter(held)) in _TYPES:
                    yield node
            elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                held = kinds.get(node.value.id, {""})
                if len(held) == 1 and (kind := _TYPES.get(next(iter(held)))) and not hasattr(kind, node.attr):
                    yield node


def _outermost(definition: Definition) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    if isinstance(definition, ast.ClassDef):
        for inner in definition.body:
            if isinstance(inner, Definition):
                yield from _outermost(inner)
    else:
        yield definition


def _kinds(function: ast.AST) -> dict[str, set[str]]:
    """The types that each name of a function is given, "" where that is not plain."""
    kinds: dict[str, set[str]] = defaultdict(set)
    told: set[int] = set()
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            kinds[node.targets[0].id].add(_kind(node.value))
            told.add(id(node.targets[0]))
        elif isinstance(node, ast.AugAssign):
            told.add(id(node.target))
        elif isinstance(node, ast.arg):
            kinds[node.arg].add("")
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load) and id(node) not in told:
            kinds[node.id].add("")
        elif isinstance(node, ast.Global | ast.Nonlocal):
            for name in node.names:
                kinds[name].add("")
    return kinds


def _kind(value: ast.expr) -> str:
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name):
        return value.func.id if value.func.id in _TYPES else ""
    if isinstance(value, ast.Constant):
        return type(value.value).__name__
    return _DISPLAYS.get(type(value), "")
