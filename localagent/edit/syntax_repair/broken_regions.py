"""Where to search in a file that does not parse: its faulty stretches put together, then the whole file."""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from localagent.edit.syntax_repair.lexer import fault_of, lines_of
from localagent.edit.syntax_repair.pieces import Piece, Pieces

MAX_REGION_CHARS = 200_000
_SMALL_CHARS = 12_000  # a file of that size is searched as it is


@dataclass(frozen=True, slots=True)
class BrokenRegion:
    """A text to search, and where its pieces stand in the file."""

    text: str
    pieces: Pieces


def regions(text: str, spend: Callable[[int], bool]) -> Iterator[BrokenRegion]:
    """The faulty top-level stretches of a large file put together, then the whole file. `spend` as `Budget` has it."""
    whole = BrokenRegion(text, (Piece(0, len(text)),))
    if len(text) > _SMALL_CHARS and spend(len(text)):
        spans = _faulty_spans(text)
        size = sum(b - a for a, b in spans)
        if spans and size < min(len(text) * 0.8, MAX_REGION_CHARS):
            yield BrokenRegion("".join(text[a:b] for a, b in spans), tuple(Piece(a, b) for a, b in spans))
    if len(text) <= MAX_REGION_CHARS:
        yield whole


def _faulty_spans(text: str) -> list[tuple[int, int]]:
    """Spans from one unindented definition to the next that do not parse by themselves, neighbours merged."""
    cuts = [0]
    decorated = False
    for x in lines_of(text):
        if x.width or x.blank:
            continue
        decorator = text.startswith("@", x.start)
        definition = text.startswith(("def ", "class ", "async ", "class\t", "def\t"), x.start)
        if (decorator or definition) and not decorated and x.start:
            cuts.append(x.start)
        decorated = decorator
    cuts.append(len(text))
    spans: list[tuple[int, int]] = []
    bare = False
    for a, b in itertools.pairwise(cuts):
        fault = fault_of(text[a:b])
        if fault is None and not (bare and not text.startswith("class", a)):
            bare = False
            continue
        bare = (fault is not None and "expected an indented block" in fault.message) or bare
        if spans and spans[-1][1] == a:
            spans[-1] = (spans[-1][0], b)
        else:
            spans.append((a, b))
    return spans
