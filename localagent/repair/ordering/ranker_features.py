"""What the learned order sees of an edit: cheap numbers by name, from texts, the prior and the model's reading.

All from tokens of the file's text; nothing is parsed, so any text will do. Names of features are data: a model file
names those it was learned with. Not promised: that a name that stands in a file is bound where it is put.
"""

import builtins
import math
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from localagent.domain.edit import Edit, Reading
from localagent.repair.ordering.ranker_tokens import TOKEN, kind_of, named
from localagent.repair.ordering.ranker_usage import USAGE, FileUsage

_BUILTIN = frozenset(name.encode() for name in dir(builtins))
_STRETCH_BYTES = 800
_HEADS = {
    b"def": "def", b"class": "def", b"@": "def", b"async": "def", b"if": "if", b"elif": "if", b"while": "loop",
    b"for": "loop", b"return": "return", b"yield": "return", b"raise": "raise", b"assert": "raise", b"with": "with",
    b"import": "import", b"from": "import", b"try": "handler", b"except": "handler", b"else": "handler",
    b"finally": "handler",
}  # fmt: skip
_HEAD_NAMES = ("def", "if", "loop", "return", "raise", "with", "import", "handler", "assign", "other")
_FLAGS = (b"None", b"not", b"if", b"and", b"or", b"in", b"is", b"return", b"(", b"[", b"=", b",", b"self")
_FLAG_NAMES = ("none", "not", "if", "and", "or", "in", "is", "return", "call", "index", "equals", "comma", "self")

FEATURES: tuple[str, ...] = (
    "prior", "crowd", "removed", "added", "growth", "splices", "lines",
    "pairs-known", "triples-known", "pair-rarest", "old-pair-rarest", "old-triples-known",
    "names", "names-in-function", "names-in-file", "names-builtin", "names-unknown", "name-distance", "name-frequency",
    "attributes", "attributes-known", "swap", "swap-likeness", "swap-case", "swap-number", "swap-operator", "swap-text",
    *USAGE,
    "removed-number", "removed-text", "added-number", "added-text", "only-removes", "only-adds", "whole-line",
    *(f"added-{name}" for name in _FLAG_NAMES), *(f"removed-{name}" for name in _FLAG_NAMES),
    *(f"head-{name}" for name in _HEAD_NAMES),
    "position", "depth", "function-lines", "line-tokens", "line-edits", "operator-edits", "order",
    "unread", "score", "excess", "stood", "fresh", "behind-line", "order-read",
)  # fmt: skip
OF_MODEL = frozenset({"unread", "score", "excess", "stood", "fresh", "behind-line", "order-read"})
UNREAD = -4.0

Matrix = NDArray[np.float64]


def features(
    file: "File", edits: Sequence[Edit], crowds: Sequence[int], readings: Sequence[Reading | None] | None
) -> Matrix:
    """One row an edit, one column a feature of FEATURES; without readings those of the model are 0.

    Some count the others of `edits`, which are to be those of one function.
    """
    lines = Counter(e.line for e in edits)
    kinds = Counter(e.operator for e in edits)
    plain = _ranks(edits, [-e.prior for e in edits])
    first = [[edit.prior, math.log1p(crowd)] for edit, crowd in zip(edits, crowds, strict=True)]
    told = [file.feature_rows(edit) for edit in edits]
    last = [
        [math.log1p(lines[edit.line]), math.log1p(kinds[edit.operator]), math.log1p(place)]
        for edit, place in zip(edits, plain, strict=True)
    ]
    widths = (2, len(FEATURES) - len(OF_MODEL) - 5, 3)
    parts = [
        np.array(rows, dtype=np.float64).reshape(len(edits), width)
        for rows, width in zip((first, told, last), widths, strict=True)
    ]
    return np.hstack([*parts, _read(edits, readings)])


def _ranks(edits: Sequence[Edit], costs: Sequence[float]) -> list[int]:
    out = [0] * len(edits)
    for place, at in enumerate(sorted(range(len(edits)), key=lambda k: costs[k])):
        out[at] = place
    return out


