"""What a test's source asserts, and how strictly: read from its syntax, statement by statement.

Only assertions that can be reached and can fail count: none after a return, under a constant condition, over an empty
display, or where a handler catches the failure. Not seen: assertions in functions of other files.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from localagent.code.names import callee_name

_ENDS = (ast.Return, ast.Continue, ast.Break)
_CATCHES = {"AssertionError", "Exception", "BaseException", "Failed", "ExceptionGroup"}
_EXACT = (ast.Eq, ast.Is)
_EXACT_CALLS = {
    "assertAlmostEqual", "assertCountEqual", "assertDictEqual", "assertEqual", "assertEquals", "assertIs",
    "assertListEqual", "assertMultiLineEqual", "assertNotEqual", "assertRaisesRegex", "assertSequenceEqual",
    "assertSetEqual", "assertTupleEqual", "assert_allclose", "assert_array_equal", "assert_called_once_with",
    "assert_called_with", "assert_equal", "assert_frame_equal", "assert_has_calls", "assert_series_equal",
}  # fmt: skip
_CONTEXTS = {
    "raises",
    "warns",
    "assertRaises",
    "assertRaisesRegex",
    "assertWarns",
    "assertWarnsRegex",
    "deprecated_call",
}
_SMALLER_IS_WIDER = {"places", "decimal", "significant"}
_TOLERANCES = {
    "rel",
    "abs",
    "rel_tol",
    "abs_tol",
    "rtol",
    "atol",
    "delta",
    "tol",
    "tolerance",
    "msec",
} | _SMALLER_IS_WIDER


@dataclass(frozen=True, kw_only=True, slots=True)
class Assertion:
    """One assertion: its text as a dump, the conditions around it, and its syntax."""

    text: str
    guards: tuple[str, ...]
    node: ast.AST

    @property
    def key(self) -> tuple[str, tuple[str, ...]]:
        """Equal for assertions that demand the same in the same place."""
        return (self.text, self.guards)


def assertions(body: list[ast.stmt]) -> list[Assertion]:
    """Every assertion of a body that counts, in order."""
    return list(_walk(body, ()))


def _walk(body: list[ast.stmt], guards: tuple[str, ...]) -> Iterator[Assertion]:
    for node in body:
        yield from _own(node, guards)
        if isinstance(node, ast.If | ast.While):
            known = _constant(node.test)
            inner = guards if known else (*guards, ast.dump(node.test))
            if known is not False:
                yield from _walk(node.body, inner)
            if known is not True:
                yield from _walk(node.orelse, guards if known is False else (*guards, "else"))
        elif isinstance(node, ast.For | ast.AsyncFor):
            if not (isinstance(node.iter, ast.List | ast.Tuple | ast.Set) and not node.iter.elts):
                yield from _walk(node.body, guards)
            yield from _walk(node.orelse, guards)
        elif isinstance(node, ast.Try | ast.TryStar):
            if not any(_catches(handler) for handler in node.handlers):
                yield from _walk(node.body, guards)
                yield from _walk(node.orelse, guards)
            yield from _walk(node.finalbody, guards)
        elif isinstance(node, ast.With | ast.AsyncWith):
            if not any(_suppresses(item.context_expr) for item in node.items):
                yield from _walk(node.body, guards)
        elif isinstance(node, ast.Match):
            for case in node.cases:
                yield from _walk(case.body, (*guards, ast.dump(case.pattern)))
        if isinstance(node, _ENDS):
            return


def _own(node: ast.stmt, guards: tuple[str, ...]) -> Iterator[Assertion]:
    """What a statement asserts itself, its blocks left out."""
    if isinstance(node, ast.Assert):
        yield Assertion(text=ast.dump(node.test), guards=guards, node=node)
        return
    if isinstance(node, ast.With | ast.AsyncWith):
        for item in node.items:
            if callee_name(item.context_expr) in _CONTEXTS:
                yield Assertion(text=ast.dump(item.context_expr), guards=guards, node=item.context_expr)
        return
    expression = node.value if isinstance(node, ast.Expr | ast.Assign | ast.AnnAssign | ast.Return) else None
    if isinstance(expression, ast.Await):
        expression = expression.value
    if expression is not None and is_assertion_call(expression):
        yield Assertion(text=ast.dump(expression), guards=guards, node=expression)


def is_assertion_call(node: ast.AST) -> bool:
    """`self.assertEqual(...)`, `mock.assert_called_once()`, `pytest.raises(...)`, `self.fail()`, `check_x(...)` not."""
    name = callee_name(node) if isinstance(node, ast.Call) else ""
    return name.startswith("assert") or name in _CONTEXTS or name == "fail"


def _constant(node: ast.expr) -> bool | None:
    """What a condition always is; None if it depends."""
    if isinstance(node, ast.Constant):
        return bool(node.value)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        inner = _constant(node.operand)
        return None if inner is None else not inner
    if isinstance(node, ast.List | ast.Tuple | ast.Set):
        return bool(node.elts)
    if isinstance(node, ast.BoolOp):
        known = [_constant(v) for v in node.values]
        if isinstance(node.op, ast.And):
            return False if False in known else None if None in known else True
        return True if True in known else None if None in known else False
    return None


def _catches(handler: ast.ExceptHandler) -> bool:
    """Whether a handler keeps a failed assertion from being seen."""
    if any(isinstance(n, ast.Raise) for s in handler.body for n in ast.walk(s)):
        return False
    if any(is_assertion_call(n) for s in handler.body for n in ast.walk(s)):
        return False
    if handler.type is None:
        return True
    types = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return bool({callee_name(t) for t in types} & _CATCHES)


def _suppresses(node: ast.expr) -> bool:
    if not isinstance(node, ast.Call) or callee_name(node) not in ("suppress", "raises", "assertRaises"):
        return False
    caught = _CATCHES if callee_name(node) == "suppress" else _CATCHES - {"Exception"}
    return any(callee_name(part) in caught for part in node.args)


def is_trivial(node: ast.AST) -> bool:
    """Whether an assertion cannot fail: `assert True`, `assert (x, 'why')`, `assert x == x`, `assert x or True`."""
    if isinstance(node, ast.Assert):
        return _always(node.test)
    if not isinstance(node, ast.Call):
        return False
    name = callee_name(node)
    if name in ("assertTrue", "assertIsNotNone") and node.args:
        return _always(node.args[0])
    if name in _EXACT_CALLS and len(node.args) >= 2:
        return ast.dump(node.args[0]) == ast.dump(node.args[1]) and not _calls(node.args[0])
    return False


def _always(node: ast.expr) -> bool:
    if _constant(node):
        return True
    if (
        isinstance(node, ast.Compare)
        and len(node.ops) == 1
        and isinstance(node.ops[0], ast.Eq | ast.Is | ast.LtE | ast.GtE)
    ):
        return ast.dump(node.left) == ast.dump(node.comparators[0]) and not _calls(node.left)
    return False


def _calls(node: ast.AST) -> bool:
    return any(isinstance(n, ast.Call) for n in ast.walk(node))


def is_weaker(old: ast.AST, new: ast.AST) -> bool:
    """Whether the second demands plainly less: not equal but in, any exception but one, this or something else."""
    if catches_any(new) and not catches_any(old):
        return True
    if (
        _has(old, "match")
        and not _has(new, "match")
        and callee_name(old) in _CONTEXTS
        and callee_name(new) in _CONTEXTS
    ):
        return True
    if _alternatives(new) > _alternatives(old):
        return True
    return _is_exact(old) and not _is_exact(new)


def catches_any(node: ast.AST) -> bool:
    """Whether any exception, or one of several, is as good as the right one: `pytest.raises(Exception)`."""
    if not isinstance(node, ast.Call) or callee_name(node) not in _CONTEXTS or not node.args:
        return False
    types = node.args[0].elts if isinstance(node.args[0], ast.Tuple) else [node.args[0]]
    return len(types) > 1 or bool({callee_name(t) for t in types} & {"Exception", "BaseException", "Warning"})


def _has(node: ast.AST, keyword: str) -> bool:
    return isinstance(node, ast.Call) and any(k.arg == keyword for k in node.keywords)


def _alternatives(node: ast.AST) -> int:
    return sum(
        len(n.values) - 1 if isinstance(n, ast.BoolOp) else 1
        for n in ast.walk(node)
        if (isinstance(n, ast.BoolOp) and isinstance(n.op, ast.Or))
        or (isinstance(n, ast.Call) and callee_name(n) == "any")
    )


def _is_exact(node: ast.AST) -> bool:
    test = node.test if isinstance(node, ast.Assert) else node
    if isinstance(test, ast.Call):
        return callee_name(test) in _EXACT_CALLS or callee_name(test) in _CONTEXTS
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        return any(_is_exact(v) for v in test.values)
    return isinstance(test, ast.Compare) and any(isinstance(op, _EXACT) for op in test.ops)


def is_wider(old: ast.AST, new: ast.AST) -> bool:
    """Whether a tolerance of an assertion grew: a keyword's, or what a difference is compared with; or one came."""
    before, after = dict(_tolerances(old)), dict(_tolerances(new))
    for name, value in after.items():
        had = before.get(name)
        if had is None:
            if name not in _SMALLER_IS_WIDER and value > 0:
                return True
        elif value < had if name in _SMALLER_IS_WIDER else value > had:
            return True
    gained = {"approx", "isclose", "allclose", "assertAlmostEqual", "assert_allclose", "assert_almost_equal", "round"}
    return bool((_called(new) & gained) - _called(old))


