"""Changes of existing tests that an instruction asks for in its words: the same is demanded of what it has changed.

A test is compared with what it was, node by node. Texts, numbers and names may be others where the instruction says the
new one, or states the replacement that leads there; a call may be run as a coroutine where what it calls became one; a
call may give a value to what is newly required of it, and named. Nothing that a test demands may go or come in between.
Not promised: that what the instruction says is what was meant.
"""

import ast
import copy
import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from localagent.code.index.identifiers import STOP_WORDS, terms
from localagent.code.names import bound_name, callee_name, dotted_name, imports_of
from localagent.code.source_text import parse_or_none
from localagent.code.spans import Function, all_lines_of
from localagent.domain.diff import TreeChange
from localagent.gate.tests.assertions import assertions
from localagent.gate.tests.inventory import suite_of
from localagent.gate.tests.renamed_tests import begin_of, renamed_tests
from localagent.gate.tests.replacements import Replacement, is_consistent, stated

_RENAMES = re.compile(r"\brenam|\bnew name", re.IGNORECASE)
_SENTENCE = re.compile(r"(?<=[.;:!?])\s+|\n")
_ONE_BY_ONE = re.compile(r"\b(?:generator|iterator|iterabl|yield|laz(?:y|ily)|stream|one by one)", re.IGNORECASE)
_ASYNC = re.compile(r"\b(?:async|await|coroutine)", re.IGNORECASE)
_CHANGES = r"(?:chang|adapt|adjust|updat|rewrit|amend|correct|revis|rework)\w*"
_STANDING = r"(?:existing|current|present|old) tests?"
_TESTS_CHANGE = re.compile(
    rf"\b{_CHANGES} (?:[^\s.;:]+ ){{0,3}}{_STANDING}\b|\b{_STANDING} (?:[^\s.;:,]+ ){{0,4}}{_CHANGES}", re.IGNORECASE
)
_TESTS_TOO = re.compile(
    rf"\b{_CHANGES} (?:[^\s.;:]+ ){{0,3}}tests?\b|\btests? (?:[^\s.;:]+ ){{0,8}}{_CHANGES}", re.IGNORECASE
)
_OF_TESTS = frozenset(
    {"test", "assert", "path", "result", "valu", "name", "self", "true", "false", "none"}
)  # any test's
_NO_CHANGE = re.compile(r"\b(?:not|never|without|no|nor)\b|n't\b", re.IGNORECASE)
_LEFT_OUT = ("ctx", "kind", "type_comment")
_PLAIN = (ast.Constant, ast.Name, ast.Attribute, ast.Tuple, ast.List, ast.Dict, ast.Set, ast.UnaryOp, ast.expr_context,
          ast.unaryop)  # fmt: skip


def is_change_stated(entry: TreeChange, line: int, entries: Sequence[TreeChange], instruction: str) -> bool:
    """Whether the function of a test file around a line differs from what it was by what the instruction says alone.

    All that a test demands is demanded as before; what follows may be new. `entries`: the whole change.
    """
    old, new = _functions_at(entry, line)
    tree = parse_or_none(entry.after)
    if old is None or new is None or tree is None or type(old) is not type(new) or len(new.body) < len(old.body):
        return False
    if _ONE_BY_ONE.search(instruction):
        old, new = (_Unwrapped().visit(copy.deepcopy(f)) for f in (old, new))
    asked = _ASYNC.search(instruction) is not None and _is_imported_alone(tree, "asyncio")
    others = [e for e in entries if e is not entry and not _is_of_tests(e)]
    found = _Comparison(
        coroutines=_made_coroutines(others) if asked else frozenset(), wanted=_newly_required(others, instruction)
    )
    if not found.alike(_bare(old), _bare(begin_of(new, old))):
        return False
    names = [*found.names]
    if old.name != new.name and not (_RENAMES.search(instruction) and old.name in re.findall(r"\w+", instruction)):
        names.append((old.name, new.name))
    said = (is_stated(b, instruction) or is_stated_in_part(a, b, instruction) for a, b in found.values)
    rest = [pair for pair, is_there in zip(found.values, said, strict=True) if not is_there]
    texts = [(a, b) for a, b in found.values if isinstance(a, str) and isinstance(b, str)]
    if not {*rest} <= {*texts}:
        return False
    changed = [*texts, *names]
    return _follow([pair for pair in changed if pair in rest or pair in names], changed, _tokens(old), instruction)


