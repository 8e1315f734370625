"""Gate: what a patch does to the tests that will judge it.

Compares every test before and after: gone, skipped, asserting less, wider, or nothing. What merely differs needs a
person, for nobody else knows what was meant. New tests are welcome. Repairs may not touch tests and never meet it.
Not seen: data files of tests, and helpers that are imported from elsewhere.
"""

import ast
from collections import Counter
from collections.abc import Collection, Iterator

import pathspec

from localagent.code.names import callee_name, last_name
from localagent.code.regions import decode_source, parse
from localagent.code.spans import Function
from localagent.domain.edit import FileChange
from localagent.domain.gate import Decision, Finding
from localagent.domain.policy import Permission, Policy
from localagent.gate.core.gate_input import GateInput
from localagent.gate.core.rule import Rule, decide
from localagent.gate.tests.assertions import (
    Assertion,
    assertions,
    is_assertion_call,
    is_trivial,
    is_weaker,
    is_wider,
)
from localagent.gate.tests.equivalence import judges_alike
from localagent.gate.tests.inventory import SEPARATOR, Test, TestInventory, shown, suite_of
from localagent.gate.tests.mocked_names import shadowed
from localagent.gate.tests.moved_tests import moved_tests
from localagent.gate.tests.removed_features import Removed, gone_with, removed
from localagent.gate.tests.renamed_tests import begin_of, begins_alike, renamed_tests
from localagent.gate.tests.side_effects import reaches
from localagent.gate.tests.tamper_rules import (
    CASES,
    CHANGED,
    CONFIGURED,
    DELETED,
    FEATURE,
    FIXTURE,
    MOCKED,
    REMOVED,
    SKIPPED,
    TRIVIAL,
    WEAKENED,
    WIDENED,
)
from localagent.text.visible_text import shortened

SKIPS = {"skip", "skipif", "skipIf", "skipUnless", "xfail", "expectedFailure", "skipTest", "SkipTest", "importorskip",
          "exit", "pytestmark", "__test__", "collect_ignore", "collect_ignore_glob"}  # fmt: skip
MOCKS = {"patch", "setattr", "setitem", "setenv", "MagicMock", "Mock", "AsyncMock", "object", "spy", "stub"}
_TAKES_OUT = {"pop", "popitem", "clear", "update", "__delitem__", "__setitem__", "__ior__"}
_SET_UPS = {"setUp", "tearDown", "setUpClass", "tearDownClass", "setUpModule", "tearDownModule", "setup_method",
            "teardown_method", "setup_class", "teardown_class", "setup_module", "teardown_module", "setup_function",
            "teardown_function", "setup", "teardown"}  # fmt: skip


class Tamper:
    """Refuses patches that weaken tests, and asks a person about those that change them."""

    name = "tamper"

    def __init__(self, policy: Policy) -> None:
        self._tests = pathspec.GitIgnoreSpec.from_lines([p.lower() for p in policy.paths.tests])
        self._routine = policy.patches.routine is Permission.ALLOW
        self._configuration = pathspec.GitIgnoreSpec.from_lines([p.lower() for p in policy.patches.test_configuration])

    def review(self, change: GateInput) -> Decision:
        """Deny if what judges is made weaker, or differs so that only a person can tell."""
        found: list[Finding] = []
        tests = [f for f in change.changes if f.path.is_python and self._tests.match_file(_plain(f.path))]
        sources = [f for f in change.sources_changed if not self._tests.match_file(_plain(f.path))]
        lost, moved = removed(sources), moved_tests(tests, sources)
        renamed = {e.path: e.source for e in change.entries}
        for file in change.changes:
            name = _plain(file.path)
            if self._configuration.match_file(name) and file.before != file.after:
                found.append(CONFIGURED.finding(file.path, 0, f"{file.path} says how tests run"))
            elif file.path.is_python and self._tests.match_file(name):
                source = renamed.get(file.path, file.path)
                found += _review(file, source, lost, moved.get(file.path, ()), routine=self._routine)
            elif file.before and file.before != file.after and self._tests.match_file(name):
                found.append(CHANGED.finding(file.path, 0, f"{file.path}: what tests read differs"))
        return decide(self.name, found)


def _plain(path: str) -> str:
    return path.replace("\n", " ").lower()


def _collected(path: str) -> bool:
    name = path.rsplit("/", 1)[-1]
    return name.startswith("test_") or name.endswith(("_test.py", "_tests.py")) or name in ("test.py", "tests.py")


