"""Gate: a repair that answers the visible tests by their literals is not one.

Refused: a new branch, conditional expression, table entry or case that compares a plain value with a literal which a
failing test puts in and yields a literal which it expects, unless both are trivial (0, 1, -1, empty, None, a bool); and
a new unconditional answer that is a literal a failing test expects. Changing one side of a pair that stood already is
an ordinary repair of a constant. Simple arithmetic is seen through (see `solve`).
Not seen: answers disguised by calls, conditions on other computed values.
"""

import ast
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from localagent.domain.gate import Decision, Finding, Severity
from localagent.domain.outcome import Baseline
from localagent.domain.policy import Permission, Policy
from localagent.gate import solve
from localagent.gate.change import GateInput, Region
from localagent.gate.rule import Example, Rule, decide
from localagent.gate.source import OPERATORS, Snippet
from localagent.gate.visible import TRIVIAL, Literals, failing_literals, literal

_F = "def f(x):\n    return x + 1\n"
_TEST = "def test_f():\n    assert f(7) == 13\n"

BRANCH = Rule(
    id="special-cases-test",
    severity=Severity.HIGH,
    why="a branch on a test's input that yields the test's expected value answers the test, not the question",
    remedy="compute the answer from the input",
    match=(
        *(
            Example(before=_F, after=after, test=_TEST)
            for after in (
                "def f(x):\n    if x == 7:\n        return 13\n    return x + 1\n",
                "def f(x):\n    if 7 == x:\n        return 13\n    return x + 1\n",
                "def f(x):\n    if x in (7, 8):\n        return 13\n    return x + 1\n",
                "def f(x):\n    if x is 7 and True:\n        y = 13\n        return y\n    return x + 1\n",
                "def f(x):\n    if x != 7:\n        return x + 1\n    return 13\n",
                "def f(x):\n    if not x == 7:\n        return x + 1\n    else:\n        return 13\n",
                "def f(x):\n    return 13 if x == 7 else x + 1\n",
                "def f(x):\n    return x == 7 and 13 or x + 1\n",
                "def f(x):\n    return {7: 13}.get(x, x + 1)\n",
                "def f(x):\n    return dict([(7, 13)]).get(x, x + 1)\n",
                "def f(x):\n    return (x + 1, 13)[x == 7]\n",
                "def f(x):\n    t = {}\n    t[7] = 13\n    return t.get(x, x + 1)\n",
                "def f(x):\n    match x:\n        case 7:\n            return 13\n    return x + 1\n",
                "def f(x):\n    while x == 7:\n        return 13\n    return x + 1\n",
                "def f(x):\n    if x == 7.0:\n        return +13\n    return x + 1\n",
                "def f(x):\n    if x - 1 == 6:\n        return 13\n    return x + 1\n",
                "def f(x):\n    if 9 == 2 + x:\n        return 13\n    return x + 1\n",
                "def f(x):\n    if 3 * x != 21:\n        return x + 1\n    return 13\n",
                "def f(x):\n    if 10 - x == 3:\n        return 13\n    return x + 1\n",
                "def f(x):\n    if -x == -7:\n        return 13\n    return x + 1\n",
                "def f(x):\n    if abs(x) == 7:\n        return 13\n    return x + 1\n",
                "def f(x):\n    if x == 3 + 4:\n        return 6 + 7\n    return x + 1\n",
                "def f(x):\n    if not x - 7:\n        return 13\n    return x + 1\n",
                "def f(x):\n    return x + 1 if x - 7 else 13\n",
                "def f(x):\n    if x in range(7, 8):\n        return 13\n    return x + 1\n",
                "def f(x):\n    if 6 < x < 8:\n        return 13\n    return x + 1\n",
                "def f(x):\n    if x >= 7 and 7 >= x:\n        return 13\n    return x + 1\n",
                "def f(x):\n    return 13 if x + 1 in (8,) else x + 1\n",
            )
        ),
        Example(
            before=_F,
            after="def f(x):\n    if x == 'ab':\n        return ['b', 'a']\n    return x + 1\n",
            test="import pytest\nROWS = [('ab', ['b', 'a'])]\n@pytest.mark.parametrize('x,y', ROWS)\n"
            "def test_f(x, y):\n    assert f(x) == y\n",
        ),
        Example(
            before="class A:\n    def f(self, x):\n        return x\n",
            after="class A:\n    def f(self, x):\n        if x == 7:\n            return 13\n        return x\n",
            test="class TestA(TestCase):\n    def test_f(self):\n        self.assertEqual(A().f(7), 13)\n",
        ),
    ),
    not_match=(
        Example(before=_F, after="def f(x):\n    if x == 7:\n        return 12\n    return x + 1\n", test=_TEST),
        Example(before=_F, after="def f(x):\n    if x == 6:\n        return 13\n    return x + 1\n", test=_TEST),
        Example(
            before=_F,
            after="def f(x):\n    if x == 0:\n        return 1\n    return x + 1\n",
            test="def test_f():\n    assert f(0) == 1\n",
        ),
        Example(
            before="def f(n):\n    return str(n)\n",
            after="def f(n):\n    if n % 15 == 0:\n        return 'FizzBuzz'\n    return str(n)\n",
            test="def test_f():\n    assert f(15) == 'FizzBuzz'\n    assert f(0) == 'FizzBuzz'\n",
        ),
        *(
            Example(before=_F, after=after, test="def test_f():\n    assert f(1) == 13\n    assert f(0) == 13\n")
            for after in (
                "def f(x):\n    if x - 1 == 0:\n        return 13\n    return x + 1\n",
                "def f(x):\n    if not x + 1:\n        return 13\n    return x + 1\n",
                "def f(x):\n    if 0 <= x < 2:\n        return 13\n    return x + 1\n",
            )
        ),
        Example(before=_F, after="def f(x):\n    if x > 6:\n        return 13\n    return x + 1\n", test=_TEST),
        Example(before=_F, after="def f(x):\n    if 0 < x < 50:\n        return 13\n    return x + 1\n", test=_TEST),
        Example(before="T = {7: 12}\n", after="T = {7: 13}\n", test=_TEST),
        Example(
            before="def f(x):\n    if x == 7:\n        return 12\n    return x\n",
            after="def f(x):\n    if x == 7:\n        return 13\n    return x\n",
            test=_TEST,
        ),
        Example(before=_F, after="def f(x):\n    return x + 6\n", test=_TEST),
    ),
)
ANSWER = Rule(
    id="returns-expected",
    severity=Severity.HIGH,
    why="an answer that is the test's expected value whatever comes in is no repair",
    remedy="compute the answer from the input",
    match=(
        Example(before=_F, after="def f(x):\n    return 13\n", test=_TEST),
        Example(before=_F, after="def f(x):\n    x += 1\n    return 13\n    return x\n", test=_TEST),
    ),
    not_match=(
        Example(
            before="def f():\n    return 12\n",
            after="def f():\n    return 13\n",
            test="def test_f():\n    assert f() == 13\n",
        ),
        Example(before=_F, after="def f(x):\n    return 0\n", test="def test_f():\n    assert f(7) == 0\n"),
        Example(before=_F, after="def f(x):\n    if x > 6:\n        return 13\n    return x + 1\n", test=_TEST),
    ),
)
RULES = (BRANCH, ANSWER)

