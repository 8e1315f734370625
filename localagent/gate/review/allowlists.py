"""Lists of what is allowed and what is forbidden, by their names: where one allows more than it did."""

import ast
import re
from collections import Counter
from collections.abc import Iterator

from localagent.code.bindings import settings
from localagent.code.names import last_name
from localagent.gate.review.source_change import Signs, SourceChange
from localagent.text.visible_text import shortened

_ALLOWS = re.compile(
    r"(?i)allow|trust|permit|white|safe|origins?$|hosts?$|accept|extensions$|suffixes$"
    r"|admins?$|staff|superusers?|exempt|public|skip|scopes?$|roles?$"
)
_DENIES = re.compile(
    r"(?i)den(?:y|ied)|block|black|forbid|ban|reserved|unsafe|disallow|reject|sensitive"
    r"|private|protected|secret|required|redact|mask|hidden"
)
_GROWS = frozenset({"append", "add", "extend", "update", "insert", "setdefault"})
_SHRINKS = frozenset({"remove", "discard", "pop", "clear", "difference_update", "intersection_update"})


def lists_moved(change: SourceChange) -> Signs:
    """(what, where) for each list that allows more, or forbids less, and for what was listed and is worked out now."""
    was, now = _lists(change.before.nodes), _lists(change.after.nodes)
    for name, (items, node) in now.items():
        had = was[name][0] if name in was else None
        if had is not None and ((_allows(name) and items - had) or (_DENIES.search(name) and had - items)):
            yield f"{name} allows more", node
    olds, news = (Counter(text for text, _ in _altered(side.nodes)) for side in (change.before, change.after))
    for text, node in _altered(change.after.nodes):
        if news[text] > olds[text]:
            news[text] -= 1
            yield text, node
    worked = dict(_assigned(change.after.tree))
    for name, value in _assigned(change.before.tree):
        decides = name in worked and (_allows(name) or _DENIES.search(name))
        if decides and _items(value) is not None and _items(worked[name]) is None:
            yield f"{name} is worked out now", worked[name]


def _allows(name: str) -> bool:
    return bool(_ALLOWS.search(name)) and not _DENIES.search(name)


def _assigned(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    """What names stand for outside of functions."""
    for node in statements(tree):
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from ((t.id, node.value) for t in targets if isinstance(t, ast.Name))


def _lists(nodes: list[ast.AST]) -> dict[str, tuple[set[str], ast.AST]]:
    """The items of what is allowed or forbidden, by the name that it is set under anywhere in a source."""
    found: dict[str, tuple[set[str], ast.AST]] = {}
    for node in nodes:
        for name, value in settings(node):
            if (_ALLOWS.search(name) or _DENIES.search(name)) and (items := _items(value)) is not None:
                had = found[name][0] if name in found else set()
                found[name] = (had | items, value)
    return found


def _items(value: ast.expr) -> set[str] | None:
    if isinstance(value, ast.Call) and value.args and not isinstance(value.func, ast.Attribute):
        value = value.args[0]
    if isinstance(value, ast.List | ast.Tuple | ast.Set):
        return {ast.dump(e) for e in value.elts}
    if isinstance(value, ast.Dict):
        return {ast.dump(k) if k is not None else "**" for k in value.keys}
    return None


def _altered(nodes: list[ast.AST]) -> Iterator[tuple[str, ast.AST]]:
    """Where something is added to what is allowed, or taken from what is forbidden."""
    for node in nodes:
        name, grows = "", False
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            name, grows = last_name(node.func.value), node.func.attr in _GROWS
            if not grows and node.func.attr not in _SHRINKS:
                continue
        elif isinstance(node, ast.AugAssign):
            name, grows = last_name(node.target), isinstance(node.op, ast.Add | ast.BitOr)
        if name and ((grows and _allows(name)) or (not grows and _DENIES.search(name))) and name.isupper():
            yield shortened(f"{name} is {'added to' if grows else 'taken from'}: {ast.dump(node)}", 140), node


def statements(tree: ast.AST) -> Iterator[ast.AST]:
    """The statements outside of functions, those of classes among them."""
    for node in getattr(tree, "body", []):
        if isinstance(node, ast.ClassDef):
            yield from statements(node)
        else:
            yield node
