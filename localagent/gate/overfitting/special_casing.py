"""Gate: a repair that answers the visible tests by their literals is not one.

Refused: a new branch, conditional expression, table entry or case that compares a plain value with a literal which a
failing test puts in and yields a literal which it expects, unless both are trivial (0, 1, -1, empty, None, a bool); a
new unconditional answer that is a literal a failing test expects; a new condition that holds for a test's input and for
nothing beside it, whatever follows; and a new table of what tests put in and expect. Changing one side of a pair that
stood already is an ordinary repair of a constant. Arithmetic and calls of Python's own on constants are seen through
(see `solve`, `special_cases`). Other literals of the tests are no finding but a doubt: `index.literal_uses`.
Limitations: conditions on attributes, on what other functions compute, and on the state of objects are not seen.
"""

import ast
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import pathspec

from localagent.code import interval_solver
from localagent.code.constant_evaluation import Unknown, evaluate
from localagent.code.regions import OPERATORS, UnitSource
from localagent.code.test_literals import (
    NOT_KNOWN,
    TRIVIAL,
    Literals,
    VisibleCase,
    changed_literals,
    failing_literals,
    key_of,
    literal,
)
from localagent.domain.gate import Decision, Finding
from localagent.domain.outcome import Baseline
from localagent.domain.paths import RepoPath
from localagent.domain.policy import Permission, Policy
from localagent.gate.core.gate_input import ChangedRegion, GateInput
from localagent.gate.core.rule import Rule, decide
from localagent.gate.overfitting.call_trace import straight
from localagent.gate.overfitting.input_guards import Special, constants_of, special_cases
from localagent.gate.overfitting.special_casing_rules import ANSWER, BRANCH, GUARD, TABLE

_MOST_NESTED = 6
_LOOKS_UP = frozenset({"get", "pop", "setdefault", "items", "keys", "values", "__getitem__", "copy"})
_FOLDED = (ast.BinOp, ast.UnaryOp, ast.JoinedStr, ast.Call, ast.Subscript)
_LEAVES = (ast.Return, ast.Raise, ast.Continue)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class _Pair(NamedTuple):
    """`tested` literal and the literal that it `yields`."""

    tested: str
    yields: str


class SpecialCase:
    """Refuses repairs that answer the failing tests by their literals."""

    name = "special-case"

    def __init__(self, policy: Policy) -> None:
        self._allowed = policy.special_cased_tests is Permission.ALLOW
        self._known: tuple[Baseline, Literals] | None = None

    def review(self, change: GateInput) -> Decision:
        """Deny if a changed region treats an input of a failing test apart, or answers with what one expects."""
        if self._allowed:
            return decide(self.name, [])
        if self._known is None or self._known[0] is not change.baseline:
            self._known = (change.baseline, failing_literals(change.baseline, change.sources))
        return decide(self.name, _found(change.regions, self._known[1]))


class SpecialCaseOfPatch:
    """Finds the same in a patch of anybody's: its tests are those that it adds or changes itself."""

    name = "special-case"

    def __init__(self, policy: Policy) -> None:
        self._allowed = policy.special_cased_tests is Permission.ALLOW
        self._tests = pathspec.GitIgnoreSpec.from_lines([p.lower() for p in policy.patches.lenient])

    def review(self, change: GateInput) -> Decision:
        """Deny if a changed source treats an input of a test of the same patch apart. The rules ask a person."""
        if self._allowed:
            return decide(self.name, [])
        tests = [c for c in change.sources_changed if self._is_test(c.path)]
        literals = changed_literals((c.before, c.after) for c in tests)
        sources = [region for region in change.regions if not self._is_test(region.path)]
        return decide(self.name, _found(sources, literals))

    def _is_test(self, path: RepoPath) -> bool:
        return bool(self._tests.match_file(path.replace("\n", " ").lower()))


def _found(regions: Sequence[ChangedRegion], literals: Literals) -> list[Finding]:
    if not literals.inputs and not literals.expected:
        return []
    near = [region for region in regions if _concerns(region, literals)]
    found = [f for region in near for f in (*_branches(region, literals), *_answers(region, literals))]
    places = {(f.path, f.line) for f in found}
    constants = {k: v for region in regions for k, v in _new_constants(region).items()}
    for region in regions:
        if constants or _brings_constants(region):
            found += [f for f in _specials(region, literals, constants) if (f.path, f.line) not in places]
    return found


def _new_constants(region: ChangedRegion) -> dict[str, Any]:
    """The names that the region newly sets, at the top of its file, to a constant."""
    before, after = region.near
    old = constants_of(before) if before else {}
    return {k: v for k, v in constants_of(after).items() if k not in old or key_of(old[k]) != key_of(v)}


