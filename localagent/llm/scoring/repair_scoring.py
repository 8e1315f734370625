"""The mending pass: the model is shown code as wrong, and reads it again as right, with its mender (docs/adr/0046).

The order's first pass knows only what stands in front of a place. Here the whole stretch stands in front, as it is,
and then once more; a model that has learned to write such code again without its faults says at each token of the
second copy how likely somebody who mends it goes on otherwise. One pass over twice the stretch serves all its edits.
How it is laid out: `mending_text`. Runs in the confined child only.
"""

import socket
import time
from collections.abc import Sequence

from localagent.llm.process.edit_codec import span_of, splices_of
from localagent.llm.process.first_difference import TokenizedText
from localagent.llm.process.llama_engine import Ask, Engine
from localagent.llm.process.memory_usage import resident_bytes
from localagent.llm.process.protocol import Message, send
from localagent.llm.process.utf8 import utf8
from localagent.llm.scoring.repair_prompt import BODY_BYTES, RIGHT, TESTS_TOKENS, WRONG, lead_of
from localagent.llm.scoring.source_windows import SourceWindow, plan_windows

Edits = Sequence[list[object]]


class Mending:
    """Answers requests of the kind `mend`."""

    def __init__(self, channel: socket.socket, engine: Engine) -> None:
        self._channel, self._engine = channel, engine

    def mend(self, request: Message) -> None:
        """For each edit log P(the second copy departs as it does), nats; in frames, window by window."""
        engine = self._engine
        before, began = engine.tokens_decoded, time.process_time()
        source, edits = utf8(request["source"]), request["edits"]
        front, path = self._front(request["context"])
        with engine.mending():
            for window in plan_windows(source, [span_of(edit) for edit in edits], body_bytes=BODY_BYTES):
                if engine.cancelled:
                    break
                tokens, asks = self._questions(front, path, source, window, edits)
                for answers in engine.compare(tokens, asks, front=len(front) if tokens[: len(front)] == front else 0):
                    items = [[edit, round(min(0.0, ratio + stood), 4)] for edit, ratio, stood in answers]
                    self._say("mended", request, before, items=items)
        self._say(
            "done", request, before, cpu_seconds=time.process_time() - began, resident_bytes=resident_bytes(), outside=0
        )

    def prepare(self, context: str) -> None:
        """Read what will stand in front."""
        with self._engine.mending():
            self._engine.prepare(self._front(context)[0])

    def _front(self, context: str) -> tuple[list[int], bytes]:
        """The tokens of the tests in front, and the line behind them that names the file."""
        tests, _, path = context.rstrip("\n").rpartition("\n")
        shown = self._engine.tokenize(utf8(f"{tests}\n" if tests else ""))[-TESTS_TOKENS:]
        return [self._engine.front_token, *shown], utf8(f"{path}\n")

    def _say(self, kind: str, request: Message, before: int, **more: object) -> None:
        tokens = self._engine.tokens_decoded - before
        send(self._channel, {"kind": kind, "id": request["id"], "tokens": tokens, **more})

    def _questions(
        self, front: list[int], path: bytes, source: bytes, window: SourceWindow, edits: Edits
    ) -> tuple[list[int], dict[int, list[Ask]]]:
        """What is read, and what is asked where; nothing of a stretch that does not fit twice."""
        engine, begin = self._engine, source.rfind(b"\n", 0, window.start) + 1
        text = TokenizedText(
            source[begin : window.end],
            engine.tokenize,
            engine.token_bytes,
            engine.end_token,
            local=engine.byte_level,
            known=engine.known,
        )
        ended = text.data.endswith(b"\n")
        wrong, right = engine.tokenize(WRONG), engine.tokenize(RIGHT if ended else b"\n" + RIGHT)
        twice = [*wrong, *text.tokens, *right]
        for shown in ([*front, *engine.tokenize(path + lead_of(source, begin))], [engine.front_token]):
            tokens = [*shown, *twice, *text.tokens, engine.end_token]
            if text.faithful and len(tokens) <= engine.context_tokens:
                return tokens, _asks(text, len(shown) + len(twice), begin, window, edits)
        return [], {}


def _asks(text: TokenizedText, at: int, begin: int, window: SourceWindow, edits: Edits) -> dict[int, list[Ask]]:
    found: dict[int, list[Ask]] = {}
    for member, splices in splices_of(window.members, begin, edits):
        departure = text.departure(splices)
        if departure is not None and departure.new >= 0:
            found.setdefault(at + departure.index, []).append((member, departure.old, departure.new))
    return found
