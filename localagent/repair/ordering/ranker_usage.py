"""How usual an edit's tokens would be where they stand, by the rest of the file, and those that it takes were.

Code repeats itself, most of all within a file (Tu, Su and Devanbu, "On the localness of software", FSE 2014): names
stand where they stood before, beside names that they stood beside; and what stands nowhere else as it stands here is
the likelier to be wrong. Counted line by line; what an edit takes is not counted as known for standing there itself.
Not promised: anything of texts that are no code. A line that a kept candidate changed does not stand in the file that
was counted, and is taken off all the same.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence

from localagent.repair.ordering.ranker_tokens import shape_of

USAGE: tuple[str, ...] = (
    "name-fits", "name-fits-right", "fours-known", "shapes-known", "together", "likely", "likely-least",
    "old-name-fits", "old-name-fits-left", "old-fours-known", "old-together", "old-likely", "old-likely-least",
)  # fmt: skip
_NOTHING = 0.5  # of a share of no things
_MOST_NAMES = 24  # of a line, of which each is held beside each
_MOST_TOKENS = 100_000  # of a file that are counted
_FEW = (0.3, 2.0, 1.0)  # what a token, two and three in a row count for unseen: the weight of the shorter row
_START, _END = b"", b"\n"

_Side = bytes | tuple[bytes, bytes]


class FileUsage:
    """Of one file, given as its lines' tokens, the first hundred thousand of them."""

    def __init__(self, lines: Iterable[Sequence[bytes]]) -> None:
        self._shapes: dict[bytes, bytes] = {}
        self._rows: tuple[Counter[tuple[bytes, ...]], ...] = (Counter(), Counter(), Counter())  # one, two, three tokens
        self._fronts: tuple[Counter[tuple[bytes, ...]], ...] = (Counter(), Counter(), Counter())  # what stood before
        self._fours: Counter[tuple[bytes, ...]] = Counter()
        self._fives: Counter[tuple[bytes, ...]] = Counter()
        self._left: Counter[tuple[bytes, _Side]] = Counter()
        self._right: Counter[tuple[bytes, _Side]] = Counter()
        self._both: Counter[tuple[bytes, _Side, _Side]] = Counter()
        self._together: Counter[tuple[bytes, bytes]] = Counter()
        self._known: dict[tuple[bytes, bytes, bytes, int], float] = {}
        self._stood: dict[tuple[tuple[bytes, ...], int, int], list[float]] = {}
        left = _MOST_TOKENS
        for tokens in lines:
            self._note(tokens[:left])
            left -= len(tokens)
            if left <= 0:
                break

    def _note(self, tokens: Sequence[bytes]) -> None:
        framed = [_START, _START, *tokens, _END]
        for row in zip(framed, framed[1:], framed[2:], strict=False):
            for n in range(3):
                self._rows[n][row[2 - n :]] += 1
                self._fronts[n][row[2 - n : 2]] += 1
        framed = framed[1:]
        self._fours.update(zip(*(framed[k:] for k in range(4)), strict=False))
        shapes = [self._shape(t) for t in framed]
        self._fives.update(zip(*(shapes[k:] for k in range(5)), strict=False))
        found = dict[bytes, None]()
        for at, token in enumerate(tokens):
            if self._shape(token) != b"a":
                continue
            left, right = self._sides(tokens, at)
            self._left[token, left] += 1
            self._right[token, right] += 1
            self._both[token, left, right] += 1
            found[token] = None
        names = sorted(list(found)[:_MOST_NAMES])
        self._together.update((one, other) for k, one in enumerate(names) for other in names[k + 1 :])

    def counts(self, old: Sequence[bytes], new: Sequence[bytes], front: int, back: int) -> list[float]:
        """One number a name of `USAGE`, for a line `old` that becomes `new`.

        The first `front` tokens and the last `back` stay.
        """
        end = len(new) - back
        both, right, count = 0, 0, 0
        for k in range(front, end):
            token = new[k]
            if self._shape(token) == b"a":
                beside = self._sides(new, k)
                both += (token, *beside) in self._both
                right += (token, beside[1]) in self._right
                count += 1
        likely = self._likely(new, front, end, own=0)
        return [
            both / count if count else _NOTHING,
            right / count if count else _NOTHING,
            _share(self._fours, [_START, *new, _END], front + 1, end + 1, 4, own=0),
            _share(self._fives, [self._shape(t) for t in (_START, *new, _END)], front + 1, end + 1, 5, own=0),
            self._beside(new, front, end, own=0),
            sum(likely) / len(likely),
            min(likely),
            *self._of_old(old, front, len(old) - back),
        ]

    def _of_old(self, old: Sequence[bytes], front: int, end: int) -> list[float]:
        """The same of what is taken, for which it is to stand elsewhere too; many edits take the same."""
        key = (tuple(old), front, end)
        told = self._stood.get(key)
        if told is not None:
            return told
        both, left, count = 0, 0, 0
        for k in range(front, end):
            token = old[k]
            if self._shape(token) == b"a":
                beside = self._sides(old, k)
                both += self._both.get((token, *beside), 0) > 1
                left += self._left.get((token, beside[0]), 0) > 1
                count += 1
        likely = self._likely(old, front, end, own=1)
        told = self._stood[key] = [
            both / count if count else _NOTHING,
            left / count if count else _NOTHING,
            _share(self._fours, [_START, *old, _END], front + 1, end + 1, 4, own=1),
            self._beside(old, front, end, own=1),
            sum(likely) / len(likely),
            min(likely),
        ]
        return told

    def _shape(self, token: bytes) -> bytes:
        known = self._shapes.get(token)
        if known is None:
            known = self._shapes[token] = shape_of(token) if token not in (_START, _END) else token
        return known

    def _sides(self, tokens: Sequence[bytes], at: int) -> tuple[_Side, _Side]:
        """What stands beside a name: shapes; of an attribute or a keyword's value also what comes behind the sign."""
        left = self._shape(tokens[at - 1]) if at else _START
        after = tokens[at + 1] if at + 1 < len(tokens) else _END
        if after in (b".", b"=") and at + 2 < len(tokens):
            behind = tokens[at + 2]
            return left, (after, behind if after == b"." else self._shape(behind))
        return left, self._shape(after)

    def _likely(self, tokens: Sequence[bytes], first: int, end: int, *, own: int) -> list[float]:
        """Log-probabilities of the tokens from `first` to `end` and of the two that follow, each after two others."""
        framed = [_START, _START, *tokens[: end + 2], _END]
        return [
            self._after(framed[k - 2], framed[k - 1], framed[k], own)
            for k in range(first + 2, min(end + 4, len(framed)))
        ]

    def _after(self, one: bytes, two: bytes, token: bytes, own: int) -> float:
        """Natural log of how likely a token is after two; shorter rows smooth longer ones, as a prior does.

        MacKay and Peto, "A hierarchical Dirichlet language model", 1995.
        """
        key = (one, two, token, own)
        known = self._known.get(key)
        if known is None:
            kinds = len(self._rows[0]) + 1
            share, row = 1.0 / kinds, (one, two, token)
            for n, weight in enumerate((_FEW[0] * kinds, *_FEW[1:])):
                seen = max(0, self._rows[n].get(row[2 - n :], 0) - own)
                before = max(0, self._fronts[n].get(row[2 - n : 2], 0) - own)
                share = (seen + weight * share) / (before + weight)
            known = self._known[key] = math.log(share)
        return known

    def _beside(self, tokens: Sequence[bytes], first: int, end: int, *, own: int) -> float:
        """The share of pairs of a name that changes and one that stays which stand in one line elsewhere."""
        stay = {t for t in (*tokens[:first], *tokens[end:]) if self._shape(t) == b"a"}
        come = {t for t in tokens[first:end] if self._shape(t) == b"a"} - stay
        pairs = [
            (one, other) if one < other else (other, one)
            for one in sorted(come)[:_MOST_NAMES]
            for other in sorted(stay)[:_MOST_NAMES]
        ]
        return sum(self._together.get(pair, 0) > own for pair in pairs) / len(pairs) if pairs else _NOTHING


def _share(
    known: Counter[tuple[bytes, ...]], tokens: Sequence[bytes], first: int, end: int, length: int, *, own: int
) -> float:
    """The share of rows so long, with anything in them from `first` to `end`, that stand elsewhere."""
    around = tokens[max(0, first - length + 1) : end + length - 1]
    rows = list(zip(*(around[k:] for k in range(length)), strict=False))
    return sum(known.get(row, 0) > own for row in rows) / len(rows) if rows else _NOTHING
