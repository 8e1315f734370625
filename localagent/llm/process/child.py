"""The confined child: answers the frames of `llm.process.protocol` on the descriptor named by its one argument.

Started by `scorer` through a jail. Everything it reads besides the model is repository text, and only ever
data: special tokens in it are not parsed. Whatever goes wrong ends the child; the parent then goes on without a model.
"""

import hashlib
import math
import os
import socket
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, BinaryIO

from localagent.errors import CannotEnforce, LocalagentError
from localagent.llm.model.gguf import GgufHeader, read_adapter, read_header
from localagent.llm.model.llama_build import gpus
from localagent.llm.model.memory_estimate import needs_of
from localagent.llm.model.thread_count import ThreadCount, most_reading, worthwhile
from localagent.llm.process.batched_sampling import MAX_TOP, BatchedSampling, Draw, GrammarFault
from localagent.llm.process.capabilities import Dialect
from localagent.llm.process.chat_template import TemplateFault
from localagent.llm.process.child_decode import Growing, RequestFault
from localagent.llm.process.chunks import CHUNK_TOKENS
from localagent.llm.process.edit_codec import span_of, splices_of
from localagent.llm.process.first_difference import TokenizedText
from localagent.llm.process.llama_engine import Ask, Engine
from localagent.llm.process.memory_usage import resident_bytes
from localagent.llm.process.protocol import (
    ADAPTER,
    CONTEXT_TOKENS,
    MENDER,
    WEIGHTS,
    FrameBuffer,
    FrameFault,
    Message,
    receive_first,
    send,
)
from localagent.llm.process.shared_prefix import ContextFull
from localagent.llm.process.utf8 import utf8
from localagent.llm.scoring.repair_prompt import BODY_BYTES, RIGHT, TESTS_TOKENS, WRONG, lead_of
from localagent.llm.scoring.source_windows import SourceWindow, plan_windows

# The child's answers to `sample`: requests read strictly, each text told as it ends.
#
# What does not fit, or what the model has no template for, is refused by itself; it ends neither child nor model.

MAX_SEEDS = 256
MAX_MESSAGES = 16
MAX_STOPS = 16
MAX_GRAMMAR = 256 << 10
_ROLES = ("system", "user", "assistant")


class Drawing:
    """Answers for one channel."""

    def __init__(self, channel: socket.socket, engine: Engine) -> None:
        self._channel, self._engine = channel, engine
        self.dialect = Dialect(engine)

    def sample(self, request: Message) -> None:
        """`drawn` frames, then `done` with the tokens decoded; `crowded` instead where it cannot be asked so."""
        engine, how = self._engine, _draw(request)
        fed = utf8(_fed(request))
        how = replace(how, fed=tuple(engine.tokenize(fed, special=True)))
        grove = engine.grove()
        sampling = BatchedSampling(engine.llama, engine.vocab, grove, piece=engine.piece, ends=engine.ends)
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
        if prompt.get("form") == "rendered":
            return self.dialect.rendered(_text(prompt, "text"))
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


def _fed(request: Message) -> str:
    fed = request.get("fed", "")
    if not isinstance(fed, str) or len(fed) > MAX_GRAMMAR:
        raise RequestFault("fed")
    return fed


def _number(request: Message, name: str, least: float, most: float) -> float:
    value = request[name]
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise RequestFault(name)
    if not least <= value <= most:
        raise RequestFault(f"{name} outside {least:g} to {most:g}")
    return value


# The mending pass: the model is shown code as wrong, and reads it again as right, with its mender (docs/adr/0046).
#
# The order's first pass knows only what stands in front of a place. Here the whole stretch stands in front, as it is,
# and then once more; a model that has learned to write such code again without its faults says at each token of the
# second copy how likely somebody who mends it goes on otherwise. One pass over twice the stretch serves all its edits.
# How it is laid out: `mending_text`. Runs in the confined child only.

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


NICENESS = 5
TESTS_IN_FRONT_TOKENS = 3 * CHUNK_TOKENS - 1  # with the token in front whole chunks, which all files' texts begin with


