"""How an edited text reads on: the edit's own tokens and those behind it, beside the same stretch as it stood.

The first token at which an edit departs orders thousands for the price of one pass (`scorer`); what follows it has to
fit as well, and says more of the few hundred that come first. Each edit costs its own tokens and some more, and
all of one window share what stands in front (docs/adr/0045-the-likeliest-are-read-on.md). A model that mends is shown
the window as wrong first, and reads the edits on in its second copy: knowing what stood there, it tells more in fewer
tokens (docs/adr/0054-the-mender-reads-on.md).
"""

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from localagent.domain.edit import Edit
from localagent.domain.paths import RepoPath
from localagent.llm.process.model_client import Served
from localagent.llm.process.shared_prefix import Branch, LogitRow
from localagent.llm.scoring.decoder import ModelDecoder, RowAnswer
from localagent.llm.scoring.repair_prompt import BODY_BYTES, RIGHT, WRONG, lead_of
from localagent.llm.scoring.source_windows import BODY_BYTES as PLAIN_BYTES
from localagent.llm.scoring.source_windows import EditSpan, SourceWindow, plan_windows

FOLLOWING = 24  # tokens behind an edit that are read with it,
FOLLOWING_MENDED = 4  # by a model that mends
TOGETHER = 32  # edits in one request: what is answered when time runs out is kept
_MOST_EDIT_TOKENS = 120
_EDIT_TOKENS = 4.0  # of its own, usually
_TOKEN_BYTES = 3.0  # of code, about
_PIECE_TOKENS = 400
_SOURCE_BYTES = 2 << 20


@dataclass(frozen=True, kw_only=True, slots=True)
class _Way:
    """One edited text beside the unedited: they part at token `at`, meet again at `old` and `new`, and are read on."""

    member: int
    at: int
    old: int
    new: int
    tokens: tuple[int, ...]  # from where they part

    @property
    def behind(self) -> int:
        """How many tokens are read behind the place where they meet."""
        return len(self.tokens) - (self.new - self.at)

    @property
    def differs(self) -> bool:
        """Whether there is anything to be read."""
        return bool(self.tokens) and self.new + self.old > 2 * self.at


class ModelOnward:
    """Asks one decoder: `ports.OnwardReader`."""

    def __init__(self, decoder: ModelDecoder, served: Served) -> None:
        """`served` is the model that `decoder` asks."""
        self._decoder, self._served = decoder, served

    def seconds(self, source: bytes, edits: Sequence[Edit]) -> float:
        """What these may take, at the rate of what this task has had read so far; infinite before that."""
        rate = self._served.tokens_a_second
        tokens = sum(page.size / _TOKEN_BYTES for page, _ in self._pages(source, edits))
        each = _EDIT_TOKENS + (FOLLOWING_MENDED if self._served.mends else FOLLOWING)
        return (len(edits) * each + tokens) / rate if rate > 0.0 else math.inf

    def read_on(self, source: bytes, edits: Sequence[Edit], *, timeout_seconds: float) -> list[float | None]:
        """For each edit log P(edited) - log P(as it stood), from where they part to some tokens behind; nats.

        None for what was not read: no room, no time, no model. What comes first in `edits` is read first.
        """
        found: list[float | None] = [None] * len(edits)
        if len(source) > _SOURCE_BYTES:
            return found
        ends = time.monotonic() + timeout_seconds
        for page, members in self._pages(source, edits):
            if time.monotonic() >= ends:
                break
            for member, nats in self._window(page, members, edits, ends):
                found[member] = nats
        return found

    def _pages(self, source: bytes, edits: Sequence[Edit]) -> Iterator[tuple["_Page", list[int]]]:
        """What is read at once, and which of the edits stand there."""
        asked = [k for k, edit in enumerate(edits) if edit.splices]
        places, mends = [_edit_span(edits[k]) for k in asked], self._served.mends
        for window in plan_windows(source, places, body_bytes=BODY_BYTES if mends else PLAIN_BYTES):
            members = [asked[k] for k in window.members]
            yield _Page(source, window, edits[members[0]].path, mends), members

    def _window(
        self, page: "_Page", members: Sequence[int], edits: Sequence[Edit], ends: float
    ) -> Iterator[tuple[int, float]]:
        """What there was time for."""
        texts = [*page.front, page.text, *(page.edited(edits[member]) for member in members)]
        told: list[list[int]] = []
        for first in range(0, len(texts), TOGETHER):
            got = self._decoder.tokenize(texts[first : first + TOGETHER], timeout_seconds=_left(ends))
            if got is None:
                return
            told += got
        front, (stood, *tokens) = told[: len(page.front)], told[len(page.front) :]
        if not stood:
            return
        reads = _Reads(page, front, stood, self._served.path_tokens)
        ways = [reads.way(member, text) for member, text in zip(members, tokens, strict=True)]
        ways = [way for way in ways if way.differs and way.new - way.at <= _MOST_EDIT_TOKENS]
        if not ways:
            return
        sums = self._stood(reads, ways, ends)
        if sums is None:
            return
        for first in range(0, len(ways), TOGETHER):
            some = ways[first : first + TOGETHER]
            answers = self._grown(reads, [reads.branch(way.at, way.tokens) for way in some], ends)
            if answers is None:
                return
            for way, rows in zip(some, answers, strict=True):
                yield way.member, round(_total(rows) - (sums[way.old + way.behind] - sums[way.at]), 3)

    def _stood(self, reads: "_Reads", ways: Sequence[_Way], ends: float) -> list[float] | None:
        """Log-probabilities of the unedited tokens summed up to each, counted from the first that any edit touches."""
        low, high = min(way.at for way in ways), max(way.old + way.behind for way in ways)
        told: list[float] = []
        for at in range(low, high, _PIECE_TOKENS):
            piece = reads.stood[at : min(high, at + _PIECE_TOKENS)]
            answers = self._grown(reads, [reads.branch(at, piece)], ends)
            if answers is None:
                return None
            told += [asked[0] for _, asked in answers[0]]
        return [0.0] * low + list(accumulate(told, initial=0.0))

    def _grown(self, reads: "_Reads", branches: Sequence[Branch], ends: float) -> list[list[RowAnswer]] | None:
        trunk, mends = [*reads.front, *reads.stood], reads.mends
        return self._decoder.grow(trunk, branches, timeout_seconds=_left(ends), fresh=True, mending=mends)


