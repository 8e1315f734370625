"""The child's answers to `sample`: requests read strictly, each text told as it ends.

What does not fit, or what the model has no template for, is refused by itself; it ends neither child nor model.
"""

import math
import socket
from typing import Any

from localagent.llm.process.batched_sampling import MAX_TOP, Draw, GrammarFault, Sampling
from localagent.llm.process.capabilities import Dialect
from localagent.llm.process.chat_template import TemplateFault
from localagent.llm.process.child_decode import RequestFault
from localagent.llm.process.llama_engine import Engine
from localagent.llm.process.memory_usage import resident_bytes
from localagent.llm.process.protocol import Message, send
from localagent.llm.process.shared_prefix import ContextFull
from localagent.llm.process.utf8 import utf8

MAX_SEEDS = 256
MAX_MESSAGES = 16
MAX_STOPS = 16
MAX_GRAMMAR = 16 << 10
_ROLES = ("system", "user", "assistant")


class Drawing:
    """Answers for one channel."""

    def __init__(self, channel: socket.socket, engine: Engine) -> None:
        self._channel, self._engine = channel, engine
        self.dialect = Dialect(engine)

    def sample(self, request: Message) -> None:
        """`drawn` frames, then `done` with the tokens decoded; `crowded` instead where it cannot be asked so."""
        engine, how = self._engine, _draw(request)
        grove = engine.grove()
        sampling = Sampling(engine.llama, engine.vocab, grove, piece=engine.piece, ends=engine.ends)
        before = grove.tokens_decoded
        try:
            for drawn in sampling.draw(self._prompt(request["prompt"]), how):
                told = {
                    "number": drawn.number,
                    "text": drawn.text.decode("latin-1"),
                    "tokens": drawn.tokens,
                    "likelihood": round(drawn.likelihood, 4),
                    "end": drawn.end.value,
                }
                send(self._channel, {"kind": "drawn", "id": request["id"], **told})
        except (ContextFull, TemplateFault, GrammarFault) as no:
            send(self._channel, {"kind": "crowded", "id": request["id"], "why": str(no)})
            return
        spent = {"tokens": grove.tokens_decoded - before, "resident_bytes": resident_bytes()}
        send(self._channel, {"kind": "done", "id": request["id"], **spent})

    def _prompt(self, prompt: Any) -> list[int]:
        if not isinstance(prompt, dict):
            raise RequestFault("a prompt")
        if prompt.get("form") == "text":
            return self.dialect.text(_text(prompt, "text"))
        if prompt.get("form") == "chat":
            return self.dialect.chat(_messages(prompt.get("messages")), _text(prompt, "answer"))
        raise RequestFault("a prompt's form")


def _text(table: Message, name: str) -> bytes:
    if not isinstance(table.get(name), str):
        raise RequestFault(name)
    return utf8(table[name])


def _messages(value: Any) -> list[tuple[str, bytes]]:
    if not isinstance(value, list) or not 0 < len(value) <= MAX_MESSAGES:
        raise RequestFault("messages")
    out = []
    for message in value:
        if not isinstance(message, list) or len(message) != 2 or message[0] not in _ROLES:
            raise RequestFault("a message")
        if not isinstance(message[1], str):
            raise RequestFault("a message")
        out.append((message[0], utf8(message[1])))
    return out


def _draw(request: Message) -> Draw:
    seeds, stops, grammar = request["seeds"], request["stops"], request["grammar"]
    if not isinstance(seeds, list) or not 0 < len(seeds) <= MAX_SEEDS or not all(type(s) is int for s in seeds):
        raise RequestFault("seeds")
    if not isinstance(stops, list) or len(stops) > MAX_STOPS or not all(isinstance(s, str) and s for s in stops):
        raise RequestFault("stops")
    if not isinstance(grammar, str) or len(grammar) > MAX_GRAMMAR or "\0" in grammar:
        raise RequestFault("a grammar")
    return Draw(
        seeds=tuple(seeds),
        most_tokens=int(_number(request, "most_tokens", 1, 1 << 16)),
        temperature=_number(request, "temperature", 0.0, 10.0),
        top_k=int(_number(request, "top_k", 1, MAX_TOP)),
        top_p=_number(request, "top_p", 0.0, 1.0),
        min_p=_number(request, "min_p", 0.0, 1.0),
        stops=tuple(utf8(stop) for stop in stops),
        grammar=grammar,
        seconds=_number(request, "seconds", 0.0, 86_400.0),
    )


def _number(request: Message, name: str, least: float, most: float) -> float:
    value = request[name]
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise RequestFault(name)
    if not least <= value <= most:
        raise RequestFault(f"{name} outside {least:g} to {most:g}")
    return value
