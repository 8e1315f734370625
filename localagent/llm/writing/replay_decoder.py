"""A decoder that counts its questions, tells which came back without an answer, and can leave the same one open again.

What a search has after an answer that came too late depends on which question that was: a replay must fail at the same.
What the model still has of earlier questions changes its numbers a little: after an open question that is nothing, and
which questions began with nothing is told, for others may have asked in between; a replay begins the same ones so.
"""

from collections.abc import Sequence

from localagent.llm.process.shared_prefix import Branch
from localagent.llm.scoring.decoder import ModelDecoder, RowAnswer


class CutDecoder:
    """`late` is the number of the first question since `begin` that was not answered, from 1; 0 when all were.

    `fresh` are the numbers of those whose branches grew without any of earlier questions.
    """

    def __init__(self, decoder: ModelDecoder) -> None:
        self._decoder = decoder
        self._asked = self._cut = 0
        self._told: frozenset[int] = frozenset()
        self._open = False  # a question before this one was left open, wherever that left the model
        self.late = 0
        self.fresh: list[int] = []

    def begin(self, cut: int, fresh: Sequence[int] = ()) -> None:
        """Count anew; question number `cut` is not put, and has no answer (0: all are); those of `fresh` begin so."""
        self._asked, self._cut, self._told = 0, cut, frozenset(fresh)
        self.late, self.fresh = 0, []

    @property
    def tokens_used(self) -> int:
        """Tokens decoded."""
        return self._decoder.tokens_used

    @property
    def alive(self) -> bool:
        """False once the model was dropped."""
        return self._decoder.alive

    def piece(self, token: int) -> bytes:
        """Bytes of a token that an answer named."""
        return self._decoder.piece(token)

    def tokenize(self, texts: Sequence[bytes], *, timeout_seconds: float) -> list[list[int]] | None:
        """Tokens of each text, or None."""
        if self._next():
            return None
        told = self._decoder.tokenize(texts, timeout_seconds=timeout_seconds)
        self._book(answered=told is not None)
        return told

    def grow(
        self, trunk: Sequence[int], branches: Sequence[Branch], *, timeout_seconds: float, mending: bool = False
    ) -> list[list[RowAnswer]] | None:
        """For each branch the answers to its rows, or None; `mending` as `ModelDecoder.grow`."""
        if self._next():
            return None
        fresh, self._open = self._open or self._asked in self._told, False
        told = self._decoder.grow(trunk, branches, timeout_seconds=timeout_seconds, fresh=fresh, mending=mending)
        self._book(answered=told is not None)
        if told is not None and (fresh or self._decoder.fresh):
            self.fresh.append(self._asked)
        return told

    def _next(self) -> bool:
        """Whether the question that comes now is the one to leave open."""
        self._asked += 1
        if self._asked == self._cut:
            self.late, self._open = self._asked, True
            return True
        return False

    def _book(self, *, answered: bool) -> None:
        if not answered:
            self._open = True
            self.late = self.late or self._asked
