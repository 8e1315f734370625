"""The confined helper: renders conversations and reads replies with llama.cpp's chat code, one request at a time.

Frames as in `llm.process.protocol`: `apply` and `parse`, each with an `id` and a `request`, are answered by `done` with
that id and an `answer`. Templates and replies are hostile and may end this process or never return: whoever asks has
limits of time, and starts another. Calls run on a thread with a large stack, for deep nesting ends a small one.
"""

import ctypes
import json
import socket
import sys
import threading
from typing import Any

from localagent.llm.process.protocol import FrameBuffer, FrameFault, Message, send

STACK_BYTES = 256 << 20
_KINDS = ("apply", "parse")


class _Shim:
    def __init__(self, path: str) -> None:
        library = ctypes.CDLL(path)
        self._calls: dict[str, Any] = {kind: getattr(library, f"localagent_chat_{kind}") for kind in _KINDS}
        for call in self._calls.values():
            call.restype, call.argtypes = ctypes.c_void_p, [ctypes.c_char_p]
        self._free = library.localagent_chat_free
        self._free.argtypes = [ctypes.c_void_p]

    def answer(self, kind: str, request: object) -> Any:
        """What llama.cpp answers: an object, with an `error` where it refuses."""
        found = self._calls[kind](json.dumps(request).encode("ascii"))
        if not found:
            return {"error": "out of memory"}
        try:
            return json.loads(ctypes.string_at(found))
        finally:
            self._free(found)


def _serve(channel: socket.socket, shim: _Shim) -> None:
    buffer = FrameBuffer()
    while data := channel.recv(1 << 16):
        for message in buffer.feed(data):
            if message["kind"] not in _KINDS:
                raise FrameFault(f"not a request: {message['kind']!r}")
            told: Message = {"kind": "done", "id": message.get("id")}
            send(channel, {**told, "answer": shim.answer(message["kind"], message.get("request"))})


def main(arguments: list[str]) -> int:
    """Serve one parent, at the descriptor that is named first, with the library that is named second."""
    channel = socket.socket(fileno=int(arguments[0]))
    shim = _Shim(arguments[1])
    ended: list[Exception] = []

    def work() -> None:
        try:
            _serve(channel, shim)
        except (OSError, FrameFault, ValueError) as fault:
            ended.append(fault)

    threading.stack_size(STACK_BYTES)
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    return 1 if ended else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
