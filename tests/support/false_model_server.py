"""What stands at a model server's socket and answers as a test wants: to try what a client makes of it."""

import json
import socketserver
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

Write = Callable[[bytes], object]
CHAT = "POST /v1/chat/completions"
MODELS = {"data": [{"id": "bot", "meta": {"n_ctx": 4096, "n_ctx_train": 8192}}]}


@dataclass
class FalseModelServer:
    """Its answers by method and path: JSON, bytes of a body, or a callable that writes raw bytes. Else 404."""

    socket: Path
    answers: dict[str, Any] = field(default_factory=dict)
    bodies: list[Any] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)


def completion(
    text: str | None = "hello", *calls: tuple[str, str], finish: str = "stop", **more: Any
) -> dict[str, Any]:
    """A chat completion; calls are names and their arguments as text."""
    message: dict[str, Any] = {"role": "assistant", "content": text}
    if calls:
        message["tool_calls"] = [
            {"id": f"c{at}", "type": "function", "function": {"name": name, "arguments": arguments}}
            for at, (name, arguments) in enumerate(calls)
        ]
    return {"choices": [{"index": 0, "message": message, "finish_reason": finish}], **more}


def stream(*deltas: Any, done: bool = True) -> Callable[[Write], None]:
    """Server-sent events; each delta goes into a piece, a piece with `choices` goes as it is."""

    def write(out: Write) -> None:
        out(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")
        for delta in deltas:
            piece = delta if "choices" in delta or "error" in delta else {"choices": [{"delta": delta}]}
            out(b"data: " + json.dumps(piece).encode() + b"\n\n")
        if done:
            out(b"data: [DONE]\n\n")

    return write


def status(code: int, body: object, kind: str = "application/json") -> Callable[[Write], None]:
    """An answer of that status."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    head = f"HTTP/1.1 {code} Said\r\ncontent-type: {kind}\r\ncontent-length: {len(data)}\r\nconnection: close\r\n\r\n"

    def write(out: Write) -> None:
        out(head.encode() + data)

    return write


def calls_in_turn(calls: Sequence[tuple[str, dict[str, Any]]]) -> Callable[[Write], None]:
    """Answers with one call after the other (a tool and its arguments), the last for ever."""
    left = iter(calls)
    last = [calls[-1]]

    def write(out: Write) -> None:
        last[0] = next(left, last[0])
        name, arguments = last[0]
        reply = completion(None, (name, json.dumps(arguments)), finish="tool_calls", usage={"prompt_tokens": 9})
        status(200, reply)(out)

    return write


def calls_by_role(
    bodies: Callable[[], Sequence[Any]], **scripts: Sequence[tuple[str, dict[str, Any]]]
) -> Callable[[Write], None]:
    """Answers each role, as the request's `metadata` names it, with calls of its own, the last of it for ever."""
    answers = {role: calls_in_turn(script) for role, script in scripts.items()}
    return lambda out: answers[bodies()[-1]["metadata"]["role"]](out)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    model: FalseModelServer

    def _answer(self) -> None:
        asked = f"{self.command} {self.path}"
        self.model.asked.append(asked)
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        if asked == CHAT:
            self.model.bodies.append(json.loads(body))
        found = self.model.answers.get(asked)
        write = found if callable(found) else status(404 if found is None else 200, found)
        self.close_connection = True
        write(self.wfile.write)

    do_GET = do_POST = _answer

    def log_message(self, *_: object) -> None:
        pass


class _Server(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True
    block_on_close = False

    def handle_error(self, *_: object) -> None:
        pass  # clients leave in the middle of what is written: that is what is tried here


@contextmanager
def false_model_server(chat: Any = None, **answers: Any) -> Iterator[FalseModelServer]:
    """One that listens and answers a chat so; gone at the end."""
    with tempfile.TemporaryDirectory(prefix="la-model-") as folder:
        given = {"GET /v1/models": MODELS, CHAT: completion() if chat is None else chat, **answers}
        made = FalseModelServer(socket=Path(folder) / "s", answers=given)
        with _Server(str(made.socket), type("Handler", (_Handler,), {"model": made})) as server:
            thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
            thread.start()
            try:
                yield made
            finally:
                with suppress(OSError):
                    server.shutdown()
                thread.join()
