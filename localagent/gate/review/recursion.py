"""Calls of oneself that get no further, that come after a fault, or that are two for one."""

import ast

from localagent.code.regions import walk
from localagent.code.spans import Function
from localagent.gate.review.source_change import Signs


def calls_itself_again(name: str, function: Function) -> Signs:
    """Calls of oneself with what one was given, in a handler, or twice in one answer."""
    args = (*function.args.posonlyargs, *function.args.args)
    method = bool(args) and args[0].arg in ("self", "cls")  # a method's bare name is another function's
    own = {a.arg for a in args} - {"self", "cls"}
    calls = [n for n in walk(function) if isinstance(n, ast.Call) and _is_self(n.func, name, method)]
    if not calls:
        return
    for call in calls:
        given = [a for a in (*call.args, *(k.value for k in call.keywords)) if not isinstance(a, ast.Constant)]
        same = all(isinstance(a, ast.Name) and a.id in own for a in given) and not call.keywords
        if same if own else not given:
            yield "a call of itself that gets no further", call
    for node in walk(function):
        if isinstance(node, ast.ExceptHandler):
            yield from (("a call of itself after a fault", c) for c in calls if any(c is n for n in walk(node)))
        elif isinstance(node, ast.BinOp) and sum(1 for c in calls if c is node.left or c is node.right) > 1:
            yield "two calls of itself for one", node


def _is_self(func: ast.expr, name: str, method: bool) -> bool:
    if isinstance(func, ast.Attribute):
        return func.attr == name and isinstance(func.value, ast.Name) and func.value.id in ("self", "cls")
    return not method and isinstance(func, ast.Name) and func.id == name
