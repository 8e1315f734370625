"""What shows of a repair's text alone that it is wrong: expressions that say nothing.

They are `a > a`, `x or x`, `f(a, a)` where two things were meant. A test that passes by one passes by
chance: nobody writes `row[i] or row[i]`. Counted is only what the text before did not hold. Not promised: that anything
else makes sense.
"""

import ast
import warnings
from collections.abc import Iterator, Sequence
from itertools import pairwise

from localagent.domain.edit import Candidate

_CANCELLING = (ast.Sub, ast.Div, ast.FloorDiv, ast.Mod, ast.BitAnd, ast.BitOr, ast.BitXor)


def degenerate(candidate: Candidate) -> int:
    """How many such expressions a candidate's files hold that they did not hold before; 0 where one does not parse."""
    return sum(_new(c.before, c.after) for c in candidate.patch.changes)


def _new(before: bytes, after: bytes) -> int:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(after)
        text = after.decode("utf-8")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return 0
    old = before.decode("utf-8", "replace")
    segments = [ast.get_source_segment(text, node) or "" for node in _empty(tree)]
    return sum(segments.count(s) > old.count(s) for s in dict.fromkeys(segments) if s)


def _empty(tree: ast.AST) -> Iterator[ast.AST]:
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
        elif isinstance(node, ast.Assign) and len(node.targets) == 1 and _same((node.targets[0], node.value)):
            yield node


def _same(pair: Sequence[ast.expr]) -> bool:
    one, other = (ast.unparse(side) for side in pair)
    calls = any(isinstance(n, ast.Call) for n in ast.walk(pair[0]))  # `next(it) - next(it)` may differ
    literal = isinstance(pair[0], ast.Constant)
    return one == other and not calls and not literal


def _twice(nodes: Sequence[ast.expr]) -> bool:
    texts = [ast.unparse(n) for n in nodes if not any(isinstance(x, ast.Call) for x in ast.walk(n))]
    return len(set(texts)) < len(texts)
