"""What a program as it was patched still holds that cannot run: names nobody binds, attributes of `self` nobody sets.

Only what one file tells for certain is counted: files with star imports of unknown modules, and classes whose bases
stand elsewhere or that make up attributes, are not asked. Not seen: faults that need values.
"""

import ast
import builtins
import importlib
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache, lru_cache

from localagent.code.names import ASSIGNING, bound_name
from localagent.code.source_text import parse_or_none
from localagent.code.spans import Definition
from localagent.domain.edit import Candidate

_GIVEN = frozenset({"_", "__file__", "__name__", "__doc__", "__spec__", "__path__", "__class__", "__qualname__"}) | {
    "__module__",
    "__annotations__",
    "__builtins__",
    "reveal_type",
    "WindowsError",
}
_BINDS_BY_TEXT = frozenset({"globals", "locals", "vars", "exec", "setattr"})
_FOR_OTHERS = re.compile(r"Base|Mixin|Abstract|Common|Interface|Protocol", re.IGNORECASE)
_MOST_BYTES = 300_000
_MAKES_UP = frozenset({"__getattr__", "__getattribute__", "__dict__", "__slots__"})
# Modules of the standard library that are safe to import here, and whose names `import *` brings.
_STARRED = frozenset(
    {"bisect", "collections", "functools", "heapq", "itertools", "math", "typing", "operator", "string"}
)


def half_mended(candidate: Candidate) -> int:
    """How many names a candidate puts right in one place and leaves undefined in another; 0 where a file is unreadable.

    A name is undefined where nothing in the file binds it and Python has no such builtin.
    """
    return sum(_half(c.before, c.after) for c in candidate.patch.changes)


def left_undefined(candidate: Candidate) -> int:
    """How many names and attributes of `self` the definitions that a candidate changes still read and nothing binds."""
    return sum(_left(c.before, c.after) for c in candidate.patch.changes)


def _half(before: bytes, after: bytes) -> int:
    had, has = _missing_in(before), _missing_in(after)
    return sum(0 < has[name] < count for name, count in had.items())


def _left(before: bytes, after: bytes) -> int:
    now = _parsed(after)
    if now is None:
        return 0
    changed = changed_definitions(before, after)
    read = {n.id for d in changed for n in ast.walk(d) if isinstance(n, ast.Name)}
    based = {ast.unparse(b).rpartition(".")[2] for c in ast.walk(now) if isinstance(c, ast.ClassDef) for b in c.bases}
    classes = [c for d in changed for c in ast.walk(d) if isinstance(c, ast.ClassDef)]
    unset = sum(1 for c in classes if c.name not in based and not _FOR_OTHERS.search(c.name) for _ in _unset(c))
    return len(read & set(_missing_in(after))) + unset


def changed_definitions(before: bytes, after: bytes) -> list[Definition]:
    """The functions and classes at the top of a file that did not stand there before as they do after."""
    try:
        now, old = _parsed(after), _standing(before)
        return [n for n in now.body if isinstance(n, Definition) and ast.dump(n) not in old] if now else []
    except RecursionError:  # parses, and is nested deeper than a tree can be written down
        return []


@lru_cache(maxsize=16)
def _standing(source: bytes) -> frozenset[str]:
    """What stands at the top of a file, as dumps; asked again for every candidate."""
    tree = _parsed(source)
    return frozenset(ast.dump(n) for n in tree.body) if tree else frozenset()


@lru_cache(maxsize=16)
def _missing_in(source: bytes) -> Counter[str]:
    tree = _parsed(source)
    return missing_names(tree) if tree else Counter()


@lru_cache(maxsize=16)
def _parsed(source: bytes) -> ast.Module | None:
    """The tree, which nobody may change; None for what does not parse or is too large to be asked about."""
    if len(source) > _MOST_BYTES:
        return None
    return parse_or_none(source)


