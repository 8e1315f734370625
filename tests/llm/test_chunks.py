"""The law of chunks: what was read before changes neither where a text is cut nor what is read of it with what."""

from dataclasses import dataclass, replace

from hypothesis import given
from hypothesis import strategies as st

from localagent.llm.process.chunks import CHUNK_TOKENS, LEAST_FRONT_TOKENS, Chunks

C = CHUNK_TOKENS
LENGTHS = st.one_of(st.integers(0, 4 * C), st.sampled_from([C - 1, C, C + 1, 2 * C, 3 * C, LEAST_FRONT_TOKENS]))


@dataclass(frozen=True, kw_only=True)
class Text:
    """Tokens that begin like those of other texts, as far as `alike`; read up to `last`, asked from `asked` on."""

    alike: int
    own: int
    front: int
    last: int
    asked: int

    @property
    def tokens(self) -> list[int]:
        return [0] * self.alike + [self.own] * (5 * C - self.alike)


@st.composite
def some_text(draw: st.DrawFn) -> Text:
    last, front = draw(LENGTHS), draw(LENGTHS)
    asked = draw(st.one_of(st.integers(0, last), st.just(last), st.just(min(last, front))))
    return Text(alike=draw(LENGTHS), own=draw(st.integers(1, 3)), front=front, last=last, asked=asked)


def read(chunks: Chunks, text: Text, cells: list[tuple[int, int]]) -> tuple[int, list[tuple[int, int]]]:
    """What is kept, and for each token that then lies there the chunk that it was decoded in."""
    keep = at = chunks.begin(text.tokens, front=text.front, most=text.asked)
    cells = cells[:keep]
    while at < text.last:
        stop = chunks.stop(at, text.last)
        assert at < stop <= min(at + C, text.last)
        chunks.decoded(text.tokens[at:stop])
        cells += [(at, stop)] * (stop - at)
        at = stop
    return keep, cells


@given(st.lists(some_text(), min_size=1, max_size=6))
def test_a_text_is_read_in_the_same_chunks_whatever_was_read_before(texts: list[Text]) -> None:
    chunks, cells = Chunks(), list[tuple[int, int]]()
    for text in texts:
        keep, cells = read(chunks, text, cells)
        assert keep <= text.asked
        _, alone = read(Chunks(), text, [])
        assert cells[: text.last] == alone


def test_a_front_that_is_no_whole_number_of_chunks_is_kept_whole() -> None:
    chunks = Chunks()
    front = Text(alike=C + 70, own=1, front=C + 70, last=C + 70, asked=C + 70)
    assert read(chunks, front, [])[1][-1] == (C, C + 70)
    for own in (2, 3):
        assert read(chunks, Text(alike=C + 70, own=own, front=C + 70, last=3 * C, asked=C + 80), [])[0] == C + 70


def test_chunks_behind_another_front_are_not_kept() -> None:
    """They hold the right tokens, and were decoded in other company."""
    long = Text(alike=4 * C, own=1, front=C + 60, last=4 * C, asked=4 * C)
    for front in (0, C + 70, 3 * C):
        for first, second in ((long, replace(long, front=front)), (replace(long, front=front), long)):
            chunks = Chunks()
            read(chunks, first, [])
            assert read(chunks, second, [])[0] == C


def test_what_could_not_be_removed_in_part_is_gone() -> None:
    chunks = Chunks()
    text = Text(alike=2 * C, own=1, front=0, last=2 * C, asked=2 * C)
    read(chunks, text, [])
    assert chunks.cut(0) == 0
    assert read(chunks, text, [])[0] == 0
