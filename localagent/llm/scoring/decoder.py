"""The search's side of the model: texts to tokens, and many continuations of one text decoded together.

Answers of the child are checked before they are taken: numbers of branches and rows, tokens, log-probabilities at most
0, bytes of tokens. Nothing is raised for what the model does: it is dropped, and the answer is None.
"""

from collections.abc import Iterator, Sequence

from localagent.llm.model.unavailable import Dropped, number
from localagent.llm.process.model_client import Served
from localagent.llm.process.protocol import Message
from localagent.llm.process.shared_prefix import Branch

_MAX_PIECE_BYTES = 512
_TOKENS_LAST = frozenset({"tokens"})
_GROWN_LAST = frozenset({"done", "crowded"})

# what one row answered: the likeliest tokens with their log-probabilities, log-probabilities of the asked tokens
RowAnswer = tuple[tuple[tuple[int, float], ...], tuple[float, ...]]


class ModelDecoder:
    """Asks one served model. `tokens_used` counts what these requests alone decoded."""

    def __init__(self, served: Served) -> None:
        self._served = served
        self.tokens_used = 0

    @property
    def alive(self) -> bool:
        """False once the model was dropped."""
        return not self._served.warning

    def piece(self, token: int) -> bytes:
        """Bytes of a token that an answer named; none for control tokens."""
        return self._served.pieces.get(token, b"")

    def tokenize(self, texts: Sequence[bytes], *, timeout_seconds: float) -> list[list[int]] | None:
        """Tokens of each text, or None."""
        request: Message = {"kind": "tokenize", "texts": [t.decode("utf-8", "surrogateescape") for t in texts]}
        with self._served.guarded():
            for message in self._served.exchange(request, _TOKENS_LAST, timeout_seconds=timeout_seconds):
                self._learn(message)
                told = message.get("tokens")
                if message["kind"] != "tokens" or not isinstance(told, list) or len(told) != len(texts):
                    raise Dropped("the child sent malformed tokens")
                return [[_token(t) for t in _list(text)] for text in told]
        return None

    def grow(
        self,
        trunk: Sequence[int],
        branches: Sequence[Branch],
        *,
        timeout_seconds: float,
        fresh: bool = False,
        mending: bool = False,
    ) -> list[list[RowAnswer]] | None:
        """For each branch the answers to its rows; None where any is missing: no time, no room, or no model.

        `mending`: of the model with its mender (`llm/scoring/repair_scoring.py`), which it must have.
        `fresh`: no branches of earlier requests are built upon. Which there are changes answers by tenths of a nat.
        """
        if mending and not self._served.mends:  # loading left it behind
            return None
        request: Message = {
            "kind": "grow",
            "fresh": fresh,
            **({"mending": True} if mending else {}),
            "trunk": list(trunk),
            "branches": [[b.at, list(b.tokens), [[r.index, r.top, list(r.asked)] for r in b.rows]] for b in branches],
        }
        found: dict[tuple[int, int], RowAnswer] = {}
        with self._served.guarded():
            for message in self._served.exchange(request, _GROWN_LAST, timeout_seconds=timeout_seconds):
                if message["kind"] == "grown":
                    self._learn(message)
                    for branch, row, answer in _items(message.get("items"), branches):
                        found[branch, row] = answer
                elif message["kind"] == "done":
                    self._served.book(message)
                    self.tokens_used += int(number(message.get("tokens")))
        if len(found) < sum(len(b.rows) for b in branches):
            return None
        return [[found[at, k] for k in range(len(b.rows))] for at, b in enumerate(branches)]

    def _learn(self, message: Message) -> None:
        pieces = message.get("pieces")
        if not isinstance(pieces, dict):
            raise Dropped("the child sent malformed pieces")
        for token, text in pieces.items():
            if not token.isdecimal() or not isinstance(text, str) or len(text) > _MAX_PIECE_BYTES:
                raise Dropped("the child sent malformed pieces")
            try:
                self._served.pieces[int(token)] = text.encode("latin-1")
            except UnicodeEncodeError:
                raise Dropped("the child sent malformed pieces") from None


def _items(value: object, branches: Sequence[Branch]) -> Iterator[tuple[int, int, RowAnswer]]:
    for item in _list(value):
        told, which, top, asked = _list(item, 4)
        branch, row = _token(told), _token(which)
        if branch >= len(branches) or row >= len(branches[branch].rows):
            raise Dropped("the child answered what was not asked")
        wanted = branches[branch].rows[row]
        likeliest = tuple((_token(t), _probability(p)) for t, p in (_list(pair, 2) for pair in _list(top, wanted.top)))
        yield branch, row, (likeliest, tuple(_probability(p) for p in _list(asked, len(wanted.asked))))


def _list(value: object, length: int | None = None) -> list[object]:
    if not isinstance(value, list) or (length is not None and len(value) != length):
        raise Dropped("the child sent malformed readings")
    return value


def _token(value: object) -> int:
    if type(value) is not int or not 0 <= value < 1 << 31:
        raise Dropped("the child sent something that is not a token")
    return value


def _probability(value: object) -> float:
    found = number(value)
    if found > 0.0:
        raise Dropped("the child sent a log-probability above 0")
    return found
