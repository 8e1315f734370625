"""Whether a function can come to its end without a `return`, read off the syntax.

Limitations: a condition may be either; calls that never return and context managers that swallow exceptions are not
seen. What is not certain counts as an end that can be reached.
"""

import ast
from collections.abc import Iterator, Sequence

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_LOOPS = (ast.For, ast.AsyncFor, ast.While)


def completes(block: Sequence[ast.stmt]) -> bool:
    """Whether what comes after the block can run."""
    return all(_completes(statement) for statement in block)


def _completes(node: ast.stmt) -> bool:
    match node:
        case ast.Return() | ast.Raise() | ast.Continue() | ast.Break():
            return False
        case ast.If():
            return completes(node.body) or completes(node.orelse)
        case ast.While(test=ast.Constant(value=value)) if value:
            return any(isinstance(n, ast.Break) for n in _of_loop(node.body))
        case ast.With() | ast.AsyncWith():
            return completes(node.body)
        case ast.Try() | ast.TryStar():
            ways = [completes([*node.body, *node.orelse]), *(completes(h.body) for h in node.handlers)]
            return any(ways) and completes(node.finalbody)
        case ast.Match():
            rest = any(
                isinstance(c.pattern, ast.MatchAs) and c.pattern.pattern is None and not c.guard for c in node.cases
            )
            return not rest or any(completes(case.body) for case in node.cases)
        case _:
            return True


def _of_loop(block: Sequence[ast.AST]) -> Iterator[ast.AST]:
    """The nodes whose `break` ends this loop."""
    for node in block:
        yield node
        if isinstance(node, _LOOPS):
            yield from _of_loop(node.orelse)
        elif not isinstance(node, _SCOPES):
            yield from _of_loop(list(ast.iter_child_nodes(node)))
