"""What a source refuses and checks: its raises and asserts, calls of checkers, and how wide its conditions are."""

import ast
import re
from collections.abc import Iterator

from localagent.gate.bindings import FUNCTIONS
from localagent.gate.source import walk

_CHECKER = re.compile(
    r"(?i)verif|valid|(?:^|_)check(?!sum|out|point)|sanit|escape|quot|authenti|authori[sz]|permission|compare_digest|realpath"
    r"|^resolve$|normpath|is_relative_to|login_required|csrf|encrypt|(?:^|_)sign(?:$|_|ed)|^assert_|^ensure|^require|strip_tags|bleach"
    r"|^clean|safe_join|secure_filename|safe_load|(?:^|_)lock(?:ed)?$|acquire|is_safe|allowed|forbid|deny|raise_for_status|rate_?limit"
    r"|safe(?!ty)|inside|within|guard|enforce|throttle|audit|atomic|transaction|^token_(?:urlsafe|hex|bytes)$|^urandom$|^SystemRandom$"
)


_WAYS: dict[type[ast.cmpop], str] = {
    ast.Lt: "below", ast.LtE: "below", ast.Gt: "above", ast.GtE: "above", ast.Eq: "equal", ast.Is: "equal",
    ast.NotEq: "different", ast.IsNot: "different", ast.In: "inside", ast.NotIn: "outside",
}  # fmt: skip


def guards(tree: ast.AST) -> Iterator[str]:
    """One for each raise and each assert."""
    if isinstance(tree, ast.Assert) or (isinstance(tree, ast.Raise) and not _is_open(tree)):
        yield "a raise or an assert"
    for name in tree._fields:
        inner = getattr(tree, name, None)
        if isinstance(inner, ast.AST):
            yield from guards(inner)
        elif isinstance(inner, list) and not (name == "body" and _never(tree)):
            for node in inner:
                if isinstance(node, ast.AST):
                    yield from guards(node)
                if isinstance(node, ast.Return | ast.Raise | ast.Break | ast.Continue):
                    break  # what follows is not reached


def _is_open(node: ast.Raise) -> bool:
    """`raise NotImplementedError`: a place that is left open refuses nothing."""
    return node.exc is not None and _last(node.exc) == "NotImplementedError"


def _never(node: ast.AST) -> bool:
    return isinstance(node, ast.If | ast.While) and isinstance(node.test, ast.Constant) and not node.test.value


def checks(tree: ast.AST) -> Iterator[str]:
    """The name of each checker that is called, or that decorates something; what raises in the source is a checker."""
    nodes = walk(tree)
    raising = {n.name for n in nodes if isinstance(n, FUNCTIONS) and _exists_to_raise(n)}
    for node in nodes:
        if isinstance(node, ast.Call):
            name = _last(node.func)
        elif isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            for decorator in node.decorator_list:
                if not isinstance(decorator, ast.Call) and _CHECKER.search(_last(decorator)):
                    yield _last(decorator)
            continue
        else:
            continue
        if (name in raising and not name.startswith("__")) or _CHECKER.search(name):
            yield name


def _exists_to_raise(function: ast.AST) -> bool:
    """Whether a function may raise, and answers nothing but what it was given."""
    nodes = walk(function)
    if not any(isinstance(n, ast.Raise) for n in nodes):
        return False
    answers = [n.value for n in nodes if isinstance(n, ast.Return) and n.value is not None]
    return all(isinstance(a, ast.Name | ast.Constant) for a in answers)


def widened(before: ast.Module, after: ast.Module) -> Iterator[tuple[str, ast.AST]]:
    """("answer" or "guard", the new condition) where a function answers yes, or lets through, more often."""
    had = dict(functions(before, ""))
    for name, function in functions(after, ""):
        if name not in had or ast.dump(had[name]) == ast.dump(function):
            continue
        for kind, way, turned in (("answer", _answers, False), ("guard", _tests, True)):
            old, new = list(way(had[name])), list(way(function))
            kept = {ast.dump(e) for e in new} & {ast.dump(e) for e in old}
            come = [e for e in new if ast.dump(e) not in kept and not (turned and _is_nested(e, had[name]))]
            for gone in (e for e in old if ast.dump(e) not in kept):
                for one in come:
                    if (_wider(one, gone, any_condition=True) or _moved(gone, one)) if turned else _wider(gone, one):
                        yield kind, one
        yield from (("guard", step) for step in _steps_around(had[name], function))


