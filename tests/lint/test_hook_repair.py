"""Laws of repairing: parses, settles, keeps every byte outside, whatever the line ends and the encoding."""

import ast
import codecs

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localagent.lint import libcst_check
from localagent.lint.engine import LintFinding, choose, find
from localagent.lint.file_view import view_of
from localagent.lint.fixer import after_repairs, repair, same_outside
from localagent.lint.lint_rule import FixGrade
from localagent.lint.rules import BY_ID, RULES

ALL = choose(["all"])
SAFE = [b.code for r in RULES for b in r.bad if b.grade is FixGrade.SAFE]
ANY = [b.code for r in RULES for b in r.bad] + [code for r in RULES for code in r.good]
PLAIN = [code for code in ANY if not code.startswith(("from __future__", "from x import *", "from y import *"))]
ENCODINGS = {
    "utf-8": b"",
    "mark": codecs.BOM_UTF8,
    "latin-1": b"# -*- coding: latin-1 -*-\n",
    "cp1252": b"# coding: cp1252\n",
}


def file_of(parts: list[str], newline: str, encoding: str) -> bytes:
    """A file of examples, each in a function of its own, with letters that show a wrong encoding."""
    text = ""
    for n, part in enumerate(parts):
        text += f"def example{n}(é):\n    'ä ü'\n" + "".join(
            f"    {line}\n" if line else "\n" for line in part.splitlines()
        )
        text += "    return 'ß'  # ö\n"
    name = {"mark": "utf-8"}.get(encoding, encoding)
    return (ENCODINGS[encoding] + text.encode(name)).replace(b"\n", newline.encode())


parts = st.lists(st.sampled_from(PLAIN), min_size=1, max_size=6)


@pytest.mark.long
@settings(max_examples=120, deadline=None)
@given(parts, st.sampled_from(["\n", "\r\n", "\r"]), st.sampled_from(sorted(ENCODINGS)))
def test_settles_and_keeps_what_is_outside(chosen: list[str], newline: str, encoding: str) -> None:
    raw = file_of(chosen, newline, encoding)
    try:
        view = view_of(raw)
    except ValueError:
        return  # an example that is no function's body
    done = repair(view, ALL)
    again = repair(view_of(done.after), ALL)
    assert again.after == done.after
    assert not [f for f in done.left if f.repairable and f not in [w[0] for w in done.withheld]]
    assert done.after.count("ß".encode("utf-8" if encoding == "mark" else encoding)) == len(chosen)
    if newline == "\r\n":
        assert done.after.count(b"\n") == done.after.count(b"\r\n")
    if newline == "\r":
        assert b"\n" not in done.after
    assert done.after.startswith(ENCODINGS[encoding].replace(b"\n", newline.encode()))


@pytest.mark.long
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("encoding", sorted(ENCODINGS))
def test_every_safe_example_is_repaired_so(newline: str, encoding: str) -> None:
    name = {"mark": "utf-8"}.get(encoding, encoding)
    for code in SAFE:
        raw = (ENCODINGS[encoding] + code.encode(name)).replace(b"\n", newline.encode())
        plain = repair(view_of(code.encode()), ALL).after
        assert repair(view_of(raw), ALL).after == (ENCODINGS[encoding] + plain).replace(b"\n", newline.encode()), code


def test_rounds_build_on_each_other() -> None:
    raw = b"try:\n    f()\nexcept (IOError, OSError):\n    x = tuple(list(sorted(list(y))))\n"
    done = repair(view_of(raw), ALL)
    assert done.after == b"try:\n    f()\nexcept OSError:\n    x = tuple(sorted(y))\n"
    assert [f.rule for f in done.applied].count("os-error-alias") == 1


def test_nothing_to_do_is_the_same_bytes() -> None:
    raw = b"\x0cx = 1\n\n\n\x0c\ny = x \\\n  + 2"
    assert repair(view_of(raw), ALL).after is raw


def test_a_cut_that_reaches_outside_is_not_proven() -> None:
    view = view_of(b"a = not x in y\nb = 1\n")
    first = find(view, [BY_ID["not-in"]])[0]
    wrong = LintFinding(
        rule="x",
        line=1,
        column=0,
        message="",
        grade=FixGrade.SAFE,
        cuts=((*(first.cuts or ()), (19, 20, "2"))),
        anchor=first.anchor,
    )
    assert after_repairs(view, [first]) is not None
    assert after_repairs(view, [wrong]) is None


def test_a_cut_that_does_not_parse_is_not_proven() -> None:
    view = view_of(b"a = f(x)\n")
    broken = LintFinding(
        rule="x", line=1, column=0, message="", grade=FixGrade.SAFE, cuts=((5, 6, ""),), anchor=view.tree.body[0]
    )
    assert after_repairs(view, [broken]) is None


def test_equal_outside_tells_constants_apart() -> None:
    before, after = view_of(b"a = 1\nb = f(x)\n"), view_of(b"a = True\nb = f(y)\n")
    call = before.tree.body[1]
    assert isinstance(call, ast.Assign)
    assert not same_outside(before, after, [(call, [(12, 13, "y")])])
    assert same_outside(before, view_of(b"a = 1\nb = f(y)\n"), [(call, [(12, 13, "y")])])


def test_libcst_refuses_names_that_it_resolves_otherwise() -> None:
    view = view_of(b"a = sorted(list(x))\n")
    found = find(view, [BY_ID["redundant-conversion"]])
    assert libcst_check.refused(view, found) == {}
    assert libcst_check.refused(view_of(b"a = sorted(tupl(x))\n"), found) == {
        0: "libcst does not resolve builtins.list there"
    }
    assert libcst_check.refused(view_of(b"\na = sorted(list(x))\n"), found) == {0: "libcst sees no such element there"}


def test_what_libcst_does_not_give_back_is_not_repaired() -> None:
    raw = b"\x0cimport a\n\x0c\nb = not c in d\r"
    done = repair(view_of(raw), ALL)
    assert done.after == raw
    assert [why for _, why in done.withheld] == ["libcst does not give the text back"]


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (b"def f():\n    return 1\na = sorted(list(x))\n", b"def f(): ...\na = sorted(list(x))\n"),
        (b"def f():\n    global list\n    list = 1\na = 1\n", b"def f():\n    global list\n    list = 1\na = 1\n"),
        (b"class A:\n    def f(self):\n        return 1\n\n    b = sorted(list(x))\n", None),
        (b"TABLE = {\n    1: 2,\n}\na = [sorted(list(x))]\n", b"TABLE = ...\na = [sorted(list(x))]\n"),
        (b"b = [(list := 1)]\na = 1\n", b"b = [(list := 1)]\na = 1\n"),
    ],
)
def test_libcst_sees_everything_that_binds_a_name(code: bytes, expected: bytes | None) -> None:
    view = view_of(code)
    found = [f for f in find(view, ALL) if f.repairable]
    text, moved = libcst_check._reduced(view, found)
    assert expected is None or text == expected
    for f in found:
        assert f.place is not None
        start, end = f.place
        assert text[moved(start) : moved(end)] == code[start:end]


def test_a_comment_is_never_lost() -> None:
    view = view_of(b"a = f(  # why\n    x)\n")
    call = view.tree.body[0]
    lost = LintFinding(rule="x", line=1, column=0, message="", grade=FixGrade.SAFE, cuts=((6, 18, ""),), anchor=call)
    assert after_repairs(view, [lost]) is None