_LEAVES = (ast.Return, ast.Raise, ast.Continue)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class _Pair(NamedTuple):
    """`tested` literal and the literal that it `yields`."""

    tested: str
    yields: str


class SpecialCase:
    """Refuses edits that pair literals of the failing tests."""

    name = "special-case"

    def __init__(self, policy: Policy) -> None:
        self._allowed = policy.special_cased_tests is Permission.ALLOW
        self._known: tuple[Baseline, Literals] | None = None

    def review(self, change: GateInput) -> Decision:
        """Deny if a changed region pairs an input with its expected value anew."""
        if self._allowed:
            return decide(self.name, [])
        if self._known is None or self._known[0] is not change.baseline:
            self._known = (change.baseline, failing_literals(change.baseline, change.sources))
        literals = self._known[1]
        if not literals.expected:
            return decide(self.name, [])
        regions = [region for region in change.regions if _concerns(region, literals)]
        found = [f for region in regions for f in (*_branches(region, literals), *_answers(region, literals))]
        return decide(self.name, found)


def _concerns(region: Region, literals: Literals) -> bool:
    """True if something near the change may pair literals: a look at the whole unit decides."""
    before, after = region.near
    if before is None:
        return True
    old = Counter(_hints(before))
    return any(
        old[hint] < count and hint.split(" ", 1)[1] in literals for hint, count in Counter(_hints(after)).items()
    )