def missing_names(tree: ast.Module) -> Counter[str]:
    """How often each name is read that nothing binds where it is read; nothing where only running would tell.

    What a class binds is seen in its own body alone, as in Python; functions are taken for one scope with what is
    around them.
    """
    read: Counter[str] = Counter()
    bound: set[str] = {*dir(builtins), *_GIVEN}
    inside = {
        id(node): names for owner in ast.walk(tree) if isinstance(owner, ast.ClassDef) for node, names in _body(owner)
    }
    for node in ast.walk(tree):
        held = inside.get(id(node))
        if isinstance(node, ast.Name):
            if isinstance(node.ctx, ast.Load):
                read[node.id] += held is None or node.id not in held
            elif held is None:
                bound.add(node.id)
        elif isinstance(node, ast.ExceptHandler) and "NameError" in ast.dump(node.type or node):
            return Counter()  # whether a name is there is asked at run time
        elif isinstance(node, ast.ImportFrom) and node.names[0].name == "*":
            if node.level or node.module not in _STARRED:
                return Counter()
            bound |= _names_of(node.module)
        elif isinstance(node, ast.alias | ast.arg):
            bound.add(bound_name(node))
        elif held is None:
            bound.add(bound_name(node))
            bound |= set(getattr(node, "names", ())) if isinstance(node, (ast.Global, ast.Nonlocal)) else set()
    if _BINDS_BY_TEXT & set(read):
        return Counter()
    return Counter({name: count for name, count in read.items() if count and name not in bound})


def _body(owner: ast.ClassDef) -> Iterator[tuple[ast.AST, frozenset[str]]]:
    """What stands in a class's own body and not in its functions, each with the names that the body binds."""
    nodes: list[ast.AST] = []
    queue: list[ast.AST] = list(owner.body)
    while queue:
        node = queue.pop()
        nodes.append(node)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            queue += [*node.decorator_list, *node.args.defaults, *(d for d in node.args.kw_defaults if d is not None)]
            queue += [a.annotation for a in ast.walk(node.args) if isinstance(a, ast.arg) and a.annotation is not None]
            queue += [node.returns] if node.returns is not None else []
        elif isinstance(node, ast.ClassDef):
            queue += [*node.decorator_list, *node.bases]
        elif isinstance(node, ast.Lambda):
            queue += [*node.args.defaults, *(d for d in node.args.kw_defaults if d is not None)]
        else:
            queue += ast.iter_child_nodes(node)
    names = {bound_name(n) for n in nodes if isinstance(n, ast.Name | Definition | ast.ExceptHandler)} | {owner.name}
    yield from ((node, frozenset(names)) for node in nodes)


@cache
def _names_of(module: str) -> frozenset[str]:
    """What a star import of a known module of the standard library brings."""
    found = importlib.import_module(module)
    return frozenset(getattr(found, "__all__", None) or (n for n in dir(found) if not n.startswith("_")))


def _unset(owner: ast.ClassDef) -> Iterator[str]:
    """Attributes of `self` that methods of a class without bases read, and that neither it nor its methods set."""
    if owner.keywords or owner.decorator_list or any(ast.unparse(base) != "object" for base in owner.bases):
        return
    has = {*dir(object), "__dict__", "__annotations__"}
    read: set[str] = set()
    nested = {id(n) for c in ast.walk(owner) if isinstance(c, ast.ClassDef) and c is not owner for n in ast.walk(c)}
    for node in ast.walk(owner):
        if isinstance(node, ast.Attribute):
            if not isinstance(node.ctx, ast.Load):
                has.add(node.attr)
            elif isinstance(node.value, ast.Name) and node.value.id == "self" and id(node) not in nested:
                read.add(node.attr)
        elif isinstance(node, ASSIGNING):
            has.add(bound_name(node))
    called = {n.id for n in ast.walk(owner) if isinstance(n, ast.Name)} & {"setattr", "hasattr", "vars", "getattr"}
    if not called and not _MAKES_UP & (has - set(dir(object)) - {"__dict__"} | read):
        yield from sorted(read - has)
