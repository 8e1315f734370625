"""The second opinion on names: a builtin is believed only where the compiler sees its name bound nowhere."""

import pytest

from localagent.lint import libcst_check
from localagent.lint.engine import find
from localagent.lint.file_view import view_of
from localagent.lint.rules import RULES

LIST = "builtins.list"


@pytest.mark.parametrize(
    "code",
    [
        "list = 1\n",
        "def list(): pass\n",
        "class list: pass\n",
        "import list\n",
        "from x import list\n",
        "import a as list\n",
        "from x import *\n",
        "if a:\n    from x import  *\n",
        "def f(list): pass\n",
        "def f(*, list=1): pass\n",
        "f = lambda list: 1\n",
        "for list in x: pass\n",
        "with a as list: pass\n",
        "try:\n    pass\nexcept E as list:\n    pass\n",
        "[list for list in x]\n",
        "print((list := 1))\n",
        "def f():\n    global list\n    list = 1\n",
        "def f():\n    global list\n",
        "def f():\n    list = 1\n    def g():\n        nonlocal list\n",
        "del list\n",
        "list += 1\n",
        "list: int = 1\n",
        "list: int\n",
        "match x:\n    case list: pass\n",
        "match x:\n    case {**list}: pass\n",
        "match x:\n    case [*list]: pass\n",
        "class A:\n    list = 1\n",
        "class A:\n    def f(self):\n        for list, b in self: pass\n",
    ],
)
def test_bound_anywhere_is_not_known(code: str) -> None:
    assert libcst_check._never_bound(view_of((code + "a = sorted(list(x))\n").encode()), {LIST}) == frozenset()


@pytest.mark.parametrize(
    "code",
    [
        "",
        "x.list = 1\n",
        "f(list=1)\n",
        "import list.a as b\n",
        "def f():\n    return list\n",
        "'list = 1'\n",
        "lists = 1\n",
    ],
)
def test_bound_nowhere_is_known(code: str) -> None:
    view = view_of((code + "a = sorted(list(x))\n").encode())
    assert libcst_check._never_bound(view, {LIST, "os.path"}) == {LIST}


@pytest.mark.long
def test_the_symbol_table_says_what_libcst_would_say(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every example of every rule, confirmed with and without the symbol table."""
    for rule in RULES:
        for bad in rule.bad:
            view = view_of(bad.code.encode())
            found = [f for f in find(view, [rule]) if f.cuts]
            with_table = libcst_check.refused(view, found)
            monkeypatch.setattr(libcst_check, "_never_bound", lambda _view, _names: frozenset())
            assert libcst_check.refused(view, found) == with_table, (rule.id, bad.code)
            monkeypatch.undo()


def test_a_name_that_is_not_there_is_not_believed() -> None:
    """Known as a builtin, but another word stands at the place."""
    view = view_of(b"a = sorted(list(x))\n")
    (finding,) = [f for f in find(view, RULES) if f.relies]
    moved = [r for r in finding.relies if r.qualified == LIST]
    assert moved
    other = view_of(b"a = sorted(tist(x))\n")
    assert "does not resolve builtins.list" in libcst_check.refused(other, [finding])[0]
