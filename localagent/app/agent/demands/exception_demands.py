"""Exceptions that an instruction wants raised, or warned of, and that nothing in a change raises.

Named ones only. One counts as raised where a `raise`, or a call that is given it, stands under other conditions than
before, or a call of what raises it does; a test that expects it counts, too. An error that is only told of, as what
happens today, is not asked for: the words around it say so, or it is none that a program raises by itself.
"""

import ast
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping

from localagent.app.agent.demands.changed_tree import ChangedTree
from localagent.app.agent.demands.sentences import sentences
from localagent.code.names import callee_name, last_name
from localagent.code.spans import Definition, Function

_NAME = re.compile(r"\b(?:[a-z]\w*\.)*([A-Z]\w*(?:Error|Exception|Warning))\b")
_NOT_ASKED = re.compile(
    r"\b(?:rather than|instead of|and not|not|no|never|than|without|swallow\w*|subclass(?:es)? of|except|bare|catch\w*"
    r"|ends? (?:in|with)|die[sd]? (?:of|with)|fail\w* with|crash\w* with|stops? with|from|with it)"
    r" (?:\w+ing )?(?:an? |the |only )?`?(?:\w+\.)*$"
)
_TODAY = re.compile(r"\b(?:raises|gives|gets?|is|shows|throws|causes|leads to) (?:an? |the )?(?:[a-z]+ )?`?(?:\w+\.)*$")
_WANTED = re.compile(r"\b(?:should|must|has to|have to|ought|want)\b")
_BY_ITSELF = {  # what raises it without saying so
    "ValueError": ("int", "float", "strptime", "fromisoformat", "fromhex",
        "index", "remove", "unpack", "loads", "decode"),
    "KeyError": ("pop", "popitem"),
    "TimeoutError": ("timeout", "timeout_at", "wait_for"),
    "FileNotFoundError": ("open", "read_text", "read_bytes", "stat", "unlink"),
    "OSError": ("open", "read_text", "read_bytes", "write_text", "stat", "unlink"),
    "UnicodeDecodeError": ("open", "read_text", "decode"),
    "StopIteration": ("next",),
}  # fmt: skip
_AT_ONCE = {"KeyError": ast.Subscript, "IndexError": ast.Subscript, "AssertionError": ast.Assert}
_CATCH_ALL = ("", "Exception", "BaseException")
_Places = Counter[tuple[str, ...]]


def exceptions(instruction: str, change: ChangedTree) -> Iterator[str]:
    """What is to be raised and is not, each once."""
    told = set[str]()
    for sentence in sentences(instruction):
        for found in _NAME.finditer(sentence):
            name, before = found[1], sentence[: found.start()]
            if name in told or _NOT_ASKED.search(before) or _is_described(name, before, sentence, instruction):
                continue
            told.add(name)
            if not _is_raised(name, change):
                yield f"{name}, which nothing new raises"


def _is_described(name: str, before: str, sentence: str, instruction: str) -> bool:
    """Whether a sentence says what happens today: it has no word of wanting before the name, and another one has."""
    if not _TODAY.search(before) or _WANTED.search(before):
        return False
    if re.search(r"\b(?:currently|today|now|at the moment)\b", before):
        return True
    if name in ("ValueError", "TypeError"):
        return False
    return _WANTED.search(instruction.partition(sentence)[2] or sentence) is not None


def _is_raised(name: str, change: ChangedTree) -> bool:
    for node in (n for source in change.sources for n in _new_classes(source.before, source.after)):
        if node.name == name or any(last_name(base) == name for base in node.bases):
            return True
    calls = {callee_name(n) for s in change.sources for n in ast.walk(s.after) if isinstance(n, ast.Call)}
    own = [n for s in change.sources for n in ast.walk(s.after) if isinstance(n, Definition) and n.name in calls]
    defined = [*own, *(node for called in calls for node in change.definitions(called))]
    raisers = {*_BY_ITSELF.get(name, ()), *(node.name for node in defined if _raises(node, name))}
    for source in change.all_sources:
        if _raised(source.after, name) - _raised(source.before, name):
            return True
        done = _called(source.after, raisers, name) - _called(source.before, raisers, name)
        if done and not change.is_test(source.path):
            return True
    return name not in _BY_ITSELF and re.search(rf"\b{name}\b", change.code) is not None


def _new_classes(before: ast.Module, after: ast.Module) -> Iterator[ast.ClassDef]:
    stood = {n.name for n in ast.walk(before) if isinstance(n, ast.ClassDef)}
    yield from (n for n in ast.walk(after) if isinstance(n, ast.ClassDef) and n.name not in stood)


def _raises(node: Definition, name: str) -> bool:
    """Whether a function raises it; a class, where one is made."""
    heads = ("__init__", "__new__", "__post_init__")
    made = [s for s in node.body if isinstance(s, Function) and s.name in heads]
    return any(
        isinstance(n, ast.Raise) and callee_name(n.exc) == name
        for part in (made if isinstance(node, ast.ClassDef) else [node])
        for n in ast.walk(part)
    )


def _raised(tree: ast.Module, name: str) -> _Places:
    """Where one is raised, or handed to a call, with the conditions around it."""
    found = _Places()
    for node, around, _ in _nodes(tree):
        given = [*node.args, *(k.value for k in node.keywords)] if isinstance(node, ast.Call) else []
        raised = isinstance(node, ast.Raise) and callee_name(node.exc) == name
        if raised or any(last_name(a) == name for a in given):
            found[(*around, ast.dump(node))] += 1
    return found


def _called(tree: ast.Module, raisers: Collection[str], name: str) -> _Places:
    """Where something that raises it is called, or done, and it is not caught there."""
    found = _Places()
    kind = _AT_ONCE.get(name)
    for node, around, caught in _nodes(tree):
        raises = isinstance(node, ast.Call) and callee_name(node) in raisers
        if (raises or (kind is not None and isinstance(node, kind))) and not caught & {name, *_CATCH_ALL}:
            found[(*around, ast.dump(node))] += 1
    return found


def _nodes(tree: ast.Module) -> Iterator[tuple[ast.AST, tuple[str, ...], frozenset[str]]]:
    """Each node, the definitions and conditions around it, and what is caught there."""
    waiting: list[tuple[ast.AST, tuple[str, ...], frozenset[str]]] = [(tree, (), frozenset())]
    while waiting:
        node, around, caught = waiting.pop()
        yield node, around, caught
        if isinstance(node, Definition):
            around = (*around, node.name)
        parts: Mapping[str, tuple[tuple[str, ...], frozenset[str]]] = {}
        if isinstance(node, ast.If | ast.While):
            condition = ast.dump(node.test)
            parts = {"body": ((*around, condition), caught), "orelse": ((*around, "not", condition), caught)}
        elif isinstance(node, ast.Try | ast.TryStar):
            types = [t for h in node.handlers for t in (h.type.elts if isinstance(h.type, ast.Tuple) else [h.type])]
            parts = {"body": (around, caught | {last_name(t) for t in types})}
        for field, value in ast.iter_fields(node):
            inside = parts.get(field, (around, caught))
            children = value if isinstance(value, list) else [value]
            waiting += [(child, *inside) for child in children if isinstance(child, ast.AST)]
