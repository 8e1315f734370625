"""A model's child that plays a script, frame by frame, in the place of a jail's process."""

import socket
import threading

from localagent.domain.jailspec import JailResult, JailSpec
from localagent.domain.outcome import JailOutcome
from localagent.llm.process.protocol import FrameBuffer, Message, pack

# what a child sends for a request: bytes as they are, a frame, several frames; None hangs up
Answer = bytes | Message | list[Message] | None

READY: Message = {"kind": "ready", "name": "x", "load_seconds": 0.1, "resident_bytes": 1000, "threads": 1}


class ReplayedChild:
    """A jail process whose other end plays a script: each request is answered with the next bytes, None hangs up."""

    def __init__(self, answers: list[bytes | None]) -> None:
        self.channel, self._theirs = socket.socketpair()
        self.requests: list[Message] = []
        self.killed = threading.Event()
        self._answers = answers
        threading.Thread(target=self._play, daemon=True).start()

    def _play(self) -> None:
        buffer = FrameBuffer()
        while data := self._theirs.recv(1 << 16):
            for request in buffer.feed(data):
                self.requests.append(request)
                if request["kind"] == "cancel" or not self._answers:
                    continue
                answer = self._answers.pop(0)
                if answer is None:
                    self._theirs.shutdown(socket.SHUT_RDWR)
                    return
                self._theirs.sendall(answer)

    @property
    def alive(self) -> bool:
        return not self.killed.is_set()

    def kill(self) -> JailResult:
        self.killed.set()
        return JailResult(
            ending=JailOutcome.MEMORY,
            returncode=-9,
            stdout=b"",
            stderr=b"",
            wall_seconds=0.0,
            backend="replay",
            level="none",
        )

    wait = kill


class ReplayJail:
    backend = "replay"
    level = "none"

    def __init__(self, *answers: Answer) -> None:
        self.started: list[ReplayedChild] = []
        self.specs: list[JailSpec] = []
        self._answers = [_bytes(answer) for answer in answers]

    def run(self, spec: JailSpec, *, stdin: bytes = b"") -> JailResult:
        raise AssertionError("the model's child is started, never run to its end")

    def start(self, spec: JailSpec) -> ReplayedChild:
        self.specs.append(spec)
        self.started.append(ReplayedChild(self._answers))
        return self.started[-1]


def _bytes(answer: Answer) -> bytes | None:
    if isinstance(answer, dict):
        return pack(answer)
    return b"".join(pack(part) for part in answer) if isinstance(answer, list) else answer