def _read(edits: Sequence[Edit], readings: Sequence[Reading | None] | None) -> Matrix:
    out = np.zeros((len(edits), len(OF_MODEL)))
    if readings is None:
        return out
    best: dict[int, float] = {}
    for edit, reading in zip(edits, readings, strict=True):
        if reading is not None:
            best[edit.line] = max(best.get(edit.line, -99.0), reading.ratio)
    order = _ranks(
        edits, [(UNREAD if r is None else r.score) * -1 - e.prior for e, r in zip(edits, readings, strict=True)]
    )
    for at, (edit, reading) in enumerate(zip(edits, readings, strict=True)):
        if reading is None:
            out[at] = (1.0, UNREAD, 0.0, 0.0, 0.0, 0.0, math.log1p(order[at]))
        else:
            behind = reading.ratio - best[edit.line]
            fresh = reading.ratio + reading.stood
            out[at] = (
                0.0, reading.score, max(0.0, reading.ratio), reading.stood, fresh, behind, math.log1p(order[at]),
            )  # fmt: skip
    return out


class File:
    """A source's tokens, where names stand, and which tokens follow each other in it.

    What is usual in it is what is usual in its `elder`, where there is one: the same file, some lines ago.
    """

    def __init__(self, source: bytes, elder: "File | None" = None) -> None:
        self._source = source
        self._elder = elder
        starts = [0]
        at = source.find(b"\n")
        while at >= 0:
            starts.append(at + 1)
            at = source.find(b"\n", at + 1)
        self._starts = starts
        names: defaultdict[bytes, list[int]] = defaultdict(list)
        self._pairs: Counter[tuple[bytes, ...]] = Counter()
        self._triples: Counter[tuple[bytes, ...]] = Counter()
        before, last = b"", b""
        self._rows = [TOKEN.findall(line) for line in source.split(b"\n")]
        for number, row in enumerate(self._rows, 1):
            for token in row:
                if named(token):
                    names[token].append(number)
                self._pairs[last, token] += 1
                self._triples[before, last, token] += 1
                before, last = last, token
        self._names = names
        self._old: dict[tuple[int, int], list[bytes]] = {}
        self._told: dict[int, tuple[Edit, Matrix]] = {}  # by id, which is nobody else's while the edit is held

    @cached_property
    def _usage(self) -> FileUsage:
        return self._elder._usage if self._elder is not None else FileUsage(self._rows)

    def feature_rows(self, edit: Edit) -> Matrix:
        """All features but the prior, crowds and readings, a row; of one edit they are counted once."""
        known = self._told.get(id(edit))
        if known is None:
            known = self._told[id(edit)] = (edit, np.array(self._counted(edit)))
        return known[1]

    def _counted(self, edit: Edit) -> list[float]:
        first, last = edit.splices[0].start, edit.splices[-1].end
        low = self._starts[bisect_right(self._starts, first) - 1]
        above = bisect_right(self._starts, max(last - 1, first))
        high = self._starts[above] if above < len(self._starts) else len(self._source)
        if high - low > _STRETCH_BYTES:
            low, high = max(low, first - 40), min(high, last + 40)
        high = max(high, last)
        old = self._old.get((low, high))
        if old is None:
            old = self._old[low, high] = TOKEN.findall(self._source[low:high])
        new = TOKEN.findall(self._edited(edit, low, high))
        front = 0
        most = min(len(old), len(new))
        while front < most and old[front] == new[front]:
            front += 1
        back = 0
        while back < most - front and old[-1 - back] == new[-1 - back]:
            back += 1
        removed, added = old[front : len(old) - back], new[front : len(new) - back]
        return [
            math.log1p(len(removed)),
            math.log1p(len(added)),
            math.copysign(math.log1p(abs(len(added) - len(removed))), len(added) - len(removed)),
            float(len(edit.splices) > 1),
            math.log1p(edit.end_line - edit.line),
            *self._known(old, new, front, back),
            *self._ingredients(edit, added, removed, new[front - 1] if front else b""),
            *_swap(removed, added),
            *self._usage.counts(old, new, front, back),
            *_shape(removed, added, old),
            *self._statement_features(edit, old),
        ]

    def _edited(self, edit: Edit, low: int, high: int) -> bytes:
        out: list[bytes] = []
        for cut in edit.splices:
            out += (self._source[low : cut.start], cut.text)
            low = cut.end
        out.append(self._source[low:high])
        return b"".join(out)

    def _known(self, old: list[bytes], new: list[bytes], front: int, back: int) -> list[float]:
        """How usual in this file the tokens beside each other are, after and before."""
        fresh = new[max(0, front - 2) : len(new) - max(0, back - 2)]
        gone = old[max(0, front - 2) : len(old) - max(0, back - 2)]
        pairs, triples = self._pairs, self._triples
        twos = [pairs.get(pair, 0) for pair in pairwise(fresh)] or [1]
        threes = [triples.get(t, 0) for t in zip(fresh, fresh[1:], fresh[2:], strict=False)] or [1]
        were = [pairs.get(pair, 0) for pair in pairwise(gone)] or [1]
        thrice = [triples.get(t, 0) for t in zip(gone, gone[1:], gone[2:], strict=False)] or [1]
        return [
            sum(n > 0 for n in twos) / len(twos),
            sum(n > 0 for n in threes) / len(threes),
            math.log1p(min(twos)),
            math.log1p(min(were)),
            sum(n > 1 for n in thrice) / len(thrice),
        ]

    def _ingredients(self, edit: Edit, added: list[bytes], removed: list[bytes], before: bytes) -> list[float]:
        known = set(removed)
        names = [t for t in added if named(t) and t not in known]
        attributes = [
            (a, t) for a, t in zip([before, *added], added, strict=False) if a == b"." and named(t) and t not in known
        ]
        if not names:
            return [0.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]
        first = edit.scope.first_line if edit.scope else 1
        last = edit.scope.last_line if edit.scope else len(self._starts)
        inside = found = usual = unknown = 0
        distance = frequency = 0.0
        for name in names:
            at = self._names.get(name)
            usual += name in _BUILTIN
            if at is None:
                unknown += name not in _BUILTIN
                distance += 7.0
                continue
            found += 1
            place = bisect_left(at, edit.line)
            near = min(abs(k - edit.line) for k in at[max(0, place - 1) : place + 1])
            inside += any(first <= k <= last for k in (at[bisect_left(at, first)],)) if at[-1] >= first else 0
            distance += math.log1p(near)
            frequency += math.log1p(len(at))
        n = len(names)
        share = sum(self._pairs.get(pair, 0) > 0 for pair in attributes) / len(attributes) if attributes else 1.0
        return [
            math.log1p(n), inside / n, found / n, usual / n, unknown / n, distance / n, frequency / n,
            float(len(attributes)), share,
        ]  # fmt: skip

    def _statement_features(self, edit: Edit, old: list[bytes]) -> list[float]:
        start = self._starts[min(edit.line, len(self._starts)) - 1]
        head = TOKEN.search(self._source, start)
        kind = _HEADS.get(head.group(), "") if head else "other"
        if not kind:
            kind = "assign" if b"=" in old else "other"
        first = edit.scope.first_line if edit.scope else 1
        height = (edit.scope.last_line if edit.scope else len(self._starts)) - first + 1
        depth = (head.start() - start) / 4 if head else 0.0
        return [
            *(float(name == kind) for name in _HEAD_NAMES),
            (edit.line - first) / max(1, height),
            min(8.0, depth),
            math.log1p(height),
            math.log1p(len(old)),
        ]


