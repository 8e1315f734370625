"""Laws of the edit space: every edit parses, is new, touches only its splices, and can be taken back."""

import ast
import itertools
from collections.abc import Sequence
from itertools import islice

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from localagent.domain.edit import Edit, Splice
from localagent.domain.paths import RepoPath
from localagent.edit import space as space_module
from localagent.edit.operator_registry import operators
from localagent.edit.space import LibcstEditSpace
from localagent.ports import Priced

PATH = RepoPath("pkg/mod.py")

PIECES = [
    "if a < b and not c:\n    total += a[i + 1]\nelif a is None:\n    return []\nelse:\n    c = f'{a + 1!r:>{b}}'\n",
    "for i, x in enumerate(items[1:]):\n    if x in seen: continue\n    seen.add(x)\n    out.append((x, i - 1))\n",
    "while n:\n    n &= n - 1\n    if n > 10:\n        break\nelse:\n    n = -1\n",
    "try:\n    value = table[key]\nexcept (KeyError, IndexError) as e:\n"
    "    raise ValueError('no \\t key') from e\nfinally:\n    n = 0\n",
    "with open(a) as f, open(b) as g:\n    g.write(f.read().lower())\n",
    "best = max((x for x in items if x > 0), key=lambda x: -x, default=0)\n",
    "x = (a\n     + b  # why\n     * 2)\n",
    "a, b = b, a % b; n = 1\n",
    "def inner(p, q=[], *rest, k=None, **kw):\n    nonlocal n\n    n = p\n    return inner(q, p)\n",
    "match a:\n    case [x, *_] if x > 1:\n        n = x\n"
    "    case {'k': v}:\n        n = v\n    case _:\n        pass\n",
    "s = 'it''s' \"two\" and b'\\x00' or 1_000 ** -2\n",
    "yield a if b else (yield c)\n",
    "assert not (a and b), 'é text'\n",
    "del out[0]\n",
    "return [y for x in items for y in x if y != 0] or {**table, 'a': 1}\n",
]


def indent(text: str, by: str) -> str:
    return "".join(by + line if line.strip() else line for line in text.splitlines(keepends=True))


@st.composite
def modules(draw: st.DrawFn) -> str:
    pieces = draw(st.lists(st.sampled_from(PIECES), min_size=1, max_size=2))
    unit = draw(st.sampled_from(["    ", "\t", "  "]))
    n_bound = "n = a = b = c = i = 0\nitems, out, seen, table, key = [], [], set(), {}, 1\n"
    body = indent(n_bound, unit) + "".join(indent(p, unit) for p in pieces)
    body = body.replace("    ", unit) if unit == "\t" else body
    form = draw(st.sampled_from(["function", "method", "module"]))
    if form == "module":
        usable = [p for p in pieces if "return" not in p and "yield" not in p and "nonlocal" not in p]
        return n_bound + "".join(usable)
    if form == "method":
        return "class C:\n    '''Doc.'''\n    k = 1\n\n    @staticmethod\n" + indent("def f(a, b):\n" + body, "    ")
    return "import os\n\n\ndef f(a, b=1):\n" + body + "\n\ndef g(x):\n    return f(x, b=x)\n"


def edits_of(source: bytes) -> list[Edit]:
    return list(LibcstEditSpace({}).edits(PATH, {PATH: source}, lines=None, failures=()))


def check_laws(source: bytes, edits: list[Edit]) -> None:
    before = ast.dump(ast.parse(source))
    seen = set()
    for e in edits:
        after = e.apply(source)
        dump = ast.dump(ast.parse(after))
        assert dump != before, e
        assert dump not in seen, e
        seen.add(dump)
        at = 0
        for s in e.splices:
            assert at <= s.start <= s.end <= len(source)
            at = s.end
        assert taken_back(e, after, source) == source


def taken_back(edit: Edit, after: bytes, source: bytes) -> bytes:
    shift, back = 0, []
    for s in edit.splices:
        start = s.start + shift
        back.append(Splice(start=start, end=start + len(s.text), text=source[s.start : s.end]))
        shift += len(s.text) - (s.end - s.start)
    inverse = Edit(path=PATH, splices=tuple(back), operator="inverse", line=1, end_line=1, prior=0.0)
    return inverse.apply(after)


