"""Literals of the tests that a patch brings: kind, place, spelling, role; calls read from tests; bounded work."""

import ast
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from localagent.code import literal_uses
from localagent.code.constant_evaluation import Unknown, evaluate
from localagent.code.literal_uses import LiteralContext, LiteralKind, LiteralRole, LiteralSpelling, LiteralUse
from localagent.code.test_literals import NOT_KNOWN, Literals, changed_literals, key_of, literal, read_tests
from localagent.domain.edit import FileChange, Patch
from localagent.domain.paths import RepoPath

TEST = b"def test_f():\n    assert f(70, 'kiwi') == 13\n    assert f((3, 4), b'\\x00\\x01') == {'a': 5}\n"


def visible(source: bytes = TEST) -> Literals:
    found = Literals()
    read_tests(source, lambda node: node.name.startswith("test"), found)
    return found


def uses(line: str, before: str = "def f(x):\n    return x\n") -> tuple[LiteralUse, ...]:
    after = f"def f(x):\n    {line}\n    return x\n"
    change = FileChange(path=RepoPath("m.py"), before=before.encode(), after=after.encode())
    return literal_uses.test_literals_in(Patch(changes=(change,)), visible())


@pytest.mark.parametrize(
    ("line", "text", "kind", "place", "spelling", "role"),
    [
        ("if x == 70: return x", "70", "number", "condition", "exact", "input"),
        ("if x < 71: return x", "70", "number", "condition", "off-by-one", "input"),
        ("if x > -70: return x", "70", "number", "condition", "negated", "input"),
        ("return 6 * 2 + 1", "13", "number", "return", "folded", "expected"),
        ("x = 13", "13", "number", "assignment", "exact", "expected"),
        ("x = x[:13]", "13", "number", "slice", "exact", "expected"),
        ("x = x['kiwi']", "'kiwi'", "text", "slice", "exact", "input"),
        ("t = {'kiwi': x}", "'kiwi'", "text", "table", "exact", "input"),
        ("x = g(x, 'kiwi')", "'kiwi'", "text", "argument", "exact", "input"),
        ("raise ValueError('kiwi')", "'kiwi'", "text", "message", "exact", "input"),
        ("log.warning('kiwi')", "'kiwi'", "text", "message", "exact", "input"),
        ("def g(y='ki' + 'wi'): return y", "'kiwi'", "text", "default", "folded", "input"),
        ("if x == b'\\x00\\x01': return x", "b'\\x00\\x01'", "bytes", "condition", "exact", "input"),
        ("return [3, 4]", "[3, 4]", "container", "return", "exact", "input"),
    ],
)
def test_a_literal_of_the_tests_is_seen_where_it_stands(
    line: str, text: str, kind: str, place: str, spelling: str, role: str
) -> None:
    (use,) = [u for u in uses(line) if u.text == text]
    assert (use.kind, use.place) == (LiteralKind(kind), LiteralContext(place))
    assert (use.spelling, use.role) == (LiteralSpelling(spelling), LiteralRole(role))
    assert (use.path, use.line) == ("m.py", 2)


@pytest.mark.parametrize(
    "line", ["if x == 0: return x", "x = 99", "'kiwi'", "y: 'kiwi' = x", "x = x + 1", "x = 'ki'", "x = 14"]
)
def test_ordinary_ones_hints_docstrings_and_others_are_none(line: str) -> None:
    assert uses(line) == ()


def test_one_that_the_file_had_is_none() -> None:
    assert uses("x = 13", before="def f(x):\n    return x\nLIMIT = 13\n") == ()
    assert uses("x = 13", before="def f(x:\n    return x\nLIMIT = 13\n") == ()
    assert uses("if x > -70: return x", before="def f(x):\n    return x\nLIMIT = -70\n") == ()
    assert len(uses("x = 13", before="def f(x:\n    return x\n")) == 1


def calls(source: str, name: str) -> list[tuple[Any, ...]]:
    found = visible(source.encode()).cases
    return [(*c.arguments, *sorted(c.keywords.items()), c.expected) for c in found if c.function == name]


def test_calls_are_read_with_what_is_expected_of_them() -> None:
    source = (
        "import pytest\nROWS = [('ab', 2), pytest.param('abc', 3)]\n"
        "def test_one():\n    word = 'kiwi'\n    got = f(word, n=4)\n    assert got == ['k']\n    assert 7 == f(5)\n"
        "class TestX:\n    def test_two(self):\n        self.assertEqual(f(6), 8)\n"
        "@pytest.mark.parametrize('a, b', [('ab', 2), pytest.param('abc', 3), (made(), 4)])\n"
        "def test_three(a, b):\n    assert g(a) == b\n"
    )
    assert calls(source, "f") == [("kiwi", ("n", 4), ["k"]), (5, 7), (6, 8)]
    assert calls(source, "g") == [("ab", 2), ("abc", 3), (NOT_KNOWN, 4)]


def test_of_a_patch_only_tests_that_are_new_or_otherwise_count() -> None:
    before = b"def test_a():\n    assert f(70) == 71\n\ndef test_b():\n    assert f(80) == 81\n"
    after = before.replace(b"81", b"82") + b"\ndef helper():\n    return f(90)\n"
    found = changed_literals([(before, after)])
    assert (found.inputs, found.expected) == ({"80"}, {"82"})
    assert not changed_literals([(before, before)]).expected


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**6), 10**6) | st.text(max_size=6) | st.binary(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=60, deadline=None)
@given(VALUES)
@example({"": None, '"': None})
def test_a_value_and_its_display_have_one_key(value: object) -> None:
    node = ast.parse(repr(value), mode="eval").body
    assert literal(node) == key_of(value)
    assert evaluate(node, {}) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("len(x) * 2", 8),
        ("x[1:3] + f'{x[0]}!'", "iwk!"),
        ("sorted(x)[0] in {'i', 'k'}", True),
        ("dict(zip(x, range(9)))['w']", 2),
        ("sum(ord(c) for c in x if c != 'k')", 329),
        ("'a' if isinstance(x, (int, float)) else 'b'", "b"),
        ("re.fullmatch('kiwi', x) and 7", 7),
        ("'%s-%d' % (x, 3)", "kiwi-3"),
        ("[a for a, b in [(1, 2), (3, 4)] if b > 2]", [3]),
    ],
)
def test_pure_expressions_are_worked_out(text: str, value: object) -> None:
    assert evaluate(ast.parse(text, mode="eval").body, {"x": "kiwi"}) == value


@pytest.mark.parametrize(
    "text",
    [
        "open(x)", "x.format(1)", "x.__class__", "y", "9 ** 9 ** 9", "x * 10 ** 9", "hash(x)", "x[9]", "lambda: x",
        "[x] * 10 ** 9", "1 << 10 ** 9", "'%99999999d' % 1", "f'{1:>99999999}'", "range(10 ** 12)", "1 / 0",
        "[[[x * 99] * 999] * 999] * 999", "re.match('(a+)+$', x)", "sorted(x, key=y)", "'-' * 3 * 10 ** 8",
        "__import__('os').system('true')", "[a for a in range(2000) for b in range(2000)]",
        "sum([len([b for b in range(900)]) for a in range(900)])", "-" * 900 + "1",
    ],
)  # fmt: skip
def test_what_is_not_pure_or_too_much_has_no_value(text: str) -> None:
    with pytest.raises(Unknown):
        evaluate(ast.parse(text, mode="eval").body, {"x": "kiwi"})
