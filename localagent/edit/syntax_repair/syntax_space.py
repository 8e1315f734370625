"""The token-level edit space: edits after which a file that did not parse does.

A best-first search over fixes, guided by the parser's error. Each node is a text; its children are the plausible fixes
near its error; a child that parses is an answer, one whose error moved on is searched further, so that several faults
in one file are repaired by one edit. Answers come cheapest first and may well be wrong: tests decide. Work is bounded
by the characters given to the parser, not by the clock, so the same source yields the same edits.

Not promised: that every file has an answer, or that fixes keep what the author meant.
"""

import codecs
import heapq
import io
import itertools
import math
import tokenize
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from localagent.domain.edit import Edit, EditEffect, Splice
from localagent.domain.outcome import Failure
from localagent.domain.paths import RepoPath
from localagent.edit.syntax_repair.brackets import brackets, colons, quotes
from localagent.edit.syntax_repair.generic import tokens, whole_lines
from localagent.edit.syntax_repair.indentation import indentation
from localagent.edit.syntax_repair.keywords import assignments, keyword_fixes
from localagent.edit.syntax_repair.lexer import BrokenText, SyntaxFault, SyntaxFix, fault_of, lines_of, newlines_before
from localagent.edit.syntax_repair.pieces import Piece, Pieces, Splices, after, spliced, splices_from
from localagent.ports import Lines, Sources

# A file that does not parse, decoded, and the edits that lead from it to other texts.

# By operator, beside those of all of them.
_EFFECTS = {
    "tokens.delete-token": {EditEffect.DELETES},
    "tokens.delete-bracket": {EditEffect.DELETES},
    "tokens.delete-pair": {EditEffect.DELETES},
    "tokens.delete-line": {EditEffect.DELETES, EditEffect.DELETES_LINE},
    "tokens.comment-statement": {EditEffect.COMMENTS_OUT},
    "tokens.replace-token": {EditEffect.REPLACES_LEXEME},
    "tokens.wrap-call": {EditEffect.WRAPS},
}


@dataclass(frozen=True, slots=True)
class DecodedFile:
    """The file an edit is for, decoded."""

    path: RepoPath
    text: str
    encoding: str
    mark: bytes

    def edit(self, region: Pieces, pieces: Pieces, cost: float, steps: tuple[SyntaxFix, ...]) -> Edit | None:
        """The edit that leads from the file to the pieces; None where the encoding has no room for the new text."""
        splices = splices_from(pieces, region, len(self.text))
        if not splices:
            return None
        out = []
        at, bytes_at = 0, len(self.mark)
        try:
            for start, end, new in splices:
                bytes_at += len(self.text[at:start].encode(self.encoding))
                stop = bytes_at + len(self.text[start:end].encode(self.encoding))
                out.append(Splice(start=bytes_at, end=stop, text=new.encode(self.encoding)))
                at, bytes_at = end, stop
        except UnicodeEncodeError:
            return None
        operators = list(dict.fromkeys(x.operator.removeprefix("tokens.") for x in steps))
        return Edit(
            path=self.path,
            splices=tuple(out),
            operator="tokens." + "+".join(operators),
            line=newlines_before(self.text, splices[0][0]) + 1,
            end_line=newlines_before(self.text, splices[-1][1]) + 1,
            prior=-cost,
            note="; ".join(x.note for x in steps),
            effects=_effects(steps),
        )


def _effects(steps: tuple[SyntaxFix, ...]) -> frozenset[EditEffect]:
    operators = {x.operator for x in steps}
    found = {EditEffect.MENDS_SYNTAX}.union(*(_EFFECTS.get(name, set()) for name in operators))
    found |= {EditEffect.SEVERAL_FIXES} if len(operators) > 1 else set()
    return frozenset(found.union(steps[0].effects if len(steps) == 1 else ()))


def decode(source: bytes) -> tuple[str, str, bytes] | None:
    """Text, encoding and byte-order mark; None when the bytes are not what they declare or would not encode back."""
    mark = codecs.BOM_UTF8 if source.startswith(codecs.BOM_UTF8) else b""
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(source).readline)
        encoding = "utf-8" if encoding == "utf-8-sig" else encoding
        text = source[len(mark) :].decode(encoding)
        if text.encode(encoding) != source[len(mark) :]:
            return None
    except (SyntaxError, ValueError, LookupError):
        return None
    return text, encoding, mark