@pytest.mark.long
@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(modules(), st.data())
def test_every_edit_parses_is_new_and_can_be_taken_back(text: str, data: st.DataObject) -> None:
    source = text.encode()
    ast.parse(source)
    line = data.draw(st.integers(1, text.count("\n")))
    found = LibcstEditSpace({}).edits(PATH, {PATH: source}, lines=frozenset({line}), failures=())
    check_laws(source, list(found))


STRANGE = {
    "crlf": b"def f(a):\r\n    if a > 1:\r\n        return a[0]\r\n    return a + 1\r\n",
    "bom": b"\xef\xbb\xbfdef f(a):\n    return a + 1\n",
    "tabs": b"class C:\n\tdef f(self, a):\n\t\tif a:\n\t\t\treturn a - 1\n\t\treturn 'x'\n",
    "form feed": b"x = 1\n\x0c\ndef f(a):\n    b = a * 2\n\x0c\n    return a < b\n\x0c\n",
    "latin-1": b"# -*- coding: latin-1 -*-\nname = '\xe9t\xe9'\n\n"
    b"def f(a):\n    return a + '\xe9' if a < 3 else name\n",
    "no last newline": b"def f(a):\n    return a + 1",
    "wide characters": "def f(größe):\n    ß = 'äöü'; return größe + len(ß)\n".encode(),
    "one line": b"def f(a): return a + 1\nclass C: x = 1; y = 2\n",
}


@pytest.mark.parametrize("name", STRANGE)
def test_strange_files_keep_every_byte_outside_the_splices(name: str) -> None:
    source = STRANGE[name]
    edits = edits_of(source)
    assert len(edits) > 5
    check_laws(source, edits)


def test_scope_names_the_outermost_function_and_its_spans() -> None:
    source = b"class A:\n    class B:\n        @deco\n        def f(self, a=1):\n"
    source += b"            def g(): return a\n            return a + 1\n\nx = 1\n"
    found = edits_of(source)
    scope = next(e.scope for e in found if e.line == 6)
    assert scope is not None
    assert (scope.name, scope.qualname, scope.class_name, scope.first_line, scope.last_line) == (
        "f",
        "A.B.f",
        "B",
        3,
        6,
    )
    assert source[scope.start : scope.start + 5] == b"@deco"
    assert source[: scope.body_start].endswith(b"a=1):")
    assert source[scope.end :] == b"\nx = 1\n"
    assert all(e.scope is None for e in found if e.line == 8)


def test_only_the_lines_asked_for_are_edited() -> None:
    source = b"def f(a):\n    b = a + 1\n    c = b * 2\n    return c - 1\n"
    space = LibcstEditSpace({})
    found = list(space.edits(PATH, {PATH: source}, lines=frozenset({3}), failures=()))
    assert found
    whole_function = {"definitions"}
    assert {e.line for e in found if operators()[e.operator].family not in whole_function} <= {3, 4}
    assert not [e for e in found if e.line == 4 and e.operator != "return-missing"]


def test_best_prior_first() -> None:
    priors = [e.prior for e in edits_of(b"def f(a, b):\n    if a < b and b:\n        return a[b - 1]\n    return 0\n")]
    assert priors == sorted(priors, reverse=True)


def dumps(source: bytes, edits: Sequence[Edit]) -> set[str]:
    return {ast.dump(ast.parse(e.apply(source))) for e in edits}


def test_priced_edits_come_by_what_they_cost_and_are_as_likely_as_before() -> None:
    source = b"def f(a, b):\n    c = a + 1\n    return (a < b and\n            c)\n"
    space = LibcstEditSpace({})
    plain = list(space.edits(PATH, {PATH: source}, lines=frozenset({2, 3, 4}), failures=()))
    dearer = {2: 3.0, 3: 0.0, 4: 1.5}
    told = list(space.edits(PATH, {PATH: source}, lines=Priced(dearer=dearer, crowd=0.0), failures=()))
    least = [min(dearer[k] for k in range(e.line, e.end_line + 1) if k in dearer) for e in told]
    costs = [more - e.prior for e, more in zip(told, least, strict=True)]
    assert {2, 3, 4} <= {e.line for e in told}
    assert costs == pytest.approx(sorted(costs))
    assert [e.line for e in told] != [e.line for e in plain]
    assert dumps(source, told) == dumps(source, plain)
    alone = list(
        space.edits(PATH, {PATH: source}, lines=Priced(dearer=dict.fromkeys(dearer, 2.0), crowd=0.0), failures=())
    )
    assert alone == plain


