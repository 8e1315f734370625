"""Each kind of effect is named where it lies; equal trees have none, different ones at least one."""

import ast
from textwrap import dedent

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.acceptance_builder import one_file

from localagent.domain.edit import FileChange, Patch
from localagent.domain.paths import RepoPath
from localagent.repair.acceptance.effects import EffectKind, MessageKind, PatchEffect, effects_of, patch_effects


def effects(before: str, after: str) -> tuple[PatchEffect, ...]:
    return effects_of(dedent(before).encode(), dedent(after).encode())


def kinds(before: str, after: str) -> list[str]:
    return [e.kind.value for e in effects(before, after)]


EXPRESSIONS = [
    ("a is None", "a is not None", ["negates-condition"]),
    ("a", "not a", ["negates-condition"]),
    ("a < b", "a >= b", ["negates-condition"]),
    ("a and b", "a", ["widens-condition"]),
    ("a or b", "a", ["narrows-condition"]),
    ("a", "a and b", ["narrows-condition"]),
    ("a and b and c", "a and d and c", ["changes-name"]),
    ("a and b", "a or b", ["changes-operator"]),
    ("a < b", "a <= b", ["changes-comparison"]),
    ("a - b", "b - a", ["swaps-operands"]),
    ("a + b", "a - b", ["changes-operator"]),
    ("f(1)", "f(2)", ["changes-number"]),
    ("f(1)", "f(-1)", ["changes-number"]),
    ("f(True)", "f(False)", ["changes-constant"]),
    ("f(True)", "f(1)", ["changes-constant"]),
    ("f('a')", "f('b')", ["changes-text"]),
    ("f'{a} x'", "f'{a} y'", ["changes-text"]),
    ("a + b", "a + c", ["changes-name"]),
    ("a.x", "a.y", ["changes-attribute"]),
    ("a.x", "b.x", ["changes-name"]),
    ("f(a)", "g(a)", ["changes-callee"]),
    ("m.f(a)", "m.g(a)", ["changes-callee"]),
    ("f(a)", "f(a, b)", ["adds-argument"]),
    ("f(a, k=1)", "f(a)", ["drops-argument"]),
    ("f(a, k=1)", "f(a, j=1)", ["changes-argument"]),
    ("f(a + 1)", "f([b])", ["changes-argument"]),
    ("f(a, b)", "f(b, a)", ["swaps-arguments"]),
    ("a", "str(a)", ["wraps"]),
    ("str(a)", "a", ["unwraps"]),
    ("[a, b]", "[a, b, c]", ["adds-element"]),
    ("{a: 1, b: 2}", "{a: 1}", ["drops-element", "drops-element"]),
    ("a + b", "0", ["constant-for-expression"]),
    ("0", "a + b", ["expression-for-constant"]),
    ("a if b else c", "c if b else a", ["swaps-operands"]),
]


@pytest.mark.parametrize(("before", "after", "expected"), EXPRESSIONS)
def test_expressions(before: str, after: str, expected: list[str]) -> None:
    assert kinds(f"x = {before}\n", f"x = {after}\n") == expected


STATEMENTS = [
    ("g()\nh()\n", "if a:\n    return\ng()\nh()\n", ["adds-guard"]),
    ("if a:\n    raise E\ng()\n", "g()\n", ["drops-guard"]),
    ("g()\nh()\n", "if a:\n    g()\nh()\n", ["wraps-in-if"]),
    ("if a:\n    g()\nh()\n", "g()\nh()\n", ["unwraps-if"]),
    ("g()\n", "try:\n    g()\nexcept E:\n    pass\n", ["wraps-in-block"]),
    ("g()\nh()\n", "g()\nlog()\nh()\n", ["adds-statement"]),
    ("g()\nlog()\nh()\n", "g()\nh()\n", ["drops-statement"]),
    ("g()\nh()\n", "h()\ng()\n", ["moves-statement"]),
    ("for x in a:\n    g()\n    h(x)\n", "for x in a:\n    g()\nh(x)\n", ["changes-indent"]),
    ("return a + b\n", "return [c]\n", ["changes-return"]),
    ("x = a + b\n", "x = [c]\n", ["changes-value"]),
    ("x = a\n", "y = a\n", ["changes-target"]),
    ("x = a\n", "a = x\n", ["swaps-assignment"]),
    ("self.x = a\n", "a = self.x\n", ["swaps-assignment"]),
    ("try:\n    g()\nexcept A:\n    h()\n", "try:\n    g()\nexcept (A, B):\n    h()\n", ["changes-except"]),
    ("import a\n", "import b\n", ["changes-import"]),
    ("raise A('x')\n", "raise B('x')\n", ["changes-exception"]),
    ("raise A('x')\n", "raise A('y')\n", ["changes-message"]),
    ("assert a, 'x'\n", "assert a, 'y'\n", ["changes-message"]),
    ("x += a\n", "x -= a\n", ["changes-operator"]),
    ("for x in a:\n    g()\n", "for y in a:\n    g()\n", ["changes-name"]),
    ("with a as b:\n    g()\n", "with c as b:\n    g()\n", ["changes-name"]),
    ("while a:\n    g()\n", "while not a:\n    g()\n", ["negates-condition"]),
    ("del a\n", "del b\n", ["changes-name"]),
    ("(x): int = 1\n", "x: int = 1\n", ["other"]),
    ("global a\n", "global b\n", ["changes-value"]),
]


