"""What was regular before an edit and no longer is: a condition that treats two things alike, a sum over a loop.

Also two idioms that are right for special values alone: rounding up by adding one, and `get` for what may hold None.

Limitations: forms are compared as Python would write them; each rule knows one form of its idiom.
"""

import ast
from collections import Counter
from collections.abc import Iterator
from itertools import combinations

from localagent.code.spans import Function
from localagent.repair.acceptance.changed_functions import FunctionPair, TouchedFile
from localagent.repair.acceptance.contradiction import Contradiction, ContradictionKind, ContradictionWeight, against
from localagent.repair.acceptance.documentation_rules import own_nodes
from localagent.repair.acceptance.expression_diff import is_constant

_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_TURNED = {ast.Gt: ast.Lt, ast.GtE: ast.LtE}
_EITHER_WAY = (ast.Eq, ast.NotEq, ast.Is, ast.IsNot)


def lost_symmetry(file: TouchedFile, pair: FunctionPair) -> Iterator[Contradiction]:
    """A condition that said the same of two things in both directions, of which the edit changes one."""
    new = Counter(map(ast.unparse, _conditions(pair.new)))
    gone = [c for c in _conditions(pair.old) if not new[ast.unparse(c)]]
    old = Counter(map(ast.unparse, _conditions(pair.old)))
    come = [c for c in _conditions(pair.new) if not old[ast.unparse(c)]]
    for was in gone:
        names = _treated_alike(was)
        kept = [c for c in come if _parts(c) & _parts(was) and len(c.values) == len(was.values)]
        for now in kept if names is not None else ():
            if names is not None and not _alike(now, *names):
                why = f"`{ast.unparse(was)}` treats `{names[0]}` and `{names[1]}` alike, and as edited it does not"
                yield against(file, pair, ContradictionKind.SYMMETRY_LOST, ContradictionWeight.SOFT, why)
                return


def _conditions(function: Function) -> list[ast.BoolOp]:
    return [n for n in own_nodes(function) if isinstance(n, ast.BoolOp)]


def _treated_alike(condition: ast.BoolOp) -> tuple[str, str] | None:
    """Two names that can change places in a condition; None where there are none."""
    names = sorted({n.id for n in ast.walk(condition) if isinstance(n, ast.Name)})
    return next((two for two in combinations(names[:6], 2) if _alike(condition, *two)), None)


def _alike(condition: ast.BoolOp, one: str, other: str) -> bool:
    """Whether parts of it become one another, and all of it itself, where two names change places."""
    plain = [_form(value, {}) for value in condition.values]
    swapped = [_form(value, {one: other, other: one}) for value in condition.values]
    return plain != swapped and set(plain) == set(swapped)


def _parts(condition: ast.BoolOp) -> set[str]:
    return {_form(value, {}) for value in condition.values}


def _form(node: ast.expr, names: dict[str, str]) -> str:
    """A part of a condition with names replaced, a comparison written in one direction."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        left, right, kind = _form(node.left, names), _form(node.comparators[0], names), type(node.ops[0])
        if kind in _TURNED or (kind in _EITHER_WAY and left > right):
            left, right, kind = right, left, _TURNED.get(kind, kind)
        return f"{left} {kind.__name__} {right}"
    renamed = _Renamed(names).visit(ast.parse(ast.unparse(node), mode="eval"))
    return ast.unparse(renamed)


class _Renamed(ast.NodeTransformer):
    def __init__(self, names: dict[str, str]) -> None:
        self._names = names

    def visit_Name(self, node: ast.Name) -> ast.Name:
        return ast.Name(id=self._names.get(node.id, node.id), ctx=node.ctx)


def lost_accumulation(file: TouchedFile, pair: FunctionPair) -> Iterator[Contradiction]:
    """What a loop added up is set anew in each round: all but the last are lost."""
    sums = [n for _, n in _in_loops(pair.old) if isinstance(n, ast.AugAssign)]
    summed = {(ast.unparse(n.target), ast.unparse(n.value)) for n in sums}
    for loop, node in _in_loops(pair.new):
        target = node.targets[0] if isinstance(node, ast.Assign) else None
        if not isinstance(node, ast.Assign) or not isinstance(target, ast.Name):
            continue
        if (target.id, ast.unparse(node.value)) not in summed:
            continue
        reads = [n for n in ast.walk(loop) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)]
        if target.id not in {n.id for n in reads}:
            why = f"each round of the loop sets `{target.id}` anew, so that only the last one counts"
            yield against(file, pair, ContradictionKind.VALUE_UNUSED, ContradictionWeight.HARD, why)


def _in_loops(function: Function) -> Iterator[tuple[ast.stmt, ast.stmt]]:
    """Statements that every round of a loop comes to, with the loop."""
    for loop in own_nodes(function):
        if isinstance(loop, _LOOPS):
            yield from ((loop, node) for node in loop.body)


def rounded_by_one(file: TouchedFile, pair: FunctionPair) -> Iterator[Contradiction]:
    """`(n + 1) // size`: one more rounds up by two alone, and the size is a value of its own."""
    had = {ast.unparse(n) for n in own_nodes(pair.old) if isinstance(n, ast.BinOp)}
    for node in own_nodes(pair.new):
        if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.FloorDiv) or is_constant(node.right):
            continue
        top = node.left
        plain = isinstance(top, ast.BinOp) and isinstance(top.op, ast.Add) and isinstance(top.right, ast.Constant)
        if plain and isinstance(top, ast.BinOp) and ast.unparse(node) not in had:
            was = ast.BinOp(left=top.left, op=node.op, right=node.right)
            if ast.unparse(was) in had:
                why = f"`{ast.unparse(node)}` adds a fixed number where `{ast.unparse(node.right)}` may be any"
                yield against(file, pair, ContradictionKind.ROUNDING, ContradictionWeight.SOFT, why)


def presence_by_get(file: TouchedFile, pair: FunctionPair) -> Iterator[Contradiction]:
    """`box.get(key) is not None` where elsewhere `key in box` is asked: a key may hold None."""
    had = {ast.unparse(n) for n in own_nodes(pair.old) if isinstance(n, ast.Compare)}
    asked = {
        (ast.unparse(n.left), ast.unparse(n.comparators[0]))
        for n in ast.walk(file.old)
        if isinstance(n, ast.Compare) and isinstance(n.ops[0], ast.In | ast.NotIn)
    }
    for node in own_nodes(pair.new):
        match node:
            case ast.Compare(
                left=ast.Call(func=ast.Attribute(attr="get", value=box), args=[wanted], keywords=[]),
                ops=[ast.Is() | ast.IsNot()],
                comparators=[ast.Constant(value=None)],
            ) if ast.unparse(node) not in had and (ast.unparse(wanted), ast.unparse(box)) in asked:
                form = f"{ast.unparse(wanted)} in {ast.unparse(box)}"
                why = f"elsewhere the file asks `{form}`, which is otherwise where the value is None"
                yield against(file, pair, ContradictionKind.SIBLINGS, ContradictionWeight.SOFT, why)
