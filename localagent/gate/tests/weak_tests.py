"""New tests that show nothing, whatever the code does: read from their syntax, before they are run.

A test counts where an assertion can be reached, can fail, hangs on what the repository does, and demands more than
that something is there. Not seen: what helpers of other files assert; expectations that are wrong.
"""

import ast
import sys
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from localagent.code.names import callee_name, imports_of, last_name
from localagent.code.source_text import parse_or_none
from localagent.code.spans import Function
from localagent.gate.tests.assertions import Assertion, assertions, catches_any, is_assertion_call, is_trivial
from localagent.gate.tests.inventory import Test, suite_of
from localagent.gate.tests.tamper import MOCKS, SKIPS

_REACHES_OUT = frozenset({"subprocess", "runpy", "importlib", "pathlib", "os", "io", "glob", "tomllib", "configparser"})
_READS = frozenset({"__file__", "open"})
_PURE = sys.stdlib_module_names | {"pytest", "hypothesis"}
_FIXTURES = frozenset(  # of pytest itself: none of them reaches the repository
    {"cache", "capfd", "capfdbinary", "caplog", "capsys", "capsysbinary", "capteesys", "cls", "doctest_namespace",
     "mocker", "monkeypatch", "pytestconfig", "pytester", "record_property", "record_testsuite_property",
     "record_xml_attribute", "recwarn", "request", "self", "subtests", "testdir", "tmp_path", "tmp_path_factory",
     "tmpdir", "tmpdir_factory"}
)  # fmt: skip
_KEEPS_COUNT = frozenset(
    {
        "enumerate",
        "items",
        "keys",
        "values",
        "list",
        "range",
        "reversed",
        "sorted",
        "split",
        "splitlines",
        "tuple",
        "zip",
    }
)
_THERE = frozenset({"callable", "hasattr", "isinstance", "issubclass", "assertIsNotNone", "assertIsInstance"})


@dataclass(frozen=True, kw_only=True, slots=True)
class WeakTest:
    """A test, its line, and why it shows nothing. `name` is "" for the whole file."""

    name: str
    line: int
    why: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.name or 'the file'} {self.why}"


def weak_tests(source: bytes, own: Collection[str]) -> tuple[WeakTest, ...]:
    """Those of a file. Each is named once, by the first reason. `own`: the repository's top-level modules."""
    tree, suite = parse_or_none(source), suite_of(source)
    if tree is None or suite is None:
        return (WeakTest(name="", line=0, why="does not parse"),)
    tests = [test for test in suite.tests.values() if test.is_test]
    if not tests:
        return (WeakTest(name="", line=0, why="holds no test"),)
    loose = [node for node in suite.loose if _names(node) & SKIPS]
    if loose:
        return (WeakTest(name="", line=loose[0].lineno, why="is skipped, or may be"),)
    helpers = {name.rpartition(".")[2]: test.node for name, test in suite.tests.items() if not test.is_test}
    reader = _Reader(reaching=_reaching(tree, helpers, own), helpers=helpers)
    found = [(test.name, test.node, reader.weakness(test)) for test in tests]
    found += [(name, node, _replaces_for_all(node, reader.reaching)) for name, node in helpers.items()]
    return tuple(WeakTest(name=name, line=node.lineno, why=why) for name, node, why in found if why)


def _replaces_for_all(helper: Function, reaching: Collection[str]) -> str:
    """Why a fixture that every test runs under makes them show nothing: it sets what it tests; "" where it does not."""
    if not any(k.arg == "autouse" for d in helper.decorator_list if isinstance(d, ast.Call) for k in d.keywords):
        return ""
    targets = (t for n in ast.walk(helper) if isinstance(n, ast.Assign) for t in n.targets)
    own = (t for t in targets if isinstance(t, ast.Attribute) and _names(t.value) & {*reaching})
    return next((f"replaces {ast.unparse(t)} for every test" for t in own), "")


