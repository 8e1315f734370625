"""Local re-tokenization finds the same departure as tokenizing the whole edited text again."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localagent.llm.process.first_difference import FirstDifference, TokenizedText

_PIECES = re.compile(rb"'s|'t| ?[A-Za-z]+|[0-9]| ?[^\sA-Za-z0-9]+|\s+(?!\S)|\s+")
END = 0


def tokenize(data: bytes) -> list[int]:
    """Byte-level pieces as GPT-2's family cuts them, each then split greedily; a token is its own bytes as a number."""
    out = []
    for piece in _PIECES.findall(data):
        out += [int.from_bytes(b"\1" + piece[at : at + 3], "big") for at in range(0, len(piece), 3)]
    return out


def length(token: int) -> int:
    return (token.bit_length() + 7) // 8 - 1


def both(data: bytes) -> tuple[TokenizedText, TokenizedText]:
    return TokenizedText(data, tokenize, length, END, local=True), TokenizedText(
        data, tokenize, length, END, local=False
    )


def whole(data: bytes, cuts: list[tuple[int, int, bytes]]) -> FirstDifference | None:
    """The definition: first difference of two whole tokenizations, each followed by the end."""
    edited, at = b"", 0
    for start, end, text in cuts:
        edited, at = edited + data[at:start] + text, end
    old, new = [*tokenize(data), END], [*tokenize(edited + data[at:]), END]
    for index, (a, b) in enumerate(zip(old, new, strict=False)):
        if a != b:
            return FirstDifference(index=index, old=a, new=b)
    return None


WORDS = [
    b"return",
    b" x",
    b"  ",
    b"\n    ",
    b"(",
    b")",
    b" == ",
    b"'s",
    b"not ",
    b"1",
    b"foo(bar)",
    b"",
    b" ",
    b"a",
    b"\n\n",
    b"#",
]
texts = st.lists(st.sampled_from(WORDS), max_size=40).map(b"".join)


@pytest.mark.long
@settings(max_examples=400, deadline=None)
@given(
    data=texts,
    places=st.lists(st.integers(0, 200), min_size=2, max_size=6),
    words=st.lists(st.sampled_from(WORDS), min_size=3),
)
def test_local_and_whole_tokenization_agree(data: bytes, places: list[int], words: list[bytes]) -> None:
    bounds = sorted(min(place, len(data)) for place in places)
    cuts = [(a, b, word) for (a, b), word in zip(zip(bounds[::2], bounds[1::2], strict=False), words, strict=False)]
    local, full = both(data)
    assert local.faithful
    assert local.departure(cuts) == full.departure(cuts) == whole(data, cuts)


def test_the_first_departing_token_of_a_swap() -> None:
    data = b"x = a < b\nreturn x\n"
    local, _ = both(data)
    found = local.departure([(6, 7, b"<=")])
    assert found is not None
    assert (found.old, found.new) == (tokenize(b" <")[0], tokenize(b" <=")[0])
    assert found.index == len(tokenize(data[:5]))


def test_removing_the_end_is_seen_as_the_end_token() -> None:
    data = b"x = 1 2 3"
    for text in both(data):
        assert text.departure([(5, 9, b"")]) == FirstDifference(
            index=len(tokenize(b"x = 1")), old=tokenize(b" ")[0], new=END
        )


def test_an_edit_that_changes_nothing_departs_nowhere() -> None:
    for text in both(b"x = 1 + y\n"):
        assert text.departure([(4, 5, b"1")]) is None


def test_a_repeated_insertion_departs_where_the_repetition_ends() -> None:
    data = b"f(a, a, a, b)\n"
    for text in both(data):
        assert text.departure([(4, 4, b" a,")]) == whole(data, [(4, 4, b" a,")])


def test_only_a_stretch_is_tokenized_again() -> None:
    seen: list[int] = []

    def counting(data: bytes) -> list[int]:
        seen.append(len(data))
        return tokenize(data)

    data = b"value = other + 1\n" * 200
    text = TokenizedText(data, counting, length, END, local=True)
    seen.clear()
    text.departure([(2000, 2001, b"x")])
    assert max(seen) < 60
    text.departure([(2000, 2001, b"x")])
    assert len(seen) == 1


def test_lengths_that_do_not_add_up_are_noticed() -> None:
    assert not TokenizedText(b"abc def", tokenize, lambda _token: 1, END, local=True).faithful


@pytest.mark.parametrize("data", [b"", b" ", b"\n", b"a"])
def test_tiny_texts(data: bytes) -> None:
    for text in both(data):
        assert text.departure([(0, 0, b"zz ")]) == whole(data, [(0, 0, b"zz ")])


def test_a_place_is_only_safe_if_the_edit_leaves_both_its_sides_alone() -> None:
    """The blanks after `a` join the new line that takes its place, so they are cut in another way."""
    data, cuts = b"x = a   b\n", [(3, 5, b"\n ")]
    local, full = both(data)
    assert tokenize(b"\n    b") != tokenize(b"\n ") + tokenize(b"   b")
    assert local.departure(cuts) == full.departure(cuts) == whole(data, cuts)
    data, cuts = b"x = a   b\n", [(4, 5, b"a"), (5, 5, b"")]
    assert both(data)[0].departure(cuts) is None
