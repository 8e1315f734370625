"""Texts that somebody wrote become edits by the rules of the edit space: exact splices, valid syntax, known names."""

import ast
import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localagent.code.symbols import FactIndex
from localagent.domain.edit import SPAN, Edit
from localagent.domain.paths import RepoPath
from localagent.edit.external_edits import Page

M = RepoPath("m.py")
SOURCE = '''\
"""Module."""

import json

NAME = "é: %s"


class Store:
    def save(self, rows, path):
        """Keeps rows."""
        total = len(
            rows,
        )
        if not rows:
            return None
        text = json.dumps(rows)
        return text, total
'''


def page(source: str = SOURCE, encoding: str = "utf-8") -> Page:
    return Page(M, {M: source.encode(encoding)}, FactIndex())


def put(line: int, old: str, new: str, source: str = SOURCE, encoding: str = "utf-8") -> tuple[Edit | None, str]:
    """The edit that puts `new` for `old` on a line, and the source that it makes."""
    made = page(source, encoding)
    (place,) = made.code_lines([line])
    text = source.encode().splitlines(keepends=True)
    start = len(b"".join(text[: line - 1])) + text[line - 1].index(old.encode())
    edit = made.edit(place, start, start + len(old.encode()), new, prior=-2.5)
    return edit, edit.apply(source.encode(encoding)).decode(encoding) if edit else ""


def test_lines_of_code_are_places_and_nothing_else_is() -> None:
    places = page().code_lines(range(1, 18))
    assert [p.line for p in places] == [3, 5, 9, 11, 12, 13, 14, 15, 16, 17]
    inner = next(p for p in places if p.line == 12)
    assert (inner.head.split(), inner.indent) == (["total", "=", "len("], "        ")


def test_an_edit_says_what_it_is() -> None:
    edit, after = put(16, "rows)", "rows, sort_keys=True)")
    assert edit is not None
    assert after == SOURCE.replace("dumps(rows)", "dumps(rows, sort_keys=True)")
    assert (edit.operator, edit.line, edit.end_line, edit.prior) == (SPAN, 16, 16, -2.5)
    assert edit.note == ", sort_keys=True added"
    assert edit.scope is not None
    assert edit.scope.qualname == "Store.save"
    (splice,) = edit.splices
    assert splice.text == b", sort_keys=True"


def test_whole_lines_may_come_before_one() -> None:
    edit, after = put(16, "text", "if not path:\n            raise ValueError(path)\n        text")
    assert edit is not None
    assert "        if not path:\n            raise ValueError(path)\n        text = json" in after


@pytest.mark.parametrize(
    ("line", "old", "new"),
    [
        (16, "rows)", "rows"),  # does not parse
        (16, "rows", "rows"),  # nothing new
        (16, "(rows)", "( rows )"),  # the same tree
        (16, "rows)", "rowz)"),  # no such name
        (16, "dumps", "dumpz"),  # no such attribute
        (16, "rows)", "rows)  # as text"),  # a comment
        (14, "not rows:", "return rows:"),
        (17, "return", "yield return"),
        (17, "text, total", "text, total\n    return rows"),  # dedents out of the function's block
    ],
)
def test_what_is_no_edit_is_none(line: int, old: str, new: str) -> None:
    assert put(line, old, new)[0] is None


def test_the_same_edit_is_made_once() -> None:
    made = page()
    (place,) = made.code_lines([17])
    start = place.start + len("return ")
    assert made.edit(place, start, place.end, "total", prior=0.0) is not None
    assert made.edit(place, start, place.end, "(total)", prior=0.0) is None


def test_what_may_be_written_next() -> None:
    made = page()
    (place,) = made.code_lines([16])
    at = place.start + len("text = json.dumps(rows")
    for text, good in ((", sort", True), (", sort_keys=", True), (", zz", False), (" rows", False), (") #", False)):
        assert made.viable(place, at, text) is good, text
    (inner,) = made.code_lines([12])
    assert made.viable(inner, inner.start, "rows or [")
    assert not made.viable(inner, inner.start, "rows or ]")


def test_other_encodings_and_line_ends_are_kept() -> None:
    source = "# coding: latin-1\r\nNAME = 'é'\r\nOTHER = NAME\r\n"
    edit, after = put(3, "NAME", "NAME + 'è'", source, "latin-1")
    assert edit is not None
    assert after == source.replace("OTHER = NAME", "OTHER = NAME + 'è'")
    assert put(3, "NAME", "NAME + '→'", source, "latin-1")[0] is None  # the encoding cannot say it
    edit, after = put(3, "OTHER", "NAME = 2\nOTHER", source, "latin-1")
    assert edit is not None
    assert "NAME = 2\r\nOTHER" in after


def test_a_file_that_does_not_parse_is_not_usable() -> None:
    assert not page("def f(:\n").usable
    assert page("def f(:\n").code_lines([1]) == []


@pytest.mark.long
@settings(max_examples=150, deadline=None)
@given(
    line=st.sampled_from([5, 9, 11, 14, 16, 17]),
    cut=st.tuples(st.integers(0, 40), st.integers(0, 12)),
    new=st.text(alphabet="ab =+()[]:.,\n'\"#\\é\trows", max_size=12),
)
def test_whatever_is_written_the_result_parses_and_only_the_stretch_changes(
    line: int, cut: tuple[int, int], new: str
) -> None:
    made = page()
    (place,) = made.code_lines([line])
    raw = SOURCE.encode()
    start = min(place.start + cut[0], place.end)
    end = min(start + cut[1], place.end)
    try:
        raw[:start].decode()
        raw[start:end].decode()
    except UnicodeDecodeError:
        return
    edit = made.edit(place, start, end, new, prior=0.0)
    if edit is not None:
        after = edit.apply(raw)
        assert after == raw[:start] + new.encode() + raw[end:]
        with warnings.catch_warnings(action="ignore"):
            assert ast.dump(ast.parse(after)) != ast.dump(ast.parse(raw))
