"""What stands in a file of tests: its functions by name, its classes, and the statements around them."""

import ast
from collections import Counter
from dataclasses import dataclass, field

from localagent.code.regions import DoesNotParse, decode_source, parse
from localagent.code.spans import Function

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


SEPARATOR = "\x00"
"""Between the bases, keywords and decorators of a class in `Suite.others`."""


def shown(statement: ast.stmt) -> str:
    """A statement, alike for what judges alike: the text of an assertion is for people."""
    if isinstance(statement, ast.Assert) and _is_text(statement.msg):
        return ast.dump(ast.Assert(test=statement.test, msg=None))
    return ast.dump(statement)


def _is_text(node: ast.expr | None) -> bool:
    """A text that calls nothing."""
    if isinstance(node, ast.JoinedStr):
        return not any(isinstance(n, ast.NamedExpr | ast.Await | ast.Lambda) for n in ast.walk(node))
    return isinstance(node, ast.Constant)


@dataclass(kw_only=True, slots=True)
class Test:
    """A function of a test file."""

    name: str
    node: Function
    is_test: bool

    def statements(self) -> Counter[str]:
        """The body's statements, docstring left out, and what an assertion says when it fails."""
        body = self.node.body[1:] if ast.get_docstring(self.node) is not None else self.node.body
        return Counter(shown(s) for s in body)


@dataclass(kw_only=True, slots=True)
class TestInventory:
    """What stands in a test file. Of functions of one name the last counts, as for pytest."""

    tests: dict[str, Test] = field(default_factory=dict)
    others: dict[str, str] = field(default_factory=dict)
    loose: list[ast.stmt] = field(default_factory=list)


def suite_of(source: bytes) -> TestInventory | None:
    """What stands in a source, None if it does not parse."""
    try:
        tree = parse(decode_source(source))
    except DoesNotParse:
        return None
    facts = TestInventory()
    _gather(tree.body, "", facts)
    return facts


def _gather(body: list[ast.stmt], prefix: str, facts: TestInventory) -> None:
    for node in body:
        if isinstance(node, _FUNCTIONS):
            name = prefix + node.name
            facts.tests.pop(name, None)
            facts.tests[name] = Test(name=name, node=node, is_test=node.name.startswith("test"))
        elif isinstance(node, ast.ClassDef):
            facts.others[prefix + node.name] = SEPARATOR.join(
                ast.dump(x) for x in (*node.bases, *node.keywords, *node.decorator_list)
            )
            _gather(node.body, f"{prefix}{node.name}.", facts)
        elif isinstance(node, ast.If | ast.Try):
            facts.loose.append(node)
            for block in (node.body, node.orelse):
                _gather([n for n in block if isinstance(n, (*_FUNCTIONS, ast.ClassDef))], prefix, facts)
        else:
            facts.loose.append(node)


def changed_tests(path: str, before: str, after: str) -> frozenset[str]:
    """Ids of the tests of a file that another text of it changes, without parameters; all where more differs."""
    was, now = suite_of(before.encode()), suite_of(after.encode())
    if was is None or now is None:
        return frozenset()
    stands = {name: ast.dump(test.node) for name, test in now.tests.items()}
    differ = {name for name, test in was.tests.items() if stands.get(name) != ast.dump(test.node)}
    imports = (ast.Import, ast.ImportFrom)
    around = [[ast.dump(s) for s in suite.loose if not isinstance(s, imports)] for suite in (was, now)]
    if around[0] != around[1] or was.others != now.others or any(not was.tests[name].is_test for name in differ):
        differ = {*was.tests}
    return frozenset(f"{path}::{name.replace('.', '::')}" for name in differ if was.tests[name].is_test)


def changed_bodies(path: str, before: str, after: str) -> frozenset[str]:
    """Ids of the tests of a file that another text of it changes or lacks; what stands around them is not looked at."""
    was, now = suite_of(before.encode()), suite_of(after.encode())
    if was is None or now is None:
        return frozenset()
    stands = {name: ast.dump(test.node) for name, test in now.tests.items()}
    differ = (name for name, test in was.tests.items() if test.is_test and stands.get(name) != ast.dump(test.node))
    return frozenset(f"{path}::{name.replace('.', '::')}" for name in differ)


def rewritten_tests(path: str, before: str, after: str) -> frozenset[str]:
    """Ids of the tests of a file that another text of it has under the same name, and with another body."""
    was, now = suite_of(before.encode()), suite_of(after.encode())
    if was is None or now is None:
        return frozenset()
    both = (name for name, test in was.tests.items() if test.is_test and name in now.tests)
    differ = (name for name in both if ast.dump(was.tests[name].node) != ast.dump(now.tests[name].node))
    return frozenset(f"{path}::{name.replace('.', '::')}" for name in differ)


def tests_of_same_values(path: str, before: str, after: str) -> frozenset[str]:
    """Ids of tests that hold every text and number that they held under the same name, as often."""
    was, now = suite_of(before.encode()), suite_of(after.encode())
    if was is None or now is None:
        return frozenset()
    both = [name for name, test in was.tests.items() if test.is_test and name in now.tests]
    same = [name for name in both if not _values(was.tests[name].node) - _values(now.tests[name].node)]
    return frozenset(f"{path}::{name.replace('.', '::')}" for name in same)


def _values(function: Function) -> Counter[str]:
    return Counter(repr(n.value) for n in ast.walk(function) if isinstance(n, ast.Constant))
