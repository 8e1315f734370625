"""What a handler catches, and how it ends: whether it raises again on every path, on some, or on none.

Names are followed through assignments and imports that stand in the file; what a function answers, what another file
binds, and whether a condition that is no constant ever holds, is not known.
"""

import ast
import builtins
from collections.abc import Iterable
from enum import StrEnum

from localagent.code.bindings import assignments, target_name
from localagent.code.names import imports_of, last_name
from localagent.code.regions import walk
from localagent.code.string_folding import values_of

BROAD_NAMES = frozenset({"Exception", "BaseException", "ExceptionGroup", "BaseExceptionGroup"})
_NARROW = frozenset(dir(builtins)) - BROAD_NAMES
_NEVER = frozenset({"TYPE_CHECKING"})
_MOST_STEPS = 6
_WITH = (ast.With, ast.AsyncWith)


class BlockEnd(StrEnum):
    """How a run of statements may end."""

    RAISES = "raises"
    RETURNS = "returns"
    BREAKS = "breaks"
    CONTINUES = "continues"
    FALLS = "falls through"


def catches_everything(caught: ast.expr, known: dict[str, list[ast.expr]]) -> bool:
    """Whether an expression of types stands for everything, maybe by a name of `known`, a star, or a sum."""
    pending, seen = [(caught, _MOST_STEPS)], set[str]()
    while pending:
        at, steps = pending.pop()
        for node in walk(at):
            name = last_name(node)
            text = node.value if isinstance(node, ast.Constant) else None
            if name in BROAD_NAMES or (isinstance(text, str) and text in BROAD_NAMES):
                return True
            if name and steps and name not in seen and (name not in _NARROW or name in known):
                seen.add(name)
                pending += [(value, steps - 1) for value in known.get(name, ())]
    return False


def names_of_types(nodes: Iterable[ast.AST]) -> dict[str, list[ast.expr]]:
    """What names are set to by assignments, defaults and imports, as far as it may be a type of exceptions."""
    found: dict[str, list[ast.expr]] = {}
    for node in nodes:
        if isinstance(node, ast.ImportFrom):
            for name in imports_of(node):
                if name.item in BROAD_NAMES and name.bound != name.item:
                    found.setdefault(name.bound, []).append(ast.Name(id=name.item, ctx=ast.Load()))
            continue
        for target, value in assignments(node):
            found.setdefault(target_name(target), []).append(value)
    return found


def ends_of(body: list[ast.stmt]) -> frozenset[BlockEnd]:
    """Every way in which a block may end; what is defined inside it is not run by it."""
    found: set[BlockEnd] = set()
    for statement in body:
        ends = _ends(statement)
        found |= ends - {BlockEnd.FALLS}
        if BlockEnd.FALLS not in ends:
            return frozenset(found)
    return frozenset(found | {BlockEnd.FALLS})


def raises_again(handler: ast.ExceptHandler) -> bool:
    """Whether every path of a handler ends in `raise` alone, or in `raise ... from` what was caught.

    A raise inside of `with` does not count: what it opens may be `contextlib.suppress`.
    """
    raises = [node for s in handler.body for node in ast.walk(s) if isinstance(node, ast.Raise)]
    held = {id(n) for s in handler.body for w in ast.walk(s) if isinstance(w, _WITH) for n in ast.walk(w)}
    plain = all(
        node.exc is None or (isinstance(node.cause, ast.Name) and node.cause.id == handler.name) for node in raises
    )
    return plain and not any(id(n) in held for n in raises) and ends_of(handler.body) == {BlockEnd.RAISES}