def _reaching(tree: ast.Module, helpers: Mapping[str, Function], own: Collection[str]) -> frozenset[str]:
    """Names that stand for something of the repository: imported ones, its files, and what is made of them."""
    names = {*_READS} | {
        found.bound
        for node in ast.walk(tree)
        for found in imports_of(node)
        if (top := found.origin.lstrip(".").partition(".")[0]) not in _PURE or top in _REACHES_OUT or top in own
    }
    while True:
        more = {name for name, node in helpers.items() if _names(node) & names}
        more |= {
            target.id
            for node in tree.body
            if isinstance(node, ast.Assign) and _names(node.value) & names
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        if more <= names:
            return frozenset(names)
        names |= more


@dataclass(frozen=True, kw_only=True, slots=True)
class _Reader:
    """`reaching`: names that stand for something of the repository; `helpers`: the file's other functions."""

    reaching: frozenset[str]
    helpers: Mapping[str, Function]

    def weakness(self, test: Test) -> str:
        """Why a test shows nothing; "" where nothing is known against it."""
        node = test.node
        if _names(node) & SKIPS:
            return "is skipped, or may be"
        if replaced := self._replaced(node):
            return f"replaces {replaced}, which it tests"
        used = self._used(node)
        if not used & self.reaching and "self" not in used and not self._taken_from_elsewhere(node):
            return "uses nothing of the repository"
        counting = [a for a in self._assertions(node) if not (is_trivial(a.node) or _compares_itself(a.node))]
        if not counting:
            return "asserts nothing that can fail"
        firm = [a for a in counting if not a.guards]
        if not firm:
            return "asserts only under a condition, which may never hold"
        firm = [a for a in firm if not self._may_never_run(a.node, node)]
        if not firm:
            return "asserts only in a loop, which may have nothing to go through"
        hanging = [a for a in firm if self._hangs(a, node)]
        if not hanging:
            return "asserts only what does not hang on the repository's code"
        if all(catches_any(a.node) and not _matches(a.node) for a in hanging):
            return "is content with any of several exceptions"
        if all(_is_there(a.node) for a in hanging):
            return "asserts only that something is there, not what it does"
        return ""

    def _taken_from_elsewhere(self, test: Function) -> bool:
        """Whether a test, or a fixture of its file that it takes, takes one of elsewhere, as of conftest.py."""
        given = test.args.defaults + [default for default in test.args.kw_defaults if default is not None]
        taken, waiting = set[str](), set() if given else _parameters(test) - _rows_of(test)
        while waiting:
            name = waiting.pop()
            taken.add(name)
            waiting |= _parameters(self.helpers[name]) - taken if name in self.helpers else set()
        return bool(taken - _FIXTURES - {*self.helpers})

    def _used(self, node: ast.AST) -> set[str]:
        """Names in a function, and in the helpers and fixtures that it names or takes."""
        found, waiting = set[str](), {*_names(node)}
        while waiting:
            name = waiting.pop()
            found.add(name)
            waiting |= (_names(self.helpers[name]) - found) if name in self.helpers else set()
        return found

    def _assertions(self, node: Function) -> list[Assertion]:
        """Its own, and those of helpers that it calls by name."""
        called = {callee_name(n) for n in ast.walk(node) if isinstance(n, ast.Call)}
        helping = [h for name, h in self.helpers.items() if name in called]
        return [*assertions(node.body), *(a for h in helping for a in assertions(h.body))]

    def _hangs(self, assertion: Assertion, test: Function) -> bool:
        """Whether the outcome of an assertion depends on something of the repository, as far as names say."""
        node = assertion.node
        if not _inside(node, test):
            return True  # a helper's: its parameters are the test's
        hanging = self._hanging(test)
        block = _block_under(node, test)
        if block is not None:
            return any(_names(statement) & hanging for statement in block)
        if isinstance(node, ast.Call) and is_assertion_call(node):
            inner = [*node.args, *(k.value for k in node.keywords)]
            inner += [node.func.value] if isinstance(node.func, ast.Attribute) and not node.args else []
            return any(_names(part) & hanging for part in inner)
        return bool(_names(node) & hanging)

    def _may_never_run(self, assertion: ast.AST, test: Function) -> bool:
        """Whether it stands in a loop over what neither the repository's code makes nor the test writes out."""
        for loop in (n for n in ast.walk(test) if isinstance(n, ast.For | ast.AsyncFor)):
            within = [n for s in loop.body for n in ast.walk(s)]
            if not any(n is assertion for n in within) or not any(isinstance(n, ast.Call) for n in ast.walk(loop.iter)):
                continue
            if not _names(loop.iter) & self._hanging(test, within):
                made = {callee_name(n) for n in ast.walk(loop.iter) if isinstance(n, ast.Call)}
                if made - _KEEPS_COUNT:
                    return True
        return False

    def _hanging(self, test: Function, apart: Collection[ast.AST] = ()) -> set[str]:
        """Names of a test whose values depend on the repository: what is made of such, or was handed to such.

        So do those that a function of the test changes which it gives to something else: a fake that records. `apart`
        are nodes that are not looked at, nor are fixtures of pytest then.
        """
        names = {*self.reaching, *(_parameters(test) - _rows_of(test, apart=self.reaching))}
        names -= _FIXTURES if apart else frozenset()
        left_out = {id(node) for node in apart}
        nodes = [node for node in ast.walk(test) if id(node) not in left_out]
        names |= {name for node in nodes for name in _recorded(node, nodes)}
        while True:
            before = len(names)
            for node in nodes:
                names |= _bound_by(node, names)
            if len(names) == before:
                return names

    def _replaced(self, test: Function) -> str:
        """What a test replaces of that which it calls itself; "" for nothing."""
        mocks = [n for n in ast.walk(test) if isinstance(n, ast.Call) and last_name(n.func) in MOCKS]
        inside = {id(n) for mock in mocks for n in ast.walk(mock)}
        called = {callee_name(n) for n in ast.walk(test) if isinstance(n, ast.Call) and id(n) not in inside}
        for mock in mocks:
            for text in (t for argument in mock.args[:2] for t in _texts(argument)):
                if text.rpartition(".")[2] in called:
                    return text
        for node in ast.walk(test):
            for target in node.targets if isinstance(node, ast.Assign) else ():
                own = isinstance(target, ast.Attribute) and bool(_names(target.value) & self.reaching)
                if own and last_name(target) in called:
                    return last_name(target)
                if isinstance(target, ast.Name) and target.id in self.reaching & called:
                    return target.id
        return ""


def _parameters(function: Function) -> set[str]:
    arguments = function.args
    return {a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}


def _rows_of(test: Function, apart: Collection[str] = ()) -> set[str]:
    """The parameters that `parametrize` gives, but for rows that name one of `apart`."""
    return {
        name.strip()
        for decorator in test.decorator_list
        if isinstance(decorator, ast.Call) and callee_name(decorator) == "parametrize" and decorator.args
        if not _names(decorator) & {*apart}
        for text in _texts(decorator.args[0])
        for name in text.split(",")
    }


def _names(node: ast.AST) -> set[str]:
    found = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
    found |= {n.attr for n in ast.walk(node) if isinstance(n, ast.Attribute) and n.attr in SKIPS}
    return found | {n.arg for n in ast.walk(node) if isinstance(n, ast.arg)}


def _texts(node: ast.AST) -> Iterator[str]:
    for inner in ast.walk(node):
        if isinstance(inner, ast.Constant) and isinstance(inner.value, str):
            yield inner.value


def _recorded(node: ast.AST, others: Collection[ast.AST]) -> set[str]:
    """What a function inside of a test adds to, where it is handed on: `monkeypatch.setattr("time.sleep", fake)`.

    Not one that the test calls itself.
    """
    given = [a for n in others if isinstance(n, ast.Call) for a in n.args]
    if isinstance(node, ast.Lambda):
        return _added_to(node) if any(a is node for a in given) else set()
    if isinstance(node, Function) and any(isinstance(a, ast.Name) and a.id == node.name for a in given):
        called = {n.func.id for n in others if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)}
        return _added_to(node) if node.name not in called else set()
    return set()