def _is_nested(condition: ast.expr, before: ast.AST) -> bool:
    """`a and b` where `b` stood below `a`: said otherwise, not asked otherwise."""
    if not (isinstance(condition, ast.BoolOp) and isinstance(condition.op, ast.And)):
        return False
    return set(_parts(condition, ast.And)) <= {ast.dump(n.test) for n in walk(before) if isinstance(n, ast.If)}


def functions(node: ast.AST, prefix: str = "") -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """Every function by its qualified name, in order."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, FUNCTIONS):
            yield prefix + child.name, child
        if isinstance(child, (*FUNCTIONS, ast.ClassDef)):
            yield from functions(child, f"{prefix}{child.name}.")
        elif isinstance(child, ast.stmt):
            yield from functions(child, prefix)


def _answers(function: ast.AST) -> Iterator[ast.expr]:
    for node in walk(function):
        if isinstance(node, ast.Return) and node.value is not None:
            yield node.value


def _tests(function: ast.AST) -> Iterator[ast.expr]:
    """Conditions under which something is refused."""
    for node in walk(function):
        if isinstance(node, ast.If) and isinstance(node.body[-1], ast.Raise | ast.Return):
            last = node.body[-1]
            if isinstance(last, ast.Raise) or last.value is None or isinstance(last.value, ast.Constant):
                yield node.test


def _steps_around(before: ast.AST, after: ast.AST) -> Iterator[ast.expr]:
    """New conditions under which a function answers before a guard that stood already is reached."""
    had = {ast.dump(n.test) for n in walk(before) if isinstance(n, ast.If)}
    guarded = [
        n.lineno
        for n in walk(after)
        if isinstance(n, ast.If) and ast.dump(n.test) in had and any(isinstance(s, ast.Raise) for s in n.body)
    ]
    for node in walk(after):
        if not (isinstance(node, ast.If) and isinstance(node.body[-1], ast.Return)):
            continue
        if node.lineno < max(guarded, default=0) and ast.dump(node.test) not in had:
            yield node.test


def _moved(old: ast.expr, new: ast.expr) -> bool:
    """Whether a comparison has turned round, or has got a further condition; another bound is an ordinary repair."""
    if not (isinstance(old, ast.Compare) and isinstance(new, ast.Compare)):
        return False
    ways = [_WAYS.get(type(side.ops[0]), "") for side in (old, new)]
    return ast.dump(old.left) == ast.dump(new.left) and (len(new.ops) > len(old.ops) or ways[0] != ways[1])


def _wider(old: ast.expr, new: ast.expr, depth: int = 4, *, any_condition: bool = False) -> bool:
    """Whether the second holds wherever the first does, and plainly in more cases."""
    if depth == 0 or not (any_condition or _is_condition(old)):
        return False
    if isinstance(new, ast.Constant):
        return new.value is True
    olds, news = _parts(old, ast.Or), _parts(new, ast.Or)
    if isinstance(new, ast.BoolOp) and isinstance(new.op, ast.Or) and set(olds) < set(news):
        return True
    if not (isinstance(old, ast.BoolOp) and isinstance(old.op, ast.And)):
        return False
    if isinstance(new, ast.BoolOp) and isinstance(new.op, ast.Or) and set(_parts(old, ast.And)) & set(news):
        return True
    olds, news = _parts(old, ast.And), _parts(new, ast.And)
    if set(news) < set(olds):
        return True
    gone, come = [v for k, v in olds.items() if k not in news], [v for k, v in news.items() if k not in olds]
    return len(gone) == len(come) == 1 and _wider(gone[0], come[0], depth - 1)


def _parts(node: ast.expr, op: type[ast.boolop]) -> dict[str, ast.expr]:
    values = node.values if isinstance(node, ast.BoolOp) and isinstance(node.op, op) else [node]
    return {ast.dump(v): v for value in values for v in _turned(value, op)}


def _turned(node: ast.expr, op: type[ast.boolop]) -> list[ast.expr]:
    """`not (a or b)` as `not a and not b`, where parts of that kind are wanted; else the expression itself."""
    inner = node.operand if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not) else None
    if not isinstance(inner, ast.BoolOp) or isinstance(inner.op, op):
        return [node]
    return [ast.UnaryOp(op=ast.Not(), operand=value) for value in inner.values]


def _is_condition(node: ast.expr) -> bool:
    if isinstance(node, ast.BoolOp):
        return any(_is_condition(v) for v in node.values)
    return (
        isinstance(node, ast.Compare | ast.Attribute)
        or (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not))
        or (
            isinstance(node, ast.Call)
            and re.match(r"is|has|can|may|_*check|valid|verif|compare|all|any|authenti", _last(node.func)) is not None
        )
    )


def _last(node: ast.expr) -> str:
    if isinstance(node, ast.Call):
        node = node.func
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
