"""The parent's side of the confined child: starts it at once, has it load a model, asks it, and never trusts it.

One child serves all who ask; they take turns, in the order they come. Absent, altered, slow, crashing or starved, the
model costs a warning; a request is never repeated and a dropped model stays dropped. No answer of the child is taken
unchecked.
"""

import select
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from localagent.domain.edit import digest_of
from localagent.domain.jailspec import JailResult, JailSpec
from localagent.errors import CannotEnforce, LocalagentError
from localagent.llm.model.gpu import Offload, beside_bytes, came_of
from localagent.llm.model.memory_estimate import Needs
from localagent.llm.model.registry import ModelFile
from localagent.llm.model.thread_count import free_threads
from localagent.llm.model.unavailable import ENDED, Dropped, ended, number, reason_of, remedy_of, task_remedy_of
from localagent.llm.process.child_jail import child_spec, needs_of_model
from localagent.llm.process.fair_lock import Turns
from localagent.llm.process.protocol import CONTEXT_TOKENS, FrameBuffer, FrameFault, Message, send
from localagent.ports import JailProcess

_CLOSE_SECONDS = 1.0
_GLANCE_SECONDS = 0.1
_LEAST_SECONDS = 0.05  # a request that has less is not sent
_REASON_CHARACTERS = 500
_MOST_PATH_TOKENS = 1 << 20


class Starter(Protocol):
    """What starts the child: a jail, or what stands for one."""

    def start(self, spec: JailSpec) -> JailProcess:
        """As `ports.Jail`."""
        ...


def _always() -> bool:
    return True


