"""A model server of the house as a `ChatModel`: OpenAI chat completions over a Unix socket (llama-server, vLLM).

The conversation goes to whoever listens at the socket that the user named; nothing else is ever connected to. Every
fault of the server is a `ChatFailure`. Not promised: that the same seed draws the same.
"""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from localagent.domain.chat import PREFIX, ChatFailure, ChatFault, ChatReply, ChatRequest
from localagent.domain.edit import digest_of
from localagent.llm.chat.completions import failure_of, read_reply, read_stream, request_bytes, sound
from localagent.llm.chat.control_text import ControlTexts
from localagent.llm.chat.unix_http import Patience, RequestFailed, exchange
from localagent.text.strict_json import canonical, dump, load
from localagent.text.visible_text import one_line

_LOOK_SECONDS = 5.0
_MOST_CONTEXT = 1 << 26


@dataclass(frozen=True, kw_only=True, slots=True)
class _About:
    """What a server says of the model it serves."""

    name: str
    context_tokens: int | None
    digest: str


class ServerModel:
    """One model server. One request at a time; a connection each."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._controls = ControlTexts()
        self._about: _About | None = None
        self._counts = True

    @property
    def name(self) -> str:
        """As the server calls its model; its socket while it does not answer."""
        about = self._known()
        return about.name if about else f"{PREFIX}{self._path}"

    @property
    def digest(self) -> str:
        """Of what the server says about its model; "" while it does not answer."""
        about = self._known()
        return about.digest if about else ""

    @property
    def context_tokens(self) -> int | None:
        """As the server says."""
        about = self._known()
        return about.context_tokens if about else None

    def health(self) -> ChatFailure | None:
        """None when the server is ready, else why not. Where there is no GET /health its models are asked."""
        try:
            with exchange(self._path, "GET", "/health", None, Patience(time.monotonic() + _LOOK_SECONDS)) as answer:
                if answer.status not in (200, 404, 405):
                    return failure_of(answer.status, answer.body()).failure
            self._about = self._look()
        except RequestFailed as no:
            return no.failure
        return None

    def complete(
        self,
        request: ChatRequest,
        *,
        timeout_seconds: float,
        on_text: Callable[[str], None] | None = None,
        cancelled: threading.Event | None = None,
    ) -> ChatReply | ChatFailure:
        """Ask once; nothing is sent again. With `on_text` the reply is streamed, and its text told as it comes."""
        patience = Patience(time.monotonic() + timeout_seconds, cancelled)
        about = self._known()
        body = request_bytes(request, about.name if about else "", self._controls, stream=on_text is not None)
        try:
            with exchange(self._path, "POST", "/v1/chat/completions", body, patience) as answer:
                if answer.status != 200:
                    raise failure_of(answer.status, answer.body())
                if on_text is not None and "text/event-stream" in answer.content_type:
                    reply = read_stream(answer.pieces, _streamed_text(on_text, self._controls))
                else:
                    reply = read_reply(answer.body())
                    if on_text is not None and reply.text:
                        on_text(self._controls.unescaped(reply.text))
        except RequestFailed as no:
            if no.failure.fault is ChatFault.CONTEXT_EXCEEDED:
                self._about = None  # its context may be another than it was
            return no.failure
        return given_back(reply, self._controls)

    def count_tokens(self, text: str) -> int | None:
        """By POST /tokenize, which llama-server and vLLM have; None from where it is not there."""
        about = self._known()
        if not self._counts or about is None:
            return None
        shown = self._controls.escaped(text)
        body = dump({"model": about.name, "content": shown, "prompt": shown})
        try:
            value = self._json_of("POST", "/tokenize", body)
        except RequestFailed as no:
            self._counts = no.failure.fault is not ChatFault.REFUSED
            return None
        tokens, count = value.get("tokens"), value.get("count")
        if type(count) is int and count >= 0:
            return count
        return len(tokens) if isinstance(tokens, list) else None

    def close(self) -> None:
        """Nothing is kept open."""

    def _known(self) -> _About | None:
        if self._about is None:
            try:
                self._about = self._look()
            except RequestFailed:
                return None
        return self._about

    def _look(self) -> _About:
        listed = self._json_of("GET", "/v1/models").get("data")
        entry = listed[0] if isinstance(listed, list) and listed and isinstance(listed[0], dict) else {}
        meta = entry.get("meta")
        meta = meta if isinstance(meta, dict) else {}
        context = _tokens(meta.get("n_ctx")) or _tokens(entry.get("max_model_len")) or self._props_context()
        context = context or _tokens(meta.get("n_ctx_train"))
        name = entry.get("id")
        told = {"id": name, "meta": meta, "root": entry.get("root"), "context": context}
        return _About(
            name=one_line(sound(name), 200) if isinstance(name, str) else "",
            context_tokens=context,
            digest=digest_of(canonical(told)),
        )

    def _props_context(self) -> int | None:
        """llama-server's own way of saying how long a conversation may be."""
        try:
            settings = self._json_of("GET", "/props").get("default_generation_settings")
        except RequestFailed:
            return None
        return _tokens(settings.get("n_ctx")) if isinstance(settings, dict) else None

    def _json_of(self, method: str, target: str, body: bytes | None = None) -> Mapping[str, object]:
        with exchange(self._path, method, target, body, Patience(time.monotonic() + _LOOK_SECONDS)) as answer:
            data = answer.body()
            if answer.status != 200:
                raise failure_of(answer.status, data)
        try:
            value = load(data)
        except ValueError as fault:
            raise RequestFailed(
                ChatFault.MALFORMED, f"the model server's answer to {target} is not JSON: {fault}"
            ) from None
        return value if isinstance(value, dict) else {}


def given_back(reply: ChatReply, controls: ControlTexts) -> ChatReply:
    """With the control texts that were escaped for the model."""
    calls = tuple(replace(call, arguments=controls.unescaped_json(call.arguments)) for call in reply.calls)
    return replace(
        reply, text=controls.unescaped(reply.text), reasoning=controls.unescaped(reply.reasoning), calls=calls
    )


def _streamed_text(on_text: Callable[[str], None], controls: ControlTexts) -> Callable[[str], None]:
    def heard(text: str) -> None:
        if text:
            on_text(controls.unescaped(sound(text)))

    return heard


def _tokens(value: object) -> int | None:
    return value if type(value) is int and 0 < value < _MOST_CONTEXT else None
