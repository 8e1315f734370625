"""Where an edited text first departs from the original, in tokens.

The original is tokenized once; an edit only re-tokenizes the stretch between two *safe* places around it: a non-blank
followed by a space, where byte-level BPE tokenizers always cut, whatever stands on either side. Tokenizers of other
families have no such places; for them the whole window is tokenized again. Pure: the tokenizer is handed in.
"""

import re
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass

Tokenize = Callable[[bytes], list[int]]
Cut = tuple[int, int, bytes]

_BLANKS = frozenset(b" \t\r\n\f\v")
_SPACE = 0x20
_SAFE = re.compile(rb"[^ \t\r\n\f\v] ")
_KNOWN_ENTRIES = 16_384  # some six megabytes

# The tokens of stretches: what is read once is asked again when it is mended.
Known = dict[bytes, "array[int]"]


@dataclass(frozen=True, kw_only=True, slots=True)
class FirstDifference:
    """At token `index` the edited text has `new` where the original has `old`."""

    index: int
    old: int
    new: int


class TokenizedText:
    """A tokenized window in which edits are placed."""

    def __init__(
        self,
        data: bytes,
        tokenize: Tokenize,
        lengths: Callable[[int], int],
        end: int,
        *,
        local: bool,
        known: Known | None = None,
    ) -> None:
        """`lengths` gives a token's bytes; `end` is the token that stands for the text's end.

        `local`: whether safe places are; `known` what the tokenizer said of stretches of other texts, and will have
        said of this one's.
        """
        self.data = data
        self.tokens = tokenize(data)
        self._tokenize = tokenize
        self._end = end
        self._local = local
        self._known = {} if known is None else known
        starts = [0]
        for token in self.tokens:
            starts.append(starts[-1] + lengths(token))
        self.faithful = starts[-1] == len(data)
        self._starts = starts
        self._safe = self._safe_boundaries() if local and self.faithful else []

    def _safe_boundaries(self) -> list[tuple[int, int]]:
        """(byte offset, token index) of every safe place that is also a token boundary; sorted."""
        data = self.data
        return [
            (at, index)
            for index, at in enumerate(self._starts)
            if 0 < at < len(data) and data[at] == _SPACE and data[at - 1] not in _BLANKS
        ]

    def departure(self, splices: Sequence[Cut]) -> FirstDifference | None:
        """The first token that differs, or None if no token does. Splices are sorted and apart."""
        first, last = splices[0][0], splices[-1][1]
        left_at, left_index = self._left(first)
        right_at, right_index = self._right(last)
        edited = self._edited(splices, left_at, right_at)
        near = _SAFE.search(edited, first - left_at) if self._local else None
        if near is not None and (found := self._departs(left_index, self._retokenize(edited[: near.start() + 1]))):
            return found
        new = self._retokenize(edited)
        if found := self._departs(left_index, new):
            return found
        old_count = len(self.tokens)
        # The new stretch is a prefix of the old one: from here the tail stands in the place of what was removed.
        shift = right_index - left_index - len(new)
        if shift == 0:
            return None
        for index in range(left_index + len(new), old_count):
            moved = self.tokens[index + shift] if 0 <= index + shift < old_count else self._end
            if moved != self.tokens[index]:
                return FirstDifference(index=index, old=self.tokens[index], new=moved)
        return None

    def _departs(self, start: int, new: Sequence[int]) -> FirstDifference | None:
        """Where tokens from `start` on are others than these; None if they begin with these."""
        for index, token in enumerate(new, start):
            old = self.tokens[index] if index < len(self.tokens) else self._end
            if token != old:
                return FirstDifference(index=index, old=old, new=token)
        return None

    def _left(self, first: int) -> tuple[int, int]:
        position = bisect_left(self._safe, (first, 0)) - 1
        return self._safe[position] if position >= 0 else (0, 0)

    def _right(self, last: int) -> tuple[int, int]:
        position = bisect_right(self._safe, (last + 1, 0))
        return self._safe[position] if position < len(self._safe) else (len(self.data), len(self.tokens))

    def _edited(self, splices: Sequence[Cut], start: int, end: int) -> bytes:
        out: list[bytes] = []
        at = start
        for cut_start, cut_end, text in splices:
            out += (self.data[at:cut_start], text)
            at = cut_end
        out.append(self.data[at:end])
        return b"".join(out)

    def _retokenize(self, data: bytes) -> Sequence[int]:
        known = self._known.get(data)
        if known is None:
            if len(self._known) >= _KNOWN_ENTRIES:
                self._known.clear()
            known = self._known[data] = array("i", self._tokenize(data))
        return known
