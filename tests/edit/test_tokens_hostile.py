"""Hostile sources end the token search by its own bounds, with answers that parse or none, never an exception."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localagent.domain.paths import RepoPath
from localagent.edit.syntax_repair import syntax_space
from localagent.edit.syntax_repair import syntax_space as broken_regions
from localagent.edit.syntax_repair.lexer import SyntaxFault, fault_of, lexemes_of, lines_of
from localagent.edit.syntax_repair.syntax_space import TokenEditSpace

PATH = RepoPath("mod.py")

HOSTILE = {
    "two megabytes on one line": b"x = (" + b"1 + " * (500 << 10),
    "more than two megabytes": b"x = (\n" + b"y = 1\n" * (400 << 10),
    "deep brackets": b"x = " + b"(" * 3000,
    "deep blocks": b"\n".join(b" " * n + b"if x:" for n in range(3000)),
    "escaped quotes": b'"""' + b'\\"""' * 40_000,
    "escaped single quotes": b"'" + b"\\'" * 700 + b"\n(",
    "only NULs": b"\0" * 50_000,
    "NULs in code": b"if a\0:\n\0  (",
    "latin-1": "é = (".encode("latin-1"),
    "unknown encoding": b"# coding: no-such-codec\n(",
    "an encoding that is no text": b"# coding: hex\n(",
    "utf-7": b"# coding: utf-7\n+ACI (",
    "lone CR": b"if a\r  b\rc = (\r",
    "only a BOM and a bracket": b"\xef\xbb\xbf(",
    "form feeds": b"\x0cif a\x0c\n\x0c  b\n",
    "line continuation at the end": b"a = 1 + \\",
    "separators Python does not know": "a = (\u2028b\x1c\x85\n".encode(),
    "many lines of brackets": b"(\n" * 20_000,
    "binary": bytes(range(256)) * 40,
    "deep operators": b"x = " + b"-" * 5_000,
    "many unclosed quotes": b"x = '\n" * 5_000,
    "nothing but a keyword": b"if",
    "surrogates": b"x = '\xed\xa0\x80' (",
}


@pytest.mark.long
@pytest.mark.parametrize("name", HOSTILE)
def test_bounded_and_quiet(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed = 0
    real = fault_of

    def counting(text: str | bytes) -> SyntaxFault | None:
        nonlocal parsed
        parsed += len(text)
        return real(text)

    for module in (syntax_space, broken_regions):
        monkeypatch.setattr(module, "fault_of", counting)
    source = HOSTILE[name]
    for edit in itertools.islice(TokenEditSpace().edits(PATH, {PATH: source}, lines=None, failures=()), 20):
        assert real(edit.apply(source)) is None
    assert parsed <= syntax_space.PARSED_CHARS_BUDGET + 4 * len(source)


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=300))
def test_lexemes_cover_what_is_not_blank_and_lie_on_their_lines(text: str) -> None:
    lines = lines_of(text)
    at = 0
    for x in lexemes_of(text):
        assert text[at : x.start].strip(" \t\f\u00a0\r\n\\") == ""
        assert text[x.start : x.end] == x.text
        assert lines[x.line].start <= x.start <= lines[x.line].stop
        at = x.end
    assert "".join(text[x.start : x.stop] for x in lines) == text


@pytest.mark.long
@settings(max_examples=60, deadline=None)
@given(st.text(alphabet="if x=():'\"\n\t [0]#\\\rdef,é\u2028", max_size=60))
def test_any_text_ends(text: str) -> None:
    source = text.encode()
    for edit in itertools.islice(TokenEditSpace().edits(PATH, {PATH: source}, lines=None, failures=()), 5):
        assert fault_of(edit.apply(source)) is None
