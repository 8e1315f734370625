"""A registered GGUF as a `ChatModel`: its confined child draws, llama.cpp's chat code or our own format carries tools.

A conversation that begins like the one before is read from where they part, in whole batches. Where a call is due its
opening is written for the model, and a grammar holds the rest. Not promised: text is told when a reply is whole.
"""

import threading
import time
from collections.abc import Callable, Mapping
from functools import cached_property

from localagent.domain.chat import ChatFailure, ChatFault, ChatReply, ChatRequest
from localagent.llm.chat.shim.shim_client import Shim
from localagent.llm.chat.tool_dialect import ChatPrompt, ToolDialect
from localagent.llm.model.gguf import GgufFault, read_header
from localagent.llm.process.batched_sampling import MAX_TOP, SampleEnd
from localagent.llm.process.model_client import Served
from localagent.llm.process.protocol import Message
from localagent.text.visible_text import one_line

_LAST = frozenset({"done", "crowded"})
_GRACE_SECONDS = 0.5
_MOST_SEED = 1 << 62


class GgufModel:
    """One served model. The child and the shim belong to whoever made them; `close` ends the child."""

    def __init__(self, served: Served, shim: Shim | None, *, own_format: bool = False) -> None:
        """`own_format`: tools go in localagent's format though the template carries them."""
        self._served, self._shim, self._own = served, shim, own_format

    def in_own_format(self) -> "GgufModel":
        """The same served model, asked for tools in localagent's own format."""
        return GgufModel(self._served, self._shim, own_format=True)

    @property
    def name(self) -> str:
        """As registered."""
        return self._served.name

    @property
    def digest(self) -> str:
        """`sha256:<hex>` of the registered file."""
        return self._served.digest

    @property
    def context_tokens(self) -> int | None:
        """Prompt and reply together; None until it is loaded."""
        return self._served.path_tokens if self._served.ready(0.0) else None

    @cached_property
    def dialect(self) -> ToolDialect:
        """How it calls tools. For a model that is loaded."""
        front, end = self._served.ends
        return ToolDialect(self._template(), front=front, end=end, shim=self._shim, own_format=self._own)

    def complete(
        self,
        request: ChatRequest,
        *,
        timeout_seconds: float,
        on_text: Callable[[str], None] | None = None,
        cancelled: threading.Event | None = None,
    ) -> ChatReply | ChatFailure:
        """As `ports.ChatModel`. The same request and seed draw the same on one machine."""
        until = time.monotonic() + timeout_seconds
        if not self._served.ready(timeout_seconds):
            why = self._served.warning
            fault = ChatFault.UNREACHABLE if why else ChatFault.LOADING
            return ChatFailure(fault=fault, reason=one_line(why or f"{self.name} is still loading"))
        prompt = self.dialect.prompt(request)
        if isinstance(prompt, ChatFailure):
            return prompt
        reply = self._drawn(prompt, request, until, cancelled)
        if isinstance(reply, ChatReply) and on_text is not None and reply.text:
            on_text(reply.text)
        return reply

    def count_tokens(self, text: str) -> int | None:
        """By the child."""
        request: Message = {"kind": "tokenize", "texts": [self.dialect.controls.escaped(text)]}
        with self._served.guarded():
            for message in self._served.exchange(request, frozenset({"tokens"}), timeout_seconds=10.0):
                told = message.get("tokens")
                if isinstance(told, list) and len(told) == 1 and isinstance(told[0], list):
                    return len(told[0])
        return None

    def close(self) -> None:
        """End the child."""
        self._served.close()

    def _template(self) -> str:
        """The file's own; "" where it has none or cannot be read any more: then our own format, by the child's."""
        try:
            if self._served.path is None:
                return ""
            with self._served.path.open("rb") as stream:
                found = read_header(stream).scalars.get("tokenizer.chat_template")
        except (OSError, GgufFault):
            return ""
        return found if isinstance(found, str) else ""

    def _drawn(
        self, prompt: ChatPrompt, request: ChatRequest, until: float, cancelled: threading.Event | None
    ) -> ChatReply | ChatFailure:
        text, why, end, tokens = "", "", SampleEnd.SECONDS.value, -1
        asked = self._request(prompt, request, until - time.monotonic())

        def wanted() -> bool:
            return cancelled is None or not cancelled.is_set()

        left = until - time.monotonic()
        with self._served.guarded():
            for message in self._served.exchange(asked, _LAST, timeout_seconds=left, wanted=wanted):
                if message["kind"] == "drawn":
                    text = str(message.get("text")).encode("latin-1", "replace").decode("utf-8", "replace")
                    end, tokens = str(message.get("end")), _count(message.get("tokens"))
                elif message["kind"] == "done":
                    self._served.book(message)
                else:
                    why = str(message.get("why"))[:300]
        if not wanted():
            return ChatFailure(fault=ChatFault.CANCELLED, reason="cancelled")
        if self._served.warning:
            return ChatFailure(fault=ChatFault.BROKEN_OFF, reason=one_line(self._served.warning))
        if why:
            fault = ChatFault.CONTEXT_EXCEEDED if "do not fit" in why or "does not fit" in why else ChatFault.REFUSED
            return ChatFailure(fault=fault, reason=one_line(f"{self.name} cannot be asked this: {why}"))
        if tokens < 0 or end == SampleEnd.SECONDS.value:
            return ChatFailure(
                fault=ChatFault.TIMED_OUT, reason=f"{self.name} did not finish in the time that there was"
            )
        reply = self.dialect.read(prompt, prompt.opening + text, request.tools, cut=end == SampleEnd.LENGTH.value)
        return _counted(reply, tokens)

    def _request(self, prompt: ChatPrompt, request: ChatRequest, seconds: float) -> Message:
        sampling = request.sampling
        shown: Mapping[str, object] = {"form": "rendered", "text": f"{prompt.text}{prompt.opening}"}
        if prompt.text is None:
            shown = {"form": "chat", "messages": [list(turn) for turn in prompt.turns], "answer": prompt.opening}
        forced = bool(prompt.grammar) and not prompt.lazy
        most = max(1, min(sampling.max_tokens, self._served.path_tokens // 2, 1023))
        return {
            "kind": "sample",
            "prompt": shown,
            "seeds": [sampling.seed % _MOST_SEED],
            "most_tokens": most,
            "temperature": max(0.0, min(10.0, sampling.temperature)),
            "top_k": MAX_TOP // 4,
            "top_p": max(0.0, min(1.0, sampling.top_p)),
            "min_p": 0.0,
            "stops": list(prompt.stops[:16]),
            "grammar": prompt.grammar if forced else "",
            "fed": prompt.fed + prompt.begun if forced else "",
            "seconds": max(0.0, seconds - _GRACE_SECONDS),
        }


def _count(value: object) -> int:
    return value if type(value) is int and value >= 0 else -1


def _counted(reply: ChatReply | ChatFailure, tokens: int) -> ChatReply | ChatFailure:
    if isinstance(reply, ChatFailure):
        return reply
    return ChatReply(text=reply.text, calls=reply.calls, reasoning=reply.reasoning, cut=reply.cut, reply_tokens=tokens)
