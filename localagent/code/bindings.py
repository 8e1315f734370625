"""What statements bind names to: the pairs of target and value, and which names a function keeps to itself."""

import ast
import re
import unicodedata
from collections.abc import Iterable, Iterator

from localagent.code.names import last_name
from localagent.code.regions import walk
from localagent.code.string_folding import Values, texts_of

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_SCOPES = (*FUNCTIONS, ast.ClassDef, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_FREEING = (ast.Global, ast.Nonlocal)
_TYPED = (ast.AnnAssign, ast.NamedExpr)
_LOOPS = (ast.For, ast.comprehension)
_DISPLAYS = (ast.Tuple, ast.List, ast.Set)
ASKING = frozenset({"isinstance", "issubclass"})
_REBOUND = re.compile(r"\b(?:isinstance|issubclass)\b(?!\s*\()|\b(?:def|class)\s+(?:isinstance|issubclass)\b")
_NAMING = ("id", "name", "arg", "asname", "rest")
_BINDERS = (
    ast.Assign, ast.AnnAssign, ast.NamedExpr, ast.For, ast.AsyncFor, ast.comprehension, ast.withitem, ast.arguments,
)  # fmt: skip


class Bindings:
    """What names may stand for. `shadowed` names are bound to something of no interest.

    `rebound`: Python's own functions that ask a value's class may be others here.
    """

    def __init__(self) -> None:
        self.origins: dict[str, set[str]] = {}
        self.values: dict[str, Values | None] = {}
        self.shadowed: set[str] = set()
        self.stars: list[str] = []
        self.rebound = False


def rebinds(text: str) -> bool:
    """Whether a text says `isinstance` or `issubclass` otherwise than in a call; comments that do are taken for it."""
    return _REBOUND.search(text if text.isascii() else unicodedata.normalize("NFKC", text)) is not None


def rebound_in(nodes: Iterable[ast.AST]) -> bool:
    """The same of syntax."""
    found: set[int] = set()
    called: set[int] = set()
    for node in nodes:
        if isinstance(node, ast.Call):
            called.add(id(node.func))
        if any(getattr(node, field, None) in ASKING for field in _NAMING):
            found.add(id(node))
    return bool(found - called)


def target_name(target: ast.expr | ast.arg) -> str:
    """The name that is bound, "" for anything but a name."""
    return target.id if isinstance(target, ast.Name) else target.arg if isinstance(target, ast.arg) else ""


def assignments(node: ast.AST) -> Iterator[tuple[ast.expr | ast.arg, ast.expr]]:
    """(target, value) of a statement, loop over a display, or parameter with a default."""
    if isinstance(node, ast.Assign):
        for target in node.targets:
            yield from _pairs(target, node.value)
    elif isinstance(node, _TYPED) and node.value is not None:
        yield from _pairs(node.target, node.value)
    elif isinstance(node, _LOOPS) and isinstance(node.iter, _DISPLAYS):
        for item in node.iter.elts:
            yield from _pairs(node.target, item)
    elif isinstance(node, ast.arguments):
        positional = [*node.posonlyargs, *node.args]
        for arg, value in zip(positional[len(positional) - len(node.defaults) :], node.defaults, strict=True):
            yield arg, value
        for arg, default in zip(node.kwonlyargs, node.kw_defaults, strict=True):
            if default is not None:
                yield arg, default


def _pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.expr | ast.arg, ast.expr]]:
    if isinstance(target, ast.Name):
        yield target, value
    elif isinstance(target, ast.Tuple | ast.List) and isinstance(value, ast.Tuple | ast.List):
        for one, other in zip(target.elts, value.elts, strict=False):
            yield from _pairs(one, other)


def own_names(function: ast.AST) -> set[str]:
    """Names that are local to a function: parameters and what its own body binds, nested scopes left out.

    Names that its decorators, defaults and annotations mention are not: those are looked up outside it.
    """
    if not isinstance(function, FUNCTIONS):
        return set()
    args = function.args
    names = {a.arg for a in (*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg) if a}
    free: set[str] = set()
    stack: list[ast.AST] = list(function.body)
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            names.add(node.id)
        elif isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            names.add(node.name)
            continue
        if not isinstance(node, _SCOPES):
            stack.extend(ast.iter_child_nodes(node))
    for node in walk(function):
        if isinstance(node, _FREEING):
            free.update(node.names)
    head: list[ast.AST] = [function.args, *function.decorator_list, *([function.returns] if function.returns else [])]
    free.update(n.id for part in head for n in walk(part) if isinstance(n, ast.Name))
    return names - free


def bound_anew(nodes: Iterable[ast.AST]) -> set[str]:
    """Names that some statement binds without mentioning them; `system = system` may well bind what a star brought."""
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, _BINDERS):
            inside = (
                walk(node) if not isinstance(node, ast.For | ast.AsyncFor) else [*walk(node.target), *walk(node.iter)]
            )
            names = [n for n in inside if isinstance(n, ast.Name)]
            bound = {n.id for n in names if not isinstance(n.ctx, ast.Load)} | {
                n.arg for n in inside if isinstance(n, ast.arg)
            }
            found |= bound - {n.id for n in names if isinstance(n.ctx, ast.Load)}
    return found


def settings(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """(name, value) of what a node sets: a variable, an attribute, an entry, a keyword, a default."""
    if isinstance(node, ast.keyword):
        if node.arg is not None:
            yield node.arg, node.value
    elif isinstance(node, ast.Dict):
        for key, value in zip(node.keys, node.values, strict=True):
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                yield key.value, value
    elif isinstance(node, ast.Assign):
        for target in node.targets:
            if name := _last(target):
                yield name, node.value
    elif isinstance(node, _TYPED) and node.value is not None:
        yield _last(node.target), node.value
    elif isinstance(node, ast.arguments):
        yield from ((target_name(arg), value) for arg, value in assignments(node))
    elif isinstance(node, ast.Call) and len(node.args) > 2 and _last(node.func) == "setattr":
        yield from ((text, node.args[2]) for text in texts_of(node.args[1]) or ())


def _last(node: ast.expr) -> str:
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str):
        return node.slice.value
    return last_name(node)
