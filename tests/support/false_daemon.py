"""What stands at a daemon's socket and answers as a test wants: to try what a client makes of it."""

import json
import socketserver
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from localagent import __version__
from localagent.app import Settings
from localagent.app.policies import open_policy
from localagent.app.review.patch_tests import ProofRequest, Tree, open_tree
from localagent.domain.edit import FileChange, Patch
from localagent.domain.outcome import Baseline
from localagent.domain.paths import RepoPath
from localagent.domain.policy import Policy
from localagent.precommit.daemon_suggest import AtDaemon
from localagent.record.patchfile import patch_json
from support.fix_builder import ADDED, ADDER, home

TASK = "20260101-000000-000000-abcdef"
SECONDS = 60.0
STAGED = ADDER["adder.py"].encode()
REPAIRED = STAGED.replace(b"    return a - b\n", ADDED)
Write = Callable[[bytes], object]


@dataclass
class FalseDaemon:
    """Its answers by method and path. A callable writes raw bytes itself; what is not there is 404."""

    socket: Path
    answers: dict[str, Any] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    orders: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.answers = {
            "GET /version": {"version": __version__},
            "POST /v1/blobs/missing": {"missing": []},
            "POST /v1/tasks": {"id": TASK, "state": "queued"},
            f"GET /v1/tasks/{TASK}/events": events(("end", {"state": "done", "exit": 0, "reason": "why"})),
            f"POST /v1/tasks/{TASK}/cancel": {},
            **self.answers,
        }

    def patch(self, value: object) -> None:
        self.answers[f"GET /v1/tasks/{TASK}/patch"] = value


def events(*told: tuple[str, Any]) -> Callable[[Write], None]:
    """An event stream that ends."""

    def write(out: Write) -> None:
        out(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")
        for kind, data in told:
            out(f"event: {kind}\ndata: {json.dumps(data)}\n\n".encode())

    return write


def refusal(status: int, kind: str, fault: str) -> Callable[[Write], None]:
    """A fault as the daemon says it."""
    body = json.dumps({"error": {"kind": kind, "faults": [fault], "remedy": ""}}).encode()
    head = f"HTTP/1.1 {status} No\r\nretry-after: 1\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n"

    def write(out: Write) -> None:
        out(head.encode() + body)

    return write


def dripping(out: Write) -> None:
    """A byte now and then, never an answer."""
    while True:
        out(b"H")
        time.sleep(0.02)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    daemon: FalseDaemon

    def _answer(self) -> None:
        asked = f"{self.command} {self.path}"
        self.daemon.asked.append(asked)
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        if asked == "POST /v1/tasks":
            self.daemon.orders.append(json.loads(body))
        found = self.daemon.answers.get(asked)
        if callable(found):
            self.close_connection = True
            found(self._write)
            return
        data = found if isinstance(found, bytes) else json.dumps(found).encode()
        status = b"404 No" if found is None else b"200 OK"
        self._write(b"HTTP/1.1 " + status + b"\r\ncontent-length: " + str(len(data)).encode() + b"\r\n\r\n" + data)

    do_GET = do_POST = do_PUT = _answer

    def _write(self, data: bytes) -> None:
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass


class _Server(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True
    block_on_close = False

    def handle_error(self, *_: object) -> None:
        pass  # clients leave in the middle of what is written: that is what is tried here


@contextmanager
def false_daemon(**answers: Any) -> Iterator[FalseDaemon]:
    """One that listens; gone at the end."""
    with tempfile.TemporaryDirectory(prefix="la-false-") as folder:
        made = FalseDaemon(socket=Path(folder) / "s", answers=dict(answers))
        handler = type("Handler", (_Handler,), {"daemon": made})
        with _Server(str(made.socket), handler) as server:
            thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
            thread.start()
            try:
                yield made
            finally:
                with suppress(OSError):
                    server.shutdown()
                thread.join()


@contextmanager
def tree_at(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Tree, Policy]]:
    """The adder as it is staged, while its working file has a line more."""
    with home() as place:
        for name, value in place.environment().items():
            monkeypatch.setenv(name, value)
        place.write({"adder.py": STAGED + b"x = 1\n"})
        settings = Settings.from_environ()
        request = ProofRequest(repo=place.repo, overlay={RepoPath("adder.py"): STAGED})
        with open_tree(request, settings, lambda _sources: ("test_adder.py",)) as tree:
            yield tree, open_policy(settings, None, place.repo).policy


def patch_of(path: str = "adder.py", before: bytes = STAGED, after: bytes = REPAIRED) -> dict[str, object]:
    return patch_json(Patch(changes=(FileChange(path=RepoPath(path), before=before, after=after),)))


def repaired(daemon: FalseDaemon, ground: tuple[Tree, Policy], seconds: float = SECONDS) -> Patch:
    tree, policy = ground
    return AtDaemon(daemon.socket, tree, seconds).repair(Baseline(tests=()), policy)