# Where to search in a file that does not parse: its faulty stretches put together, then the whole file.

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


MAX_SOURCE_BYTES = 2 << 20
MAX_LINE_CHARS = 5_000
MAX_ANSWERS = 2_000
PARSED_CHARS_BUDGET = 6_000_000
LEXING_COST = 6  # looking at a text costs about as much as parsing it so many times
MAX_FIXES = 2_000
MAX_PARSES = 2_500
MAX_DEPTH = 8
STUCK_PENALTY = 1.6
STEP_COST = 0.15
REPEATED = 0.6
SPREAD = 4.0

_Family = Callable[[BrokenText], Iterator[SyntaxFix]]
# families of fixes -> (what their cheapest fix costs, how many nodes of one search they are asked about)
_FAMILIES: dict[tuple[_Family, ...], tuple[float, int]] = {
    (colons, brackets, quotes, indentation, assignments, keyword_fixes): (0.0, 200),
    (whole_lines, tokens): (1.0, 25),
}


@dataclass(frozen=True, slots=True)
class _Node:
    """A text on the way: pieces say how it came from the original."""

    text: str
    pieces: Pieces
    fault: SyntaxFault
    cost: float
    depth: int
    steps: tuple[SyntaxFix, ...]


class TokenEditSpace:
    """`ports.EditSpace` for sources that do not parse; yields nothing for sources that do.

    `prior` maps operator names to log-scale preferences (0 is the most likely, negative is less).
    """

    def __init__(self, prior: Mapping[str, float] | None = None) -> None:
        self._prior = dict(prior or {})

    def edits(
        self, path: RepoPath, sources: Sources, *, lines: Lines | None = None, failures: Sequence[Failure] = ()
    ) -> Iterator[Edit]:
        """Edits whose result parses, best first. `lines` and `failures` are not needed: the parser says where."""
        del lines, failures
        source = sources.get(path)
        if source is None or len(source) > MAX_SOURCE_BYTES or _parses(source):
            return
        yield from self._unreadable(path, source)
        decoded = decode(source)
        if decoded is None:
            return
        origin = DecodedFile(path, *decoded)
        budget = _Budget(PARSED_CHARS_BUDGET)
        for region in regions(origin.text, budget.spend):
            found = False
            for cost, pieces, steps in self._search(region, budget):
                edit = origin.edit(region.pieces, pieces, cost, steps)
                if edit is not None and budget.spend(len(source)) and _parses(edit.apply(source)):
                    found = True
                    yield edit
            if found:
                return

    def _unreadable(self, path: RepoPath, source: bytes) -> Iterator[Edit]:
        """Bytes no Python decodes: NULs to drop, an encoding to declare."""
        cuts = (
            tuple(Splice(start=n, end=n + 1, text=b"") for n, b in enumerate(source) if not b)
            if b"\0" in source
            else ()
        )
        found = []
        if 0 < len(cuts) <= 10_000:
            found.append((cuts, "tokens.drop-nul", f"drop {len(cuts)} NUL bytes"))
        if decode(source) is None and b"\0" not in source:
            for name in ("latin-1", "cp1252"):
                cookie = f"# -*- coding: {name} -*-\n".encode()
                found.append(((Splice(start=0, end=0, text=cookie),), "tokens.declare-encoding", f"declare {name}"))
        for splices, operator, note in found:
            edit = Edit(
                path=path,
                splices=splices,
                operator=operator,
                line=1,
                end_line=1,
                prior=self._prior.get(operator, 0.0),
                note=note,
                effects=frozenset({EditEffect.MENDS_SYNTAX}),
            )
            if _parses(edit.apply(source)):
                yield edit

    def _step_cost(self, parent: _Node, fix: SyntaxFix) -> float:
        """What one more fix costs; whoever made a slip once makes it again, so a repeated operator costs less."""
        cost = max(fix.cost, 0.0)
        repeated = bool(parent.steps) and parent.steps[-1].operator == fix.operator
        step = cost * REPEATED + 0.05 if repeated else cost + STEP_COST
        return step - self._prior.get(fix.operator, 0.0)

    def _fixes(self, view: BrokenText, families: Sequence[_Family]) -> Iterable[SyntaxFix]:
        seen: dict[Splices, SyntaxFix] = {}
        for family in families:
            for fix in itertools.islice(family(view), MAX_FIXES):
                if fix.splices and (fix.splices not in seen or seen[fix.splices].cost > fix.cost):
                    seen[fix.splices] = fix
        return seen.values()

    def _search(self, region: BrokenRegion, budget: "_Budget") -> Iterator[tuple[float, Pieces, tuple[SyntaxFix, ...]]]:
        """Answers for one region, cheapest first."""
        fault = fault_of(region.text)
        if fault is None or max((x.end - x.start for x in lines_of(region.text)), default=0) > MAX_LINE_CHARS:
            return
        frontier = _Frontier()
        frontier.add_node(_Node(region.text, region.pieces, fault, 0.0, 0, ()))
        seen = {hash(region.text)}
        answers, worst = 0, math.inf
        while answers < MAX_ANSWERS and (entry := frontier.pop()) is not None:
            cost, parent, do = entry
            if cost > worst:
                return
            if not isinstance(do, SyntaxFix):
                if not budget.spend(len(parent.text) * LEXING_COST):
                    return
                for fix in self._fixes(BrokenText(parent.text, parent.fault), do):
                    frontier.add(parent, parent.cost + self._step_cost(parent, fix), fix)
                continue
            text = spliced(parent.text, do.splices)
            if hash(text) in seen:
                continue
            seen.add(hash(text))
            if not budget.spend(len(text)):
                return
            now = fault_of(text)
            penalty = None if now is None else _penalty(parent, do, now, len(text))
            if now is None:
                answers, worst = answers + 1, min(worst, cost + SPREAD)
                yield cost, after(parent.pieces, do.splices), (*parent.steps, do)
            elif penalty is not None and parent.depth + 1 < MAX_DEPTH:
                pieces = after(parent.pieces, do.splices)
                frontier.add_node(_Node(text, pieces, now, cost + penalty, parent.depth + 1, (*parent.steps, do)))


