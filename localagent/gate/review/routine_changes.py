"""Changes that carry no decision, wherever they stand: layout, what is said to people, a project's own facts.

Told by comparing both trees step by step: they may differ in texts that are printed, logged or raised, in a version of
the project, in classifiers, in exact pins of tools for developers that move up within one release line, and in such
tools that go. Everything else that differs is no routine. Not promised: that a later version of a tool is sound;
`strict` and `appliance` ask.
"""

import ast
import re

from localagent.code.names import callee_name
from localagent.code.regions import DoesNotParse, decode_source, parse
from localagent.domain.edit import FileChange

_SAYS = frozenset({"print", "debug", "info", "warning", "warn", "error", "exception", "critical", "log", "echo"})
_VERSIONS = frozenset({"version", "__version__", "VERSION"})
_FACTS = frozenset({"description", "keywords"})
_VERSION = re.compile(r"\d{1,4}(?:\.\d{1,4}){0,3}(?:\.?(?:a|b|rc|dev|post)\d{0,3})?")
_PIN = re.compile(r"(?P<name>[A-Za-z0-9][\w.-]*(?:\[[\w, -]*\])?)\s*==\s*(?P<at>\d+(?:\.\d+)*)(?P<rest>\s*(?:;.*)?)")
_TROVE = re.compile(r"[A-Z][\w ,/()+.-]*(?: :: [\w ,/()+.#-]+)+")
_FOR_DEVELOPERS = re.compile(
    r"(?i)^(?:dev|develop|development|tests?|testing|lint|linting|docs?|typing|types|bench(?:mark)?s?|cov(?:erage)?)$"
)


def is_routine(change: FileChange) -> bool:
    """Whether both sides parse, and differ in nothing but what is named above."""
    if not change.path.is_python:
        return False
    try:
        before, after = (parse(decode_source(data)) for data in (change.before, change.after))
    except DoesNotParse:
        return False
    return bool(before.body) and _alike(before, after, ())


def _alike(one: object, two: object, inside: tuple[str, ...]) -> bool:
    if isinstance(one, ast.Constant) and isinstance(two, ast.Constant):
        return _same_constant(one.value, two.value, inside)
    if type(one) is not type(two):
        return False
    if isinstance(one, list) and isinstance(two, list):
        return _same_lists(one, two, inside)
    if not isinstance(one, ast.AST):
        return one == two
    if isinstance(one, ast.Dict) and isinstance(two, ast.Dict):
        return _same_tables(one, two, inside)
    here = _entered(one, inside)
    return all(
        _alike(getattr(one, name, None), getattr(two, name, None), here) for name in one._fields if name != "ctx"
    )


def _entered(node: ast.AST, inside: tuple[str, ...]) -> tuple[str, ...]:
    """The names under which a node's parts stand."""
    if isinstance(node, ast.keyword):
        return (*inside, node.arg or "")
    if isinstance(node, ast.Assign) and len(node.targets) == 1:
        return (*inside, callee_name(node.targets[0]))
    if isinstance(node, ast.Call) and callee_name(node.func) in _SAYS:
        return (*inside, "<said>")
    if isinstance(node, ast.Raise):
        return (*inside, "<said>")
    if isinstance(node, ast.Call | ast.JoinedStr | ast.Compare | ast.Subscript) and inside[-1:] == ("<said>",):
        return inside if isinstance(node, ast.JoinedStr) or callee_name(node)[:1].isupper() else (*inside, "")
    return inside


def _same_constant(one: object, two: object, inside: tuple[str, ...]) -> bool:
    if type(one) is type(two) and one == two:
        return True
    if not isinstance(one, str) or not isinstance(two, str) or not inside:
        return False
    if inside[-1] == "<said>":
        return True
    if inside[-1] in _VERSIONS:
        return bool(_VERSION.fullmatch(one) and _VERSION.fullmatch(two))
    if inside[-1] in _FACTS:
        return True
    return any(_FOR_DEVELOPERS.match(name) for name in inside) and _moves_up(one, two)


def _moves_up(one: str, two: str) -> bool:
    """The same package, pinned to a later version of the same line."""
    old, new = _PIN.fullmatch(one), _PIN.fullmatch(two)
    if not old or not new or (old["name"], old["rest"]) != (new["name"], new["rest"]):
        return False
    was, now = ([int(part) for part in hit["at"].split(".")] for hit in (old, new))
    return was[0] == now[0] and now > was and max(now) < 10_000


def _same_lists(one: list[object], two: list[object], inside: tuple[str, ...]) -> bool:
    if inside and inside[-1] == "classifiers":
        return all(isinstance(e, ast.Constant) and _TROVE.fullmatch(str(e.value)) for e in (*one, *two))
    if len(one) == len(two):
        return all(_alike(a, b, inside) for a, b in zip(one, two, strict=True))
    if len(two) < len(one) and any(_FOR_DEVELOPERS.match(name) for name in inside):
        parts = [[ast.dump(e) for e in items if isinstance(e, ast.Constant)] for items in (one, two)]
        return len(parts[0]) == len(one) and len(parts[1]) == len(two) and set(parts[1]) <= set(parts[0])
    return False


def _same_tables(one: ast.Dict, two: ast.Dict, inside: tuple[str, ...]) -> bool:
    if len(one.keys) != len(two.keys):
        return False
    for index, (key, other) in enumerate(zip(one.keys, two.keys, strict=True)):
        name = str(key.value) if isinstance(key, ast.Constant) else ""
        if (ast.dump(key) if key else "") != (ast.dump(other) if other else ""):
            return False
        if not _alike(one.values[index], two.values[index], (*inside, name)):
            return False
    return True