def test_once_it_is_late_no_more_edits_are_looked_for() -> None:
    source = b"".join(b"def f%d(a, b):\n    return a < b and a > %d\n" % (k, k) for k in range(40))
    asked = itertools.count()
    lines = Priced(dearer={2 * k + 2: 0.0 for k in range(40)}, crowd=0.0, late=lambda: next(asked) > 30)
    found = list(LibcstEditSpace({}).edits(PATH, {PATH: source}, lines=lines, failures=()))
    assert {e.line for e in found} == {2}  # the first function's, as far as they had been found
    late = Priced(dearer=lines.dearer, crowd=0.0, late=lambda: True)
    assert not list(LibcstEditSpace({}).edits(PATH, {PATH: source}, lines=late, failures=()))


def test_many_edits_by_one_operator_at_one_line_make_room_for_others() -> None:
    source = b"def f(a, b):\n    return a < b and a > 1\n"
    space = LibcstEditSpace({})
    plain = list(space.edits(PATH, {PATH: source}, lines=frozenset({2}), failures=()))
    crowded = list(space.edits(PATH, {PATH: source}, lines=Priced(dearer={2: 0.0}, crowd=1.0), failures=()))
    assert dumps(source, plain) == dumps(source, crowded)
    assert len({e.operator for e in crowded[:20]}) > len({e.operator for e in plain[:20]})


def test_the_most_suspicious_line_has_its_edits_however_many_stand_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(space_module, "_MAX_PROPOSALS", 300)
    source = b"".join(b"def f%d(a, b):\n    return a < b and a > %d\n" % (k, k) for k in range(40))
    dearer = {2 * k + 2: 0.0 if k == 37 else 3.0 for k in range(40)}
    found = LibcstEditSpace({}).edits(PATH, {PATH: source}, lines=Priced(dearer=dearer, crowd=0.0), failures=())
    assert {e.line for e in islice(found, 20)} == {2 * 37 + 2}


def test_the_prior_given_replaces_the_built_in_weight() -> None:
    source = b"def f(a, b):\n    return a < b\n"
    heavy = LibcstEditSpace({"compare-swap": 9.0}).edits(PATH, {PATH: source}, lines=None, failures=())
    assert next(iter(heavy)).operator == "compare-swap"


@pytest.mark.parametrize(
    "source", [b"def f(:\n", b"\x00", b"# coding: nonsense\nx = 1\n", b"# coding: utf-8\nx = '\xff'\n"]
)
def test_what_does_not_parse_has_no_tree_edits(source: bytes) -> None:
    assert edits_of(source) == []


@pytest.mark.long
def test_of_a_table_of_thousands_of_literals_a_share_of_the_edits_comes_and_all_of_what_stands_beside_it() -> None:
    beside = "def f(a):\n    return a + 1\n"

    def offered(entries: int) -> tuple[int, set[str]]:
        source = "TABLE = [" + ", ".join(f"'k{i}'" for i in range(entries)) + "]\n" + beside
        found = LibcstEditSpace({}).edits(PATH, {PATH: source.encode()}, lines=None, failures=[])
        texts = [e.apply(source.encode()).decode() for e in found]
        return (
            sum(t.endswith(beside) for t in texts),
            {t.rpartition("def f")[2] for t in texts if "'k" not in t.rpartition("def f")[2]},
        )

    small, large = offered(60), offered(900)
    assert small[0] > 1_000
    assert large[0] < small[0] / 2
    assert len(small[1]) > 20
    assert small[1] == large[1]


@pytest.mark.parametrize("codec", ["utf-7", "iso2022_jp", "hz"])
def test_files_in_which_bytes_mean_what_those_in_front_say_are_left_alone(codec: str) -> None:
    source = f"# -*- coding: {codec} -*-\ndef f(a):\n    return a + 1\n".encode("ascii")
    assert not edits_of(source)
    assert edits_of(source.replace(codec.encode(), b"ascii"))
