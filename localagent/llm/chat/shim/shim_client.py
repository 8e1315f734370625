"""The parent's side of the chat shim: a helper process that is started when it is needed and again when it died.

Every request has a limit of time; a helper that does not answer in it is ended. `ShimFault` says why there is no
answer. No answer is trusted: callers check each value they take.
"""

import select
import socket
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from localagent.domain.jailspec import Bind, JailLimits, JailSpec
from localagent.errors import LocalagentError
from localagent.jail.api import interpreter_binds
from localagent.llm.process.child_jail import PACKAGE
from localagent.llm.process.model_client import Starter
from localagent.llm.process.protocol import FrameBuffer, FrameFault, Message, pack
from localagent.ports import JailProcess

ANSWER_SECONDS = 20.0  # on a machine under load; a template that is sound takes a tenth of a second at most
_MOST_CPU_SECONDS = 3600.0
_ADDRESS_SPACE_BYTES = 3 << 30
_RESIDENT_BYTES = 768 << 20
_CLOSE_SECONDS = 1.0


class ShimFault(Exception):  # noqa: N818
    """The chat code of llama.cpp has no answer: it refuses, died or took too long. One line."""


class Shim(Protocol):
    """What renders conversations and reads replies."""

    def ask(self, kind: str, request: Mapping[str, object]) -> Mapping[str, object]:
        """`apply` or `parse`; ShimFault when there is no answer."""
        ...


def shim_spec(library: Path) -> JailSpec:
    """The helper's jail: interpreter and packages read-only, nothing else, no network."""
    python, shown = interpreter_binds(sys.executable)
    inside = any(str(PACKAGE).startswith(bind.target + "/") for bind in shown)
    return JailSpec(
        argv=(python, "-s", "-P", "-m", "localagent.llm.chat.shim.shim_child", "{channel}", str(library)),
        cwd="/",
        binds=(*shown, *(() if inside else (Bind(source=str(PACKAGE), target=str(PACKAGE)),))),
        env=(
            ("PATH", "/usr/bin:/bin"),
            ("PYTHONPATH", str(PACKAGE.parent)),
            ("PYTHONDONTWRITEBYTECODE", "1"),
            ("GGML_NO_BACKTRACE", "1"),
        ),
        limits=JailLimits(
            wall_seconds=86_400.0,
            cpu_seconds=_MOST_CPU_SECONDS,
            address_space_bytes=_ADDRESS_SPACE_BYTES,
            resident_bytes=_RESIDENT_BYTES,
            file_bytes=1 << 20,
            tmp_bytes=1 << 20,
        ),
        loopback=False,
    )


class ChatShim:
    """One helper for all who ask; they take turns. `restarts` counts those that died or were ended."""

    def __init__(self, jail: Starter, library: Path, *, seconds: float = ANSWER_SECONDS) -> None:
        self._jail, self._library, self._seconds = jail, library, seconds
        self._process: JailProcess | None = None
        self._buffer = FrameBuffer()
        self._turn = threading.Lock()
        self._requests = 0
        self.restarts = 0

    def ask(self, kind: str, request: Mapping[str, object]) -> Mapping[str, object]:
        """As `Shim`."""
        with self._turn:
            try:
                answer = self._answer(kind, request)
            except (OSError, FrameFault, LocalagentError) as fault:
                self._end()
                raise ShimFault(f"the chat helper ended: {fault}") from None
            except ShimFault:
                self._end()
                raise
        if not isinstance(answer, dict):
            raise ShimFault("the chat helper's answer is not an object")
        if "error" in answer:
            raise ShimFault(f"llama.cpp cannot {kind} this: {str(answer['error'])[:300]}")
        return answer

    def close(self) -> None:
        """End the helper; the next request starts another."""
        with self._turn:
            self._end(counted=False)

    def _answer(self, kind: str, request: Mapping[str, object]) -> object:
        if self._process is None:
            self._process, self._buffer = self._jail.start(shim_spec(self._library)), FrameBuffer()
        channel, until = self._process.channel, time.monotonic() + self._seconds
        self._requests += 1
        channel.settimeout(self._seconds)
        channel.sendall(pack({"kind": kind, "id": self._requests, "request": request}))
        while (message := self._next(channel, until)) is not None:
            if message.get("id") == self._requests and message["kind"] == "done":
                return message.get("answer")
        raise ShimFault(f"the chat helper did not answer within {self._seconds:g} s")

    def _next(self, channel: socket.socket, until: float) -> Message | None:
        while (left := until - time.monotonic()) > 0.0:
            if not select.select([channel], [], [], left)[0]:
                continue
            data = channel.recv(1 << 20)
            if not data:
                raise ShimFault("the chat helper died of what it was given")
            if found := self._buffer.feed(data):
                return found[-1]  # one request, one answer
        return None

    def _end(self, *, counted: bool = True) -> None:
        process, self._process = self._process, None
        if process is not None:
            self.restarts += counted
            process.kill()
            process.channel.close()
