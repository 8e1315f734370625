"""A worker's end of the channel in the hands of an attacker: whatever it says, the session ends and this is said."""

import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from localagent.domain.execution import Execution, Language
from localagent.domain.jailspec import JailLimits, JailResult, JailSpec
from localagent.domain.outcome import JailOutcome
from localagent.errors import CannotEnforce
from localagent.jail_sessions.session import PersistentSession
from localagent.jail_sessions.supervisor_messages import StepOrder
from localagent.runner.json_frames import Reader, pack

GOOD: dict[str, Any] = {"n": 1, "how": "done", "status": 0, "alive": True, "stdout": "aGk=", "stderr": ""}
Play = Callable[[socket.socket, str], None]


class Captured:
    """ports.JailProcess whose inside is `play`, with the far end of the channel and the session's nonce."""

    def __init__(self, play: Play) -> None:
        self.channel, self._far = socket.socketpair()
        self.alive = True
        threading.Thread(target=self._run, args=(play,), daemon=True).start()

    def _run(self, play: Play) -> None:
        reader = Reader(self._far.fileno())
        nonce = reader.receive()["nonce"]
        self._far.sendall(pack({"how": "open", "nonce": nonce}))
        reader.receive()
        play(self._far, nonce)

    def wait(self) -> JailResult:
        return self.kill()

    def kill(self) -> JailResult:
        self.alive = False
        self._far.close()
        return JailResult(
            ending=JailOutcome.CANCELLED,
            returncode=-1,
            stdout=b"",
            stderr=b"",
            wall_seconds=0.0,
            backend="captured",
            level="L1",
        )


class CapturedJail:
    """ports.Jail."""

    backend, level = "captured", "L1"

    def __init__(self, play: Play) -> None:
        self._play = play

    def run(self, spec: JailSpec, *, stdin: bytes = b"") -> JailResult:
        raise CannotEnforce("not asked for")

    def start(self, spec: JailSpec) -> Captured:
        return Captured(self._play)


def order() -> StepOrder:
    limits = JailLimits(wall_seconds=5.0, output_bytes=100)
    return StepOrder(session="s", language=Language.BASH, code="echo hi", request=Execution(limits=limits))


def says(**changes: Any) -> Play:
    return lambda far, nonce: far.sendall(pack({**GOOD, "nonce": nonce, **changes}))


def step(play: Play, scratch: Path) -> tuple[JailOutcome, bytes, bool]:
    session = PersistentSession(order(), CapturedJail(play), scratch)
    ours, theirs = socket.socketpair()
    try:
        with ours, theirs:
            answer = session.step(order(), ours.fileno(), lambda: False)
        return answer.result.ending, answer.result.stdout, answer.session.alive
    finally:
        session.end()


def test_an_answer_as_agreed_is_taken(tmp_path: Path) -> None:
    assert step(says(), tmp_path) == (JailOutcome.EXITED, b"hi", True)


@pytest.mark.parametrize(
    "play",
    [
        says(nonce="0" * 32),
        says(n=2),
        says(status="0"),
        says(status=None),
        says(how="accepted"),
        says(stdout="QUFB" * 100),  # more than the step may print
        says(stdout="not base64!"),
        says(stdout=5),
        says(stderr=None),
        lambda far, nonce: far.sendall(pack({"nonce": nonce, "n": 1})),
        lambda far, _: far.sendall(b"\xff\xff\xff\xff"),
        lambda far, _: far.sendall(b"\0\0\0\4nope"),
        lambda far, _: far.sendall(b"\0\0\0\2[]"),
        lambda far, _: far.sendall(b"\0\0\1\0cut off") or far.close(),
        lambda far, _: far.shutdown(socket.SHUT_RDWR),
    ],
)
def test_anything_else_ends_the_session(play: Play, tmp_path: Path) -> None:
    ending, stdout, alive = step(play, tmp_path)
    assert (ending, stdout, alive) == (JailOutcome.SIGNALLED, b"", False)
    assert list(tmp_path.iterdir()) == []