class _Page:
    """The stretch of a window: its text as it stood and edited, and what a model that mends is shown in front of it."""

    def __init__(self, source: bytes, window: SourceWindow, path: RepoPath, mends: bool) -> None:
        self._source, self._high, self.mends = source, window.end, mends
        self._low = source.rfind(b"\n", 0, window.start) + 1 if mends else window.lead
        self.text = source[self._low : self._high]
        ended = self.text.endswith(b"\n")
        lead = f"# {path}\n".encode("utf-8", "surrogateescape") + lead_of(source, self._low)
        self.front = [lead, WRONG, self.text, RIGHT if ended else b"\n" + RIGHT] if mends else []

    @property
    def size(self) -> int:
        """Bytes that are read beside the edits: what stands in front, the stretch, and where it is edited once more."""
        return sum(map(len, self.front)) + 2 * len(self.text)

    def edited(self, edit: Edit) -> bytes:
        """The stretch with an edit in it."""
        edited = edit.apply(self._source)
        return edited[self._low : len(edited) - (len(self._source) - self._high)]


class _Reads:
    """A stretch in tokens: what stands in front, and the stretch as it stood."""

    def __init__(self, page: _Page, front: Sequence[Sequence[int]], stood: Sequence[int], room: int) -> None:
        self.stood, self.mends = stood, page.mends
        self._following = FOLLOWING_MENDED if page.mends else FOLLOWING
        whole = [token for part in front for token in part]
        fits = len(whole) + len(stood) + _MOST_EDIT_TOKENS + self._following <= room
        self.front = whole if fits else [token for part in front[1:] for token in part]

    def way(self, member: int, text: Sequence[int]) -> _Way:
        """How an edited text departs and goes on."""
        stood = self.stood
        most = min(len(stood), len(text))
        at = 0
        while at < most and stood[at] == text[at]:
            at += 1
        behind = 0
        while behind < most - at and stood[-1 - behind] == text[-1 - behind]:
            behind += 1
        old, new = len(stood) - behind, len(text) - behind
        if at == 0 and not self.front:  # nothing stands in front of the first token: what follows it is read
            short = max(0, 1 - old, 1 - new)
            at, old, new = 1, old + short, new + short
        return _Way(member=member, at=at, old=old, new=new, tokens=tuple(text[at : new + self._following]))

    def branch(self, at: int, tokens: Sequence[int]) -> Branch:
        """A branch that is asked for each of its tokens; the last one is not decoded."""
        rows = tuple(LogitRow(index=k - 1, asked=(token,)) for k, token in enumerate(tokens))
        return Branch(at=len(self.front) + at, tokens=tuple(tokens[:-1]), rows=rows)


def _edit_span(edit: Edit) -> EditSpan:
    start, end = edit.splices[0].start, edit.splices[-1].end
    if edit.scope is None:
        return EditSpan(start=start, end=end, scope_start=start, scope_end=end)
    return EditSpan(start=start, end=end, scope_start=min(edit.scope.start, start), scope_end=max(edit.scope.end, end))


def _total(rows: Sequence[RowAnswer]) -> float:
    return sum(asked[0] for _, asked in rows)


def _left(ends: float) -> float:
    return max(0.0, ends - time.monotonic())