def changes_tests(instruction: str) -> bool:
    """Whether an instruction says that tests which stand are to change."""
    return any(
        _TESTS_CHANGE.search(sentence) and not _NO_CHANGE.search(sentence) for sentence in _SENTENCE.split(instruction)
    )


def is_change_asked(entry: TreeChange, line: int, instruction: str) -> bool:
    """Whether tests are to change, and the function of a test file around a line asserts no less often than it did.

    Nothing here says that it asserts the right thing: it has to fail without the change, which only a run shows.
    """
    old, new = _functions_at(entry, line)
    if old is None or new is None or not changes_tests(instruction):
        return False
    return len(assertions(new.body)) >= len(assertions(old.body)) > 0


def tests_of_something_else(path: str, before: str, after: str, instruction: str) -> frozenset[str]:
    """Ids of the tests of a file of which an instruction does not speak; none where it says that tests are to change.

    It speaks of a test if it has a word of a name that the test uses, or of a text without blanks in it.
    """
    was, now = suite_of(before.encode()), suite_of(after.encode())
    if was is None or now is None or _TESTS_TOO.search(instruction):
        return frozenset()
    said = {*terms(instruction)} - STOP_WORDS - _OF_TESTS
    found = []
    for name, test in was.tests.items():
        functions = [test.node, *([now.tests[name].node] if name in now.tests else [])]
        about = {term for f in functions for word in _words(f) for term in terms(word)}
        if test.is_test and said.isdisjoint(about):
            found.append(f"{path}::{name.replace('.', '::')}")
    return frozenset(found)


def _words(function: Function) -> Iterator[str]:
    """The names that a function uses, and its texts without blanks."""
    for node in ast.walk(function):
        match node:
            case ast.Name(id=word) | ast.Attribute(attr=word) | ast.keyword(arg=str(word)) | ast.alias(name=word):
                yield word
            case ast.Constant(value=str(text)) if not re.search(r"\s", text):
                yield text


def _functions_at(entry: TreeChange, line: int) -> tuple[Function | None, Function | None]:
    """The function around a line, as it was under this name or the one that it had."""
    was, now = suite_of(entry.before), suite_of(entry.after)
    if was is None or now is None:
        return None, None
    name = next((n for n, test in now.tests.items() if line in all_lines_of(test.node)), "")
    new = now.tests[name].node if name else None
    if name in was.tests:
        return was.tests[name].node, new
    had = next((old for old, to in renamed_tests(was, now).items() if to == name), "")
    return (was.tests[had].node if had else None), new


def _bare(function: Function) -> Function:
    """A function without its name and docstring."""
    bare = copy.copy(function)
    bare.name = ""
    bare.body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    return bare


def _tokens(function: Function) -> list[str]:
    """The names and texts in a function, its own name and docstring left out."""
    values = (v for n in ast.walk(_bare(function)) for f, v in ast.iter_fields(n) if f not in _LEFT_OUT)
    return [v for v in values if isinstance(v, str)]


def _follow(
    open_: Sequence[tuple[str, str]], changed: Sequence[tuple[str, str]], words: Sequence[str], instruction: str
) -> bool:
    """Whether each open change is by a replacement that the instruction states, and that is made in all the words."""
    used: dict[str, Replacement] = {}
    for old, new in open_:
        near = (r for r in stated(instruction) if r.old.lower() in old.lower() and r.new.lower() in new.lower())
        led = (r for r in near if r.apply(old) == new and used.get(r.old, r) == r)
        one = next((r for r in led if is_consistent(r, words, changed)), None)
        if one is None:
            return False
        used[one.old] = one
    return True


