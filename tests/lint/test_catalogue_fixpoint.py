"""The law of the whole catalogue: one run repairs all that is safe, a second finds only what the first left."""

import ast
import warnings
from collections import Counter

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from localagent.lint.engine import choose, find
from localagent.lint.file_view import CannotReadError, view_of
from localagent.lint.fixer import repair
from localagent.lint.rules import RULES

ALL = choose(["all"])
PROGRAMS = sorted({b.code for r in RULES for b in r.bad} | {code for r in RULES for code in r.good})
FRAMES = (
    "if x:\n{}",
    "def h(x, y):\n{}",
    "class H(object):\n{}",
    "try:\n{}finally:\n    z()\n",
    "for x in y:\n{}",
    "{}",
)


def _expressions(code: str) -> set[str]:
    found = (
        n
        for n in ast.walk(ast.parse(code))
        if isinstance(n, ast.expr) and isinstance(getattr(n, "ctx", ast.Load()), ast.Load)
    )
    kinds = ast.Starred | ast.Await | ast.Yield | ast.FormattedValue
    return {ast.unparse(n) for n in found if not any(isinstance(inside, kinds) for inside in ast.walk(n))}


def _quiet_expressions() -> list[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return sorted({text for code in PROGRAMS for text in _expressions(code)})


class _Filled(ast.NodeTransformer):
    """Puts expressions in the place of names that are read."""

    def __init__(self, texts: list[str]) -> None:
        self._texts = texts

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if isinstance(node.ctx, ast.Load) and len(node.id) == 1 and self._texts:
            return ast.parse(self._texts.pop(), mode="eval").body
        return node


def _parsed(code: str) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(code, "file", "exec")
    except SyntaxError:
        return False
    return True


def program(blocks: list[tuple[str, list[str], str]]) -> str:
    """Examples with expressions of others inside, each within another statement; those that do not compile go."""
    text = ""
    for code, filling, frame in blocks:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made = ast.unparse(_Filled(list(filling)).visit(ast.parse(code))) + "\n" if filling else code
        step = "" if frame == "{}" else "    "
        made = frame.format("".join(step + line if line.strip() else line for line in made.splitlines(keepends=True)))
        text += made if _parsed(text + made) else ""
    return text


blocks = st.tuples(
    st.sampled_from(PROGRAMS), st.lists(st.sampled_from(_quiet_expressions()), max_size=3), st.sampled_from(FRAMES)
)


def assert_settles(code: str) -> None:
    try:
        view = view_of(code.encode())
    except CannotReadError:
        return
    found = find(view, ALL)
    done = repair(view, ALL, found)
    assert _parsed(done.after.decode()) or not _parsed(code)
    again = repair(view_of(done.after), ALL)
    assert (again.after, again.applied) == (done.after, ())
    assert Counter(f.rule for f in done.left) <= Counter(f.rule for f in found), "a repair made a finding"


@pytest.mark.long
@settings(max_examples=300, deadline=None)
@given(st.lists(blocks, min_size=1, max_size=5))
@example([("if x == None:\n    y()\n", ["'a'"], "{}")])
def test_a_second_run_has_nothing_to_do(chosen: list[tuple[str, list[str], str]]) -> None:
    assert_settles(program(chosen))


def test_repairs_as_deep_as_they_lie() -> None:
    assert_settles("a = " + "sorted(" + "list(" * 30 + "x" + ")" * 31 + "\n")


@pytest.mark.parametrize("operand", ["'a'", "b''", "1", "[]", "str(x)", "len(x)", "None", "x"])
@pytest.mark.parametrize("operator", ["==", "!=", "is", "is not"])
@pytest.mark.parametrize("shape", ["{} {} None", "None {} {}", "not {} {} None", "{} {} 'r'", "not not {} {} None"])
def test_comparisons_settle(operand: str, operator: str, shape: str) -> None:
    pair = (operator, operand) if shape.startswith("None") else (operand, operator)
    assert_settles(f"def f(x):\n    if {shape.format(*pair)}:\n        return 1\n")
