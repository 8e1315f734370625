"""Queries whose text takes in nothing but placeholders and texts that stand in the same file.

bandit tells a query that is put together from one that is not, and not what it is put together from. Looked at are the
holes of one text: `','.join('?' * n)`, a constant of the module, and a parameter of a private function all of whose
calls in the file give it a constant. Not promised: that nobody calls a private function from another file.
"""

import ast
import re

from localagent.code.names import callee_name
from localagent.code.spans import lines_of
from localagent.gate.review.source_change import module_values

_MARKS = re.compile(r"[\s,()?]*|%s")


def is_of_constants(tree: ast.Module, line: int) -> bool:
    """Whether all texts that a statement on a line puts together are made of such parts."""
    nodes = [n for n in ast.walk(tree) if isinstance(n, ast.JoinedStr | ast.BinOp) and line in lines_of(n)]
    holes: list[tuple[ast.AST, ast.expr]] = []
    for node in nodes:
        match node:
            case ast.JoinedStr(values=values):
                holes += [(node, v.value) for v in values if isinstance(v, ast.FormattedValue)]
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                holes += [(node, side) for side in (left, right) if not isinstance(side, ast.BinOp | ast.Constant)]
            case ast.BinOp(op=ast.Mod()):
                return False
    return bool(holes) and all(isinstance(hole, ast.JoinedStr) or _is_constant(tree, n, hole) for n, hole in holes)


def _is_constant(tree: ast.Module, text: ast.AST, hole: ast.expr) -> bool:
    if not isinstance(hole, ast.Name):
        return _is_placeholder(hole) or _is_joined_list(tree, text, hole)
    values = [value for name, value in module_values(tree) if name == hole.id]
    if values:
        return len(values) == 1 and isinstance(values[0], ast.Constant)
    functions = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and any(x is text for x in ast.walk(n))]
    if not functions:
        return False
    function = functions[-1]
    set_here = [n.value for n in ast.walk(function) if isinstance(n, ast.Assign)
                and any(isinstance(t, ast.Name) and t.id == hole.id for t in n.targets)]  # fmt: skip
    bound = [
        n for n in ast.walk(function) if isinstance(n, ast.Name) and n.id == hole.id and isinstance(n.ctx, ast.Store)
    ]
    if bound:
        return len(bound) == len(set_here) and all(map(_is_placeholder, set_here))
    return function.name.startswith("_") and _is_given_constants(tree, function, hole.id)


def _is_joined_list(tree: ast.Module, text: ast.AST, hole: ast.expr) -> bool:
    """`" AND ".join(where)`, `where` being a list of the function that is only ever given written texts."""
    match hole:
        case ast.Call(func=ast.Attribute(value=ast.Constant(), attr="join"), args=[ast.Name(id=name)], keywords=[]):
            pass
        case _:
            return False
    around = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and any(x is text for x in ast.walk(n))]
    nodes = list(ast.walk(around[-1])) if around else []
    given: list[ast.expr] = []
    known = 0
    for node in nodes:
        match node:
            case ast.Assign(targets=[ast.Name(id=target)], value=ast.List(elts=items)) if target == name:
                given, known = [*given, *items], known + 1
            case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=values)):
                for one, value in zip(names, values, strict=False):
                    if isinstance(one, ast.Name) and one.id == name and isinstance(value, ast.List):
                        given, known = [*given, *value.elts], known + 1
            case ast.Call(func=ast.Attribute(value=ast.Name(id=target), attr="append"), args=[item]) if target == name:
                given, known = [*given, item], known + 1
    uses = [n for n in nodes if isinstance(n, ast.Name) and n.id == name]
    joins = [n for n in nodes if isinstance(n, ast.Call) and callee_name(n) == "join"]
    return 0 < len(uses) <= known + len(joins) and all(isinstance(item, ast.Constant) for item in given)


def _is_given_constants(tree: ast.Module, function: ast.FunctionDef, name: str) -> bool:
    """Whether every call of a function in the file gives a parameter a constant, and it is used in no other way."""
    order = [a.arg for a in (*function.args.posonlyargs, *function.args.args)]
    if name not in [*order, *(a.arg for a in function.args.kwonlyargs)]:
        return False
    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call) and callee_name(n) == function.name]
    uses = [n for n in ast.walk(tree) if getattr(n, "attr", getattr(n, "id", "")) == function.name]
    given = []
    for call in calls:
        bound = order[1:] if isinstance(call.func, ast.Attribute) and order[:1] in (["self"], ["cls"]) else order
        values = dict(zip(bound, call.args, strict=False)) | {k.arg or "": k.value for k in call.keywords}
        if any(isinstance(a, ast.Starred) for a in call.args) or "" in values:
            return False
        given.append(values.get(name))
    return bool(calls) and len(calls) == len(uses) and all(isinstance(v, ast.Constant) for v in given)


def _is_placeholder(node: ast.expr) -> bool:
    """`", ".join("?" * len(ids))`: texts of question marks alone, joined or repeated."""
    texts = [n.value for n in ast.walk(node) if isinstance(n, ast.Constant) and isinstance(n.value, str)]
    made = isinstance(node, ast.BinOp | ast.Call | ast.Constant)
    calls = [callee_name(n) for n in ast.walk(node) if isinstance(n, ast.Call)]
    plain = all(name in ("join", "len", "rstrip", "strip") for name in calls)
    return made and plain and bool(texts) and all(_MARKS.fullmatch(text) for text in texts)
