"""Gate: what a value must be for simple arithmetic on it to give a number: `x - 1 == 76`, `-x == 5`, `6 < x < 8`.

Linear arithmetic with constants, `abs`, short ranges. Not promised: anything with two values, powers, shifts, floats
that do not divide evenly.
"""

import ast
from collections.abc import Callable, Iterator

_MOST = 10**15
_MOST_IN_RANGE = 3
_MOST_DEPTH = 20
_MIRRORED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.Gt, ast.LtE: ast.GtE, ast.Gt: ast.Lt, ast.GtE: ast.LtE,
}  # fmt: skip
Plain = Callable[[ast.expr], bool]


def number(node: ast.AST | None, depth: int = 0) -> list[float]:
    """The value of a sum, difference, product of constants; empty for anything else."""
    if isinstance(node, ast.Constant):
        value = node.value
        fits = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < _MOST
        return [value] if fits and isinstance(value, int | float) else []
    if depth > _MOST_DEPTH:
        return []
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        return [-v if isinstance(node.op, ast.USub) else v for v in number(node.operand, depth + 1)]
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Add | ast.Sub | ast.Mult):
        return []
    left, right = number(node.left, depth + 1), number(node.right, depth + 1)
    if not left or not right:
        return []
    a, b = left[0], right[0]
    found = a + b if isinstance(node.op, ast.Add) else a - b if isinstance(node.op, ast.Sub) else a * b
    return [found] if abs(found) < _MOST else []


def values(node: ast.expr) -> list[float]:
    """The numbers that a constant, a display of constants or a short `range` offers."""
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        return [value for item in node.elts for value in number(item)]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "range":
        bounds = [value for item in node.args for value in number(item)]
        whole = [b for b in bounds if isinstance(b, int)]
        if len(whole) == len(node.args) and 1 <= len(whole) <= 3 and 0 not in whole[2:] and not node.keywords:
            offered = range(*whole)
            return [*offered] if len(offered) <= _MOST_IN_RANGE else []
    return number(node)


def is_abs(node: ast.expr) -> bool:
    """`abs(x)`."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "abs"


def inverse(node: ast.expr, value: float, is_plain: Plain, depth: int = 0) -> Iterator[float]:
    """What the plain value inside `node` must be for `node` to be `value`."""
    if depth > _MOST_DEPTH:
        return
    if isinstance(node, ast.Call) and is_abs(node) and len(node.args) == 1:
        for side in (value, -value) if value > 0 else (value,):
            yield from inverse(node.args[0], side, is_plain, depth + 1)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        yield from inverse(node.operand, -value, is_plain, depth + 1)
    elif isinstance(node, ast.BinOp):
        left, right = number(node.left), number(node.right)
        if bool(left) == bool(right):
            return
        inner, known = (node.right, left[0]) if left else (node.left, right[0])
        if isinstance(node.op, ast.Add):
            yield from inverse(inner, value - known, is_plain, depth + 1)
        elif isinstance(node.op, ast.Sub):
            yield from inverse(inner, known - value if left else value + known, is_plain, depth + 1)
        elif isinstance(node.op, ast.Mult) and known and value % known == 0:
            yield from inverse(inner, value // known, is_plain, depth + 1)
    elif is_plain(node):
        yield value


def only(test: ast.expr, is_plain: Plain) -> list[float]:
    """The one whole number that bounds leave: `6 < x < 8`, `x >= 7 and x <= 7`. Never 0, 1 or -1."""
    parts = test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]
    least: dict[str, int] = {}
    most: dict[str, int] = {}
    for part in parts:
        if not isinstance(part, ast.Compare):
            continue
        sides = [part.left, *part.comparators]
        for left, op, right in zip(sides, part.ops, sides[1:], strict=False):
            kind, plain, bound = type(op), left, number(right)
            if not bound and (bound := number(left)):
                kind, plain = _MIRRORED.get(kind, ast.Eq), right
            if not bound or kind not in _MIRRORED or not isinstance(bound[0], int) or not is_plain(plain):
                continue
            name, at = ast.dump(plain), bound[0]
            if kind in (ast.Gt, ast.GtE):
                least[name] = max(least.get(name, at), at + (kind is ast.Gt))
            else:
                most[name] = min(most.get(name, at), at - (kind is ast.Lt))
    return [at for name, at in least.items() if most.get(name) == at and abs(at) > 1]
