"""Conditions in one spelling, and whether one plainly holds wherever another does.

`any((a, b))`, `a | b`, `a if a else b` and `not (not a and not b)` are one condition; so are `x == 1` and `1 == x`,
and a name that is set once is what it is set to. Everything else is an atom, alike if it is written alike. Not
decided: what needs values, such as `x < 5` and `x < 6`.
"""

import ast
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from localagent.code.names import last_name

Names = Mapping[str, ast.expr]
"""What names stand for that are set once."""

_DEPTH = 40
_MOST_PARTS = 60
_MOST_STEPS = 4_000
_MOST_LISTED = 20
_ORDERS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_BY_NAME: dict[str, type[ast.cmpop]] = {
    "eq": ast.Eq, "__eq__": ast.Eq, "is_": ast.Is, "ne": ast.NotEq, "__ne__": ast.NotEq, "is_not": ast.IsNot,
    "lt": ast.Lt, "__lt__": ast.Lt, "le": ast.LtE, "__le__": ast.LtE, "gt": ast.Gt, "__gt__": ast.Gt,
    "ge": ast.GtE, "__ge__": ast.GtE,
}  # fmt: skip
WHO = re.compile(
    r"(?i)role|group|perm|user|owner|admin|staff|host|origin|scheme|issuer|audience|alg|tenant|scope|grant|account|domain"
    r"|sender|address|remote|status|state|kind_of_user|level|plan"
)


class Condition(NamedTuple):
    """`how` is "and", "or", or "is" for an atom, whose text is `what`."""

    how: str
    parts: frozenset["Condition"] = frozenset()
    what: str = ""
    denied: bool = False


ALWAYS = Condition("and")
NEVER = Condition("or")


def atom(what: str, *, denied: bool = False) -> Condition:
    """Something that is true or not, and no more is known of it."""
    return Condition("is", what=what, denied=denied)


def every(*parts: Condition) -> Condition:
    """All of them."""
    return _joined("and", parts)


def some(*parts: Condition) -> Condition:
    """One of them at least."""
    return _joined("or", parts)


def _joined(how: str, parts: tuple[Condition, ...]) -> Condition:
    found: set[Condition] = set()
    for part in parts:
        found |= part.parts if part.how == how else {part}
    if len(found) == 1:
        return next(iter(found))
    other = NEVER if how == "and" else ALWAYS
    return other if other in found else Condition(how, frozenset(found))


def denied(condition: Condition) -> Condition:
    """It does not hold."""
    if condition.how == "is":
        return condition._replace(denied=not condition.denied)
    return _joined("or" if condition.how == "and" else "and", tuple(denied(part) for part in condition.parts))


def condition_of(node: ast.expr, names: Names, depth: int = _DEPTH) -> Condition:
    """An expression as a condition."""
    if depth <= 0:
        return atom(canonical_text(node, {}, 0))
    less = depth - 1
    if isinstance(node, ast.Constant):
        return ALWAYS if node.value else NEVER
    if isinstance(node, ast.NamedExpr):
        return condition_of(node.value, names, less)
    if isinstance(node, ast.Name) and node.id in names:
        return condition_of(names[node.id], {k: v for k, v in names.items() if k != node.id}, less)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return denied(condition_of(node.operand, names, less))
    if isinstance(node, ast.BoolOp):
        way = every if isinstance(node.op, ast.And) else some
        return way(*(condition_of(value, names, less) for value in node.values))
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr | ast.BitAnd) and _is_boolean(node.left, names):
        way = every if isinstance(node.op, ast.BitAnd) else some
        return way(condition_of(node.left, names, less), condition_of(node.right, names, less))
    if isinstance(node, ast.IfExp):
        test = condition_of(node.test, names, less)
        yes, no = condition_of(node.body, names, less), condition_of(node.orelse, names, less)
        if yes in (test, ALWAYS):
            return some(test, no)
        if no == ALWAYS:
            return some(denied(test), yes)
        return some(every(test, yes), every(denied(test), no))
    if isinstance(node, ast.Compare):
        return _compared(node, names, less)
    if isinstance(node, ast.Call):
        return _call_condition(node, names, less)
    return atom(canonical_text(node, names))


def _is_boolean(node: ast.expr, names: Names) -> bool:
    """Whether an operand of `|` is a yes or a no, as far as can be seen."""
    if isinstance(node, ast.Name) and node.id in names:
        node = names[node.id]
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.BitOr | ast.BitAnd) and _is_boolean(node.left, {})
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.op, ast.Not)
    return isinstance(node, ast.Compare | ast.BoolOp)


def _call_condition(node: ast.Call, names: Names, depth: int) -> Condition:
    name = last_name(node.func)
    if node.keywords or any(isinstance(a, ast.Starred) for a in node.args):
        return atom(canonical_text(node, names))
    if name == "bool" and len(node.args) == 1:
        return condition_of(node.args[0], names, depth)
    if name in ("any", "all", "max", "min") and len(node.args) == 1:
        listed = node.args[0]
        if isinstance(listed, ast.Tuple | ast.List | ast.Set) and len(listed.elts) <= _MOST_LISTED:
            way = some if name in ("any", "max") else every
            return way(*(condition_of(item, names, depth) for item in listed.elts))
    if name in ("or_", "and_") and len(node.args) == 2:
        return (some if name == "or_" else every)(*(condition_of(a, names, depth) for a in node.args))
    if name == "not_" and len(node.args) == 1:
        return denied(condition_of(node.args[0], names, depth))
    if name in _BY_NAME:
        sides = [node.func.value, *node.args] if name.startswith("__") else node.args  # type: ignore[attr-defined]
        if len(sides) == 2:
            return _compared(ast.Compare(left=sides[0], ops=[_BY_NAME[name]()], comparators=[sides[1]]), names, depth)
    return atom(canonical_text(node, names))