def _called(node: ast.AST) -> set[str]:
    return {callee_name(n) for n in ast.walk(node) if isinstance(n, ast.Call)}


def _tolerances(node: ast.AST) -> Iterator[tuple[str, float]]:
    for n in ast.walk(node):
        if isinstance(n, ast.keyword) and n.arg in _TOLERANCES and (value := _number(n.value)) is not None:
            yield n.arg, value
        if isinstance(n, ast.Compare) and len(n.ops) == 1 and callee_name(n.left) in ("abs", "fabs"):
            value = _number(n.comparators[0])
            if value is not None and isinstance(n.ops[0], ast.Lt | ast.LtE):
                yield "difference", value
        if isinstance(n, ast.Call) and callee_name(n) in ("assertAlmostEqual", "assertNotAlmostEqual", "round"):
            at = 1 if callee_name(n) == "round" else 2
            value = _number(n.args[at]) if len(n.args) > at else None
            if value is not None:
                yield "places", value


def _number(node: ast.AST) -> float | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return float(node.value)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = _number(node.operand)
        return None if inner is None else -inner
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow | ast.Mult | ast.Div):
        left, right = _number(node.left), _number(node.right)
        if left is not None and right is not None and abs(right) < 400 and abs(left) <= 1e6:
            try:
                return (
                    left**right
                    if isinstance(node.op, ast.Pow)
                    else left * right
                    if isinstance(node.op, ast.Mult)
                    else left / right
                )
            except (ZeroDivisionError, OverflowError):
                return None
    return None