@pytest.mark.parametrize(("before", "after", "expected"), STATEMENTS)
def test_statements(before: str, after: str, expected: list[str]) -> None:
    def function(body: str) -> str:
        return "def f(a, b):\n" + "".join(f"    {row}\n" for row in body.splitlines())

    found = effects(function(before), function(after))
    assert [e.kind.value for e in found] == expected
    assert {e.function for e in found} == {"f"}


DEFINITIONS = [
    ("def f(a=1): g()\n", "def f(a=2): g()\n", ["changes-default"]),
    ("def f(a): g()\n", "def f(a, b): g()\n", ["changes-signature"]),
    ("def f(a): g()\n", "def f(a: int): g()\n", ["changes-annotation"]),
    ("@a\ndef f(): g()\n", "@b\ndef f(): g()\n", ["changes-decorator"]),
    ("def f():\n    'x'\n    g()\n", "def f():\n    'y'\n    g()\n", ["changes-documentation"]),
    ("class A(B): x = 1\n", "class A(C): x = 1\n", ["changes-signature"]),
    ("class A:\n    x = 1\n", "class A:\n    x = 2\n", ["changes-number"]),
]


@pytest.mark.parametrize(("before", "after", "expected"), DEFINITIONS)
def test_definitions(before: str, after: str, expected: list[str]) -> None:
    assert kinds(before, after) == expected


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x = 1\n", "x  =  1  # one\n"),
        ("f(a,\n  b)\n", "f(a, b)\n"),
        ("x = 'a'\n", 'x = "a"\n'),
        ("if a:\n  g()\n", "if a: g()\n"),
        ("x = 1\r\ny = 2\r\n", "x = 1\ny = 2\n"),
        ("x = 1; y = 2\n", "x = 1\ny = 2\n"),
        ("def f():\n\n    return (a)\n", "def f():\n    return a\n"),
    ],
)
def test_layout_and_comments_are_no_effects(before: str, after: str) -> None:
    assert effects(before, after) == ()


def test_places_are_named() -> None:
    before = """
    class A:
        class B:
            def f(self, a):
                def g():
                    return a
                return g
        def h(self):
            if self.x and self.y > 1:
                return f(k=1)
    """
    (inner,) = effects(before, before.replace("return a", "return b"))
    assert (inner.function, inner.class_name, inner.line) == ("A.B.f.<locals>.g", "A.B", 6)
    assert inner.in_return
    (asked,) = effects(before, before.replace("> 1", "> 2"))
    assert (asked.function, asked.in_condition, asked.whole) == ("A.h", True, False)
    (argument,) = effects(before, before.replace("k=1", "k=2"))
    assert (argument.keyword, argument.in_argument, argument.old, argument.new) == ("k", True, "1", "2")
    (whole,) = effects(before, before.replace("self.x and self.y > 1", "not (self.x and self.y > 1)"))
    assert whole.whole


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("raise E(f'x {a.name}')", "raise E(f'x {a.cache}')", MessageKind.RAISE),
        ("raise E('x %s' % a)", "raise E('x %s' % b)", MessageKind.RAISE),
        ("raise E(a)", "raise E(b)", MessageKind.NONE),
        ("logger.info('x %s', a)", "logger.info('x %s', b)", MessageKind.LOG),
        ("self.log.info('x', a)", "self.log.info('x', b)", MessageKind.LOG),
        ("math.log(a)", "math.log(b)", MessageKind.NONE),
        ("warnings.warn('a')", "warnings.warn('b')", MessageKind.WARNING),
        ("print(a)", "print(b)", MessageKind.PRINT),
        ("m = 'x %s'\n    raise E(m % a)", "m = 'y %s'\n    raise E(m % a)", MessageKind.RAISE),
        ("m = 'x %s'\n    raise E(m % g(m))\n    h(m)", "m = 'y'\n    raise E(m % g(m))\n    h(m)", MessageKind.NONE),
    ],
)
def test_messages_are_told_from_behaviour(before: str, after: str, message: MessageKind) -> None:
    found = effects(f"def f(a, b):\n    {before}\n", f"def f(a, b):\n    {after}\n")
    assert {e.message for e in found} == {message}


