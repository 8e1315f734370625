"""The order's side of the model: an `EditScorer` over the confined child that never raises.

No answer of the child is trusted beyond being two numbers, a probability's logarithm among them at most 0; what it did
not answer is None.
"""

import time
from collections.abc import Iterator, Sequence

from localagent.domain.edit import Edit, Reading
from localagent.llm.model.unavailable import Dropped, number
from localagent.llm.process.model_client import Served
from localagent.llm.process.protocol import Message

MAX_SOURCE_BYTES = 2 << 20
MAX_CONTEXT_BYTES = 64 << 10
_LAST = frozenset({"done"})
_SLOW = "on a busy machine wait, give it more --max-seconds, or leave it out with --no-model"
_SILENT_SECONDS = 2.0  # after which a model that was asked and said nothing is worth a word


class ModelScorer(Served):
    """Scores edits with one model in one confined child. Safe to call from several threads; requests queue."""

    unscored_outside = 0
    garbled = 0
    _asked_at = 0.0  # the first time, while nothing was answered
    _answered = False

    def score(
        self, source: bytes, context: str, edits: Sequence[Edit], *, timeout_seconds: float
    ) -> Sequence[float | None]:
        """The readings' scores alone."""
        found = self.read(source, context, edits, timeout_seconds=timeout_seconds)
        return [None if reading is None else reading.score for reading in found]

    def read(
        self, source: bytes, context: str, edits: Sequence[Edit], *, timeout_seconds: float
    ) -> Sequence[Reading | None]:
        """One reading an edit, or None; partial when time runs out (which drops nothing)."""
        scores: list[Reading | None] = [None] * len(edits)
        asked = [index for index, edit in enumerate(edits) if edit.splices]
        if asked and len(source) <= MAX_SOURCE_BYTES:
            request = _request("score", source, context, [edits[index] for index in asked])
            self._asked_at = self._asked_at or time.monotonic()
            with self.guarded():
                for message in self.exchange(request, _LAST, timeout_seconds=timeout_seconds):
                    self._answered = True
                    self._take(message, asked, scores)
        return scores

    def prepare(self, context: str, *, timeout_seconds: float) -> None:
        """Read what will stand in front of the sources that are asked about next, so that they are read the sooner.

        Which of its answers this changes: none.
        """
        with self.guarded():
            request = {"kind": "prepare", "context": context[:MAX_CONTEXT_BYTES]}
            for message in self.exchange(request, _LAST, timeout_seconds=timeout_seconds):
                self.book(message)

    def mend(
        self, source: bytes, context: str, edits: Sequence[Edit], *, timeout_seconds: float
    ) -> Sequence[float | None]:
        """For each edit how likely it mends, nats (`repair_scoring`); None for what there was no time or room for."""
        found: list[float | None] = [None] * len(edits)
        asked = [index for index, edit in enumerate(edits) if edit.splices]
        fits = bool(asked) and len(source) <= MAX_SOURCE_BYTES
        if self.mends and fits and self.ready(timeout_seconds) and self.mends:  # loading may leave the mender behind
            request = _request("mend", source, context, [edits[index] for index in asked])
            with self.guarded():
                for message in self.exchange(request, _LAST, timeout_seconds=timeout_seconds):
                    for index, nats in _mended(message.get("items", [])):
                        if not 0 <= index < len(asked):
                            raise Dropped("the child sent a score that cannot be")
                        found[asked[index]] = nats
                    if message["kind"] == "done":
                        self.book(message)
        return found

    @property
    def remarks(self) -> tuple[str, ...]:
        """What a report should say of how the model served."""
        said = [self.remark] if self.remark else []
        if self.offload.said:
            said.append(f"model {self.name} was {self.offload.said}")
        if self.garbled:
            said.append(
                f"model {self.name} did not order {self.garbled} edits: its vocabulary does not give their text back;"
                " they stand in the order without a model"
            )
        if self.unasked:
            more = f" ({len(self.unasked) - 1} more like it)" if len(self.unasked) > 1 else ""
            said.append(f"model {self.name} was not asked for everything: {self.unasked[0]}{more}")
        silent = self._asked_at and not self._answered and not self.warning
        if silent and time.monotonic() - self._asked_at > _SILENT_SECONDS:
            said.append(f"model {self.name} ordered nothing: it did not answer in time; {_SLOW}")
        return tuple(said)

    def _take(self, message: Message, asked: list[int], scores: list[Reading | None]) -> None:
        for index, reading in _items(message.get("items", [])):
            if not 0 <= index < len(asked) or reading.stood > 0.0:
                raise Dropped("the child sent a score that cannot be")
            scores[asked[index]] = reading
        if message["kind"] == "done":
            self.book(message)
            self.unscored_outside += int(number(message.get("outside")))
            self.garbled += int(number(message.get("garbled", 0)))


def _request(kind: str, source: bytes, context: str, edits: Sequence[Edit]) -> Message:
    return {
        "kind": kind,
        "source": source.decode("utf-8", "surrogateescape"),
        "context": context[:MAX_CONTEXT_BYTES],
        "edits": [
            [
                [[cut.start, cut.end, cut.text.decode("utf-8", "surrogateescape")] for cut in edit.splices],
                edit.scope.start if edit.scope else -1,
                edit.scope.end if edit.scope else -1,
            ]
            for edit in edits
        ],
    }


def _items(value: object) -> Iterator[tuple[int, Reading]]:
    """Pairs of an edit's number and its reading, or Dropped."""
    if not isinstance(value, list):
        raise Dropped("the child sent malformed scores")
    for item in value:
        if not isinstance(item, list) or len(item) != 3 or type(item[0]) is not int:
            raise Dropped("the child sent malformed scores")
        yield item[0], Reading(ratio=number(item[1]), stood=number(item[2]))


def _mended(value: object) -> Iterator[tuple[int, float]]:
    """Pairs of an edit's number and its nats, at most 0; or Dropped."""
    if not isinstance(value, list):
        raise Dropped("the child sent malformed scores")
    for item in value:
        if not isinstance(item, list) or len(item) != 2 or type(item[0]) is not int:
            raise Dropped("the child sent malformed scores")
        nats = number(item[1])
        if nats > 0.0:
            raise Dropped("the child sent a score that cannot be")
        yield item[0], nats
