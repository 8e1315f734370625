"""How an edited text reads on: the edit's own tokens and those behind it, beside the same stretch as it stood.

The first token at which an edit departs orders thousands for the price of one pass (`scorer`); what follows it has to
fit as well, and says more of the few hundred that come first. Each edit costs its own tokens and FOLLOWING more, and
all of one window share what stands in front (docs/adr/0045-the-likeliest-are-read-on.md).
"""

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from localagent.domain.edit import Edit
from localagent.llm.branches import Branch, Row
from localagent.llm.decoder import ModelDecoder, RowAnswer
from localagent.llm.served import Served
from localagent.llm.window import Place, Window, plan_windows

FOLLOWING = 24  # tokens behind an edit that are read with it
TOGETHER = 32  # edits in one request: what is answered when time runs out is kept
_MOST_EDIT_TOKENS = 120
_EDIT_TOKENS = FOLLOWING + 4.0  # what an edit costs, usually,
_WINDOW_TOKENS = 1_000  # and beside them all: what stands in front, and the stretch as it stood
_PIECE_TOKENS = 400
_SOURCE_BYTES = 2 << 20


@dataclass(frozen=True, kw_only=True, slots=True)
class _Way:
    """One edited text beside the unedited: they part at token `at`, meet again at `old` and `new`, and are read on."""

    member: int
    at: int
    old: int
    new: int
    tokens: tuple[int, ...]

    @property
    def behind(self) -> int:
        """How many tokens are read behind the place where they meet."""
        return len(self.tokens) - (self.new - self.at)


class ModelOnward:
    """Asks one decoder: `ports.OnwardReader`."""

    def __init__(self, decoder: ModelDecoder, served: Served) -> None:
        """`served` is the model that `decoder` asks."""
        self._decoder, self._served = decoder, served

    def seconds(self, edits: int) -> float:
        """What so many edits may take, at the rate of what this task has had read so far; infinite before that."""
        rate = self._served.tokens_a_second
        return (edits * _EDIT_TOKENS + _WINDOW_TOKENS) / rate if rate > 0.0 else math.inf

    def read_on(self, source: bytes, edits: Sequence[Edit], *, timeout_seconds: float) -> list[float | None]:
        """For each edit log P(edited) - log P(as it stood), from where they part to FOLLOWING tokens behind; nats.

        None for what was not read: no room, no time, no model. What comes first in `edits` is read first.
        """
        found: list[float | None] = [None] * len(edits)
        if len(source) > _SOURCE_BYTES:
            return found
        ends = time.monotonic() + timeout_seconds
        asked = [k for k, edit in enumerate(edits) if edit.splices]
        for window in plan_windows(source, [_place(edits[k]) for k in asked]):
            members = [asked[k] for k in window.members]
            for member, nats in self._window(source, window, members, edits, ends):
                found[member] = nats
        return found

    def _window(
        self, source: bytes, window: Window, members: Sequence[int], edits: Sequence[Edit], ends: float
    ) -> Iterator[tuple[int, float]]:
        """What there was time for."""
        low, high = window.lead, window.end
        texts = [source[low:high]]
        for member in members:
            edited = edits[member].apply(source)
            texts.append(edited[low : len(edited) - (len(source) - high)])
        tokens: list[list[int]] = []
        for first in range(0, len(texts), TOGETHER):
            got = self._decoder.tokenize(texts[first : first + TOGETHER], timeout_seconds=_left(ends))
            if got is None:
                return
            tokens += got
        stood = tokens[0]
        ways = [_way(member, stood, text) for member, text in zip(members, tokens[1:], strict=True)]
        ways = [way for way in ways if way.new + way.old > 2 * way.at and way.new - way.at <= _MOST_EDIT_TOKENS]
        if not ways:
            return
        sums = self._stood(stood, ways, ends)
        if sums is None:
            return
        for first in range(0, len(ways), TOGETHER):
            some = ways[first : first + TOGETHER]
            answers = self._decoder.grow(stood, [_branch(way) for way in some], timeout_seconds=_left(ends), fresh=True)
            if answers is None:
                return
            for way, rows in zip(some, answers, strict=True):
                yield way.member, round(_total(rows) - (sums[way.old + way.behind] - sums[way.at]), 3)

    def _stood(self, stood: Sequence[int], ways: Sequence[_Way], ends: float) -> list[float] | None:
        """Log-probabilities of the unedited tokens summed up to each, counted from the first that any edit touches."""
        low, high = min(way.at for way in ways), max(way.old + way.behind for way in ways)
        told: list[float] = []
        for at in range(low, high, _PIECE_TOKENS):
            piece = stood[at : min(high, at + _PIECE_TOKENS)]
            answers = self._decoder.grow(stood, [_asked(at, piece)], timeout_seconds=_left(ends), fresh=True)
            if answers is None:
                return None
            told += [asked[0] for _, asked in answers[0]]
        return [0.0] * low + list(accumulate(told, initial=0.0))


def _place(edit: Edit) -> Place:
    start, end = edit.splices[0].start, edit.splices[-1].end
    if edit.scope is None:
        return Place(start=start, end=end, scope_start=start, scope_end=end)
    return Place(start=start, end=end, scope_start=min(edit.scope.start, start), scope_end=max(edit.scope.end, end))


def _way(member: int, stood: Sequence[int], text: Sequence[int]) -> _Way:
    most = min(len(stood), len(text))
    at = 0
    while at < most and stood[at] == text[at]:
        at += 1
    behind = 0
    while behind < most - at and stood[-1 - behind] == text[-1 - behind]:
        behind += 1
    old, new = len(stood) - behind, len(text) - behind
    at = max(1, at)  # nothing stands in front of the first token
    old, new = max(old, at), max(new, at)
    return _Way(member=member, at=at, old=old, new=new, tokens=tuple(text[at : new + FOLLOWING]))


def _branch(way: _Way) -> Branch:
    return _asked(way.at, way.tokens)


def _asked(at: int, tokens: Sequence[int]) -> Branch:
    """A branch that is asked for each of its tokens; the last one is not decoded."""
    rows = tuple(Row(index=k - 1, asked=(token,)) for k, token in enumerate(tokens))
    return Branch(at=at, tokens=tuple(tokens[:-1]), rows=rows)


def _total(rows: Sequence[RowAnswer]) -> float:
    return sum(asked[0] for _, asked in rows)


def _left(ends: float) -> float:
    return max(0.0, ends - time.monotonic())
