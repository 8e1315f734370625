"""One model for several processes: each asks over a socket of its own, in the child's own words, and never sees it.

`Hosted` is the asking side: in the place of a jail it hands out that socket as if it were a child's. `Shared` keeps a
confined child a model, makes a new one where one died, and lets idle ones go. `ClientConnection` serves one asking
process, whom it trusts with nothing but its own requests: what is malformed ends that line. Requests of all lines take
turns, in the order they come (ADR 0036); those that were waiting when a child died are asked of the new one. Not
promised: that one line cannot tell from waiting that there are others, or that a request which kills the child costs
its own task nothing.
"""

import os
import select
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from localagent.domain.jailspec import JailResult, JailSpec
from localagent.domain.outcome import JailOutcome
from localagent.llm.model.unavailable import Dropped
from localagent.llm.process.model_client import Served
from localagent.llm.process.protocol import FrameBuffer, FrameFault, Message, send

LAST = {
    "score": frozenset({"done"}),
    "mend": frozenset({"done"}),
    "prepare": frozenset({"done"}),
    "tokenize": frozenset({"tokens"}),
    "grow": frozenset({"done", "crowded"}),
    "sample": frozenset({"done", "crowded"}),
}
MOST_DEATHS = 5  # of a model's children within a minute; more is not mended by starting another
MOST_MODELS = 2
IDLE_SECONDS = 600.0
_MINUTE = 60.0
_SOONER_SECONDS = 10.0  # than whoever asks gives up
_REQUEST_SECONDS = 600.0
_SEND_SECONDS = 5.0  # a line that reads nothing for so long is ended: others wait for the child
_MOST_WAITING = 4


class HostedProcess:
    """A line to the shared child, where a child's process is expected. Killing it ends the line, not the child."""

    def __init__(self, channel: socket.socket) -> None:
        self.channel = channel

    @property
    def alive(self) -> bool:
        """Until it is killed."""
        return self.channel.fileno() >= 0

    def kill(self) -> JailResult:
        """Nothing of ours runs there; whoever holds the child goes on."""
        return JailResult(
            ending=JailOutcome.EXITED,
            returncode=0,
            stdout=b"",
            stderr=b"",
            wall_seconds=0.0,
            backend="hosted",
            level="",
        )

    wait = kill


@dataclass(frozen=True, kw_only=True, slots=True)
class Hosted:
    """Starts nothing: the child is another process's. `descriptor` is this process's line to it."""

    descriptor: int

    def start(self, spec: JailSpec) -> HostedProcess:
        """Every start is the one line again; what to load is asked over it."""
        del spec
        return HostedProcess(socket.socket(fileno=os.dup(self.descriptor)))


