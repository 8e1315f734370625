"""Stores that are only filled: caches that forget nothing, lists of a module or of a default that nobody empties."""

import ast

from localagent.code.bindings import assignments, last_name, target_name
from localagent.code.function_pairing import functions
from localagent.code.regions import walk
from localagent.gate.review.source_change import Signs, Source

FILLS = frozenset({"append", "add", "extend", "setdefault", "update", "insert", "appendleft", "put"})
"""Methods that put something into a store."""
_EMPTIES = frozenset({"pop", "popitem", "popleft", "clear", "remove", "discard", "get_nowait"})
_MADE_EMPTY = frozenset({"list", "dict", "set", "defaultdict", "OrderedDict", "Counter", "deque"})


def base_of(node: ast.AST) -> str:
    """The name that an attribute, an entry or a call hangs on."""
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Starred):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def forgetless(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> Signs:
    """Caches of methods that forget nothing, and so keep every object alive."""
    if isinstance(node, ast.ClassDef) or not node.args.args or node.args.args[0].arg not in ("self", "cls"):
        return
    for decorator in node.decorator_list:
        if isinstance(decorator, ast.Call):
            sizes = [*decorator.args, *(k.value for k in decorator.keywords if k.arg == "maxsize")]
            if (
                last_name(decorator.func) == "lru_cache"
                and sizes
                and isinstance(sizes[0], ast.Constant)
                and sizes[0].value is None
            ):
                yield "a cache that forgets nothing", decorator
        elif last_name(decorator) == "cache":
            yield "a cache that forgets nothing", decorator


def only_filled(source: Source) -> Signs:
    """What a module or a default holds, and functions only fill."""
    held = {name for name, value in source.named.items() if _is_empty_store(value)}
    emptied = _emptied(source)
    for name, function in functions(source.tree):
        defaults = {target_name(t) for t, v in assignments(function.args) if _is_empty_store(v)}
        stores = (held | defaults) - emptied
        stores -= {n.id for n in walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        for node in walk(function):
            filled = ""
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in FILLS:
                filled = base_of(node.func.value)
            elif isinstance(node, ast.Assign):
                filled = next((base_of(t) for t in node.targets if isinstance(t, ast.Subscript)), "")
            if filled in stores:
                yield f"{filled} is only ever filled, by {name}", node


def _emptied(source: Source) -> set[str]:
    """Names of what something takes from, or deletes of."""
    found = set()
    for node in source.nodes:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _EMPTIES:
            found.add(base_of(node.func.value))
        elif isinstance(node, ast.Delete):
            found |= {base_of(t) for t in node.targets}
    return found


def _is_empty_store(node: ast.expr) -> bool:
    if isinstance(node, ast.Dict):
        return not node.keys
    if isinstance(node, ast.List):
        return not node.elts
    if isinstance(node, ast.Call) and last_name(node.func) in _MADE_EMPTY:
        return not any(isinstance(a, ast.List | ast.Dict | ast.Tuple) for a in node.args) and not any(
            k.arg == "maxlen" for k in node.keywords
        )
    return False
