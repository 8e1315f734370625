"""Sign: a condition anywhere in a function compares more loosely than the one that stood in its place.

An equality that became "begins with", "part of" or an order, an `and` that became an `or`, `all` that became `any`, a
whole match that became a partial one, a range that is not asked for any more. Conditions are paired in their order
where as many came as went. Not seen: one that was rewritten together with others.
"""

import ast
import copy
from collections import Counter

from localagent.code.bindings import FUNCTIONS
from localagent.code.names import callee_name
from localagent.code.regions import walk
from localagent.code.spans import Function
from localagent.gate.core.rule import became, question
from localagent.gate.review.source_change import Signs, SourceChange, differing
from localagent.gate.review.weakened_conditions import LESS

_PICK = "def pick(rows, key):\n    return [r for r in rows if r.key == key and r.n > 0]\n"
_PLAN = "def plan(x):\n    return 'a' if x.kind == KIND else 'b'\n"
_FULL = "def parse(x):\n    if not PATTERN.fullmatch(x):\n        return None\n    return x.split()\n"
_RANGE = "def put(x, n):\n    if not isinstance(n, int) or n <= 0:\n        raise ValueError(n)\n    x.n = n\n"

LOOSER = question(
    id="compares-looser",
    why="what had to be equal, whole or in range need only resemble it",
    remedy="compare as before, or have a person confirm what else may now be let through",
    match=(
        became(_PLAN, _PLAN.replace("x.kind == KIND", "x.kind.endswith(KIND)")),
        became(_PLAN, _PLAN.replace("x.kind == KIND", "KIND in x.kind")),
        became(_PLAN, _PLAN.replace("x.kind == KIND", "x.kind >= KIND")),
        became(_PICK, _PICK.replace(" and ", " or ")),
        became(_PICK, _PICK.replace("r.n > 0", "r.n")),
        became(_PICK, _PICK.replace("r.n > 0", "r.n < 0")),
        became(_PICK, _PICK.replace("r.n > 0", "(r.n > 0 or r.note == ' ')")),
        became(_FULL, _FULL.replace("fullmatch", "match")),
        became(_RANGE, _RANGE.replace("n <= 0", "not n")),
        became("def f(x):\n    return all(y.ok for y in x)\n", "def f(x):\n    return any(y.ok for y in x)\n"),
    ),
    not_match=(
        became(_PICK, _PICK.replace("r.n > 0", "r.n >= 0")),
        became(_PICK, _PICK.replace("r.n > 0", "r.n > 0 and r.m > 0")),
        became(_PLAN, _PLAN.replace("x.kind == KIND", "x.kind != KIND")),
        became(_PLAN, _PLAN.replace("x.kind == KIND", "x.kind in ('a', 'b')")),
        became(_FULL, _FULL.replace("match(x)", "match(x.strip())")),
        became(_RANGE, _RANGE.replace("n <= 0", "n < 1")),
        became(_RANGE, _RANGE.replace("n <= 0", "0 >= n")),
    ),
)
_PARTIAL = {"fullmatch": ("match", "search", "findall"), "match": ("search", "findall"), "all": ("any",)}
_RESEMBLES = frozenset(
    {"startswith", "endswith", "match", "search", "find", "count", "__contains__", "fnmatch", "isdisjoint"}
)
_EQUALITY = ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__")
_MOST = 40


def looser(change: SourceChange) -> Signs:
    """(what, where) for each condition that stands in the place of a stricter one."""
    for name, old, new in change.pairs:
        gone, come = differing(_conditions(old), _conditions(new))
        if len(gone) != len(come) or len(gone) > _MOST:
            continue
        for was, one in zip(gone, come, strict=True):
            if what := _how(was, one):
                yield f"{name}: {what}", one


def partial_equality(change: SourceChange) -> Signs:
    """New `__eq__` and `__hash__` of classes that hold more than these look at."""
    had = {
        (c.name, f.name)
        for c in change.before.nodes
        if isinstance(c, ast.ClassDef)
        for f in c.body
        if isinstance(f, FUNCTIONS)
    }
    for owner in change.after.nodes:
        if not isinstance(owner, ast.ClassDef):
            continue
        fields = {s.target.id for s in owner.body if isinstance(s, ast.AnnAssign) and isinstance(s.target, ast.Name)}
        methods = [f for f in owner.body if isinstance(f, FUNCTIONS)]
        for method in methods:
            if method.name == "__init__":
                fields |= {
                    n.attr for n in walk(method) if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store)
                }
        for method in methods:
            looked = {n.attr for n in walk(method) if isinstance(n, ast.Attribute)}
            whole = looked >= fields or looked & {"__dict__", "__slots__"}
            if method.name in _EQUALITY and (owner.name, method.name) not in had and not whole:
                yield f"{owner.name}.{method.name} looks at a part of it", method