def _ends(node: ast.stmt) -> frozenset[BlockEnd]:
    if isinstance(node, ast.Raise):
        return frozenset({BlockEnd.RAISES})
    if isinstance(node, ast.Return):
        return frozenset({BlockEnd.RETURNS})
    if isinstance(node, ast.Break):
        return frozenset({BlockEnd.BREAKS})
    if isinstance(node, ast.Continue):
        return frozenset({BlockEnd.CONTINUES})
    if isinstance(node, ast.If):
        truth = _truth(node.test)
        blocks = [node.body, node.orelse] if truth is None else [node.body] if truth else [node.orelse]
        return frozenset[BlockEnd]().union(*(ends_of(block) for block in blocks))
    if isinstance(node, ast.While | ast.For | ast.AsyncFor):
        return _loop(node)
    if isinstance(node, ast.With | ast.AsyncWith):
        return ends_of(node.body)
    if isinstance(node, ast.Try | ast.TryStar):
        return _try(node)
    if isinstance(node, ast.Match):
        ends = frozenset[BlockEnd]().union(*(ends_of(case.body) for case in node.cases))
        last = node.cases[-1]
        whole = isinstance(last.pattern, ast.MatchAs) and last.pattern.pattern is None and last.guard is None
        return ends if whole else ends | {BlockEnd.FALLS}
    return frozenset({BlockEnd.FALLS})


def _loop(node: ast.While | ast.For | ast.AsyncFor) -> frozenset[BlockEnd]:
    truth = _truth(node.test) if isinstance(node, ast.While) else None
    if truth is False:
        return ends_of(node.orelse)
    inside = ends_of(node.body)
    found = inside - {BlockEnd.BREAKS, BlockEnd.CONTINUES, BlockEnd.FALLS}
    if BlockEnd.BREAKS in inside:
        found |= {BlockEnd.FALLS}
    return found if truth else found | ends_of(node.orelse)


def _try(node: ast.Try | ast.TryStar) -> frozenset[BlockEnd]:
    found = ends_of(node.body)
    if BlockEnd.FALLS in found:
        found = (found - {BlockEnd.FALLS}) | ends_of(node.orelse)
    for handler in node.handlers:
        if handler.type is None or catches_everything(handler.type, {}):
            found -= {BlockEnd.RAISES}  # what is raised inside is caught here
    found = found.union(*(ends_of(handler.body) for handler in node.handlers))
    last = ends_of(node.finalbody)
    return found | (last - {BlockEnd.FALLS}) if BlockEnd.FALLS in last else last


def _truth(node: ast.expr) -> bool | None:
    """What a condition comes to where it is constant, None where it is not."""
    if isinstance(node, ast.Constant):
        return bool(node.value)
    if isinstance(node, ast.Name | ast.Attribute):
        name = node.id if isinstance(node, ast.Name) else node.attr
        return False if name in _NEVER else None
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        inner = _truth(node.operand)
        return None if inner is None else not inner
    if isinstance(node, ast.BoolOp):
        return _joined([_truth(value) for value in node.values], isinstance(node.op, ast.Or))
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        return bool(node.elts) if not any(isinstance(e, ast.Starred) for e in node.elts) else None
    if isinstance(node, ast.Dict):
        return bool(node.keys) if None not in node.keys else None
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        return _compared(node)
    values = values_of(node)
    return bool(values[0]) if values and len({bool(v) for v in values}) == 1 else None


def _joined(truths: list[bool | None], decides: bool) -> bool | None:
    if decides in truths:
        return decides
    return None if None in truths else not decides


def _compared(node: ast.Compare) -> bool | None:
    left, right = values_of(node.left), values_of(node.comparators[0])
    if not left or not right or len(left) + len(right) != 2:
        return None
    one, two, op = left[0], right[0], node.ops[0]
    if isinstance(op, ast.Eq | ast.Is):
        return one == two
    if isinstance(op, ast.NotEq | ast.IsNot):
        return one != two
    if not isinstance(one, int) or not isinstance(two, int):
        return None
    if isinstance(op, ast.Lt | ast.LtE):
        return one < two or (isinstance(op, ast.LtE) and one == two)
    if isinstance(op, ast.Gt | ast.GtE):
        return one > two or (isinstance(op, ast.GtE) and one == two)
    return None