def _brings_constants(region: ChangedRegion) -> bool:
    """Whether some constant stands more often near the change than before."""
    before, after = region.near
    return before is None or bool(_constants(after) - _constants(before))


def _constants(snippet: UnitSource) -> Counter[str]:
    """The constants that are not trivial; kept with the snippet."""
    if "constants" not in snippet.memo:
        keys = (key_of(n.value) for n in snippet.nodes if isinstance(n, ast.Constant))
        snippet.memo["constants"] = Counter(key for key in keys if key not in TRIVIAL)
    kept: Counter[str] = snippet.memo["constants"]
    return kept


def _specials(region: ChangedRegion, literals: Literals, constants: dict[str, Any]) -> Iterator[Finding]:
    before, after = region.whole
    for special in special_cases(before, after, literals, constants):
        rule, what = _finding_text(special)
        yield rule.finding(region.path, after.line_of(special.node), f"{what}: {rule.why}")


def _finding_text(special: Special) -> tuple[Rule, str]:
    if special.table:
        return TABLE, f"{special.shown} looks up what a failing test expects"
    if special.answered:
        return BRANCH, f"new branch on {special.shown} yields what a failing test expects"
    return GUARD, f"{special.shown} holds for a failing test's input and for nothing beside it"


def _concerns(region: ChangedRegion, literals: Literals) -> bool:
    """True if something near the change may pair literals: a look at the whole unit decides."""
    before, after = region.near
    if before is None:
        return True
    old = Counter(_hints(before))
    return any(
        old[hint] < count and hint.split(" ", 1)[1] in literals for hint, count in Counter(_hints(after)).items()
    )


def _hints(snippet: UnitSource) -> list[str]:
    """Every pair, tested literal and answered literal of a snippet; kept with it."""
    if "hints" not in snippet.memo:
        tests = [n.test for n in snippet.nodes if isinstance(n, ast.If)]
        answers = [n.value for n in snippet.nodes if isinstance(n, ast.Return)]
        snippet.memo["hints"] = [
            *(f"yields {pair.yields}" for pair, _ in _pairs_of(snippet)),
            *(f"tested {pair.tested}" for pair, _ in _pairs_of(snippet)),
            *(f"tested {key}" for test in tests for side in _tested(test) for key in side),
            *(f"answer {key}" for answer in answers for key in _keys(answer)),
            *(f"answer {key}" for n in snippet.nodes if isinstance(n, ast.Assign) for key in _keys(n.value)),
        ]
    kept: list[str] = snippet.memo["hints"]
    return kept


def _branches(region: ChangedRegion, literals: Literals) -> Iterator[Finding]:
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
        elif not set(pair) <= TRIVIAL and _is_visible(pair, literals):
            message = f"new branch on {pair.tested} yields {pair.yields}: {BRANCH.why}"
            yield BRANCH.finding(region.path, after.line_of(node), message)


def _is_visible(pair: _Pair, literals: Literals) -> bool:
    """Whether the tests put one in and expect the other; of one call, where what calls with it give is known."""
    if pair.tested not in literals.inputs or pair.yields not in literals.expected:
        return False
    known = [c for c in literals.cases if c.expected is not NOT_KNOWN and pair.tested in _parts(_given(c))]
    return not known or any(pair.yields in _parts([case.expected]) for case in known)


def _given(case: VisibleCase) -> list[Any]:
    return [*case.arguments, case.arguments, *case.keywords.values()]


def _parts(values: Iterable[Any], depth: int = 0) -> set[str]:
    """The keys of values, and of what they hold."""
    found = set()
    for value in values:
        if value is not NOT_KNOWN and depth < _MOST_NESTED:
            inner = [*value, *value.values()] if isinstance(value, dict) else value
            found.add(key_of(value))
            found |= _parts(inner, depth + 1) if isinstance(inner, list | tuple | set | frozenset) else set()
    return found


def _answers(region: ChangedRegion, literals: Literals) -> Iterator[Finding]:
    before, after = region.whole
    if before is None:
        return
    old, new = _constant_answers(before), _constant_answers(after)
    if len(new) <= len(old):
        return
    for key, node in new:
        if key in literals.expected and key not in TRIVIAL and key not in {k for k, _ in old}:
            yield ANSWER.finding(region.path, after.line_of(node), f"always answers {key}: {ANSWER.why}")


