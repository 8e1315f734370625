"""The child's answers to `tokenize` and `grow`: requests read strictly, readings sent as they come.

A request that does not fit the context, or is not one, is refused by itself; it ends neither child nor model.
"""

import socket
from collections.abc import Iterator
from typing import Any

from localagent.llm.process.llama_engine import Engine
from localagent.llm.process.memory_usage import resident_bytes
from localagent.llm.process.protocol import Message, send
from localagent.llm.process.shared_prefix import MAX_TOP, Branch, ContextFull, LogitRow
from localagent.llm.process.utf8 import utf8

MAX_BRANCHES = 4096
MAX_TEXTS = 256


class RequestFault(Exception):  # noqa: N818
    """The parent asked for something that is not a request."""


class Growing:
    """Answers for one channel; remembers which tokens' bytes the parent was told."""

    def __init__(self, channel: socket.socket, engine: Engine) -> None:
        self._channel, self._engine = channel, engine
        self._told: set[int] = set()

    def tokenize(self, request: Message) -> None:
        """`tokens`: for each text its tokens, and the bytes of those not told before."""
        texts = request["texts"]
        if not isinstance(texts, list) or len(texts) > MAX_TEXTS or not all(isinstance(t, str) for t in texts):
            raise RequestFault("texts")
        tokens = [self._engine.tokenize(utf8(text)) for text in texts]
        pieces = self._pieces(token for text in tokens for token in text)
        send(self._channel, {"kind": "tokens", "id": request["id"], "tokens": tokens, "pieces": pieces})

    def grow(self, request: Message) -> None:
        """`grown` frames, then `done` with the tokens decoded; `crowded` instead where there is no room."""
        trunk, branches = _trunk(request, self._engine.vocabulary), _branches(request, self._engine.vocabulary)
        if any(b.at > len(trunk) for b in branches):
            raise RequestFault("a branch leaves the trunk after its end")
        mending = request.get("mending") is True
        if mending and not self._engine.mends:
            raise RequestFault("mending without a mender")
        grove = self._engine.grove(mending=mending)
        before = grove.tokens_decoded
        try:
            for readings in grove.grow(trunk, branches, fresh=request.get("fresh") is True):
                items = [
                    [r.branch, r.row, [[t, round(p, 4)] for t, p in r.top], [round(p, 4) for p in r.asked]]
                    for r in readings
                ]
                pieces = self._pieces(token for r in readings for token, _ in r.top)
                send(self._channel, {"kind": "grown", "id": request["id"], "items": items, "pieces": pieces})
        except ContextFull as no:
            send(self._channel, {"kind": "crowded", "id": request["id"], "why": str(no)})
            return
        spent = {"tokens": grove.tokens_decoded - before, "resident_bytes": resident_bytes()}
        send(self._channel, {"kind": "done", "id": request["id"], **spent})

    def _pieces(self, tokens: Iterator[int]) -> dict[str, str]:
        """Bytes of tokens not told before, as latin-1 text; control tokens have none."""
        fresh = set(tokens) - self._told
        self._told |= fresh
        return {str(token): self._engine.piece(token).decode("latin-1") for token in sorted(fresh)}


def _numbers(value: Any, vocabulary: int) -> tuple[int, ...]:
    if not isinstance(value, list) or not all(type(v) is int and 0 <= v < vocabulary for v in value):
        raise RequestFault("a list of tokens")
    return tuple(value)


def _trunk(request: Message, vocabulary: int) -> tuple[int, ...]:
    trunk = _numbers(request.get("trunk"), vocabulary)
    if not trunk:
        raise RequestFault("an empty trunk")
    return trunk


def _branches(request: Message, vocabulary: int) -> list[Branch]:
    told = request.get("branches")
    if not isinstance(told, list) or len(told) > MAX_BRANCHES:
        raise RequestFault("branches")
    return [_branch(one, vocabulary) for one in told]


def _branch(value: Any, vocabulary: int) -> Branch:
    if not isinstance(value, list) or len(value) != 3 or type(value[0]) is not int or value[0] < 1:
        raise RequestFault("a branch")
    tokens = _numbers(value[1], vocabulary)
    rows = [_row(row, len(tokens), vocabulary) for row in value[2]]
    if len({row.index for row in rows}) != len(rows):
        raise RequestFault("two rows at one place")
    return Branch(at=value[0], tokens=tokens, rows=tuple(rows))


def _row(value: Any, length: int, vocabulary: int) -> LogitRow:
    if not isinstance(value, list) or len(value) != 3 or type(value[0]) is not int or type(value[1]) is not int:
        raise RequestFault("a row")
    if not -1 <= value[0] < length or not 0 <= value[1] <= min(MAX_TOP, vocabulary - 1):
        raise RequestFault("a row outside its branch, or too wide")
    return LogitRow(index=value[0], top=value[1], asked=_numbers(value[2], vocabulary))