def _holds_no_tests(path: str, *suites: TestInventory) -> bool:
    """`test.py` of an application: not collected by its name, in no folder of tests, and without a test."""
    folders = path.lower().split("/")[:-1]
    if path.rsplit("/", 1)[-1].startswith("test_") or path.endswith(("_test.py", "_tests.py")) or "tests" in folders:
        return False
    return "test" not in folders and not any(t.is_test or _is_fixture(t.node) for s in suites for t in s.tests.values())


def _review(
    file: FileChange, source: str, lost: Removed, moved: Collection[str], *, routine: bool
) -> Iterator[Finding]:
    before, after = suite_of(file.before), suite_of(file.after)
    if before is None or after is None:
        return  # what does not parse is refused by another gate, or is mended here
    if _holds_no_tests(file.path, before, after):
        return
    if _collected(source) and not _collected(file.path) and before.tests:
        yield DELETED.finding(file.path, 0, f"{source} becomes {file.path}, which is not collected")

    def say(rule: Rule, node: ast.AST, what: str) -> Finding:
        return rule.finding(file.path, int(getattr(node, "lineno", 0)), what)

    bodies = Counter(
        ast.dump(ast.Module(body=t.node.body, type_ignores=[]))
        for n, t in after.tests.items()
        if t.is_test
        and n not in before.tests
        and (_class_of(n) in {_class_of(m) for m in before.tests} or _is_collected(n))
    )
    own = {n.rpartition(".")[2] for suite in (before, after) for n in suite.tests}
    now = renamed_tests(before, after)
    for name, test in before.tests.items():
        inside = _class_of(name).rpartition(".")[2]
        if name in after.tests and routine and judges_alike(test.node, after.tests[name].node, inside, own):
            continue
        if name in after.tests:
            yield from (say(rule, node, f"{name}: {what}") for rule, node, what in _compared(test, after.tests[name]))
        elif test.is_test and name not in moved:
            body = ast.dump(ast.Module(body=test.node.body, type_ignores=[]))
            if bodies[body] > 0:
                bodies[body] -= 1
            elif name in now:
                told = _compared(test, after.tests[now[name]])
                yield from (say(rule, node, f"{name}, now {now[name]}: {what}") for rule, node, what in told)
            else:
                feature = gone_with(test.node, before.loose, lost)
                rule, why = (FEATURE, f" with {feature}, which it tested") if feature else (DELETED, "")
                yield rule.finding(file.path, 0, f"{name} is gone{shortened(why, 200)}", feature)
    for name, test in after.tests.items():
        for node in ast.walk(test.node):
            known = name in before.tests and is_trivial(node) and _stood(node, before.tests[name].node)
            if is_trivial(node) and not known:
                yield say(TRIVIAL, node, f"{name} asserts what cannot fail")
    yield from (say(rule, node, what) for rule, node, what in _around(before, after))
    trees = [parse(decode_source(data)) for data in (file.before, file.after)]
    yield from (say(rule, node, what) for rule, node, what in reaches(*trees))


def _class_of(name: str) -> str:
    return name.rpartition(".")[0]


def _is_collected(name: str) -> bool:
    """Whether pytest or unittest would look into the classes that a test stands in, as far as their names say."""
    return all(part.startswith("Test") or "Test" in part for part in _class_of(name).split(".") if part)


def _stood(node: ast.AST, where: ast.AST) -> bool:
    wanted = ast.dump(node)
    return any(type(n) is type(node) and ast.dump(n) == wanted for n in ast.walk(where))


def _compared(before: Test, after: Test) -> Iterator[tuple[Rule, ast.AST, str]]:
    """What became of a function that is there before and after: one thing where only texts and numbers differ."""
    told = list(_differences(before, after))
    other = next(_other_values(before.node, after.node), None) if {rule for rule, *_ in told} == {CHANGED} else None
    yield from told if other is None else [other]


def _other_values(before: Function, after: Function) -> Iterator[tuple[Rule, ast.AST, str]]:
    """Texts and numbers that became others, where nothing else of a function did."""
    if not begins_alike(before, after):
        return
    old, new = ([n for n in ast.walk(f) if isinstance(n, ast.Constant)] for f in (before, begin_of(after, before)))
    said = {ast.get_docstring(before, clean=False)}
    for was, now in zip(old, new, strict=True):
        if ast.dump(was) != ast.dump(now) and was.value not in said:
            yield CHANGED, now, f"{shortened(repr(was.value), 60)} became {shortened(repr(now.value), 60)}"