class Inbox:
    """Reads frames in a thread, so that a cancellation is seen while llama.cpp computes."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._waiting: list[Message] = []
        self._ready = threading.Condition()
        self._cancelled: set[int] = set()
        self._ended = False
        self.current = -1
        threading.Thread(target=self._read, daemon=True).start()

    def cancelled(self) -> bool:
        """True when the request in work is no longer wanted."""
        return self._ended or self.current in self._cancelled

    def next(self) -> Message | None:
        """The next request, or None at the end."""
        with self._ready:
            while not self._waiting and not self._ended:
                self._ready.wait()
            return self._waiting.pop(0) if self._waiting and not self._ended else None

    def _read(self) -> None:
        buffer = FrameBuffer()
        try:
            while data := self._channel.recv(1 << 16):
                for message in buffer.feed(data):
                    if message["kind"] == "end":
                        return
                    self._take(message)
        except (OSError, FrameFault):
            return
        finally:
            with self._ready:
                self._ended = True
                self._ready.notify()

    def _take(self, message: Message) -> None:
        with self._ready:
            if message["kind"] == "cancel":
                self._cancelled.add(int(message["id"]))
            else:
                self._waiting.append(message)
            self._ready.notify()


def main(arguments: list[str]) -> int:
    """Serve one parent until it hangs up."""
    os.nice(NICENESS)
    channel = socket.socket(fileno=int(arguments[0]))
    opened = receive_first(channel, "load")
    inbox = Inbox(channel)
    try:
        engine, ready = _open(opened, os.open(WEIGHTS, os.O_RDONLY | os.O_CLOEXEC), inbox)
    except (LocalagentError, OSError) as fault:
        send(channel, {"kind": "refused", "why": str(fault)})
        return 1
    growing, drawing = Growing(channel, engine), Drawing(channel, engine)
    mending = Mending(channel, engine)
    send(channel, {**ready, "chat": bool(drawing.dialect.template), **drawing.dialect.ends()})
    while (request := inbox.next()) is not None:
        try:
            inbox.current = int(request["id"])
            if request["kind"] == "score":
                _answer_score(channel, engine, request, inbox)
            elif request["kind"] == "mend" and engine.mends:
                mending.mend(request)
            elif request["kind"] == "prepare":
                _prepare(channel, engine, mending, request)
            elif request["kind"] == "tokenize":
                growing.tokenize(request)
            elif request["kind"] == "grow":
                growing.grow(request)
            elif request["kind"] == "sample":
                drawing.sample(request)
            else:
                raise RequestFault(repr(request["kind"]))
        except (RequestFault, KeyError) as fault:
            send(channel, {"kind": "refused", "why": f"not a request: {fault}"})
            return 1
        except CannotEnforce as fault:
            send(channel, {"kind": "refused", "why": str(fault)})
            return 1
    return 0


def _open(request: Message, descriptor: int, inbox: Inbox) -> tuple[Engine, Message]:
    """Digest, then header, then llama.cpp: all on the very file that was opened."""
    began = time.monotonic()
    header = checked(request, descriptor)
    threads = int(request["threads"])
    needs = needs_of(header, os.fstat(descriptor).st_size, mends=request.get("mender") is not None)
    engine = Engine(
        descriptor,
        adapter=_beside(request, "adapter", ADAPTER, header),
        mender=_beside(request, "mender", MENDER, header),
        threads=threads,
        context_tokens=CONTEXT_TOKENS,
        cancelled=inbox.cancelled,
        needs=needs,
        gpu_layers=int(request.get("gpu_layers", 0)),
    )
    engine.try_once()
    if request.get("try") is True:
        threads = worthwhile(engine.rate, threads)
        engine.use(threads)
        engine.use_idle_cores(ThreadCount(threads, most_reading(threads)))
        engine.tokens_decoded = 0
    return engine, {
        "kind": "ready",
        "name": str(header.scalars.get("general.name", "")),
        "load_seconds": time.monotonic() - began,
        "resident_bytes": resident_bytes(),
        "threads": threads,
        "path_tokens": engine.path_tokens,
        "gpus": gpus(engine.llama),
    }


def _beside(request: Message, what: str, place: str, base: GgufHeader) -> int | None:
    """The opened adapter or mender that is to be loaded with a model, held against what is on record of it."""
    told = request.get(what)
    if told is None:
        return None
    descriptor = os.open(place, os.O_RDONLY | os.O_CLOEXEC)
    with _checked(told, descriptor, what) as stream:
        read_adapter(stream, base)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def checked(request: Message, descriptor: int) -> GgufHeader:
    """The header of the file that was opened, when it is the registered one; OSError or GgufFault otherwise."""
    with _checked(request, descriptor, "model") as stream:
        header = read_header(stream)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return header


@contextmanager
def _checked(request: Message, descriptor: int, what: str) -> Iterator[BinaryIO]:
    """The file behind a descriptor, of the size and the digest that were told."""
    with open(os.dup(descriptor), "rb") as stream:  # noqa: PTH123
        if os.fstat(stream.fileno()).st_size != request["bytes"]:
            raise OSError(f"the {what} file is not {request['bytes']} bytes long")
        if hashlib.file_digest(stream, "sha256").hexdigest() != request["sha256"]:
            raise OSError(f"the {what} file's SHA-256 is not the registered one")
        yield stream


def _answer_score(channel: socket.socket, engine: Engine, request: Message, inbox: Inbox) -> None:
    before, began = engine.tokens_decoded, time.process_time()
    number = request["id"]
    source = utf8(request["source"])
    shown, path = _context(engine, request["context"])
    front = [engine.front_token, *shown]
    edits = request["edits"]
    windows = plan_windows(source, [span_of(edit) for edit in edits])
    outside = len(edits) - sum(len(window.members) for window in windows)
    garbled = 0
    for window in windows:
        if inbox.cancelled():
            break
        tokens, asks, unasked = _questions(engine, [*front, *path], source, window, edits)
        outside += unasked
        garbled += 0 if tokens else unasked
        for answers in engine.compare(tokens, asks, front=len(front)):
            items = [[edit, round(ratio, 4), round(stood, 4)] for edit, ratio, stood in answers]
            send(channel, {"kind": "scores", "id": number, "items": items, "tokens": engine.tokens_decoded - before})
    send(
        channel,
        {
            "kind": "done",
            "id": number,
            "tokens": engine.tokens_decoded - before,
            "outside": outside,
            "garbled": garbled,
            "cpu_seconds": time.process_time() - began,
            "resident_bytes": resident_bytes(),
        },
    )


def _prepare(channel: socket.socket, engine: Engine, mending: Mending, request: Message) -> None:
    """Read what will stand in front of the code that is asked about next, with and without the mender."""
    before, began = engine.tokens_decoded, time.process_time()
    context = request["context"]
    if not isinstance(context, str):
        raise RequestFault("context")
    engine.prepare([engine.front_token, *_context(engine, context)[0]])
    if engine.mends:
        mending.prepare(context)
    spent = {"tokens": engine.tokens_decoded - before, "cpu_seconds": time.process_time() - began}
    send(channel, {"kind": "done", "id": request["id"], **spent, "resident_bytes": resident_bytes()})


def _context(engine: Engine, text: str) -> tuple[list[int], list[int]]:
    """What stands in front of the code: of all but its last line so many tokens, and that line: it names the file."""
    if not text:
        return [], []
    shown, _, path = text.rstrip("\n").rpartition("\n")
    tests = engine.tokenize(utf8(f"{shown}\n" if shown else ""))[-TESTS_IN_FRONT_TOKENS:]
    return tests, engine.tokenize(utf8(f"{path}\n"))


def _questions(
    engine: Engine, front: list[int], source: bytes, window: SourceWindow, edits: list[list[object]]
) -> tuple[list[int], dict[int, list[Ask]], int]:
    """Tokens to decode, what to ask at which position, and how many edits the context has no room for."""
    text, lead = _read(engine, source, window, engine.context_tokens - len(front))
    if not text.faithful:
        return [], {}, len(window.members)
    tokens = front + text.tokens
    asks: dict[int, list[Ask]] = {}
    unasked = 0
    for member, splices in splices_of(window.members, lead, edits):
        departure = text.departure(splices)
        position = len(front) + departure.index if departure else 0
        if departure is None or departure.new < 0 or position > engine.context_tokens:
            unasked += 1
            continue
        asks.setdefault(position, []).append((member, departure.old, departure.new))
    return tokens, asks, unasked


def _read(engine: Engine, source: bytes, window: SourceWindow, room_tokens: int) -> tuple[TokenizedText, int]:
    """The tokenized window and where it begins: without what stands in front if there is no room for it."""
    end = engine.end_token if window.end == len(source) else -1
    for lead in (window.lead, window.start):
        text = TokenizedText(
            source[lead : window.end],
            engine.tokenize,
            engine.token_bytes,
            end,
            local=engine.byte_level,
            known=engine.known,
        )
        if len(text.tokens) <= room_tokens:
            break
    return text, lead


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
