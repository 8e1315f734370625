"""What a failing test may need, by the names it uses: definitions of its file, and statements before the failing one.

An over-approximation by names alone: good for a first guess that is run, and for what has to stay where the test's own
assertion fails.
"""

import ast
import builtins
from collections.abc import Iterable
from dataclasses import dataclass

from localagent.code.names import bound_name
from localagent.code.spans import Definition, Function, all_lines_of, first_line, functions, last_line

_SPECIAL = frozenset({"setUp", "tearDown", "setUpClass", "tearDownClass", "setup_method", "teardown_method"})
_SPECIAL |= {"setup_class", "teardown_class", "setUpModule", "tearDownModule", "setup_module", "teardown_module"}
_SPECIAL |= {"setup_function", "teardown_function", "asyncSetUp", "asyncTearDown", "pytestmark", "pytest_plugins"}


@dataclass(frozen=True, kw_only=True, slots=True)
class TestLocation:
    """A test function in its file; `line` is where it failed, 0 where that is not known."""

    __test__ = False

    function: Function
    around: tuple[Definition, ...]
    line: int


def find_test(tree: ast.Module, test_id: str, line: int) -> TestLocation | None:
    """The function of a pytest id (`path::Class::name[case]`)."""
    qualname = test_id.split("[", 1)[0].split("::")[1:]
    for found in functions(tree):
        names = [*(d.name for d in found.around), found.node.name]
        if names == qualname:
            inside = line in all_lines_of(found.node)
            return TestLocation(function=found.node, around=found.around, line=line if inside else 0)
    return None


def unneeded_lines(tree: ast.Module, place: TestLocation) -> set[int]:
    """First lines of definitions, imports and statements that the test cannot need by their names.

    Docstrings too, and what stands behind the failing statement in the test's own body.
    """
    needed = _needed(tree, place)
    gone = {first_line(s) for s in tree.body if s not in needed}
    for owner in place.around:
        gone |= {first_line(s) for s in owner.body if s not in needed}
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(node, ast.Module | Definition) and isinstance(body, list) and len(body) > 1 and _docstring(body):
            gone.add(body[0].lineno)
    if place.line:
        gone |= {first_line(s) for s in place.function.body if first_line(s) > place.line}
    return gone


def _docstring(body: list[ast.stmt]) -> bool:
    return (
        isinstance(body[0], ast.Expr)
        and isinstance(body[0].value, ast.Constant)
        and isinstance(body[0].value.value, str)
    )


def _needed(tree: ast.Module, place: TestLocation) -> set[ast.stmt]:
    """Statements of the module and of the classes around the test that are reached from it by names."""
    candidates = [*tree.body, *(s for owner in place.around for s in owner.body)]
    heads = {id(owner): _names_of_head(owner) for owner in place.around}
    needed: set[ast.stmt] = {place.function}
    names = names_used(place.function)
    for owner in place.around:
        needed.add(owner)
        names |= heads[id(owner)]
    growing = True
    while growing:
        growing = False
        for statement in candidates:
            if statement not in needed and _wanted(statement, names):
                needed.add(statement)
                names |= names_used(statement)
                growing = True
    return needed


def bound_names(statement: ast.stmt) -> set[str]:
    """Names that a statement of a module or class binds there."""
    if isinstance(statement, Definition):
        return {statement.name}
    return {name for node in ast.walk(statement) if not isinstance(node, ast.arg) and (name := bound_name(node))}


def _wanted(statement: ast.stmt, names: set[str]) -> bool:
    bound = bound_names(statement)
    if bound & _SPECIAL:
        return True
    if isinstance(statement, Function) and any("autouse" in ast.unparse(d) for d in statement.decorator_list):
        return True
    if isinstance(statement, Definition):
        return bool(({statement.name} | _fixture_names(statement)) & names)
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return bool(bound & names) or (
            isinstance(statement, ast.ImportFrom) and "*" in {a.name for a in statement.names}
        )
    return bool(bound & names) or (not bound and not isinstance(statement, ast.Expr))


def _fixture_names(statement: Definition) -> set[str]:
    """What `@pytest.fixture(name=...)` calls a function."""
    return {
        keyword.value.value
        for decorator in statement.decorator_list
        if isinstance(decorator, ast.Call)
        for keyword in decorator.keywords
        if keyword.arg == "name" and isinstance(keyword.value, ast.Constant) and isinstance(keyword.value.value, str)
    }


def _names_of_head(owner: Definition) -> set[str]:
    found: set[str] = set()
    for part in [*owner.decorator_list, *getattr(owner, "bases", ())]:
        found |= names_used(part)
    return found


def names_used(node: ast.AST) -> set[str]:
    """Names read, attributes, parameters, and texts that may be names (`usefixtures`, `getfixturevalue`)."""
    found: set[str] = set()
    for inner in ast.walk(node):
        match inner:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name):
                found.add(name)
            case ast.Constant(value=str() as text) if text.isidentifier():
                found.add(text)
    return found


def loose_names(tree: ast.Module) -> set[str]:
    """Names that are read and bound nowhere in a module, builtins left out; parameters of tests without a fixture."""
    read: set[str] = set()
    bound: set[str] = set(dir(builtins))
    defined: set[str] = set()
    asked: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            read.add(node.id)
        elif name := bound_name(node):
            bound.add(name)
        if isinstance(node, Definition):
            defined |= {node.name} | _fixture_names(node)
        if isinstance(node, Function) and node.name.startswith("test"):
            asked |= {argument.arg for argument in node.args.args}
    return (read - bound) | (asked - defined)


def fixed_lines(place: TestLocation) -> set[int]:
    """Lines of the test that the failing statement depends on by its names, going backwards; itself among them.

    A statement counts that binds one of the names or mentions one (it may change what the name stands for). Of other
    assertions only those do that are nothing but a call on one of them, as `assert stack.undo()`: comparisons seldom
    change anything. All of the test where its failing line is not known.
    """
    if not place.line:
        return set(all_lines_of(place.function))
    statements = list(_leaves(place.function.body, place.line))
    names: set[str] = set()
    fixed: set[int] = set()
    for statement in reversed(statements):
        first, last = first_line(statement), last_line(statement)
        failing = first <= place.line <= last
        looks = isinstance(statement, ast.Assert) and not _is_call(statement.test)
        if not failing and (looks or not names & _local_names(statement)):
            continue
        names |= _local_names(statement)
        fixed |= set(range(first, last + 1))
    return fixed


def _is_call(asserted: ast.expr) -> bool:
    """Whether an assertion only calls a method, or says `not` to what it returns."""
    call = asserted.operand if isinstance(asserted, ast.UnaryOp) else asserted
    return isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)


def _local_names(statement: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(statement) if isinstance(n, ast.Name)}


def _leaves(body: Iterable[ast.stmt], until: int) -> Iterable[ast.stmt]:
    """Statements of a body up to a line, those with blocks that the line does not stand in as wholes."""
    for statement in body:
        if first_line(statement) > until:
            return
        yield statement
