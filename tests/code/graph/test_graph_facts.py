"""The facts of one file: rows, places, and the way to bytes and back."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localagent.code.graph.collect_facts import collect_facts
from localagent.code.graph.facts import (
    ExpressionKind,
    FactsFormatError,
    ImportContext,
    ModuleFacts,
    Unreadable,
    UseKind,
    decoded,
    encoded,
)
from localagent.code.source_text import read_source

SOURCES = sorted((Path(__file__).parents[3] / "localagent" / "code").rglob("*.py"))
WORDS = st.sampled_from(
    ["x", "ä", "self", "\n", "    ", "def f(a, b=1):\n", "class C(x):\n", " = ", "(", ")", ".", ",", "'x.y'", "f'{x!r}'",  # noqa: E501
     "return ", "import a.b as c\n", "from . import *\n", "lambda q: q", "\r", "\0", "match x:\n", "@x\n", "global x\n"]
)  # fmt: skip


def facts_of(text: str) -> ModuleFacts:
    found = collect_facts(text.encode())
    assert isinstance(found, ModuleFacts), found
    return found


@given(st.lists(WORDS, max_size=30).map("".join))
def test_any_text_gives_facts_that_round_trip_or_a_reason(text: str) -> None:
    found = collect_facts(text.encode())
    assert found.reason if isinstance(found, Unreadable) else decoded(encoded(found)) == found


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: p.name)
def test_every_use_stands_where_it_says(path: Path) -> None:
    source = path.read_bytes()
    found, text = collect_facts(source), read_source(source)
    assert isinstance(found, ModuleFacts)
    assert text is not None
    assert decoded(encoded(found)) == found
    for use in found.uses:
        row = found.expressions[use.expression] if use.expression >= 0 else None
        if use.length > 0 and row is not None:
            start = text.offset(use.line, use.column)
            written = text.utf8[start : start + use.length].decode()
            name = found.names[row.b]
            assert written == (name.rpartition(".")[2] if row.kind == ExpressionKind.MODULE else name)


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (b"def f(:\n", "syntax error in line 1"),
        (b"\xff\xfe", "encoding"),
        (b"# coding: utf-7\nx = 1\n", "encoding"),
        (b"x = " + b"(" * 3000 + b")" * 3000, "nested too deeply"),
        (b"x = 1\0\n", "bytes"),
    ],
)
def test_a_file_without_facts_says_why(source: bytes, reason: str) -> None:
    found = collect_facts(source)
    assert isinstance(found, Unreadable)
    assert reason in found.reason or "syntax error" in found.reason


def test_a_chain_deeper_than_recursion_goes() -> None:
    found = collect_facts(b"x = a" + b".b" * 900 + b"\n")
    assert isinstance(found, ModuleFacts) or "deep" in found.reason


@pytest.mark.parametrize("data", [b"", b"x", encoded(facts_of("x = 1"))[:-3]])
def test_damaged_facts_are_refused(data: bytes) -> None:
    with pytest.raises(FactsFormatError):
        decoded(data)


def test_names_that_look_alike_to_python_keep_their_own_places() -> None:
    found = facts_of("ﬁle = 1\nprint(ﬁle)\n")  # a ligature, which Python reads as `file`
    uses = [u for u in found.uses if found.names[found.expressions[u.expression].b] == "file"]
    assert [(u.line, u.column, u.length) for u in uses] == [(1, 0, 5), (2, 6, 5)]


def test_imports_say_under_what_they_stand() -> None:
    text = "import a\nif TYPE_CHECKING:\n    import b\nif x:\n    import c\ntry:\n    from .d import e as f\nexcept E:\n    pass\n"  # noqa: E501
    found = facts_of(text)
    assert [(i.module, i.item, i.bound, i.context) for i in found.imports] == [
        ("a", "", "a", ImportContext.PLAIN),
        ("b", "", "b", ImportContext.TYPE_CHECKING),
        ("c", "", "c", ImportContext.CONDITIONAL),
        (".d", "e", "f", ImportContext.TRY),
    ]


def test_exports_add_up() -> None:
    found = facts_of("from . import m\n__all__ = ['a', 'b'] + m.__all__\n__all__ += ['c']\n__all__.append('d')\n")
    assert found.exports == ("a", "b", "c", "d")
    assert len(found.export_sources) == 1
    assert sum(u.kind == UseKind.EXPORT for u in found.uses) == 4


def test_definitions_hold_signature_docstring_and_lines() -> None:
    found = facts_of(
        '@mark\nclass A(B):\n    """What it is.\n\n    More.\n    """\n\n    async def m(self, a: int = 1) -> str: ...\n'  # noqa: E501
    )
    made = {found.qualified_name(at): d for at, d in enumerate(found.definitions)}
    assert (made["A"].doc, made["A"].signature, made["A"].first_line, made["A"].line) == ("What it is.", "A(B)", 1, 2)
    assert made["A.m"].signature == "m(self, a: int=1) -> str"
    assert (made["A.m"].line, made["A.m"].column) == (8, 14)
