"""Sign: a number that bounds what may happen is far from what it was, or a list allows more, or forbids less.

By name, in code that is else alike. Not seen: bounds that are worked out when the code runs.
"""

import ast
import re
from collections.abc import Iterator

from localagent.domain.gate import Severity
from localagent.gate.lost import functions
from localagent.gate.rule import Example, Rule
from localagent.gate.texts import values_of

BOUND = Rule(
    id="bound-moved",
    severity=Severity.MEDIUM,
    why="a number that bounds what may happen is far from what it was, or more is allowed",
    remedy="have a person confirm the new bound",
    match=(
        Example(before="TRIES = 5\n", after="TRIES = 10_000\n"),
        Example(before="def f(x):\n    return len(x) < 5\n", after="def f(x):\n    return len(x) < 5_000\n"),
        Example(before="def f():\n    return token_urlsafe(32)\n", after="def f():\n    return token_urlsafe(2)\n"),
        Example(before="ALLOWED_HOSTS = ['a']\n", after="ALLOWED_HOSTS = ['a', '.b']\n"),
        Example(before="BLOCKED = {'a', 'b'}\n", after="BLOCKED = {'a'}\n"),
    ),
    not_match=(
        Example(before="TRIES = 5\n", after="TRIES = 6\n"),
        Example(before="ALLOWED_HOSTS = ['a', 'b']\n", after="ALLOWED_HOSTS = ['a']\n"),
        Example(before="NAMES = ['a']\n", after="NAMES = ['a', 'b']\n"),
    ),
    asks_person=True,
)
_ALLOWS = re.compile(
    r"(?i)allow|trust|permit|white|safe|origins?$|hosts?$|accept|extensions$|suffixes$"
    r"|admins?$|staff|superusers?|exempt|public|skip|scopes?$|roles?$"
)
_DENIES = re.compile(
    r"(?i)den(?:y|ied)|block|black|forbid|ban|reserved|unsafe|disallow|reject|sensitive"
    r"|private|protected|secret|required|redact|mask|hidden"
)
_FAR = 8


def moved(before: ast.Module, after: ast.Module) -> Iterator[tuple[str, ast.AST]]:
    """Numbers far from what they were in code that is else alike, and lists that allow more or forbid less."""
    old, new = dict(_pieces(before)), dict(_pieces(after))
    for name, node in new.items():
        if name not in old:
            continue
        one, two = _numbers(old[name]), _numbers(node)
        if one != two and len(one) == len(two) and _without_numbers(old[name]) == _without_numbers(node):
            far = [(a, b) for a, b in zip(one, two, strict=True) if _is_far(a, b)]
            if far:
                yield f"{name}: {far[0][0]} became {far[0][1]}", node
        elif one != two and (worked_out := _far_value(old[name], node)):
            yield f"{name}: {worked_out}", node
    was, now = dict(_lists(before)), dict(_lists(after))
    for name, (items, node) in now.items():
        if name not in was:
            continue
        had = was[name][0]
        if (_ALLOWS.search(name) and not _DENIES.search(name) and items - had) or (
            _DENIES.search(name) and had - items
        ):
            yield f"{name} allows more", node


def _pieces(tree: ast.Module) -> Iterator[tuple[str, ast.AST]]:
    """Functions, and assignments outside of them, by name."""
    yield from functions(tree)
    for node in [*tree.body, *(s for c in tree.body if isinstance(c, ast.ClassDef) for s in c.body)]:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            yield node.targets[0].id, node
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id, node


def _numbers(node: ast.AST) -> list[float]:
    return [
        float(n.value)
        for n in ast.walk(node)
        if isinstance(n, ast.Constant)
        and isinstance(n.value, int | float)
        and not isinstance(n.value, bool)
        and abs(n.value) < 1 << 900
    ]


def _far_value(old: ast.AST, new: ast.AST) -> str:
    """What an assignment comes to, where both sides can be worked out and are far apart."""
    values = [values_of(v) if (v := getattr(node, "value", None)) is not None else None for node in (old, new)]
    one, two = (v[0] if v and len(v) == 1 and isinstance(v[0], int) else None for v in values)
    return f"{one} became {two}" if one is not None and two is not None and _is_far(one, two) else ""


def _without_numbers(node: ast.AST) -> str:
    return re.sub(r"Constant\(value=-?[\d.e+-]+\)", "Constant()", ast.dump(node))


def _is_far(one: float, two: float) -> bool:
    low, high = sorted((abs(one), abs(two)))
    return high >= max(2, low * _FAR) and (low >= 1 or high >= 100)


def _lists(tree: ast.Module) -> Iterator[tuple[str, tuple[set[str], ast.AST]]]:
    for name, node in _pieces(tree):
        value = getattr(node, "value", None)
        if isinstance(value, ast.Call) and value.args:
            value = value.args[0]
        if isinstance(value, ast.List | ast.Tuple | ast.Set):
            yield name, ({ast.dump(e) for e in value.elts}, node)
