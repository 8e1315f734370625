"""Span search: what the model would rather have written at a place, as short texts that replace a stretch of a line.

Best first over (place, position, removed length, tokens so far) by log-probability, whole batches in one request. A
text is joined again to what stood behind it and scored through that; what cannot go on to a statement, or names what
does not exist, is dropped before the model spends a token on it. One `SpanRegion` is some places that one trunk of
tokens can serve. Not promised: that a span makes sense; that two runs cut off by a clock find the same ones.
"""

import heapq
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from localagent.domain.edit import Edit, Written
from localagent.edit.external_edits import CodeLine, Page
from localagent.llm.process.shared_prefix import Branch, LogitRow
from localagent.llm.scoring.decoder import RowAnswer

# What a span search holds: lines as tokens, texts half written upon them, and what the model is asked of each.

TOP = 24
MAX_REMOVED = 12
MAX_REST_TOKENS = 6


@dataclass(slots=True)
class Stem:
    """A place in tokens: they leave the trunk at `at`; those of the old line are [first, end], `end` its line end."""

    place: CodeLine
    at: int
    tokens: list[int]
    starts: list[int]  # offset in the file of each token of the old line, by token - first
    first: int
    end: int
    old: list[float] = field(default_factory=list)  # log-probability of each token of the old line


@dataclass(frozen=True, slots=True)
class Node:
    """Tokens written at position `at` of a stem's line; `removed` < 0 while open, else the old tokens replaced."""

    stem: Stem
    at: int
    tokens: tuple[int, ...]
    text: bytes
    cost: float
    removed: int = -1
    edit: Edit | None = None


def _continuations(stem: Stem, at: int) -> tuple[int, ...]:
    """The old tokens with which the line may go on after something was written at a position."""
    return tuple(stem.tokens[at : min(stem.end, at + MAX_REMOVED) + 1])


def stem_branch(stem: Stem) -> Branch:
    """A whole line: at each token the likeliest others, and the old ones with which it may go on."""
    rows = [LogitRow(index=k - 1, top=TOP, asked=_continuations(stem, k)) for k in range(stem.first, stem.end + 1)]
    return Branch(at=stem.at, tokens=tuple(stem.tokens), rows=tuple(rows))


def node_branch(node: Node) -> Branch:
    """What was written so far: how it goes on, or where it was joined again what follows there."""
    stem = node.stem
    head = (*stem.tokens[: node.at], *node.tokens)
    if node.removed < 0:
        row = LogitRow(index=len(head) - 1, top=TOP, asked=_continuations(stem, node.at))
        return Branch(at=stem.at, tokens=head, rows=(row,))
    join = node.at + node.removed
    rest = stem.tokens[join : min(stem.end, join + MAX_REST_TOKENS) + 1]
    rows = [LogitRow(index=len(head) + k, asked=(token,)) for k, token in enumerate(rest[1:])]
    return Branch(at=stem.at, tokens=(*head, *rest[:-1]), rows=tuple(rows))


BATCH_NODES = 16
MAX_WRITTEN_TOKENS = 14
MAX_STEM_TOKENS = 220
_DEAREST = 11.0  # nats beyond which nothing is pursued,
_DEAREST_DELETION = 6.0  # and for deletions, of which the edit space has the likely ones
_SURE = 0.3  # how much of a first token's own improbability counts where what stood there was as improbable
_DOUBT = 0.6  # how much of a mending model's certainty that nothing changes at a place comes off
_LEAST_DOUBT = 1e-4
_NEXT_LINE_BYTES = 40


class Decoder(Protocol):
    """What the search asks of the model; see `ModelDecoder`."""

    def piece(self, token: int) -> bytes:
        """Bytes of a token that was told."""
        ...

    def tokenize(self, texts: Sequence[bytes], *, timeout_seconds: float) -> list[list[int]] | None:
        """Tokens of texts."""
        ...

    def grow(
        self, trunk: Sequence[int], branches: Sequence[Branch], *, timeout_seconds: float, mending: bool = False
    ) -> list[list[RowAnswer]] | None:
        """Answers to the rows of branches."""
        ...