class Served:
    """One model in one confined child. Safe to use from several threads, whose requests take turns."""

    def __init__(
        self,
        model: ModelFile,
        jail: Starter,
        *,
        threads: int | None = None,
        spare: ModelFile | None = None,
        hosted: bool = False,
        offload: Offload = Offload(),  # noqa: B008 - a value
    ) -> None:
        """`spare` is loaded where `model` cannot be: the registered file of rewritten weights.

        `hosted`: `jail` starts nothing, but leads to a child that another process holds, and has memory for.
        `offload`: what goes to a GPU.

        `threads` None: as many as cores are free and are seen to help; the child says how many.
        """
        self._model = model
        self._try = threads is None
        self._spare = spare
        self.remark = ""
        self._jail, self._hosted = jail, hosted
        self.offload = offload
        self.threads = threads if threads is not None else free_threads()
        self.load_seconds = 0.0
        self.unasked: list[str] = []  # questions for whole answers that could not be asked, and why
        self.path_tokens = CONTEXT_TOKENS  # of prompt and answer together, as the child says once it is loaded
        self._needs = Needs(weights_bytes=model.bytes)
        self.resident_bytes = 0
        self.cpu_seconds = 0.0
        self._sent_at = self._at_work = 0.0
        self.pieces: dict[int, bytes] = {}  # what the child told of its tokens; it tells each once
        self._forms: frozenset[str] = frozenset()
        self.ends: tuple[str, ...] = ("", "")  # how the first and the last token of a text are spelled
        self._tokens = 0
        self._warning = ""
        self._refusal: CannotEnforce | None = None
        self._process: JailProcess | None = None
        self._buffer = FrameBuffer()
        self._pending: list[Message] = []
        self._turn = Turns()
        self._state = threading.Lock()
        self._loaded = threading.Event()
        self._closed = self._served = False
        self._requests = 0
        self._unheard = 0
        self._starter = threading.Thread(target=self._start, name="model-start", daemon=True)
        self._starter.start()

    @property
    def name(self) -> str:
        """The registered name."""
        return self._model.name

    @property
    def digest(self) -> str:
        """`sha256:<hex>` of the registered file."""
        return "sha256:" + (self._model.registered_sha256 or self._model.sha256)

    @property
    def weights(self) -> str:
        """`sha256:<hex>` of the file that was loaded: the registered one, or what `model tune` made of it.

        With files beside it (an adapter that was learned here, a mender), of all digests in hexadecimal, joined by `+`.
        """
        model = self._model
        return digest_of(model.loaded.encode()) if model.beside else f"sha256:{model.sha256}"

    @property
    def tokens_used(self) -> int:
        """Tokens decoded so far."""
        return self._tokens

    @property
    def warning(self) -> str:
        """Why the model was dropped, or ""."""
        return self._warning

    def refuse_if_dropped(self) -> None:
        """CannotEnforce where the model was dropped, for whoever can do nothing without it."""
        if self._warning:
            raise self._refusal or CannotEnforce(self._warning)

    @property
    def load_limit_seconds(self) -> float:
        """How long loading may take, by the size of the file."""
        return self._needs.load_seconds

    @property
    def memory_limit_bytes(self) -> int:
        """The most that its process may take, by the shapes of the file."""
        return self._needs.resident_bytes + beside_bytes(self.offload)

    @property
    def mends(self) -> bool:
        """Whether the model comes with a mender that serves."""
        return self._model.mender is not None and not self.warning

    @property
    def path(self) -> Path | None:
        """The file that is loaded."""
        return self._model.path

    @property
    def busy(self) -> bool:
        """True while somebody's request is in work."""
        return self._turn.locked()

    def ready(self, timeout_seconds: float) -> bool:
        """Whether it is loaded, waiting for that so long."""
        return self._ready_by(time.monotonic() + timeout_seconds)

    def close(self) -> None:
        """Ends the child. Scores asked for later are None."""
        with self._state:
            self._closed = True
            process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        self._starter.join(_CLOSE_SECONDS)
        if self._turn.acquire(timeout=_CLOSE_SECONDS):
            process.channel.close()
            self._turn.release()

    def _start(self) -> None:
        try:
            try:
                self._open()
            except (Dropped, OSError, FrameFault, LocalagentError) as fault:
                if self._spare is None or self._closed:
                    raise
                self._model, self._spare = self._spare, None
                self._open()
                self.remark = (
                    f"rewritten weights, adapter or mender of {self.name} do not serve ({fault}); "
                    "the registered file does"
                )
        except (Dropped, OSError, FrameFault, LocalagentError) as fault:
            self._drop(fault)
        finally:
            self._loaded.set()

    def _open(self) -> None:
        """Start a child, in the place of one that failed, and have it load the model."""
        self._needs = needs_of_model(self._model)
        if not self._hosted:
            self._needs.refuse_without_memory()
        process = self._jail.start(child_spec(self._model, needs=self._needs, offload=self.offload))
        with self._state:
            failed, self._process = self._process, None if self._closed else process
            self._buffer, self._pending = FrameBuffer(), []
        if failed is not None:
            failed.kill()
            failed.channel.close()
        if self._process is None:
            process.kill()
            process.channel.close()
            return
        self._load(process)

    def _load(self, process: JailProcess) -> None:
        beside = {"adapter": self._model.adapter, "mender": self._model.mender}
        request: Message = {
            "kind": "load",
            "bytes": self._model.bytes,
            "sha256": self._model.sha256,
            **{k: None if f is None else {"bytes": f.bytes, "sha256": f.sha256} for k, f in beside.items()},
            "threads": self.threads,
            "try": self._try,
        }
        if self.offload.layers:
            request["gpu_layers"] = self.offload.layers
        send(process.channel, request)
        answer = self._next(process.channel, time.monotonic() + self.load_limit_seconds)
        if answer is None:
            raise Dropped(f"loading took longer than {self.load_limit_seconds:.0f} s")
        if answer["kind"] != "ready":
            raise Dropped(str(answer.get("why", "the child refused to load it"))[:_REASON_CHARACTERS])
        self.load_seconds = number(answer.get("load_seconds"))
        self.resident_bytes = int(number(answer.get("resident_bytes")))
        path = int(number(answer.get("path_tokens", CONTEXT_TOKENS)))
        if not 0 < path <= _MOST_PATH_TOKENS:
            raise Dropped("the child says it reads texts of a length that cannot be")
        self.path_tokens = path
        self.offload = came_of(self.offload, int(number(answer.get("gpus", 0))))
        self.ends = tuple(str(answer.get(name, ""))[:_REASON_CHARACTERS] for name in ("front", "end"))
        self._forms = frozenset({"text", "chat"} if answer.get("chat") is True else {"text"})
        self.threads = int(number(answer.get("threads", self.threads)))  # a shared child has its own, and one may try
        self._served = True

    def _ready_by(self, deadline: float) -> bool:
        self._loaded.wait(max(0.0, deadline - time.monotonic()))
        return self._loaded.is_set() and not self._warning and not self._closed

    def forms(self, timeout_seconds: float) -> frozenset[str]:
        """Which prompts the model knows (text, chat), once it is loaded; empty without a model."""
        return self._forms if self._ready_by(time.monotonic() + timeout_seconds) else frozenset()

    def exchange(
        self,
        request: Message,
        last: frozenset[str],
        *,
        timeout_seconds: float,
        wanted: Callable[[], bool] = _always,
    ) -> Iterator[Message]:
        """The child's answers to a request (which gets an id), up to the first of a kind in `last`.

        `wanted` is asked several times a second from when the request is in work; False ends it as the time does.

        Fewer, or none, when time runs out or there is no child; then the request is cancelled. What there is no time
        for is not sent, and says nothing of the child. Raises what `guarded` takes. A consumer that stops early leaves
        answers behind, which are passed over later.
        """
        deadline = time.monotonic() + timeout_seconds
        if self._warning or not self._turn.acquire(timeout=max(0.0, timeout_seconds)):
            return
        try:
            if self._ready_by(deadline):
                yield from self._exchange(request, last, deadline, wanted)
        finally:
            self._turn.release()

    @contextmanager
    def guarded(self) -> Iterator[None]:
        """Whatever a child does wrong inside drops the model instead of being raised."""
        try:
            yield
        except (Dropped, OSError, FrameFault, LocalagentError) as fault:
            self._drop(fault)

    def _exchange(
        self, request: Message, last: frozenset[str], deadline: float, wanted: Callable[[], bool]
    ) -> Iterator[Message]:
        process = self._process
        if process is None or deadline - time.monotonic() < _LEAST_SECONDS or not wanted():
            return
        self._requests += 1
        asked, heard = self._requests, False
        channel = process.channel
        channel.settimeout(max(0.5, deadline - time.monotonic()))
        send(channel, {**request, "id": asked})
        self._sent_at = time.monotonic()
        while (message := self._next(channel, deadline, wanted)) is not None:
            heard = True
            if message["kind"] == "refused":
                raise Dropped(str(message.get("why"))[:_REASON_CHARACTERS])
            if message.get("id") != asked:
                continue  # the rest of a request given up on earlier
            if message["kind"] == "queued":
                continue  # a child that is shared is at work for somebody else
            yield message
            if message["kind"] in last:
                self._unheard = 0
                return
        self._unheard = 0 if heard or not wanted() else self._unheard + 1
        if self._unheard > 1 and not self._closed:
            raise Dropped("it does not answer")
        channel.settimeout(_CLOSE_SECONDS)
        send(channel, {"kind": "cancel", "id": asked})

    @property
    def tokens_a_second(self) -> float:
        """What the child has decoded for a task in a second, from when it was asked; 0 before the first answer."""
        return self._tokens / self._at_work if self._at_work else 0.0

    def book(self, message: Message) -> None:
        """Count what a `done` says was spent."""
        self._at_work += time.monotonic() - self._sent_at
        self._tokens += int(number(message.get("tokens")))
        self.cpu_seconds += number(message.get("cpu_seconds", 0.0))
        self.resident_bytes = max(self.resident_bytes, int(number(message.get("resident_bytes", 0))))

    def _next(self, channel: socket.socket, deadline: float, wanted: Callable[[], bool] = _always) -> Message | None:
        """The next message, or None when the deadline passed or nobody wants it any more."""
        while (left := deadline - time.monotonic()) > 0.0 and not self._closed and wanted():
            if self._pending:
                return self._pending.pop(0)
            if select.select([channel], [], [], min(_GLANCE_SECONDS, left))[0]:
                data = channel.recv(1 << 20)
                if not data:
                    raise Dropped(ENDED)
                self._pending += self._buffer.feed(data)
        return None

    def _drop(self, fault: Exception) -> None:
        with self._state:
            if self._closed or self._warning:
                return
            process, self._process = self._process, None
            why, name = reason_of(fault), self._model.name
            self._warning = f"model {name} dropped: {why}"  # how its process ended is told as soon as it is known
        result = None
        if process is not None:
            result = _result_of(process, by_itself=why == ENDED and not self._hosted)
            process.channel.close()
        said = f"{why}{ended(result)}"
        self._refusal = CannotEnforce(f"{name} does not run here: {said}", remedy=remedy_of(fault, name, result))
        remedy = task_remedy_of(fault, name, result, loaded=self._served)
        self._warning = f"model {name} dropped: {said}; {remedy}"


def _result_of(process: JailProcess, *, by_itself: bool) -> JailResult:
    """How it ended. One that ended by itself is given a moment, so that its jail tells of its signal."""
    until = time.monotonic() + _CLOSE_SECONDS
    while by_itself and process.alive and time.monotonic() < until:
        time.sleep(_LEAST_SECONDS)
    return process.kill()