def _constant_answers(snippet: UnitSource) -> list[tuple[str, ast.stmt]]:
    """Constant returns that stand in a function's body itself, not first thing after a guard that returns."""
    found: list[tuple[str, ast.stmt]] = []
    for function in snippet.nodes:
        if isinstance(function, _FUNCTIONS):
            for at, node in enumerate(function.body):
                guarded = any(isinstance(n, ast.Return | ast.Raise) for s in function.body[:at] for n in ast.walk(s))
                if isinstance(node, ast.Return) and not guarded:
                    found += [(key, node) for key in _settled(node.value, function.body[:at])]
    return found


def _settled(answer: ast.expr | None, before: list[ast.stmt]) -> list[str]:
    """The key of an answer that is a constant, or a local name that the statements before it set to one."""
    if isinstance(answer, ast.Name):
        names = straight(before)
        value = names[answer.id].value if answer.id in names else None
        return [key_of(value)] if isinstance(value, str | bytes | int | float) else []
    return _keys(answer)


def _pairs_of(snippet: UnitSource) -> list[tuple[_Pair, ast.AST]]:
    """Every pair of a tested and a yielded literal; kept with the snippet."""
    if "pairs" not in snippet.memo:
        records = _records(snippet)
        snippet.memo["pairs"] = [
            (_Pair(tested, yielded), node)
            for node in snippet.nodes
            if type(node) not in _PAIRLESS and id(node) not in records
            for tests, yields in _paired(node)
            for tested in tests
            for yielded in yields
        ]
    kept: list[tuple[_Pair, ast.AST]] = snippet.memo["pairs"]
    return kept


def _records(snippet: UnitSource) -> set[int]:
    """Dicts with texts for keys that are handed out, or filled, and that nothing is looked up in: no tables."""
    found = {id(n.value) for n in snippet.nodes if isinstance(n, ast.Return | ast.Yield) and _is_record(n.value)}
    if not any(isinstance(n, _FUNCTIONS) for n in snippet.nodes):
        return found
    asked = {n.id for node in snippet.nodes for n in _looked_into(node) if isinstance(n, ast.Name)}
    for node in snippet.nodes:
        if not isinstance(node, ast.Assign | ast.AnnAssign):
            continue
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            if isinstance(target, ast.Name) and target.id not in asked and _is_record(node.value):
                found.add(id(node.value))
            elif isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name) and _is_text(target.slice):
                found |= {id(node)} if target.value.id not in asked else set()
    return found


def _looked_into(node: ast.AST) -> Iterator[ast.expr]:
    """What something that is no constant is looked up in, or what is gone through, by a node."""
    if isinstance(node, ast.Subscript):
        yield from [node.value] if isinstance(node.ctx, ast.Load) and literal(node.slice) is None else []
    elif isinstance(node, ast.Attribute):
        yield from [node.value] if node.attr in _LOOKS_UP else []
    elif isinstance(node, ast.Compare):
        yield from node.comparators
    elif isinstance(node, ast.For | ast.comprehension):
        yield node.iter
    elif isinstance(node, ast.Dict):
        yield from (value for key, value in zip(node.keys, node.values, strict=True) if key is None)


def _is_record(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Dict) and all(_is_text(key) for key in node.keys)


def _is_text(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


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
    elif isinstance(node, ast.Tuple | ast.List | ast.Set):
        for row in node.elts:
            if isinstance(row, ast.Tuple | ast.List) and len(row.elts) == 2 and isinstance(row.ctx, ast.Load):
                yield _keys(row.elts[0]), _keys(row.elts[1])  # a row of a table
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
    if key is None and isinstance(node, _FOLDED):
        try:
            return [key_of(evaluate(node, {}))]
        except Unknown:
            return []
    return [] if key is None else [key]


def _key_of(value: float) -> str:
    return repr(int(value) if isinstance(value, float) and value.is_integer() else value)


def _tested(test: ast.expr) -> tuple[list[str], list[str]]:
    """Literals that a plain value must equal for the test to hold, and those it must equal for it to fail."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        equal, unequal = _tested(test.operand)
        return unequal, equal
    only = [_key_of(value) for value in interval_solver.only(test, _is_plain)]
    if isinstance(test, ast.BoolOp):
        sides = [_tested(value) for value in test.values]
        return [*only, *(k for s in sides for k in s[0])], [k for s in sides for k in s[1]]
    if isinstance(test, ast.BinOp):  # zero is false
        return [], _inverse(test, [0])
    if not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return only, []
    left, op, right = test.left, test.ops[0], test.comparators[0]
    plain, constant = (right, left) if _keys(left) else (left, right)
    if not _is_plain(plain) or interval_solver.is_abs(plain) or isinstance(constant, ast.Call):
        keys = _inverse(plain, interval_solver.values(constant))
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
    keys = [_key_of(found) for value in values for found in interval_solver.inverse(node, value, _is_plain)]
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
