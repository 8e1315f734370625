"""Code that is still being written: every beginning of a real statement may go on, and nonsense may not."""

import ast
from pathlib import Path

import pytest

from localagent.code.known_names import KnownIdentifiers
from localagent.code.symbols import collect
from localagent.edit import incremental_check
from localagent.edit.incremental_check import exists, may_continue, scan

SOURCE = Path(incremental_check.__file__).read_text(encoding="utf-8")
STATEMENTS = sorted(
    {
        text
        for node in ast.walk(ast.parse(SOURCE))
        if isinstance(node, ast.Assign | ast.Return | ast.Expr | ast.AugAssign | ast.AnnAssign | ast.Raise)
        and (text := ast.get_source_segment(SOURCE, node)) is not None
        and "\n" not in text
    }
)


@pytest.mark.long
@pytest.mark.parametrize("statement", STATEMENTS)
def test_every_beginning_of_a_statement_may_go_on(statement: str) -> None:
    beginnings = [statement[:cut] for cut in range(1, len(statement) + 1)]
    assert [b for b in beginnings if not b.rstrip(" ").endswith(("!", "\\")) and not may_continue(b, "    ")] == []


@pytest.mark.parametrize(
    "text",
    [
        *("if x i", "elif x", "else", "except Va", "for a in b", "with open(x) a", "d = {a: b, c", "raise E(f'a {x"),
        *("@prop", "def f(self, a=1", "return sorted(x, key=", "if not x:\n        ret", "x = 'it", "{'a': 'b"),
        "if not x:\n        return None\n    y",
    ],
)  # fmt: skip
def test_headers_and_several_lines_may_go_on(text: str) -> None:
    assert may_continue(text, "    ")


@pytest.mark.parametrize(
    "text",
    ["x = )", "x = a b", "x = (a b c", "if x)", "1 = x +", "x = 'a' 5", "def 5", "x = 'a\nb", "f(]", "return x y z"],
)
def test_what_cannot_become_a_statement_may_not(text: str) -> None:
    assert not may_continue(text, "    ")


def test_words_are_seen_outside_strings_only() -> None:
    found = scan("total = rows.size('no', key=f(x), y=1) == z  # why")
    assert [(w.text, w.after, w.before) for w in found.words] == [
        ("total", "", "="),
        ("rows", "=", "."),
        ("size", ".", "("),
        ("key", ",", "="),
        ("f", "=", "("),
        ("x", "(", ")"),
        ("y", ",", "="),
        ("z", "=", "#"),
    ]
    assert (found.open, found.quote, found.sound) == ("", "", True)
    assert found.comment == len("total = rows.size('no', key=f(x), y=1) == z  ")
    assert (scan("a[f('x").open, scan("a[f('x").quote) == ("[(", "'")


def known() -> KnownIdentifiers:
    facts = collect(
        b"import json\n\ndef save(path, indent=2):\n    other.rows = json.loads(path)\n\ndef test_it(): pass\n"
    )
    assert facts is not None
    return KnownIdentifiers([facts])


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("save(path, indent=3)", ""),
        ("json.dumps(path, sort_keys=True)", ""),
        ("path.rows.strip()", ""),
        ("len(path)", ""),
        ("test_it()", "test_it"),
        ("json.dumpz(path)", "dumpz"),
        ("save(paht)", "paht"),
        ("save(path, wrong=1)", "wrong"),
        ("path == missing", "missing"),
    ],
)
def test_names_that_exist(text: str, missing: str) -> None:
    assert exists(scan(text).words, 0, known()) == missing


def test_a_word_being_written_need_only_begin_like_one() -> None:
    for text, missing in (("json.dum", ""), ("json.dux", "dux"), ("save(path, ind", ""), ("save(path, inx", "inx")):
        assert exists(scan(text).words, 0, known(), unfinished_at=len(text)) == missing
