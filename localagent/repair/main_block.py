"""Where a program is its own check: what stands below `if __name__ == "__main__"` is then the test, not what is wrong.

A check that runs a program passes as well once that program no longer looks at what it computes. Not seen: a program
that checks itself elsewhere.
"""

import ast
from collections.abc import Sequence
from dataclasses import replace

from localagent.domain.edit import Candidate
from localagent.repair.choice import Standing
from localagent.repair.functions import parsed

_OF_THE_CHECK = 20.0  # nats: beyond every margin at which two would be rivals


def behind_the_check(order: Sequence[Standing], failing: Sequence[str]) -> list[Standing]:
    """The order, with those last that change nothing but the part of a program that runs as its own check.

    As it was where a failing test is no such check. They stay rivals of each other, and tell how little the check says.
    """
    if not all(name.startswith("check:") for name in failing):
        return list(order)
    dearer = [replace(s, cost=s.cost + _OF_THE_CHECK) if _changes_main_alone(s.candidate) else s for s in order]
    return sorted(dearer, key=lambda s: (s.cost, s.candidate.number))


def _changes_main_alone(candidate: Candidate) -> bool:
    blocks = {c.path: _main_lines(c.before) for c in candidate.patch.changes}
    return all(e.line in blocks[e.path] and e.end_line in blocks[e.path] for e in candidate.edits if e.path in blocks)


def _main_lines(source: bytes) -> range:
    """The lines of the block that runs when the file is the program; none where there is no such block."""
    tree = parsed(source)
    for node in tree.body if tree is not None else ():
        if isinstance(node, ast.If) and _asks_for_main(node.test):
            return range(node.lineno, (node.end_lineno or node.lineno) + 1)
    return range(0)


def _asks_for_main(test: ast.expr) -> bool:
    if not isinstance(test, ast.Compare) or len(test.comparators) != 1:
        return False
    sides = (test.left, test.comparators[0])
    return any(isinstance(s, ast.Name) and s.id == "__name__" for s in sides) and any(
        isinstance(s, ast.Constant) and s.value == "__main__" for s in sides
    )