def _differences(before: Test, after: Test) -> Iterator[tuple[Rule, ast.AST, str]]:
    """What differs; what is plainly weaker comes first and alone."""
    if ast.dump(before.node) == ast.dump(after.node):
        return
    told = (
        list(_skipped(before.node, after.node)) + list(_asserts(before, after)) + list(_cases(before.node, after.node))
    )
    if told:
        yield from told
        return
    if _is_fixture(after.node) or _is_fixture(before.node):
        yield FIXTURE, after.node, "what tests stand on differs"
        return
    if _names(after.node, MOCKS) - _names(before.node, MOCKS):
        yield MOCKED, after.node, "something is replaced that was not"
        return
    gone = before.statements() - after.statements()
    if _inserted(before, after):
        yield CHANGED, after.node, "something new stands in front of what it did"
        return
    gone += _rows(before.node.decorator_list) - _rows(after.node.decorator_list)
    heads = _head(before.node), _head(after.node)
    if gone or (heads[0] != heads[1] and not _is_unskipped(*heads)):
        yield CHANGED, after.node, "differs from what it was"


def _inserted(before: Test, after: Test) -> bool:
    """Whether a new statement that is no assertion stands before one that was there: it may change what that means."""
    had = before.statements()
    known = [had[shown(s)] > 0 for s in after.node.body]
    last = max((n for n, old in enumerate(known) if old), default=-1)
    return any(
        not known[n]
        and not isinstance(s, ast.Assert)
        and not _stands_apart(s, after.node)
        and not _is_text(s)
        and not (isinstance(s, ast.Expr) and is_assertion_call(s.value))
        for n, s in enumerate(after.node.body[: max(last, 0)])
    )


def _stands_apart(statement: ast.stmt, function: Function) -> bool:
    """A new constant under a name of its own: nothing that was there can mean something else by it."""
    if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.Constant):
        return False
    names = {t.id for t in statement.targets if isinstance(t, ast.Name)}
    bound = [n.id for n in ast.walk(function) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)]
    return len(names) == len(statement.targets) and all(bound.count(name) == 1 for name in names)


def _is_fixture(node: Function) -> bool:
    return node.name in _SET_UPS or any("fixture" in callee_name(d) for d in node.decorator_list)


def _names(node: ast.AST, wanted: set[str]) -> Counter[str]:
    found: Counter[str] = Counter()
    for n in ast.walk(node):
        name = last_name(n)
        if name in wanted:
            found[name] += 1
        if isinstance(n, ast.alias) and (n.name.rsplit(".", 1)[-1] in wanted):
            found[n.name.rsplit(".", 1)[-1]] += 1
    return found


def _skipped(before: ast.AST, after: ast.AST) -> Iterator[tuple[Rule, ast.AST, str]]:
    if isinstance(after, ast.AsyncFunctionDef) and not isinstance(before, ast.AsyncFunctionDef):
        yield SKIPPED, after, "is not run by itself any more: nobody may await it"
    if any(isinstance(n, ast.Yield) for n in ast.walk(after)) > any(isinstance(n, ast.Yield) for n in ast.walk(before)):
        yield SKIPPED, after, "yields, so that its body may not run"
    more = _names(after, SKIPS) - _names(before, SKIPS)
    if more:
        yield SKIPPED, after, f"newly {', '.join(sorted(more))}"


def _asserts(before: Test, after: Test) -> Iterator[tuple[Rule, ast.AST, str]]:
    old, new = assertions(before.node.body), assertions(after.node.body)
    kept = Counter(a.key for a in new)
    gone: list[Assertion] = []
    for a in old:
        kept[a.key] -= 1
        if kept[a.key] < 0:
            gone.append(a)
    had = Counter(a.key for a in old)
    come: list[Assertion] = []
    for a in new:
        had[a.key] -= 1
        if had[a.key] < 0:
            come.append(a)
    for a in gone:
        under = next((b for b in come if b.text == a.text), None)
        if under is not None:
            come.remove(under)
            if len(under.guards) > len(a.guards):
                yield WEAKENED, under.node, "an assertion holds only under a new condition"
            continue
        if not come:
            yield REMOVED, after.node, "an assertion is gone, or cannot be reached or fail any more"
            continue
        b = come.pop(0)
        if is_trivial(b.node):
            yield REMOVED, b.node, "an assertion gave way to one that cannot fail"
        elif is_wider(a.node, b.node):
            yield WIDENED, b.node, "a tolerance grew"
        elif is_weaker(a.node, b.node):
            yield WEAKENED, b.node, "an assertion demands less"
        else:
            yield CHANGED, b.node, "what is expected differs"


def _cases(before: Function, after: Function) -> Iterator[tuple[Rule, ast.AST, str]]:
    """Rows of `parametrize` that are gone."""
    old, new = _rows(before.decorator_list), _rows(after.decorator_list)
    if sum(new.values()) < sum(old.values()):
        yield CASES, after, f"{sum(old.values()) - sum(new.values())} rows of cases are gone"


