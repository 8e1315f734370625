"""Methods that answer whatever they are asked: comparisons of one answer, differences that look at nothing."""

import ast
from collections.abc import Iterator

ANSWERS = {"__eq__": True, "__ne__": False, "__lt__": True, "__le__": True, "__gt__": True, "__ge__": True,
           "__contains__": True, "__instancecheck__": True, "__subclasscheck__": True}  # fmt: skip
DIFFERENCES = frozenset({"__sub__", "__rsub__", "__abs__"})  # what a tolerance is held against


def ignores_itself(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """True for an `__eq__` whose answers have nothing to do with the object that is asked."""
    if node.name not in ("__eq__", "__ne__") or not node.args.args:
        return False
    inside = [inner for statement in node.body for inner in ast.walk(statement)]
    answers = any(isinstance(inner, ast.Return) and not _is_refusal(inner.value) for inner in inside)
    own = node.args.args[0].arg
    idle = {id(name) for inner in inside for name in _class_wide_tests(inner, own)}
    return answers and not any(isinstance(n, ast.Name) and n.id in (own, "super") and id(n) not in idle for n in inside)


def _class_wide_tests(node: ast.AST, own: str) -> Iterator[ast.expr]:
    """Mentions of the object itself that ask what holds of every one of its class: `isinstance(self, A)`, `is None`."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        if node.func.id in ("isinstance", "hasattr", "callable") and node.args and _is_name(node.args[0], own):
            yield node.args[0]
    elif isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Is | ast.IsNot | ast.Eq | ast.NotEq):
        constant = isinstance(node.comparators[0], ast.Constant)
        if constant and len(node.ops) == 1 and _is_name(node.left, own):
            yield node.left


def _is_name(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _is_refusal(node: ast.expr | None) -> bool:
    return (isinstance(node, ast.Name) and node.id == "NotImplemented") or (
        isinstance(node, ast.Constant) and node.value is False
    )


def always_answers(body: list[ast.stmt], name: str) -> bool:
    """True for a body that is one constant answer, after a docstring maybe."""
    rest = [s for s in body if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))]
    if len(rest) != 1 or not isinstance(rest[0], ast.Return) or rest[0].value is None:
        return False
    return is_always(rest[0].value, ANSWERS[name])


def is_always(node: ast.expr, wanted: bool) -> bool:
    """Whether an expression is true, or false, whatever comes in."""
    if isinstance(node, ast.Constant):
        return not isinstance(node.value, str | bytes) and bool(node.value) is wanted and node.value is not ...
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return is_always(node.operand, not wanted)
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], ast.Eq | ast.Is):
        same = ast.dump(node.left) == ast.dump(node.comparators[0])
        return same if wanted else False
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "bool"
        and len(node.args) == 1
    ):
        return is_always(node.args[0], wanted)
    return False


def looks_at_nothing(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> bool:
    """True for a method that answers, and reads none of what it is given."""
    body: list[ast.stmt] | list[ast.expr] = [node.body] if isinstance(node, ast.Lambda) else node.body
    inside = [inner for part in body for inner in ast.walk(part)]
    if not isinstance(node, ast.Lambda):
        answers = [i.value for i in inside if isinstance(i, ast.Return) and i.value is not None]
        if not any(not _is_refusal(value) for value in answers):
            return False
    given = {argument.arg for argument in (*node.args.posonlyargs, *node.args.args)} | {"super"}
    return not any(isinstance(i, ast.Name) and i.id in given for i in inside)
