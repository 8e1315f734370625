"""How likely texts that begin alike are to the model, each read whole: `ports.TextReader` over the served model.

What they share is decoded once. Only differences between texts of one question mean something.
"""

from collections.abc import Sequence

from localagent.llm.process.shared_prefix import Branch, LogitRow
from localagent.llm.scoring.decoder import ModelDecoder

MAX_TEXT_BYTES = 16 << 10


class ModelReader:
    """Asks one decoder."""

    def __init__(self, decoder: ModelDecoder) -> None:
        self._decoder = decoder

    def likelihoods(self, texts: Sequence[bytes], *, timeout_seconds: float) -> list[float] | None:
        """For each text log P(what follows the beginning that all share); nats, at most 0.

        None where a text is too long for the model, nothing is shared, time runs out or there is no model.
        """
        if not texts or any(len(text) > MAX_TEXT_BYTES for text in texts):
            return None
        tokens = self._decoder.tokenize(texts, timeout_seconds=timeout_seconds)
        if tokens is None:
            return None
        shared = _shared(tokens)
        if shared == 0:
            return None
        answers = self._decoder.grow(
            tokens[0][:shared], [_branch(text, shared) for text in tokens], timeout_seconds=timeout_seconds
        )
        if answers is None:
            return None
        return [sum(asked[0] for _, asked in rows) for rows in answers]


def _shared(texts: Sequence[Sequence[int]]) -> int:
    """How many tokens all begin with."""
    count = 0
    for column in zip(*texts, strict=False):
        if len(set(column)) > 1:
            break
        count += 1
    return count


def _branch(text: Sequence[int], at: int) -> Branch:
    """All of a text after `at`: each token asked for where the one before it stands. The last one is not decoded."""
    rest = tuple(text[at:])
    rows = tuple(LogitRow(index=i - 1, asked=(token,)) for i, token in enumerate(rest))
    return Branch(at=at, tokens=rest[:-1], rows=rows)