def _added_to(function: ast.AST) -> set[str]:
    """The names of which a function calls a method: `seen.append(x)`."""
    called = (n.func for n in ast.walk(function) if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute))
    return {f.value.id for f in called if isinstance(f.value, ast.Name)}


def _bound_by(node: ast.AST, hanging: Collection[str]) -> set[str]:
    """Names that a statement or call makes depend on some names."""
    known = set(hanging)
    if isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign | ast.NamedExpr):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        if node.value is not None and _names(node.value) & known:
            return {name for target in targets for name in _names(target)}
    elif isinstance(node, Function) and any(_names(d) & known for d in node.decorator_list):
        return {node.name} | _added_to(node)
    elif isinstance(node, ast.For | ast.AsyncFor | ast.comprehension) and _names(node.iter) & known:
        return _names(node.target)
    elif isinstance(node, ast.withitem) and node.optional_vars is not None and _names(node.context_expr) & known:
        return _names(node.optional_vars)
    elif isinstance(node, ast.With | ast.AsyncWith) and any(_names(s) & known for s in node.body):
        held = [item.optional_vars for item in node.items if item.optional_vars is not None]
        return {name for one in held for name in _names(one)}
    elif isinstance(node, ast.Call) and not is_assertion_call(node) and _names(node.func) & known:
        return {name for part in (*node.args, *(k.value for k in node.keywords)) for name in _names(part)}
    return set()


def _inside(node: ast.AST, function: Function) -> bool:
    return any(n is node for n in ast.walk(function))


def _block_under(node: ast.AST, function: Function) -> list[ast.stmt] | None:
    """The block of the `with` whose item an assertion is (`pytest.raises`); None for another one."""
    for one in ast.walk(function):
        if isinstance(one, ast.With | ast.AsyncWith) and any(item.context_expr is node for item in one.items):
            return one.body
    return None


def _demand(node: ast.AST) -> ast.AST:
    return node.test if isinstance(node, ast.Assert) else node


def _compares_itself(node: ast.AST) -> bool:
    """Whether both sides are written alike, calls too."""
    test = _demand(node)
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq | ast.Is):
        return ast.dump(test.left) == ast.dump(test.comparators[0])
    exact = isinstance(test, ast.Call) and callee_name(test) in ("assertEqual", "assertIs") and len(test.args) > 1
    return exact and isinstance(test, ast.Call) and ast.dump(test.args[0]) == ast.dump(test.args[1])


def _matches(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and any(k.arg == "match" for k in node.keywords)


def _is_there(node: ast.AST) -> bool:
    """Whether an assertion demands no more than that a name, an attribute or some value is there."""
    test = _demand(node)
    if isinstance(test, ast.BoolOp):
        return all(_is_there(part) for part in test.values)
    if isinstance(test, ast.Call):
        return callee_name(test) in _THERE
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.IsNot | ast.NotEq):
        other = test.comparators[0]
        return isinstance(other, ast.Constant) and other.value is None
    return isinstance(test, ast.Name | ast.Attribute)
