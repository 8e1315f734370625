"""The token-level edit space: edits after which a file that did not parse does.

A best-first search over fixes, guided by the parser's error. Each node is a text; its children are the plausible fixes
near its error; a child that parses is an answer, one whose error moved on is searched further, so that several faults
in one file are repaired by one edit. Answers come cheapest first and may well be wrong: tests decide. Work is bounded
by the characters given to the parser, not by the clock, so the same source yields the same edits.

Not promised: that every file has an answer, or that fixes keep what the author meant.
"""

import heapq
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from localagent.domain.edit import Edit, EditEffect, Splice
from localagent.domain.outcome import Failure
from localagent.domain.paths import RepoPath
from localagent.edit.syntax_repair.brackets import brackets, colons, quotes
from localagent.edit.syntax_repair.broken_regions import BrokenRegion, regions
from localagent.edit.syntax_repair.generic import tokens, whole_lines
from localagent.edit.syntax_repair.indentation import indentation
from localagent.edit.syntax_repair.keywords import assignments, keyword_fixes
from localagent.edit.syntax_repair.lexer import BrokenText, SyntaxFault, SyntaxFix, fault_of, lines_of
from localagent.edit.syntax_repair.origin import DecodedFile, decode
from localagent.edit.syntax_repair.pieces import Pieces, Splices, after, spliced
from localagent.ports import Lines, Sources

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
        origin = DecodedFile(path, source, *decoded)
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