def _compared(node: ast.Compare, names: Names, depth: int) -> Condition:
    sides = [node.left, *node.comparators]
    steps = zip(sides, node.ops, sides[1:], strict=False)
    return every(*(_step(left, op, right, names, depth) for left, op, right in steps))


def _step(left: ast.expr, op: ast.cmpop, right: ast.expr, names: Names, depth: int) -> Condition:
    if isinstance(op, ast.NotEq | ast.IsNot | ast.NotIn):
        positive = {ast.NotEq: ast.Eq, ast.IsNot: ast.Is, ast.NotIn: ast.In}[type(op)]()
        return denied(_step(left, positive, right, names, depth))
    if isinstance(op, ast.Eq | ast.Is):
        for one, other in ((left, right), (right, left)):
            if isinstance(other, ast.Constant) and isinstance(other.value, bool):
                asked = condition_of(one, names, depth)
                return asked if other.value else denied(asked)
        return atom(" == ".join(sorted((canonical_text(left, names), canonical_text(right, names)))))
    if isinstance(op, ast.In):
        if isinstance(right, ast.Name) and right.id in names:
            right = names[right.id]
        listed = isinstance(right, ast.Tuple | ast.List | ast.Set) and 0 < len(right.elts) <= _MOST_LISTED
        if listed and isinstance(right, ast.Tuple | ast.List | ast.Set) and WHO.search(canonical_text(left, names)):
            return some(*(_step(left, ast.Eq(), item, names, depth) for item in right.elts))
        return atom(f"{canonical_text(left, names)} in {canonical_text(right, names)}")
    if isinstance(op, ast.Gt | ast.LtE | ast.GtE):
        swapped = isinstance(op, ast.Gt | ast.LtE)
        one, other = (right, left) if swapped else (left, right)
        return atom(f"{canonical_text(one, names)} < {canonical_text(other, names)}", denied=not isinstance(op, ast.Gt))
    return atom(f"{canonical_text(left, names)} < {canonical_text(right, names)}")


def canonical_text(node: ast.AST, names: Names, depth: int = 6) -> str:
    """An expression as a text, with what its names stand for; alike for what is alike."""
    text = ast.dump(node)
    if depth <= 0 or not names:
        return text
    inside = [n for n in ast.walk(node) if isinstance(n, ast.Name) and n.id in names]
    for name in dict.fromkeys(n.id for n in inside):
        rest = {k: v for k, v in names.items() if k != name}
        value = canonical_text(names[name], rest, depth - 1)
        text = text.replace(f"Name(id={name!r}, ctx=Load())", value)
        if len(text) > 20_000:
            return ast.dump(node)
    return text


def shape(node: ast.expr) -> str:
    """A condition as a text without the numbers that bound it: `x < 5` and `x <= 6` have one shape."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], _ORDERS):
        sides = (node.left, node.comparators[0])
        inner = [n.operand if isinstance(n, ast.UnaryOp) else n for n in sides]
        bounds = [isinstance(n, ast.Constant) and isinstance(n.value, int | float) for n in inner]
        if any(bounds):
            way = "below" if isinstance(node.ops[0], ast.Lt | ast.LtE) is not bounds[0] else "above"
            return f"{ast.unparse(sides[bounds[0]])} {way} a number"
    return ast.unparse(node)


def opened(condition: Condition) -> Condition:
    """A choice as if both of its sides could be had at once: `(a and b) or (not a and c)` as `b or c`.

    It holds wherever the condition does; what says yes by one side more can be seen in it.
    """
    if condition.how != "or":
        return condition
    sides = [part for part in condition.parts if part.how == "and"]
    atoms = {a for side in sides for a in side.parts}
    return some(*(_without(part, atoms) for part in _sorted(condition)))


def _without(part: Condition, atoms: set[Condition]) -> Condition:
    if part.how != "and":
        return part
    return every(*(a for a in part.parts if denied(a) not in atoms))


class _TooMuch(Exception):  # noqa: N818 - ends a comparison, is never seen outside
    pass


def implies(one: Condition, other: Condition) -> bool | None:
    """Whether the second plainly holds wherever the first does; None where there is too much to compare."""
    try:
        return _implies(one, other, [_MOST_STEPS])
    except _TooMuch:
        return None


def _implies(one: Condition, other: Condition, left: list[int]) -> bool:
    left[0] -= 1
    if left[0] < 0 or max(len(one.parts), len(other.parts)) > _MOST_PARTS:
        raise _TooMuch
    if one in (other, NEVER) or other == ALWAYS:
        return True
    if one.how == "or":
        return all(_implies(part, other, left) for part in _sorted(one))
    if other.how == "and":
        return all(_implies(one, part, left) for part in _sorted(other))
    if one.how == "and" and any(_implies(part, other, left) for part in _sorted(one)):
        return True
    return other.how == "or" and any(_implies(one, part, left) for part in _sorted(other))


def _sorted(condition: Condition) -> Iterator[Condition]:
    """Parts, the small ones first, in an order that does not hang on how texts are hashed."""
    yield from sorted(condition.parts, key=lambda part: (len(part.parts), part.what, part.denied))


def narrower(one: Condition, other: Condition) -> bool:
    """Whether the first plainly holds in fewer cases than the second. True also where nobody could compare them all."""
    if one == other:
        return False
    there, back = implies(one, other), implies(other, one)
    return there is None or (there and not back)
