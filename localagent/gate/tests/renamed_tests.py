"""Tests that stand under another name: what each did is done there first, in the same words.

Texts and numbers may be others, and names by what made the test's own name another one. Where one new test's name
begins with an old one's, or the other way round, and it asserts as often, it stands for it whatever it does. What the
difference means is for who compares the two. Not told: tests of another class.
"""

import ast
import copy

from localagent.code.spans import Function
from localagent.gate.tests.assertions import assertions
from localagent.gate.tests.inventory import TestInventory
from localagent.gate.tests.replacements import Replacement, between

_LEAST_WORDS = 2  # of a name, `test_` not counted


def renamed_tests(before: TestInventory, after: TestInventory) -> dict[str, str]:
    """The new name of each test that has one; no new test stands for two, and none under a condition for any."""
    unsure = {id(node) for statement in after.loose for node in ast.walk(statement)}
    gone = [test for name, test in before.tests.items() if test.is_test and name not in after.tests]
    come = [test for name, test in after.tests.items() if test.is_test and name not in before.tests]
    come = [test for test in come if id(test.node) not in unsure]
    found: dict[str, str] = {}
    for is_same in (_is_renamed, _is_rewritten):
        for old in (test for test in gone if test.name not in found):
            inside = old.name.rpartition(".")[0]
            for new in come:
                if new.name.rpartition(".")[0] == inside and is_same(old.node, new.node):
                    found[old.name] = new.name
                    come.remove(new)
                    break
    return found


def _is_rewritten(old: Function, new: Function) -> bool:
    """Whether a test is called like another one, with more or fewer words at the end, and asserts as often."""
    longer, shorter = sorted((f"{old.name}_", f"{new.name}_"), key=len, reverse=True)
    asserts = [len(assertions(f.body)) for f in (old, new)]
    return longer.startswith(shorter) and shorter.count("_") > _LEAST_WORDS and 0 < asserts[0] <= asserts[1]


def _is_renamed(old: Function, new: Function) -> bool:
    """Whether a test does what another one did, by the same names or by those that its own new name leads to."""
    if begins_alike(old, new):
        return True
    return any(begins_alike(_Renamed(by).visit(copy.deepcopy(old)), new) for by in between(old.name, new.name))


def begins_alike(old: Function, new: Function) -> bool:
    """Whether a function begins with all that another one does, whatever the texts, the numbers and its name are."""
    return type(old) is type(new) and len(new.body) >= len(old.body) and _shape(old) == _shape(begin_of(new, old))


def begin_of(new: Function, old: Function) -> Function:
    """A copy of a function without what it does beyond as many statements as another one has."""
    begin = copy.copy(new)
    begin.body = new.body[: len(old.body)]
    return begin


def _shape(function: Function) -> str:
    blank = copy.deepcopy(function)
    blank.name = ""
    return ast.dump(_Blank().visit(blank))


class _Blank(ast.NodeTransformer):
    """Texts and numbers left open."""

    def visit_Constant(self, _node: ast.Constant) -> ast.Constant:
        return ast.Constant(value=None)


class _Renamed(ast.NodeTransformer):
    """Every identifier by a replacement."""

    def __init__(self, by: Replacement) -> None:
        self._by = by

    def generic_visit(self, node: ast.AST) -> ast.AST:
        """Texts stay: they may differ in any way."""
        for name in ("id", "attr", "arg", "name", "asname"):
            value = getattr(node, name, None)
            if isinstance(value, str):
                setattr(node, name, self._by.apply(value))
        return super().generic_visit(node)
