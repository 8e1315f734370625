"""The port between the scorer and its child: length-prefixed JSON frames over one stream socket.

A frame is four bytes of length (big endian) and that many bytes of JSON, always one object with a `kind`.

    parent to child                                     child to parent
    load    bytes, sha256, adapter, mender, threads,    ready    name, threads, load_seconds, resident_bytes,
            try                                                  path_tokens, chat, gpus
                                                        refused  why (the child then ends)
    score   id, context, source, edits                  scores   id, items: [[edit, score or null], ...], tokens
                                                        done     id, tokens, outside, garbled, cpu_seconds
    mend    id, context, source, edits                  mended   id, items: [[edit, nats], ...], tokens
                                                        done     id, tokens, cpu_seconds
    prepare id, context                                 done     id, tokens, cpu_seconds
    tokenize  id, texts                                 tokens   id, tokens: [[token, ...], ...], pieces
    grow    id, trunk, branches, fresh, mending         grown    id, items: [[branch, row, top, asked], ...], pieces
                                                        done     id, tokens
                                                        crowded  id, why (nothing of it fits; the child goes on)
    sample  id, prompt, seeds, most_tokens,             drawn    id, number, text, tokens, likelihood, end
            temperature, top_k, top_p, min_p, stops,    done     id, tokens
            grammar, seconds                            crowded  id, why
    cancel  id                                          done     (as above, with what was scored so far)
    end                                                 (the child ends)

`prepare` reads what will stand in front of sources before they are there.

`adapter` and `mender` are null or objects of `bytes` and `sha256`; without a mender
`mend` is refused. `gpus` (may be left out) says how many the child sees. `try` (may be left out) lets
the child use fewer threads where more do not help; `ready` says how many it uses, and
in `path_tokens` (may be left out) how long prompt and answer may be together. `gpu_layers`
(may be left out) is how many layers go to a GPU, -1 for all.

A child that serves several parents answers `queued  id` at once to what has to wait (`hosted`).

`outside` counts edits that were not asked about; `garbled` (may be left out) those of them whose text the vocabulary
does not give back.

A branch is `[at, tokens, rows]`: tokens that follow the first `at` of the trunk. A row is `[index, top, asked]`: of the
distribution after the branch's token `index` (-1: after the trunk's part) the `top` likeliest tokens, answered as
`[[token, log-probability], ...]`, and the log-probabilities of the `asked` ones. `fresh` (may be left out) asks that no
branches of earlier requests are built upon. `mending` (may be left out): with the
mender; without one that is refused, too. `pieces` maps tokens that were not
told before to their bytes, written as latin-1.

A prompt is an object with a `form`: `text` (`text`) or `chat` (`messages`, each a role and a text, and the beginning of
the `answer`); or `rendered` (`text`), which a template made of escaped texts: its control texts are parsed. `fed` (may
be left out) is the end of the prompt that the grammar has read already; `ready` spells the `front` and the `end` of a
text. `ready` says whether the model knows `chat`. Drawn text is written as latin-1.

and with `requantize`, a child that does one thing:

    requantize  bytes, sha256, type                     written  type
                                                        refused  why

The files themselves are no part of it: the parent shows the child one model, read-only, and where it is to write one,
one file for that, at the fixed places WEIGHTS, ADAPTER and TARGET.

`source` and `context` are texts in which bytes that are not UTF-8 travel as surrogate escapes; an edit is
`[[start, end, text], ...], scope_start, scope_end` with byte offsets into `source` (-1 where there is no scope). New
kinds add a row here and a handler in `child`; an unknown kind is refused, never guessed.
Nothing is promised about frames from a compromised child: the parent checks every value it takes.
"""

import json
import socket
from typing import Any

MAX_FRAME_BYTES = 32 << 20
CONTEXT_TOKENS = 1536  # what orders edits is at most so long, and any text at least, if the model was trained for it
WEIGHTS = "/run/model/weights.gguf"
ADAPTER = "/run/model/adapter.gguf"
MENDER = "/run/model/mender.gguf"
TARGET = "/run/model/target.gguf"

Message = dict[str, Any]


class FrameFault(Exception):  # noqa: N818
    """The other side sent something that is not a frame."""


def pack(message: Message) -> bytes:
    """The bytes of one frame."""
    body = json.dumps(message, ensure_ascii=True, separators=(",", ":")).encode("ascii")
    if len(body) > MAX_FRAME_BYTES:
        raise FrameFault(f"a frame of {len(body)} bytes is larger than {MAX_FRAME_BYTES}")
    return len(body).to_bytes(4, "big") + body


class FrameBuffer:
    """Cuts a byte stream into messages."""

    def __init__(self) -> None:
        self._bytes = bytearray()

    def feed(self, data: bytes) -> list[Message]:
        """Adds bytes; returns the messages that are complete now. Raises FrameFault on anything malformed."""
        self._bytes += data
        out: list[Message] = []
        while len(self._bytes) >= 4:
            length = int.from_bytes(self._bytes[:4], "big")
            if length > MAX_FRAME_BYTES:
                raise FrameFault(f"a frame of {length} bytes is larger than {MAX_FRAME_BYTES}")
            if len(self._bytes) < 4 + length:
                break
            body = bytes(self._bytes[4 : 4 + length])
            del self._bytes[: 4 + length]
            out.append(_message(body))
        return out


def _message(body: bytes) -> Message:
    try:
        value = json.loads(body)
    except (ValueError, RecursionError) as fault:
        raise FrameFault(f"a frame is not JSON: {fault}") from None
    if not isinstance(value, dict) or not isinstance(value.get("kind"), str):
        raise FrameFault("a frame is not an object with a kind")
    return value


def send(channel: socket.socket, message: Message) -> None:
    """Writes one frame; blocks as the socket's timeout says."""
    channel.sendall(pack(message))


def receive_first(channel: socket.socket, kind: str) -> Message:
    """The first frame a child gets, of one kind; FrameFault for anything else."""
    messages = FrameBuffer().feed(channel.recv(1 << 16))
    if len(messages) != 1 or messages[0]["kind"] != kind:
        raise FrameFault(f"the first frame must be one {kind}")
    return messages[0]