def test_what_does_not_parse_has_one_effect_at_its_first_difference() -> None:
    (found,) = effects("a = 1\nb = (\n", "a = 1\nb = (2)\n")
    assert (found.kind, found.line) == (EffectKind.OTHER, 2)
    deep = "x = " + "(" * 40 + "a" + ")" * 40
    assert effects(deep + "\n", deep.replace("a", "b") + "\n")[0].kind is EffectKind.CHANGES_NAME
    chain = "+".join(["a"] * 900)
    assert effects(f"x = {chain}\n", f"x = b+{chain}\n")


def test_texts_are_bounded_and_harmless() -> None:
    (found,) = effects("x = a\n", "x = '" + "\u202e" * 500 + "'\n")
    assert len(found.new) <= 160
    assert "\u202e" not in found.new
    (found,) = effects("x = a\n", "x = (\x1b[2J\u202e\n")
    assert found.kind is EffectKind.OTHER
    assert not any(c in found.new for c in "\x1b\u202e")


def test_a_patch_is_read_file_by_file() -> None:
    one, two = one_file("x = 1\n", "x = 2\n").changes[0], one_file("a = b\n", "b = a\n", "src/z.py").changes[0]
    text = FileChange(path=RepoPath("README.md"), before=b"a", after=b"b")
    assert [(e.path, e.kind.value) for e in patch_effects(Patch(changes=(text, one, two)))] == [
        ("src/m.py", "changes-number"),
        ("src/z.py", "swaps-assignment"),
    ]


ATOMS = st.sampled_from(["a", "b", "self.x", "0", "1", "'t'", "None", "True", "f(a)", "g(b, k=1)", "a[0]", "f'{a}!'"])
FORMS = st.recursive(
    ATOMS,
    lambda e: st.one_of(
        st.tuples(
            st.sampled_from(["({} + {})", "({} < {})", "({} and {})", "({} or {})", "f({}, {})", "[{}, {}]"]), e, e
        ).map(lambda t: t[0].format(t[1], t[2])),
        e.map("(not {})".format),
        e.map("[i for i in {} if i]".format),
        e.map("(lambda z: {})".format),
    ),
    max_leaves=6,
)
LINES = st.one_of(
    FORMS.map("x = {}".format),
    FORMS.map("return {}".format),
    FORMS.map("raise E({})".format),
    FORMS.map("logger.info('m', {})".format),
    FORMS.map("assert {}".format),
    st.sampled_from(["pass", "a, b = b, a", "del x", "x: int = 1", "x += 1", "import q", "global q", "'doc'"]),
)
BLOCKS = st.recursive(
    st.lists(LINES, min_size=1, max_size=3),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(lambda t: t[0] + t[1]),
        st.tuples(FORMS, inner).map(lambda t: [f"if {t[0]}:", *("  " + r for r in t[1])]),
        st.tuples(FORMS, inner).map(lambda t: [f"for x in {t[0]}:", *("  " + r for r in t[1])]),
        inner.map(lambda b: ["try:", *("  " + r for r in b), "except E as e:", "  pass"]),
        inner.map(lambda b: ["def h(a=1):", *("  " + r for r in b)]),
        inner.map(lambda b: ["match a:", "  case [1, x]:", *("    " + r for r in b)]),
    ),
    max_leaves=4,
)
SOURCES = BLOCKS.map(lambda rows: "class C:\n def f(self, a, b):\n" + "".join(f"  {r}\n" for r in rows)).filter(
    lambda s: _parses(s)
)


def _parses(source: str) -> bool:
    try:
        ast.parse(source)
    except SyntaxError:
        return False
    return True


@given(SOURCES, SOURCES)
@settings(max_examples=150, deadline=None)
def test_different_trees_and_only_those_have_effects(one: str, other: str) -> None:
    found = effects_of(one.encode(), other.encode())
    assert bool(found) == (ast.dump(ast.parse(one)) != ast.dump(ast.parse(other)))
    assert found == effects_of(one.encode(), other.encode())
    assert effects_of(one.encode(), (ast.unparse(ast.parse(one)) + "  # said anew\n").encode()) == ()


def test_a_large_file_is_compared_where_it_differs() -> None:
    rows = [f"def f{i}(a):\n    b = a + {i}\n    return b\n" for i in range(1700)]
    before = "".join(rows).encode()
    (found,) = effects_of(before, before.replace(b"a + 1234\n", b"a - 1234\n"))
    assert (found.kind, found.function) == (EffectKind.CHANGES_OPERATOR, "f1234")
