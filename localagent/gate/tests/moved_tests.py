"""Tests that stand word for word in another file of the same change, where they run as they ran before.

What a test uses must be there as it was: functions, fixtures and constants of its file word for word, imports of the
same things, which may have moved, too; and nothing around it may skip tests, replace anything or set anything up. Not
told: tests in classes.
"""

import ast
from collections.abc import Collection, Sequence

from localagent.code.names import bound_name, callee_name, imports_of, last_name
from localagent.code.spans import Function
from localagent.domain.edit import FileChange
from localagent.domain.paths import RepoPath
from localagent.gate.tests.inventory import TestInventory, suite_of

_BUILT_IN = frozenset({"tmp_path", "tmp_path_factory", "tmpdir", "capsys", "capfd", "caplog", "monkeypatch", "request",
                       "recwarn", "capsysbinary", "subtests"})  # fmt: skip


def moved_tests(files: Sequence[FileChange], sources: Sequence[FileChange]) -> dict[RepoPath, frozenset[str]]:
    """By test file, the names of tests that it lost to another one. `sources`: what else changes."""
    went = _moved_names(sources)
    suites = [(file, suite_of(file.before), suite_of(file.after)) for file in files]
    found: dict[RepoPath, frozenset[str]] = {}
    for file, before, after in suites:
        gone = [] if before is None or after is None else [n for n in before.tests if n not in after.tests]
        others = [(f, was, now) for f, was, now in suites if f is not file and _is_collected(f.path)]
        there = {
            name
            for name in gone
            for other, was, now in others
            if before is not None and now is not None and (was is None or name not in was.tests)
            if _is_moved(name, before, now, went) and _is_near(before.tests[name].node, file.path, other.path, before)
        }
        if there:
            found[file.path] = frozenset(there)
    return found


def _is_collected(path: RepoPath) -> bool:
    return path.name.startswith("test_") or path.name.endswith("_test.py")


def _is_near(test: Function, old: RepoPath, new: RepoPath, before: TestInventory) -> bool:
    """Whether the fixtures that a test asks for, and that its file does not define, are those of the same folder."""
    asked = {a.arg for a in test.args.args} - _BUILT_IN - before.tests.keys()
    return not asked or old.rpartition("/")[0] == new.rpartition("/")[0]


def _moved_names(sources: Sequence[FileChange]) -> frozenset[tuple[str, str, str]]:
    """(name, module, module): functions and classes that one module defines no more, and another one does now."""
    sides = [(_module(f.path), suite_of(f.before), suite_of(f.after)) for f in sources]
    lost, come = list[tuple[str, str]](), list[tuple[str, str]]()
    for module, before, after in sides:
        had, has = ({*s.tests, *s.others} if s is not None else set[str]() for s in (before, after))
        lost += [(name, module) for name in had - has]
        come += [(name, module) for name in has - had]
    return frozenset((name, old, new) for name, old in lost for other, new in come if other == name)


def _module(path: RepoPath) -> str:
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _is_moved(name: str, before: TestInventory, after: TestInventory, went: Collection[tuple[str, str, str]]) -> bool:
    """Whether a test stands in another file, with all that it uses, and nothing there keeps it from judging."""
    if "." in name or name not in after.tests or not before.tests[name].is_test:
        return False
    had, has = _defined(before), _defined(after)
    waiting, seen = [name], set[str]()
    while waiting:
        at = waiting.pop()
        if at in seen or at not in {*had, *has}:
            continue
        seen.add(at)
        if at not in had or at not in has or len(has[at]) != 1 or not _is_same(at, had[at][-1], has[at][0], went):
            return False
        names = [n for n in ast.walk(has[at][0]) if isinstance(n, ast.Name | ast.arg | ast.Attribute)]
        waiting += [getattr(n, "arg", "") or last_name(n) for n in names]
    return all(_is_harmless(s) for s in after.loose) and not any(_sets_up(t.node) for t in after.tests.values())


def _defined(suite: TestInventory) -> dict[str, list[ast.AST]]:
    """What stands for each name of a module, in order: functions, statements and imported names."""
    found: dict[str, list[ast.AST]] = {}
    for name, test in suite.tests.items():
        if "." not in name:
            found.setdefault(name, []).append(test.node)
    for name in suite.others:
        found.setdefault(name.partition(".")[0], []).append(ast.Constant(value=None))  # a class: never the same
    for statement in suite.loose:
        for node in ast.walk(statement):
            if bound := bound_name(node):
                found.setdefault(bound, []).append(statement)
    return found


def _is_same(name: str, old: ast.AST, new: ast.AST, went: Collection[tuple[str, str, str]]) -> bool:
    """Whether a name stands for the same thing: what is imported may come from where it has moved to."""
    if isinstance(old, ast.Import | ast.ImportFrom) and isinstance(new, ast.Import | ast.ImportFrom):
        was, now = (next(one for one in imports_of(node) if one.bound == name) for node in (old, new))
        return was.origin == now.origin or any(
            thing == was.item == now.item and _is_at(was.module, left) and _is_at(now.module, right)
            for thing, left, right in went
        )
    return not isinstance(old, ast.Constant) and ast.dump(old) == ast.dump(new)


def _is_at(written: str, module: str) -> bool:
    """Whether an import names a module of the tree, which may lie in a folder such as `src`."""
    return f".{module}".endswith(f".{written.lstrip('.')}")


def _is_harmless(statement: ast.stmt) -> bool:
    """An import, a text, or a constant under a name: nothing that decides how tests run."""
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return True
    if isinstance(statement, ast.Assign):
        named = all(isinstance(t, ast.Name) for t in statement.targets)
        marks = any(bound_name(t) in ("pytestmark", "pytest_plugins", "__test__") for t in statement.targets)
        return named and not marks and not any(isinstance(n, ast.Call) for n in ast.walk(statement))
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _sets_up(function: Function) -> bool:
    """Whether a function is called around tests that do not ask for it."""
    if function.name.startswith(("setup", "teardown", "setUp", "tearDown", "pytest_", "load_tests")):
        return True
    fixtures = [d for d in function.decorator_list if "fixture" in callee_name(d)]
    return any("autouse" in ast.dump(d) for d in fixtures)