def _rows(decorators: list[ast.expr]) -> Counter[str]:
    found: Counter[str] = Counter()
    for decorator in decorators:
        if callee_name(decorator) in ("parametrize", "data", "expand", "unpack") and isinstance(decorator, ast.Call):
            for argument in decorator.args:
                if isinstance(argument, ast.List | ast.Tuple | ast.Set):
                    found.update(ast.dump(row) for row in argument.elts)
    return found


def _head(node: Function) -> list[str]:
    """Arguments and decorators, the rows of cases left out: these may grow."""
    found = [ast.dump(node.args)]
    for decorator in node.decorator_list:
        rows = _rows([decorator])
        parts = [decorator.func, *decorator.args] if rows and isinstance(decorator, ast.Call) else [decorator]
        found += [ast.dump(p) for p in parts if not (rows and isinstance(p, ast.List | ast.Tuple | ast.Set))]
    return found


def _around(before: TestInventory, after: TestInventory) -> Iterator[tuple[Rule, ast.AST, str]]:
    """Classes, and statements outside functions: new skips, and whatever differs."""
    module = ast.Module(body=[], type_ignores=[])
    for name, had in before.others.items():
        now = after.others.get(name)
        if now is not None and now != had:
            rule = SKIPPED if any(f"'{word}'" in now and f"'{word}'" not in had for word in SKIPS) else CHANGED
            if rule is CHANGED and _is_unskipped(had.split(SEPARATOR), now.split(SEPARATOR)):
                continue
            yield rule, module, f"class {name} has other bases or decorators"
    old, new = Counter(ast.dump(s) for s in before.loose), Counter(ast.dump(s) for s in after.loose)
    fresh = [s for s in after.loose if new[ast.dump(s)] > old[ast.dump(s)]]
    for statement in fresh:
        if isinstance(statement, ast.Delete):
            yield DELETED, statement, "something is deleted after it was defined"
        if _names(statement, {"pytest_plugins"}):
            yield CONFIGURED, statement, "plugins decide how tests run"
        elif _replaces(statement):
            yield MOCKED, statement, "something is replaced outside of a test, for every test that follows"
    if not before.tests and not before.loose:
        return
    added = [name for name in after.tests if name not in before.tests]
    for name, where in shadowed(before.loose, before.tests, fresh, added):
        yield CHANGED, where or module, f"{name} stands for something else than it did"
    for name in added:
        if name.startswith(("pytest_", "load_tests", "setup_package")):
            yield CONFIGURED, after.tests[name].node, f"{name} decides how tests run"
        inside = name.rpartition(".")[0]
        if _is_fixture(after.tests[name].node) and (not inside or inside in before.others):
            yield FIXTURE, after.tests[name].node, f"{name} is new, and the tests that stand here may use it"
    for statement in fresh:
        if _names(statement, SKIPS):
            yield SKIPPED, statement, "outside of a test: newly skipped or not collected"
    imports = (ast.Import, ast.ImportFrom)
    gone = old - new
    for statement in before.loose:
        if gone[ast.dump(statement)] > 0 and not isinstance(statement, imports) and not _is_text(statement):
            yield CHANGED, module, "a statement outside of the tests differs or is gone"
            return


def _is_unskipped(had: list[str], now: list[str]) -> bool:
    """Whether nothing came, and what went had only kept tests from running or from failing."""
    gone = Counter(had) - Counter(now)
    return not any(Counter(now) - Counter(had)) and all(any(f"'{word}'" in part for word in SKIPS) for part in gone)


def _replaces(statement: ast.stmt) -> bool:
    """Whether a statement sets something of another object, or has it set."""
    for node in ast.walk(statement):
        targets = node.targets if isinstance(node, ast.Assign | ast.Delete) else []
        targets = [node.target] if isinstance(node, ast.AugAssign | ast.AnnAssign) else targets
        if any(
            isinstance(t, ast.Attribute) or (isinstance(t, ast.Subscript) and not isinstance(t.value, ast.Name))
            for t in targets
        ):
            return True
        if isinstance(node, ast.Call) and callee_name(node) in MOCKS - {"object", "Mock", "MagicMock", "AsyncMock"}:
            return True
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            func = node.func
        else:
            continue
        if func.attr in _TAKES_OUT and _is_namespace(func.value):
            return True
    return False


def _is_namespace(node: ast.expr) -> bool:
    """`globals()`, `vars(module)`, `module.__dict__`: where the tests of a file are kept by their names."""
    return (
        callee_name(node) in ("globals", "vars", "locals")
        if isinstance(node, ast.Call)
        else callee_name(node) == "__dict__"
    )


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