def _swap(removed: list[bytes], added: list[bytes]) -> list[float]:
    """About one token in another's place."""
    if len(removed) != 1 or len(added) != 1:
        return [0.0] * 6
    old, new = removed[0], added[0]
    kind = kind_of(old)
    if kind != kind_of(new):
        return [1.0] + [0.0] * 5
    if kind != "name":
        return [1.0, 0.0, 0.0, float(kind == "number"), float(not kind), float(kind == "text")]
    alike = 0
    while alike < min(len(old), len(new)) and old[alike] == new[alike]:
        alike += 1
    tail = 0
    while tail < min(len(old), len(new)) - alike and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    case = old.isupper() == new.isupper() and old[:1].isupper() == new[:1].isupper()
    return [1.0, (alike + tail) / max(len(old), len(new)), float(case), 0.0, 0.0, 0.0]


def _shape(removed: list[bytes], added: list[bytes], old: list[bytes]) -> list[float]:
    was, now = {kind_of(t) for t in removed}, {kind_of(t) for t in added}
    gone, come = set(removed), set(added)
    return [
        float("number" in was), float("text" in was), float("number" in now), float("text" in now),
        float(not added), float(not removed), float(len(removed) == len(old)),
        *(float(flag in come) for flag in _FLAGS), *(float(flag in gone) for flag in _FLAGS),
    ]  # fmt: skip
