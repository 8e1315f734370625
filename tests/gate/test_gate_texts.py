"""Constant texts are computed as Python computes them, within bounds, and nothing else is."""

import ast
import base64
import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localagent.code.string_folding import texts_of, values_of

WORD = "system"
WAYS = (
    "'sys' + 'tem'",
    "'metsys'[::-1]",
    "''.join(['sys', 'tem'])",
    "''.join(map(chr, [115, 121, 115, 116, 101, 109]))",
    "''.join(chr(c - 1) for c in (116, 122, 116, 117, 102, 110))",
    "'%s%s' % ('sys', 'tem')",
    "'{}{}'.format('sys', 'tem')",
    "f\"{'sys'}tem\"",
    "bytes([115, 121, 115, 116, 101, 109]).decode()",
    f"bytes.fromhex('{WORD.encode().hex()}').decode('ascii')",
    f"base64.b64decode('{base64.b64encode(WORD.encode()).decode()}').decode()",
    f"codecs.decode('{codecs.encode(WORD, 'rot13')}', 'rot13')",
    "{'a': 'system'}['a']",
    "'x,system'.split(',')[1]",
    "'sysXtem'.replace('X', '')",
    "''.join(reversed('metsys'))",
)


def expression(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


@pytest.mark.parametrize("way", WAYS)
def test_a_text_is_seen_however_it_is_put_together(way: str) -> None:
    assert texts_of(expression(way)) == {WORD}


@pytest.mark.parametrize(
    "code",
    [
        "'x' * 10 ** 9",
        "'{0:>99999999}'.format('a')",
        "'%999999999d' % 1",
        "[[[[x for x in 'a' * 99] for x in 'a' * 99] for x in 'a' * 99] for x in 'a' * 99]",
        "'ab'[::0]",
        "f(x)",
        "'a'.zfill(10 ** 9)",
        "x + 'a'",
        "(1).bit_length()",
        "'{0.__class__}'.format('a')",
        "'a'.replace('', 'b' * 99 * 99)",
    ],
)
def test_what_is_computed_elsewhere_or_too_large_is_no_constant(code: str) -> None:
    assert values_of(expression(code)) is None


@given(st.lists(st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=8), min_size=1, max_size=5))
def test_joined_pieces_are_their_sum(pieces: list[str]) -> None:
    whole = "".join(pieces)
    assert texts_of(expression(" + ".join(map(repr, pieces)))) == {whole}
    assert texts_of(expression(f"''.join({pieces!r})")) == {whole}
    assert texts_of(expression(f"{whole[::-1]!r}[::-1]")) == {whole}


def test_every_case_of_a_choice_is_told() -> None:
    assert texts_of(expression("('a' if x else 'b') + 'c'")) == {"ac", "bc"}