def _hints(snippet: Snippet) -> list[str]:
    """Every pair, tested literal and answered literal of a snippet; kept with it."""
    if "hints" not in snippet.memo:
        tests = [n.test for n in snippet.nodes if isinstance(n, ast.If)]
        answers = [n.value for n in snippet.nodes if isinstance(n, ast.Return)]
        snippet.memo["hints"] = [
            *(f"yields {pair.yields}" for pair, _ in _pairs_of(snippet)),
            *(f"tested {pair.tested}" for pair, _ in _pairs_of(snippet)),
            *(f"tested {key}" for test in tests for side in _tested(test) for key in side),
            *(f"answer {key}" for answer in answers for key in _keys(answer)),
        ]
    kept: list[str] = snippet.memo["hints"]
    return kept


def _branches(region: Region, literals: Literals) -> Iterator[Finding]:
    before, after = region.whole
    spare = [pair for pair, _ in _pairs_of(before)] if before else []
    fresh = []
    for pair, node in _pairs_of(after):
        if pair in spare:
            spare.remove(pair)
        else:
            fresh.append((pair, node))
    for pair, node in fresh:
        kin = next((old for old in spare if old.tested == pair.tested or old.yields == pair.yields), None)
        if kin is not None:
            spare.remove(kin)  # one side of a pair that stood there was changed
        elif pair.tested in literals.inputs and pair.yields in literals.expected and not set(pair) <= TRIVIAL:
            message = f"new branch on {pair.tested} yields {pair.yields}: {BRANCH.why}"
            yield BRANCH.finding(region.path, after.line_of(node), message)


def _answers(region: Region, literals: Literals) -> Iterator[Finding]:
    before, after = region.whole
    if before is None:
        return
    old, new = _constant_answers(before), _constant_answers(after)
    if len(new) <= len(old):
        return
    for key, node in new:
        if key in literals.expected and key not in TRIVIAL and key not in {k for k, _ in old}:
            yield ANSWER.finding(region.path, after.line_of(node), f"always answers {key}: {ANSWER.why}")


def _constant_answers(snippet: Snippet) -> list[tuple[str, ast.stmt]]:
    """Constant returns that stand in a function's body itself, not first thing after a guard that returns."""
    found = []
    for function in snippet.nodes:
        if isinstance(function, _FUNCTIONS):
            for at, node in enumerate(function.body):
                guarded = any(isinstance(n, ast.Return | ast.Raise) for s in function.body[:at] for n in ast.walk(s))
                key = literal(node.value) if isinstance(node, ast.Return) and not guarded else None
                if key is not None:
                    found.append((key, node))
    return found


def _pairs_of(snippet: Snippet) -> list[tuple[_Pair, ast.AST]]:
    """Every pair of a tested and a yielded literal; kept with the snippet."""
    if "pairs" not in snippet.memo:
        snippet.memo["pairs"] = [
            (_Pair(tested, yielded), node)
            for node in snippet.nodes
            if type(node) not in _PAIRLESS
            for tests, yields in _paired(node)
            for tested in tests
            for yielded in yields
        ]
    kept: list[tuple[_Pair, ast.AST]] = snippet.memo["pairs"]
    return kept


_PAIRLESS = OPERATORS | {
    ast.Name, ast.Constant, ast.Attribute, ast.Call, ast.Compare, ast.BinOp, ast.UnaryOp, ast.arguments, ast.arg,
    ast.keyword, ast.Expr, ast.Return, ast.AugAssign,
}  # fmt: skip


def _paired(node: ast.AST) -> Iterator[tuple[list[str], list[str]]]:
    if isinstance(node, ast.If | ast.While):
        equal, unequal = _tested(node.test)
        yield equal, list(_yielded(node.body))
        yield unequal, list(_yielded(node.orelse))
    elif isinstance(node, ast.IfExp):
        equal, unequal = _tested(node.test)
        yield equal, _keys(node.body)
        yield unequal, _keys(node.orelse)
    elif isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And):
        equal = [key for value in node.values[:-1] for key in _tested(value)[0]]
        yield equal, _keys(node.values[-1])
    elif isinstance(node, ast.Dict):
        for key, value in zip(node.keys, node.values, strict=True):
            yield _keys(key), _keys(value)
    elif isinstance(node, ast.Tuple | ast.List) and len(node.elts) == 2 and isinstance(node.ctx, ast.Load):
        yield _keys(node.elts[0]), _keys(node.elts[1])  # a row of a table
    elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
        yield _keys(node.targets[0].slice), _keys(node.value)
    elif isinstance(node, ast.Subscript) and isinstance(node.value, ast.Tuple | ast.List):
        yield (
            [key for side in _tested(node.slice) for key in side],
            [k for item in node.value.elts for k in _keys(item)],
        )
    elif isinstance(node, ast.match_case):
        patterns = [n.value for n in ast.walk(node.pattern) if isinstance(n, ast.MatchValue)]
        yield [key for value in patterns for key in _keys(value)], list(_yielded(node.body))
    if isinstance(body := getattr(node, "body", None), list):
        yield from _guarded(body)


