"""Sign: a number that bounds what may happen is far from what it was, or a list allows more, or forbids less.

Numbers are held against those that stood in the same place: the same comparison, argument, entry or assignment, the
numbers left out. What is worked out from constants counts by its value. Not seen: bounds that are worked out when the
code runs.
"""

import ast
import math
import re
from collections import Counter, defaultdict

from localagent.code.regions import walk
from localagent.gate.core.rule import became, question
from localagent.gate.review.allowlists import lists_moved, statements
from localagent.gate.review.source_change import Signs, SourceChange

BOUND = question(
    id="bound-moved",
    why="a number that bounds what may happen is far from what it was, or more is allowed",
    remedy="have a person confirm the new bound",
    match=(
        became("TRIES = 5\n", "TRIES = 10_000\n"),
        became("def f(x):\n    return len(x) < 5\n", "def f(x):\n    return len(x) < 5_000\n"),
        became("def f():\n    return token_urlsafe(32)\n", "def f():\n    return token_urlsafe(2)\n"),
        became("ALLOWED_HOSTS = ['a']\n", "ALLOWED_HOSTS = ['a', '.b']\n"),
        became("BLOCKED = {'a', 'b'}\n", "BLOCKED = {'a'}\n"),
        became("def f(x):\n    return len(x) < 5\n", "def f(x):\n    x.a()\n    return len(x) < 5 * 10**3\n"),
        became("def f(x):\n    return len(x) < 5\n", "N = 5_000\ndef f(x):\n    return len(x) < N\n"),
        became("MAX_AGE = 60\n", "MAX_AGE = float('inf')\n"),
        became("ALLOWED_HOSTS = ['a']\n", "ALLOWED_HOSTS = ['a']\nALLOWED_HOSTS.append('.b')\n"),
        became("c.set(allow_origins=['a'])\n", "c.set(allow_origins=['*'])\n"),
    ),
    not_match=(
        became("TRIES = 5\n", "TRIES = 6\n"),
        became("ALLOWED_HOSTS = ['a', 'b']\n", "ALLOWED_HOSTS = ['a']\n"),
        became("NAMES = ['a']\n", "NAMES = ['a', 'b']\n"),
    ),
)
_FAR = 8


Slots = dict[tuple[int, str], list[tuple[float, ast.AST]]]
_HOLDERS = (
    ast.Compare,
    ast.keyword,
    ast.Call,
    ast.Assign,
    ast.AnnAssign,
    ast.AugAssign,
    ast.Return,
    ast.Dict,
    ast.arguments,
)
_LIMIT = re.compile(r"(?i)max|limit|timeout|tries|attempt|size|length|ttl|age|expir|rate|quota|depth|bytes")
_ENDLESS = {"inf", "maxsize", "max", "MAXYEAR"}
_MOST = 1e300
_NUMBER = "#"


def moved(change: SourceChange) -> Signs:
    """Numbers far from what they were in the same place, and lists that allow more or forbid less."""
    gone, come = _changed(change)
    old, new = _slots(gone, _constants(change.before.tree)), _slots(come, _constants(change.after.tree))
    for place, numbers in new.items():
        had, now = Counter(n for n, _ in old.get(place, ())), Counter(n for n, _ in numbers)
        left, fresh = sorted((had - now).elements()), sorted((now - had).elements())
        for one, two in zip(left, fresh, strict=False):
            if _is_far(one, two):
                yield f"{one:g} became {two:g}", next(node for n, node in numbers if n == two)
                break
    yield from lists_moved(change)


def _changed(change: SourceChange) -> tuple[list[ast.AST], list[ast.AST]]:
    """The statements of each side that the other has not: outermost ones, and those of classes."""
    old, new = ([(ast.dump(s), s) for s in statements(tree)] for tree in (change.before.tree, change.after.tree))
    had, now = Counter(text for text, _ in old), Counter(text for text, _ in new)
    gone = [s for text, s in old if had[text] > now[text]]
    return gone, [s for text, s in new if now[text] > had[text]]


def _constants(tree: ast.Module) -> dict[str, float]:
    """The numbers that a module gives names to."""
    found: dict[str, float] = {}
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            number = _number(node.value, {})
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found.update({t.id: number for t in targets if number is not None and isinstance(t, ast.Name)})
    return found