class _Frontier:
    """What is still to be done, cheapest first: fixes to try on a node, or families of fixes to ask about a node."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, _Node, SyntaxFix | tuple[_Family, ...]]] = []
        self._order = itertools.count()
        self._left = {families: limit for families, (_, limit) in _FAMILIES.items()}

    def add(self, node: _Node, cost: float, what: SyntaxFix | tuple[_Family, ...]) -> None:
        heapq.heappush(self._heap, (cost, next(self._order), node, what))

    def add_node(self, node: _Node) -> None:
        """Families are asked when their cheapest fix could be next, and only so often."""
        for families, (cost, _) in _FAMILIES.items():
            self.add(node, node.cost + cost, families)

    def pop(self) -> tuple[float, _Node, SyntaxFix | tuple[_Family, ...]] | None:
        while self._heap:
            cost, _, node, what = heapq.heappop(self._heap)
            if isinstance(what, SyntaxFix):
                return cost, node, what
            self._left[what] -= 1
            if self._left[what] >= 0:
                return cost, node, what
        return None


def _penalty(parent: _Node, fix: SyntaxFix, now: SyntaxFault, length: int) -> float | None:
    """What going on from here costs: nothing if the error moved on, much if it stayed, None if it got worse."""
    was, end = parent.fault, max(e for _, e, _ in fix.splices)
    grown = length - len(parent.text)
    left_before, left_now = len(parent.text) - was.offset, length - now.offset
    lexical = ("unterminated", "never closed", "unmatched", "does not match", "invalid decimal", "unindent", "tabs")
    was_lexical, is_lexical = (any(w in f.message for w in lexical) for f in (was, now))
    if was_lexical and not is_lexical and now.line != was.line:
        return 0.1
    if "unterminated" in was.message and "unterminated" not in now.message:
        return 0.1  # the reader stopped at that text: what stands above it is told only now
    if now.line > was.line and now.offset > end + max(grown, 0):
        return 0.0
    if left_now < left_before:
        return 0.5 if now.line > was.line else 0.8
    if now.message != was.message and now.line >= was.line:
        return STUCK_PENALTY
    return None


@dataclass(slots=True)
class _Budget:
    chars: int
    parses: int = MAX_PARSES

    def spend(self, chars: int) -> bool:
        """Take the cost of one parse; False once spent."""
        self.chars -= chars
        self.parses -= 1
        return self.chars >= 0 and self.parses >= 0


def _parses(source: bytes) -> bool:
    return fault_of(source) is None
