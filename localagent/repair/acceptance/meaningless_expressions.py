"""What shows of a repair's text alone that it is wrong: expressions that say nothing.

They are `a > a`, `x or x`, `f(a, a)` where two things were meant, `n += 0`. A test that passes by one passes by
chance: nobody writes `row[i] or row[i]`. Counted is only what the text before did not hold. Not promised: that anything
else makes sense.
"""

import ast
import codecs
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise

from localagent.code.spans import last_line
from localagent.domain.edit import Candidate
from localagent.repair.search.enclosing_function import parsed

_ROW_END = re.compile(rb"\r\n|\r|\n")
_LEAVING = frozenset(
    {(op, 0) for op in (ast.Add, ast.Sub, ast.BitOr, ast.BitXor, ast.LShift, ast.RShift)}
    | {(op, 1) for op in (ast.Mult, ast.Pow)}
)
_OF_VALUES = frozenset({"abs", "len", "max", "min", "round", "sorted", "sum", "type"})
_CANCELLING = (ast.Sub, ast.Div, ast.FloorDiv, ast.Mod, ast.BitAnd, ast.BitOr, ast.BitXor)


def degenerate(candidate: Candidate) -> int:
    """How many such expressions a candidate's files hold that they did not hold before; 0 where one does not parse."""
    return sum(len(new_expressions(c.before, c.after)) for c in candidate.patch.changes)


def new_expressions(before: bytes, after: bytes) -> tuple[str, ...]:
    """The text of each such expression that stands more often after than before; none where `after` does not parse."""
    had, has = _counted(before), _counted(after)
    if has is None:
        return ()
    if had is not None:
        return tuple(said for said, count in has.items() if count > had[said])
    segments = Counter(_segments(after))  # what a text that does not parse holds in so many words stood there before
    return tuple(
        said.decode("utf-8", "backslashreplace") for said, count in segments.items() if count > before.count(said)
    )


@lru_cache(maxsize=8)
def _counted(source: bytes) -> Counter[str] | None:
    """Each such expression of a source, as Python would write it, with how often it stands there; nobody changes it."""
    tree = parsed(source)
    return None if tree is None else Counter(map(ast.unparse, _empty(tree)))


def _segments(source: bytes) -> Iterator[bytes]:
    """Such expressions as they stand there, those of one line."""
    rows = _ROW_END.split(source.removeprefix(codecs.BOM_UTF8))
    tree = parsed(source)
    for node in _empty(tree) if tree is not None else ():
        if node.lineno == last_line(node):
            yield rows[node.lineno - 1][node.col_offset : node.end_col_offset]


def _empty(tree: ast.AST) -> Iterator[ast.expr | ast.stmt]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            if any(_same(pair) for pair in pairwise(sides)):
                yield node
        elif isinstance(node, ast.BoolOp):
            if _twice(node.values):
                yield node
        elif isinstance(node, ast.BinOp) and isinstance(node.op, _CANCELLING):
            if _same((node.left, node.right)):
                yield node
        elif isinstance(node, ast.Call):
            if _twice([a for a in node.args if isinstance(a, ast.Name | ast.Attribute | ast.Subscript)]):
                yield node
        elif isinstance(node, ast.Assign | ast.AugAssign) and _leaves_as_it_is(node):
            yield node


def _leaves_as_it_is(node: ast.Assign | ast.AugAssign) -> bool:
    """Whether a target is given its own value."""
    if isinstance(node, ast.Assign):
        return len(node.targets) == 1 and _same((node.targets[0], node.value))
    return isinstance(node.value, ast.Constant) and (type(node.op), node.value.value) in _LEAVING


def _same(pair: Sequence[ast.expr]) -> bool:
    if type(pair[0]) is not type(pair[1]):
        return False
    one, other = (ast.unparse(side) for side in pair)
    calls = any(isinstance(n, ast.Call) and not _is_function_of_values(n) for n in ast.walk(pair[0]))
    literal = isinstance(pair[0], ast.Constant)
    return one == other and not calls and not literal


def _is_function_of_values(call: ast.Call) -> bool:
    """Whether the same arguments give the same answer, as far as a text tells: `next(it) - next(it)` may differ."""
    return isinstance(call.func, ast.Name) and call.func.id in _OF_VALUES


def _twice(nodes: Sequence[ast.expr]) -> bool:
    if len(nodes) < 2:
        return False
    texts = [ast.unparse(n) for n in nodes if not any(isinstance(x, ast.Call) for x in ast.walk(n))]
    return len(set(texts)) < len(texts)