def _slots(changed: list[ast.AST], named: dict[str, float]) -> Slots:
    """Every number by where it stands: what is around it as a text, numbers left out."""
    found: Slots = defaultdict(list)
    for statement in changed:
        for node in walk(statement):
            if isinstance(node, _HOLDERS):
                numbers: list[float] = []
                text = _text_without_numbers(node, named, numbers, own=True)
                for at, number in enumerate(numbers if text != _NUMBER else ()):
                    found[at, text].append((number, node))
    return found


def _text_without_numbers(node: object, named: dict[str, float], numbers: list[float], *, own: bool) -> str:
    """A node as a text without its numbers; they are added to `numbers` where they are no inner holder's."""
    if isinstance(node, ast.expr) and (number := _number(node, named)) is not None:
        if own:
            numbers.append(number)
        return _NUMBER
    if not isinstance(node, ast.AST):
        return repr(node)
    if isinstance(node, ast.keyword | ast.Assign) and _is_unbounded(node):
        numbers += [math.inf] if own else []
        return f"{type(node).__name__}({_name_of(node)},{_NUMBER})"
    parts = []
    for name in node._fields:
        value = getattr(node, name, None)
        if name not in ("ctx", "type_comment", "kind", "decorator_list"):
            inner = value if isinstance(value, list) else [value]
            parts.append(
                ",".join([_text_without_numbers(v, named, numbers, own=own and not _holds(v, named)) for v in inner])
            )
    if isinstance(node, ast.keyword | ast.Assign):
        parts = [_name_of(node), *parts[1:]]
    return f"{type(node).__name__}({','.join(parts)})"


def _holds(value: object, named: dict[str, float]) -> bool:
    """Whether numbers inside belong to this part and not to what is around it; `int('5')` is a number itself."""
    return isinstance(value, _HOLDERS) and not (isinstance(value, ast.expr) and _number(value, named) is not None)


def _name_of(node: ast.keyword | ast.Assign) -> str:
    return node.arg or "" if isinstance(node, ast.keyword) else "=".join(ast.dump(t) for t in node.targets)


def _is_unbounded(node: ast.keyword | ast.Assign) -> bool:
    """`limit=None`: no bound at all."""
    return isinstance(node.value, ast.Constant) and node.value.value is None and bool(_LIMIT.search(_name_of(node)))


def _number(node: ast.expr, named: dict[str, float]) -> float | None:
    """What an expression of constants comes to, if that is a number."""
    if isinstance(node, ast.Constant):
        value = node.value
        return _fitting(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
    if isinstance(node, ast.Name):
        return named.get(node.id)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = _number(node.operand, named)
        return None if inner is None else -inner
    if isinstance(node, ast.BinOp):
        left, right = _number(node.left, named), _number(node.right, named)
        return None if left is None or right is None else _calculated(node.op, left, right)
    last = node.attr if isinstance(node, ast.Attribute) else ""
    if last in _ENDLESS and isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return math.inf if node.value.id in ("math", "sys", "np", "numpy", "datetime") else None
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("int", "float", "abs", "round")
    ):
        return _converted(node.args[0], named) if len(node.args) == 1 and not node.keywords else None
    return None


def _converted(node: ast.expr, named: dict[str, float]) -> float | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) < 300:
        try:
            return _fitting(float(node.value))
        except ValueError:
            return None
    return _number(node, named)


def _fitting(value: float) -> float:
    """As a float; what is larger than any measure is endless."""
    if abs(value) < _MOST:
        return float(value)
    return math.inf if value > 0 else -math.inf


def _calculated(op: ast.operator, left: float, right: float) -> float | None:
    try:
        if isinstance(op, ast.Add):
            return left + right
        if isinstance(op, ast.Sub):
            return left - right
        if isinstance(op, ast.Mult):
            return left * right
        if isinstance(op, ast.Div | ast.FloorDiv):
            return left / right
        if isinstance(op, ast.LShift):
            return left * math.pow(2.0, right)
        if isinstance(op, ast.Pow):
            return math.pow(left, right)
    except (OverflowError, ZeroDivisionError):
        return math.inf
    except ValueError:
        return None
    return None


def _is_far(one: float, two: float) -> bool:
    low, high = sorted((abs(one), abs(two)))
    if math.isnan(high) or math.isinf(abs(one)):
        return False  # what had no bound has got one
    return high >= max(2, low * _FAR) and (low >= 1 or high >= 100)


CHECKS = ((BOUND, moved),)