@dataclass(slots=True)
class Shared:
    """Children by what they loaded (`ModelFile.loaded`). `made` starts one; None for what is not served here."""

    made: Callable[[str], Served | None]
    clock: Callable[[], float] = time.monotonic
    _children: dict[str, Served] = field(default_factory=dict)
    _used_at: dict[str, float] = field(default_factory=dict)
    _deaths: dict[str, list[float]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def child(self, sha256: str) -> Served | str:
        """A child with those weights, perhaps still loading; why there is none otherwise."""
        with self._lock:
            now = self.clock()
            found = self._children.get(sha256)
            if found is not None and found.warning:
                found.close()
                del self._children[sha256]
                self._deaths[sha256] = [at for at in self._deaths.get(sha256, []) if now - at < _MINUTE] + [now]
                why, found = found.warning, None
                if len(self._deaths[sha256]) >= MOST_DEATHS:
                    return f"its process dies again and again ({why})"
            deaths = [at for at in self._deaths.get(sha256, []) if now - at < _MINUTE]
            if found is None and len(deaths) >= MOST_DEATHS:
                return "its process died again and again; it is tried anew in a minute"
            if found is None and len(self._children) >= MOST_MODELS and not self._let_go(keep_seconds=0.0):
                return f"{MOST_MODELS} models are in use already"
            if found is None:
                found = self.made(sha256)
                if found is None:
                    return "no such model is served here"
                self._children[sha256] = found
            self._used_at[sha256] = now
            return found

    def tidy(self) -> None:
        """Let children go that nobody has asked for a while."""
        with self._lock:
            self._let_go(keep_seconds=IDLE_SECONDS)

    def _let_go(self, *, keep_seconds: float) -> bool:
        idle = [
            sha256
            for sha256, child in self._children.items()
            if not child.busy and self.clock() - self._used_at[sha256] > keep_seconds
        ]
        for sha256 in idle:
            self._children.pop(sha256).close()
        return bool(idle)

    def close(self) -> None:
        """End every child."""
        with self._lock:
            for child in self._children.values():
                child.close()
            self._children.clear()


class ClientConnection:
    """One asking process. `run` until it hangs up or says something that is none of the protocol."""

    def __init__(self, channel: socket.socket, shared: Shared) -> None:
        self._channel, self._shared = channel, shared
        self._buffer = FrameBuffer()
        self._waiting: list[Message] = []
        self._cancelled: set[int] = set()
        self._gone = False
        self._sha256 = ""
        self._told: set[int] = set()

    def run(self) -> None:
        """Never raises for what the other end does."""
        self._channel.settimeout(_SEND_SECONDS)
        try:
            while (message := self._next()) is not None:
                if message["kind"] == "load":
                    self._load(message)
                elif message["kind"] in LAST:
                    self._pass_on(message)
                else:
                    return
        except (FrameFault, OSError):
            return
        finally:
            self._channel.close()

    def _next(self) -> Message | None:
        while not self._waiting and not self._gone:
            select.select([self._channel], [], [])
            self._read()
        return self._waiting.pop(0) if self._waiting and not self._gone else None

    def _read(self) -> None:
        """What has come: cancellations are kept apart. FrameFault for more than a well-behaved process asks at once."""
        data = self._channel.recv(1 << 20)
        if not data:
            self._gone = True
        for message in self._buffer.feed(data):
            if message["kind"] == "end":
                self._gone = True
            elif message["kind"] == "cancel":
                self._cancelled.add(_number(message))
            else:
                self._waiting.append(message)
        if len(self._waiting) > _MOST_WAITING or len(self._cancelled) > 1 << 16:
            raise FrameFault("more than is asked at once")

    def _wanted(self, number: int) -> bool:
        try:
            while not self._gone and select.select([self._channel], [], [], 0)[0]:
                self._read()
        except (OSError, FrameFault):
            self._gone = True
        return not self._gone and number not in self._cancelled

    def _say(self, message: Message) -> None:
        """A line that does not take it is at its end; that is not the child's fault."""
        if not self._gone:
            try:
                send(self._channel, message)
            except (OSError, FrameFault):
                self._gone = True

    def _load(self, message: Message) -> None:
        sha256 = _loaded(message)
        found = self._shared.child(sha256)
        if isinstance(found, str) or not found.ready(found.load_limit_seconds - _SOONER_SECONDS):
            self._say({"kind": "refused", "why": found if isinstance(found, str) else found.warning or "it is loading"})
            return
        self._sha256, self._told = sha256, set()
        self._say(
            {
                "kind": "ready",
                "name": found.name,
                "load_seconds": found.load_seconds,
                "resident_bytes": found.resident_bytes,
                "threads": found.threads,
                "path_tokens": found.path_tokens,
                "chat": "chat" in found.forms(0.0),
            }
        )

    def _pass_on(self, request: Message) -> None:
        """The request to the child, its answers back. One that was never begun when a child died is asked again."""
        number, last = _number(request), LAST[str(request["kind"])]
        self._say({"kind": "queued", "id": number})
        for _ in range(MOST_DEATHS):
            child = self._shared.child(self._sha256)
            if isinstance(child, str):
                self._say({"kind": "refused", "why": child})
                return
            if request["kind"] == "prepare" and child.busy:  # whoever has it would read over what was prepared
                self._say({"kind": "done", "id": number, "tokens": 0})
                return
            begun = False

            def wanted() -> bool:
                nonlocal begun
                begun = True
                return self._wanted(number)

            with child.guarded():
                for answer in child.exchange(request, last, timeout_seconds=_REQUEST_SECONDS, wanted=wanted):
                    self._say({**answer, "id": number, **self._pieces(child, answer)})
            if begun or not child.warning or not self._wanted(number):
                if child.warning:
                    self._say({"kind": "refused", "why": child.warning})
                break
        self._cancelled.discard(number)

    def _pieces(self, child: Served, answer: Message) -> Message:
        """The bytes of the tokens that an answer names and this line was not told; the child tells each once only."""
        if "pieces" not in answer:
            return {}
        pieces = answer["pieces"]
        if not isinstance(pieces, dict):
            raise Dropped("the child sent malformed pieces")
        try:
            child.pieces.update({int(token): text.encode("latin-1") for token, text in pieces.items()})
            named = set(_named(answer)) - self._told
        except (ValueError, TypeError, AttributeError, IndexError):
            raise Dropped("the child sent malformed pieces") from None
        told = {token: child.pieces[token].decode("latin-1") for token in named if token in child.pieces}
        self._told |= told.keys()
        return {"pieces": {str(token): text for token, text in told.items()}}


def _named(answer: Message) -> Iterator[int]:
    """The tokens whose bytes an answer's reader will want."""
    texts: Iterable[list[int]] = answer.get("tokens", []) if answer["kind"] == "tokens" else []
    for text in texts:
        yield from text
    for item in answer.get("items", []):
        yield from (int(token) for token, _ in item[2])


def _loaded(message: Message) -> str:
    """What is to be loaded, as `ModelFile.loaded` names it."""
    digests = [message.get("sha256")]
    if not isinstance(digests[0], str):
        raise FrameFault("what is to be loaded has no digest")
    for what in ("adapter", "mender"):
        file = message.get(what)
        if file is not None:
            if not isinstance(file, dict) or not isinstance(file.get("sha256"), str):
                raise FrameFault(f"the {what} that is to be loaded has no digest")
            digests.append(file["sha256"])
    return "+".join(map(str, digests))


def _number(message: Message) -> int:
    number = message.get("id")
    if type(number) is not int or not 0 <= number < 1 << 53:
        raise FrameFault("a request without a number")
    return number