class SpanRegion:
    """The search at some places of one page that one trunk serves, each with what it costs to be there, in nats."""

    def __init__(
        self,
        page: Page,
        places: Sequence[tuple[CodeLine, float]],
        *,
        context: str,
        lead: int,
        room_tokens: Callable[[], int],
        malus: float,
        wrong: bytes = b"",
    ) -> None:
        """`lead` is the offset where the text in front begins; `room_tokens` the most that a path may have.

        That is asked once the model has answered, so that it is known. `wrong`: between `context` and that text, for a
        model that mends, which is asked then (`mending_text`); else it reads each old line as a comment.
        """
        self.page = page
        self._places = sorted(places, key=lambda p: p[1])
        self._context, self._lead, self._room, self._malus = context, lead, room_tokens, malus
        self._wrong = wrong
        self._trunk: list[int] = []
        self._ends: list[int] = []
        self._heap: list[tuple[float, int, Node | CodeLine]] = []
        self._pushed = 0
        self._opened = False
        self._weights = {place.line: weight for place, weight in places}
        self.skipped = 0
        for place, weight in self._places:
            self._push(weight, place)

    @property
    def next_cost(self) -> float:
        """What the cheapest open item costs; infinite when there is none."""
        return self._heap[0][0] if self._heap else float("inf")

    def step(self, decoder: Decoder, *, timeout_seconds: float) -> list[Written] | None:
        """One batch; None where the model did not answer (nothing is lost but the batch)."""
        if not self._opened and not self._open(decoder, timeout_seconds):
            return None
        places, nodes = self._batch()
        stems = self._stems(decoder, places, timeout_seconds)
        if stems is None:
            return None
        branches = [stem_branch(stem) for stem in stems] + [node_branch(node) for node in nodes]
        if not branches:
            return []
        mending = bool(self._wrong)
        answers = decoder.grow(self._trunk, branches, timeout_seconds=timeout_seconds, mending=mending)
        if answers is None:
            return None
        out: list[Written] = []
        for stem, rows in zip(stems, answers, strict=False):
            out += self._root(decoder, stem, rows)
        for node, rows in zip(nodes, answers[len(stems) :], strict=True):
            if node.removed >= 0:
                out += self._finished(node, sum(asked[0] for _, asked in rows))
            else:
                out += self._grown(decoder, node, rows[0])
        return out

    # ---- what to ask ----------------------------------------------------------------------------------------------

    def _batch(self) -> tuple[list[CodeLine], list[Node]]:
        """The cheapest items that are worth a token; at most a few places at once, for they are long."""
        places: list[CodeLine] = []
        nodes: list[Node] = []
        while self._heap and len(nodes) + 8 * len(places) < BATCH_NODES:
            _, _, item = heapq.heappop(self._heap)
            if isinstance(item, CodeLine):
                places.append(item)
            elif item.removed < 0:
                nodes += [item] if self._viable(item) else []
            elif (edit := self._edit(item)) is not None:
                nodes.append(replace(item, edit=edit))
        return places, nodes

    def _viable(self, node: Node) -> bool:
        try:
            text = node.text.decode("utf-8")
        except UnicodeDecodeError as fault:
            if fault.end < len(node.text) or len(node.text) - fault.start > 3:
                return False
            text = node.text[: fault.start].decode("utf-8")  # half a character so far
        if not text.strip() and "\n" in text:
            return False
        stem = node.stem
        start = stem.starts[node.at - stem.first]
        return self.page.viable(
            stem.place, max(start, stem.place.start), text.lstrip(" ") if start < stem.place.start else text
        )

    def _open(self, decoder: Decoder, timeout_seconds: float) -> bool:
        """The trunk: context, then the file from `lead` to the last place. Lines in front go where there is no room."""
        page = self.page.text
        if not self._places:
            return False
        until = max(page.rfind(b"\n", 0, place.start) + 1 for place, _ in self._places)
        while True:
            front, body = self._context.encode("utf-8", "replace") + self._wrong, page[self._lead : until]
            tokens = decoder.tokenize([front + body, b"\n"], timeout_seconds=timeout_seconds)
            if tokens is None or not tokens[1]:
                return False
            ends, at = [], self._lead - len(front)
            for token in tokens[0]:
                at += len(decoder.piece(token))
                ends.append(at)
            if ends and ends[-1] != until:
                self._heap.clear()  # tokens that do not give the text back: no place could be found in them
                return False
            if len(tokens[0]) + MAX_STEM_TOKENS + MAX_WRITTEN_TOKENS <= self._room():
                self._trunk, self._ends, self._opened = (
                    [tokens[1][-1], *tokens[0]],
                    [self._lead - len(front), *ends],
                    True,
                )
                return True
            first = min(place.start for place, _ in self._places)
            following = 0 if self._wrong else page.find(b"\n", self._lead, first) + 1
            if self._context:
                self._context = self._context[: len(self._context) // 2].rpartition("\n")[0]
                self._context += "\n" if self._context else ""
            elif following:
                self._lead = following
            else:
                self._drop_last()
                if not self._heap:
                    return False
                until = max(page.rfind(b"\n", 0, place.start) + 1 for place, _ in self._places)

    def _drop_last(self) -> None:
        """The place furthest down has no room beside the others: it is counted as skipped."""
        last = max(self._places, key=lambda p: p[0].start)
        self._places.remove(last)
        self._heap = [item for item in self._heap if item[2] is not last[0]]
        heapq.heapify(self._heap)
        self.skipped += 1

    def _stems(self, decoder: Decoder, places: Sequence[CodeLine], timeout_seconds: float) -> list[Stem] | None:
        if not places:
            return []
        texts = [self._stem_text(place) for place in places]
        told = decoder.tokenize([text for text, _, _ in texts], timeout_seconds=timeout_seconds)
        if told is None:
            return None
        stems = []
        for place, (text, line_at, newline), tokens in zip(places, texts, told, strict=True):
            stem = self._stem(decoder, place, line_at, newline, tokens) if len(tokens) <= MAX_STEM_TOKENS else None
            if stem is None or b"".join(map(decoder.piece, tokens)) != text:
                self.skipped += 1
            else:
                stems.append(stem)
        return stems

    def _stem_text(self, place: CodeLine) -> tuple[bytes, int, int]:
        """Text that follows the trunk from a line end on; where the old code begins in it, and where it ends."""
        page = self.page.text
        line_start = page.rfind(b"\n", 0, place.start) + 1
        indent = page[line_start : place.start]
        code = page[place.start : place.end]
        front = b"\n" if line_start > self._lead or self._context or self._wrong else b""
        head = front + indent + (b"" if self._wrong else b"# before: " + code + b"\n" + indent)
        behind = page[place.end :].lstrip(b" \t")
        next_line = behind.split(b"\n", 2)[1][:_NEXT_LINE_BYTES] if behind.count(b"\n") else b""
        text = head + code + b"\n" + next_line.decode("utf-8", "ignore").encode()
        return text, len(head), len(head) + len(code)

    def _stem(self, decoder: Decoder, place: CodeLine, line_at: int, newline: int, tokens: list[int]) -> Stem | None:
        """Tokens and their places; None where the line's end is within a token that holds more than blanks."""
        until = self.page.text.rfind(b"\n", 0, place.start) + (
            1 if tokens and not self._begins_line(decoder, tokens) else 0
        )
        at = next((k for k, end in enumerate(self._ends) if end > until), len(self._ends))
        starts, first, end, offset = [], -1, -1, 0
        for k, token in enumerate(tokens):
            after = offset + len(decoder.piece(token))
            if first < 0 and after > line_at:
                first = k
            if first >= 0:
                starts.append(place.start + offset - line_at)
            if after > newline:
                end = k
                break
            offset = after
        if first < 0 or end < first or offset != newline or starts[0] < place.start - 1:
            return None
        return Stem(place=place, at=at, tokens=tokens[: end + 1], starts=starts, first=first, end=end)

    def _begins_line(self, decoder: Decoder, tokens: Sequence[int]) -> bool:
        return decoder.piece(tokens[0]).startswith(b"\n")

    # ---- what came of it --------------------------------------------------------------------------------------------

    def _push(self, cost: float, item: Node | CodeLine) -> None:
        self._pushed += 1
        heapq.heappush(self._heap, (cost, self._pushed, item))

    def _root(self, decoder: Decoder, stem: Stem, rows: Sequence[RowAnswer]) -> Iterator[Written]:
        """The first tokens at each position of a line, and deletions."""
        stem.old = [asked[0] for _, asked in rows]
        for k, (top, asked) in enumerate(rows):
            at = stem.first + k
            for token, chance in top:
                piece = decoder.piece(token)
                if token == stem.tokens[at] or not piece:
                    continue
                cost = self._leaving(asked[0], chance)
                self._add(Node(stem, at, (token,), piece, cost))
            for removed in range(1, len(asked)):
                cost = self._leaving(asked[0], asked[removed]) if self._wrong else max(0.0, asked[0] - asked[removed])
                if cost > _DEAREST_DELETION:
                    continue
                yield from self._joined(Node(stem, at, (), b"", cost, removed))

    def _leaving(self, stood: float, chance: float) -> float:
        """What it costs to go on with a token of this chance where one of the chance `stood` stood; nats.

        A model that mends is nearly everywhere sure that a line is right, but somewhere something is wrong.
        """
        if not self._wrong:
            return max(0.0, stood - chance) - _SURE * chance
        otherwise = math.log(max(_LEAST_DOUBT, -math.expm1(stood)))
        return max(0.0, _DOUBT * otherwise - chance)

    def _grown(self, decoder: Decoder, node: Node, row: RowAnswer) -> Iterator[Written]:
        """An open node's children, and where it may be joined to the old line again."""
        stem = node.stem
        top, asked = row
        for removed, chance in enumerate(asked):
            yield from self._joined(Node(stem, node.at, node.tokens, node.text, node.cost - chance, removed))
        stripped = node.text.rstrip(b" \t")
        if b"\n" in node.text and stripped.endswith(b"\n"):  # it ended the line by itself
            rest = stem.end - node.at
            yield from self._finished(Node(stem, node.at, node.tokens, stripped.rstrip(b"\n"), node.cost, rest), None)
        if len(node.tokens) < MAX_WRITTEN_TOKENS:
            for token, chance in top:
                piece = decoder.piece(token)
                if piece:
                    self._add(Node(stem, node.at, (*node.tokens, token), node.text + piece, node.cost - chance))

    def _add(self, node: Node) -> None:
        if node.cost <= _DEAREST:
            self._push(node.cost + self._weights[node.stem.place.line], node)

    def _joined(self, node: Node) -> Iterator[Written]:
        """A joined text: open for scoring while what follows is more than the line's end."""
        same = tuple(node.stem.tokens[node.at : node.at + node.removed]) == node.tokens
        if node.cost > _DEAREST or same or not self._writes(node):
            return
        if node.at + node.removed >= node.stem.end:
            yield from self._finished(node, None)
        else:
            self._add(node)

    def _writes(self, node: Node) -> bool:
        """Whether the tokens of a joined text make a text at all (not half a character)."""
        try:
            node.text.decode("utf-8")
        except UnicodeDecodeError:
            return False
        return True

    def _finished(self, node: Node, rest: float | None) -> Iterator[Written]:
        """The edit, if it is one. `rest` is the log-probability of the old tokens that follow the join."""
        stem, cost = node.stem, node.cost
        if rest is not None:
            behind = node.at + node.removed - stem.first + 1
            cost += max(0.0, sum(stem.old[behind : behind + MAX_REST_TOKENS]) - rest)
        edit = node.edit or self._edit(node)
        if edit is not None and cost <= _DEAREST:
            yield Written(edit=edit, score=-round(cost, 4))

    def _edit(self, node: Node) -> Edit | None:
        stem, join = node.stem, node.at + node.removed
        start = stem.starts[node.at - stem.first]
        end = stem.place.end if join >= stem.end else max(start, stem.starts[join - stem.first])
        return self.page.edit(stem.place, start, max(start, end), node.text.decode("utf-8"), prior=-self._malus)