def _conditions(function: Function) -> list[ast.expr]:
    found: list[ast.expr] = []
    for node in walk(function):
        if isinstance(node, ast.If | ast.IfExp | ast.While | ast.Assert):
            found.append(node.test)
        elif isinstance(node, ast.comprehension):
            found += node.ifs
        elif isinstance(node, ast.Return | ast.Assign) and isinstance(
            node.value, ast.BoolOp | ast.Compare | ast.Call | ast.UnaryOp
        ):
            found.append(node.value)
    return found


def _how(was: ast.expr, now: ast.expr) -> str:
    """In which way a condition is looser than the one before, "" if in none."""
    if _one_way(was) == _one_way(now):
        return ""
    old, new = _features(was), _features(now)
    gone, come = old - new, new - old
    if gone["and"] and come["or"] and old["and"] + old["or"] >= new["and"] + new["or"]:
        return "an `and` became an `or`"
    if come["or"] and come["literal"]:
        return "an `or` with a constant came along"
    if _turned(was) and _turned(now) and _turned(was).isdisjoint(_turned(now)) and old["order"] == new["order"]:
        return "an order is turned round"
    for strict, loose in _PARTIAL.items():
        if gone[strict] and any(come[name] for name in loose):
            return f"{strict} became another question"
    if gone["=="] and not come["=="] and (come["resembles"] or come["order"] or come["part"]):
        return "an equality became a likeness"
    if gone["order"] and not (come["order"] or come["=="] or come["range"]) and _as_much(was, now):
        return "a range is not asked for any more"
    if gone["isinstance"] and not come["isinstance"] and come["hasattr"]:
        return "a type is not asked for any more"
    return ""


class _Flip(ast.NodeTransformer):
    """Writes `a > b` as `b < a`: the same question."""

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        ways: dict[type[ast.cmpop], type[ast.cmpop]] = {ast.Gt: ast.Lt, ast.GtE: ast.LtE}
        if not all(type(op) in ways for op in node.ops):
            return node
        first, *rest = reversed([node.left, *node.comparators])
        return ast.Compare(left=first, ops=[ways[type(op)]() for op in reversed(node.ops)], comparators=rest)


def _one_way(node: ast.expr) -> str:
    """A condition with every order written in one direction."""
    return ast.dump(_Flip().visit(copy.deepcopy(node)))


def _turned(node: ast.expr) -> set[str]:
    """Which way the orders of a condition look."""
    ways: dict[type[ast.cmpop], str] = {ast.Lt: "<", ast.LtE: "<", ast.Gt: ">", ast.GtE: ">"}
    return {ways[type(op)] for n in walk(node) if isinstance(n, ast.Compare) for op in n.ops if type(op) in ways}


def _as_much(was: ast.expr, now: ast.expr) -> bool:
    """Whether both look at the same names: the question was replaced and not dropped along with what it asked of."""
    looked = [{n.id for n in walk(side) if isinstance(n, ast.Name)} for side in (was, now)]
    return looked[1] <= looked[0] and bool(looked[1])


def _features(node: ast.expr) -> Counter[str]:
    found: Counter[str] = Counter()
    for inner in walk(node):
        if isinstance(inner, ast.BoolOp):
            found["and" if isinstance(inner.op, ast.And) else "or"] += len(inner.values) - 1
        elif isinstance(inner, ast.Compare):
            found["literal"] += any(isinstance(s, ast.Constant) and s.value is not None for s in inner.comparators)
            for op, side in zip(inner.ops, inner.comparators, strict=True):
                if isinstance(op, ast.Eq | ast.NotEq | ast.Is | ast.IsNot):
                    found["=="] += 1
                elif isinstance(op, ast.In | ast.NotIn):
                    listed = isinstance(side, ast.Tuple | ast.List | ast.Set | ast.Dict)
                    found["range" if listed or callee_name(side) == "range" else "part"] += 1
                else:
                    found["order"] += 1
        elif isinstance(inner, ast.Call):
            name = callee_name(inner.func)
            found[name] += 1
            found["resembles"] += name in _RESEMBLES
    return found


CHECKS = ((LOOSER, looser), (LESS, partial_equality))