@dataclass(kw_only=True, slots=True)
class _Comparison:
    """Two trees, node by node. `values` and `names`: constants and identifiers that stand in one's place in the other.

    `coroutines`: what has to be awaited now; `wanted`: by function or class, what a call gives in order, and what of
    that is newly asked of it.
    """

    coroutines: frozenset[str]
    wanted: Mapping[str, tuple[tuple[str, ...], frozenset[str]]]
    values: list[tuple[object, object]] = field(default_factory=list)
    names: list[tuple[str, str]] = field(default_factory=list)

    def alike(self, old: object, new: object) -> bool:
        """Whether they differ by such values and names, coroutines that are run, and new arguments alone."""
        if isinstance(old, list) and isinstance(new, list):
            return len(old) == len(new) and all(map(self.alike, old, new))
        if isinstance(old, ast.Constant) and isinstance(new, ast.Constant):
            same = type(old.value) is type(new.value) and old.value == new.value
            self.values += [] if same else [(old.value, new.value)]
            return True
        if isinstance(old, ast.AST) and isinstance(new, ast.AST):
            inner = self._coroutine(new)
            if inner is not None and self._coroutine(old) is None:
                return self.alike(old, inner)
            if type(old) is not type(new):
                return False
            if isinstance(old, ast.Call) and isinstance(new, ast.Call) and callee_name(old) in self.wanted:
                order, gained = self.wanted[callee_name(old)]
                new = _without(new, old, order, gained) or new
            fields = (f for f in old._fields if f not in _LEFT_OUT)
            return all(self.alike(getattr(old, f, None), getattr(new, f, None)) for f in fields)
        if isinstance(old, str) and isinstance(new, str):
            self.names += [(old, new)] if old != new else []
            return True
        return old == new

    def _coroutine(self, node: ast.AST) -> ast.Call | None:
        """The call that is awaited, or run by `asyncio.run`, of what became a coroutine function."""
        inner = node.value if isinstance(node, ast.Await) else None
        if isinstance(node, ast.Call) and dotted_name(node.func) == "asyncio.run" and not node.keywords:
            inner = node.args[0] if len(node.args) == 1 else None
        return inner if isinstance(inner, ast.Call) and callee_name(inner) in self.coroutines else None


def _is_of_tests(entry: TreeChange) -> bool:
    return entry.path.name.startswith("test_") or entry.path.name.endswith(("_test.py", "conftest.py"))


def _is_imported_alone(tree: ast.Module, name: str) -> bool:
    """Whether a name is a module of this name wherever it stands in a file."""
    bound = [n for n in ast.walk(tree) if bound_name(n) == name]
    taken = [one for n in ast.walk(tree) for one in imports_of(n) if one.bound == name]
    return len(bound) == len(taken) > 0 and all(one.origin == name and not one.item for one in taken)


def _made_coroutines(entries: Sequence[TreeChange]) -> frozenset[str]:
    """Functions that were none before, and are coroutine functions in all of a change."""
    sides = []
    for sources in ([e.before for e in entries], [e.after for e in entries]):
        nodes = [n for tree in map(parse_or_none, sources) if tree is not None for n in ast.walk(tree)]
        sides.append([n for n in nodes if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)])
    plain = [{f.name for f in side if isinstance(f, ast.FunctionDef)} for side in sides]
    return frozenset(f.name for f in sides[1] if isinstance(f, ast.AsyncFunctionDef) and f.name in plain[0] - plain[1])


def _newly_required(
    entries: Sequence[TreeChange], instruction: str
) -> dict[str, tuple[tuple[str, ...], frozenset[str]]]:
    """By function or class: what a call gives, in order, and what of that it must give now, and the instruction names.

    Nothing for a name that several have, or of which anything else is asked than before.
    """
    found: dict[str, tuple[tuple[str, ...], frozenset[str]]] = {}
    for entry in entries:
        was, now = (dict(_parameters(source)) for source in (entry.before, entry.after))
        for name in was.keys() & now.keys():
            (had, _), (has, required) = was[name], now[name]
            gained = frozenset(has) - frozenset(had)
            kept = tuple(p for p in has if p not in gained)
            if gained and gained <= required and kept == had and all(is_stated(p, instruction) for p in gained):
                found[name] = has, gained
    every = [name for entry in entries for name, _ in _parameters(entry.after)]
    return {name: what for name, what in found.items() if every.count(name) == 1}


