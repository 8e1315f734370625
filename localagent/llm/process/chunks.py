"""Where a text is cut into what is decoded at once, and how much of what was decoded before a next text may keep.

Quantized kernels answer a little otherwise in other company, so answers depend on the chunks. These depend on the text
and on where its front ends alone, never on what was asked before: a text keeps of another's chunks only those that
would be its own.
"""

from collections.abc import Sequence

CHUNK_TOKENS = 128
LEAST_FRONT_TOKENS = 16  # fewer are no chunk of their own


class Chunks:
    """One sequence of the context: the tokens that lie in it, and where the front of their text ended."""

    def __init__(self) -> None:
        self._tokens: list[int] = []
        self._front = 0

    def begin(self, tokens: Sequence[int], *, front: int = 0, most: int) -> int:
        """How many of a text's first tokens are kept, of `most` at most; what lies behind them is to be removed.

        So many tokens are its `front`, which many texts have: a chunk ends with it.
        """
        front = front if front >= LEAST_FRONT_TOKENS else 0
        before, self._front = self._front, front
        keep = 0
        for old, new in zip(self._tokens[:most], tokens, strict=False):
            if old != new:
                break
            keep += 1
        if before == front <= keep:
            keep = front + (keep - front) // CHUNK_TOKENS * CHUNK_TOKENS
        else:  # up to where the first of two fronts ends, their chunks are the same
            shorter = min(before or keep, front or keep)
            keep = min(keep, shorter) // CHUNK_TOKENS * CHUNK_TOKENS
        return self.cut(keep)

    def cut(self, keep: int) -> int:
        """Nothing lies there behind the first so many."""
        del self._tokens[keep:]
        return keep

    def stop(self, at: int, last: int) -> int:
        """Where the chunk ends that begins at `at`, in a text of `last` tokens."""
        return min(at + CHUNK_TOKENS, self._front if at < self._front else last, last)

    def decoded(self, tokens: Sequence[int]) -> None:
        """They lie there now, behind the others."""
        self._tokens += tokens