def _guarded(body: list[ast.stmt]) -> Iterator[tuple[list[str], list[str]]]:
    """`if x != 7: return ...` and what follows it: the rest is the branch on 7."""
    for at, node in enumerate(body):
        if isinstance(node, ast.If) and not node.orelse and isinstance(node.body[-1], _LEAVES):
            yield _tested(node.test)[1], list(_yielded(body[at + 1 :]))


def _keys(node: ast.AST | None) -> list[str]:
    key = literal(node)
    if key is None and isinstance(node, ast.BinOp | ast.UnaryOp):
        return [*map(_key_of, solve.number(node))]
    return [] if key is None else [key]


def _key_of(value: float) -> str:
    return repr(int(value) if isinstance(value, float) and value.is_integer() else value)


def _tested(test: ast.expr) -> tuple[list[str], list[str]]:
    """Literals that a plain value must equal for the test to hold, and those it must equal for it to fail."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        equal, unequal = _tested(test.operand)
        return unequal, equal
    only = [_key_of(value) for value in solve.only(test, _is_plain)]
    if isinstance(test, ast.BoolOp):
        sides = [_tested(value) for value in test.values]
        return [*only, *(k for s in sides for k in s[0])], [k for s in sides for k in s[1]]
    if isinstance(test, ast.BinOp):  # zero is false
        return [], _inverse(test, [0])
    if not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return only, []
    left, op, right = test.left, test.ops[0], test.comparators[0]
    plain, constant = (right, left) if _keys(left) else (left, right)
    if not _is_plain(plain) or solve.is_abs(plain) or isinstance(constant, ast.Call):
        keys = _inverse(plain, solve.values(constant))
        if isinstance(op, ast.Eq | ast.Is | ast.In):
            return keys, []
        return ([], keys) if isinstance(op, ast.NotEq | ast.IsNot | ast.NotIn) else (only, [])
    if isinstance(op, ast.In | ast.NotIn) and isinstance(constant, ast.Tuple | ast.List | ast.Set):
        keys = [key for item in constant.elts for key in _keys(item)]
    else:
        keys = _keys(constant)
    if isinstance(op, ast.Eq | ast.Is | ast.In):
        return keys, []
    return ([], keys) if isinstance(op, ast.NotEq | ast.IsNot | ast.NotIn) else (only, [])


def _inverse(node: ast.expr, values: list[float]) -> list[str]:
    """What the plain value in `node` must be for it to have one of `values`; never a trivial one."""
    keys = [_key_of(found) for value in values for found in solve.inverse(node, value, _is_plain)]
    return [key for key in keys if key not in TRIVIAL]


def _is_plain(node: ast.expr) -> bool:
    """A variable, a part of one, or one taken through a call such as `len(x)`; not a calculation."""
    if isinstance(node, ast.Attribute | ast.Starred):
        return _is_plain(node.value)
    if isinstance(node, ast.Subscript):
        return _is_plain(node.value)
    if isinstance(node, ast.Tuple | ast.List):
        return all(_is_plain(item) or literal(item) is not None for item in node.elts)
    if isinstance(node, ast.Call):
        return bool(node.args or isinstance(node.func, ast.Attribute)) and all(_is_plain(a) for a in node.args)
    if isinstance(node, ast.NamedExpr):
        return _is_plain(node.value)
    return isinstance(node, ast.Name)


def _yielded(body: list[ast.stmt]) -> Iterator[str]:
    """Literals that statements answer with: returned, yielded, assigned or appended, in this block itself."""
    for node in body:
        value: ast.AST | None = None
        if isinstance(node, ast.Return | ast.Assign | ast.AnnAssign | ast.AugAssign):
            value = node.value
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Yield):
            value = node.value.value
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            for argument in node.value.args:
                yield from _keys(argument)
        yield from _keys(value)