def _parameters(source: bytes) -> Iterator[tuple[str, tuple[tuple[str, ...], frozenset[str]]]]:
    """(name, (parameters in order, those without a default)) of functions, methods, dataclasses and named tuples."""
    tree = parse_or_none(source)
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.ClassDef):
            made = [s for s in node.body if isinstance(s, ast.FunctionDef) and s.name == "__init__"]
            fields = [s for s in node.body if isinstance(s, ast.AnnAssign) and isinstance(s.target, ast.Name)]
            marks = {callee_name(d) for d in (*node.decorator_list, *node.bases)}
            if made:
                yield node.name, _of_arguments(made[0].args, bound=True)
            elif marks & {"dataclass", "NamedTuple", "define", "frozen"}:
                needed = {s.target.id: s.value is None for s in fields if isinstance(s.target, ast.Name)}
                yield node.name, (tuple(needed), frozenset(n for n, is_needed in needed.items() if is_needed))
            methods = [s for s in node.body if isinstance(s, ast.FunctionDef | ast.AsyncFunctionDef)]
            for method in methods:
                static = any(callee_name(d) == "staticmethod" for d in method.decorator_list)
                yield method.name, _of_arguments(method.args, bound=not static)
        elif isinstance(node, ast.Module):
            functions = [s for s in node.body if isinstance(s, ast.FunctionDef | ast.AsyncFunctionDef)]
            yield from ((f.name, _of_arguments(f.args, bound=False)) for f in functions)
        elif isinstance(node, ast.Assign) and callee_name(node.value) == "namedtuple":
            names = _tuple_fields(node.value)
            if names and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
                yield node.targets[0].id, (names, frozenset(names))


def _of_arguments(args: ast.arguments, *, bound: bool) -> tuple[tuple[str, ...], frozenset[str]]:
    """Names of parameters, without `self` of what is `bound`, and those that have no default."""
    plain = [a.arg for a in (*args.posonlyargs, *args.args)]
    needed = plain[: len(plain) - len(args.defaults)]
    needed += [a.arg for a, value in zip(args.kwonlyargs, args.kw_defaults, strict=True) if value is None]
    first = plain[:1] if bound else []
    names = [name for name in (*plain, *(a.arg for a in args.kwonlyargs)) if name not in first]
    return tuple(names), frozenset(needed) - frozenset(first)


def _tuple_fields(node: ast.expr) -> tuple[str, ...]:
    """The fields of `namedtuple("T", "a b")`, none of which has a default; () where that cannot be told."""
    given = node.args[1] if isinstance(node, ast.Call) and len(node.args) == 2 and not node.keywords else None
    parts = given.elts if isinstance(given, ast.List | ast.Tuple) else [given]
    texts = [p.value if isinstance(p, ast.Constant) and isinstance(p.value, str) else "?" for p in parts]
    names = " ".join(texts).replace(",", " ").split()
    return tuple(names) if all(name.isidentifier() for name in names) else ()


def _without(new: ast.Call, old: ast.Call, order: Sequence[str], gained: frozenset[str]) -> ast.Call | None:
    """A call without what is newly required of it, where it gives all of that as plain values; else None."""
    had = [p for p in order if p not in gained]
    if any(isinstance(a, ast.Starred) for c in (old, new) for a in c.args) or len(new.args) > len(order):
        return None
    if any(k.arg is None for c in (old, new) for k in c.keywords) or len(old.args) > len(had):
        return None
    given = dict(zip(order, new.args, strict=False)) | {k.arg or "": k.value for k in new.keywords}
    if not gained <= given.keys() or any(not _is_plain(given[p]) for p in gained):
        return None
    args = [value for name, value in zip(order, new.args, strict=False) if name not in gained]
    return ast.Call(func=new.func, args=args, keywords=[k for k in new.keywords if k.arg not in gained])


def _is_plain(value: ast.expr) -> bool:
    return all(isinstance(n, _PLAIN) for n in ast.walk(value))


def is_stated(value: object, instruction: str) -> bool:
    """Whether an instruction says a text or a number."""
    known = isinstance(value, str | int | float) and not isinstance(value, bool) and str(value).strip() != ""
    return known and re.search(rf"(?<![\w.]){re.escape(str(value))}(?!\w)", instruction) is not None


def is_stated_in_part(old: object, new: object, instruction: str) -> bool:
    """Whether two texts have words in common, and the instruction says all others, which go or come."""
    if not (isinstance(old, str) and isinstance(new, str)):
        return False
    was, now = ([word.strip(",;:()'\"") for word in text.split()] for text in (old, new))
    steps = difflib.SequenceMatcher(None, was, now, autojunk=False).get_opcodes()
    others = [w for kind, i, j, k, n in steps if kind != "equal" for w in (*was[i:j], *now[k:n])]
    return len(others) < len(was) + len(now) and all(is_stated(word, instruction) for word in others)


class _Unwrapped(ast.NodeTransformer):
    """`x` for `list(x)` and `tuple(x)`."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        made = isinstance(node.func, ast.Name) and node.func.id in ("list", "tuple")
        return node.args[0] if made and len(node.args) == 1 and not node.keywords else node
