"""Queries whose text takes in nothing but placeholders and texts that stand in the same file.

bandit tells a query that is put together from one that is not, and not what it is put together from. Looked at are the
holes of one text: `','.join('?' * n)`, a constant of the module, and a parameter of a private function all of whose
calls in the file give it a constant. A name means what is nearest: a parameter or a variable of the function before a
constant of the module. Not promised: that nobody calls a private function from another file.
"""

import ast
import re

from localagent.code.names import callee_name
from localagent.code.spans import Definition, Function, lines_of
from localagent.gate.review.source_change import module_values

_MARKS = re.compile(r"[\s,()?]*|%s")
_FILLS = frozenset({"format", "format_map", "replace", "substitute", "safe_substitute", "translate", "expandtabs"})


def is_of_constants(tree: ast.Module, line: int) -> bool:
    """Whether all texts that a statement on a line puts together are made of such parts."""
    around = [n for n in ast.walk(tree) if isinstance(n, ast.expr) and line in lines_of(n)]
    if any(isinstance(n, ast.Call) and callee_name(n) in _FILLS for n in around):
        return False
    holes: list[tuple[ast.AST, ast.expr]] = []
    for node in around:
        match node:
            case ast.JoinedStr(values=values):
                holes += [(node, v.value) for v in values if isinstance(v, ast.FormattedValue)]
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                holes += [(node, side) for side in (left, right) if not isinstance(side, ast.BinOp | ast.Constant)]
            case ast.BinOp(op=ast.Mod()):
                return False
    return bool(holes) and all(isinstance(hole, ast.JoinedStr) or _is_constant(tree, n, hole) for n, hole in holes)


def only_value(tree: ast.Module, at: ast.AST, name: str) -> ast.expr | None:
    """What the one place that binds a name, as `at` sees it, gives it; None where it is bound twice, or a parameter."""
    binding = next((f for f in _functions_around(tree, at) if _times_bound(f, name)), None)
    if binding is None:
        values = [value for one, value in module_values(tree) if one == name]
        inside = sum(_times_bound(n, name) for n in tree.body if isinstance(n, Definition))
        bound = _times_bound(tree, name) - inside
        if any(isinstance(n, ast.Global) and name in n.names for n in ast.walk(tree)):
            return None
    else:
        values = _given(binding, name)
        bound = _times_bound(binding, name)
    return values[0] if len(values) == bound == 1 else None


def _given(function: Function, name: str) -> list[ast.expr]:
    """What the assignments of a function give a name."""
    return [n.value for n in ast.walk(function) if isinstance(n, ast.Assign)
            and any(isinstance(t, ast.Name) and t.id == name for t in n.targets)]  # fmt: skip


def _times_bound(tree: ast.AST, name: str) -> int:
    return sum(
        (isinstance(n, ast.Name) and n.id == name and not isinstance(n.ctx, ast.Load))
        or (isinstance(n, ast.arg) and n.arg == name)
        for n in ast.walk(tree)
    )


def _functions_around(tree: ast.Module, text: ast.AST) -> list[Function]:
    """The functions that hold a text, the inner one first."""
    return [n for n in ast.walk(tree) if isinstance(n, Function) and any(x is text for x in ast.walk(n))][::-1]


def _is_constant(tree: ast.Module, text: ast.AST, hole: ast.expr) -> bool:
    if not isinstance(hole, ast.Name):
        return _is_placeholder(hole) or _is_joined_list(tree, text, hole)
    binding = next((f for f in _functions_around(tree, text) if _times_bound(f, hole.id)), None)
    if binding is None:
        return isinstance(only_value(tree, text, hole.id), ast.Constant)
    if given := _given(binding, hole.id):
        return len(given) == _times_bound(binding, hole.id) and all(map(_is_placeholder, given))
    once = _times_bound(binding, hole.id) == 1
    return once and binding.name.startswith("_") and _is_given_constants(tree, binding, hole.id)


def _is_joined_list(tree: ast.Module, text: ast.AST, hole: ast.expr) -> bool:
    """`" AND ".join(where)`, `where` being a list of the function that is only ever given written texts."""
    match hole:
        case ast.Call(func=ast.Attribute(value=ast.Constant(), attr="join"), args=[ast.Name(id=name)], keywords=[]):
            pass
        case _:
            return False
    nodes = [n for f in _functions_around(tree, text)[:1] for n in ast.walk(f)]
    given: list[ast.expr] = []
    made = known = 0
    for node in nodes:
        match node:
            case ast.Assign(targets=[ast.Name(id=target)], value=ast.List(elts=items)) if target == name:
                given, made = [*given, *items], made + 1
            case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=values)):
                for one, value in zip(names, values, strict=False):
                    if isinstance(one, ast.Name) and one.id == name and isinstance(value, ast.List):
                        given, made = [*given, *value.elts], made + 1
            case ast.Call(func=ast.Attribute(value=ast.Name(id=target), attr="append"), args=[item]) if target == name:
                given, known = [*given, item], known + 1
            case ast.Call(func=ast.Attribute(value=ast.Constant(), attr="join"), args=[ast.Name(id=target)]):
                known += target == name
            case ast.If(test=ast.Name(id=target)) | ast.IfExp(test=ast.Name(id=target)):
                known += target == name
            case ast.arg(arg=target) if target == name:
                return False
    uses = sum(isinstance(n, ast.Name) and n.id == name for n in nodes)
    return made > 0 and uses == made + known and all(isinstance(item, ast.Constant) for item in given)


def _is_given_constants(tree: ast.Module, function: Function, name: str) -> bool:
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
    """`", ".join("?" * len(ids))`: texts of question marks alone, repeated, joined or trimmed; nothing else in them."""
    match node:
        case ast.Constant(value=str(text)):
            return _MARKS.fullmatch(text) is not None
        case ast.BinOp(op=ast.Mult(), left=left, right=right):
            return _is_placeholder(left) or _is_placeholder(right)
        case ast.BinOp(op=ast.Add(), left=left, right=right):
            return _is_placeholder(left) and _is_placeholder(right)
        case ast.List(elts=items) | ast.Tuple(elts=items):
            return all(map(_is_placeholder, items))
        case ast.GeneratorExp(elt=item) | ast.ListComp(elt=item):
            return _is_placeholder(item)
        case ast.Call(func=ast.Attribute(value=text, attr="join"), args=[items], keywords=[]):
            return _is_placeholder(text) and _is_placeholder(items)
        case ast.Call(func=ast.Attribute(value=text, attr="strip" | "rstrip")):
            return _is_placeholder(text)
    return False
