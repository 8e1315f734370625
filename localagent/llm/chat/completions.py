"""OpenAI chat completions as bytes: a request written, a reply or a stream of pieces read strictly.

Everything that comes is hostile: sizes, counts and types are checked, and what is not a chat completion is a `NoReply`.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from localagent.domain.chat import ChatFault, ChatReply, ChatRequest, ChatRole, Message, ToolCall
from localagent.llm.chat.control_text import ControlTexts
from localagent.llm.chat.unix_http import RequestFailed
from localagent.text.strict_json import dump, load

MOST_CALLS = 64
MOST_TEXT = 8 << 20  # characters of a text, a call's arguments, or a line of a stream
_MOST_NAME = 256
_MOST_TOKENS = 1 << 31
_CONTEXT = re.compile(
    r"exceed_context_size|context_length_exceeded|exceeds? (?:the )?(?:available )?context|maximum context length"
    r"|context (?:size|length|window)[^.]{0,60}exceed|prompt is too long|longer than the maximum model length"
    r"|max_model_len|too large to process",
    re.IGNORECASE,
)


def request_bytes(request: ChatRequest, model: str, controls: ControlTexts, *, stream: bool) -> bytes:
    """The body of POST /v1/chat/completions; control texts in what comes from outside are escaped."""
    sampling = request.sampling
    body: dict[str, object] = {
        "model": model,
        "messages": [_message(message, controls) for message in request.messages],
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "seed": sampling.seed,
        "max_tokens": sampling.max_tokens,
        "stream": stream,
    }
    if request.tools:
        body["tools"] = [
            {"type": "function", "function": {"name": t.name, "description": t.description, "parameters": t.parameters}}
            for t in request.tools
        ]
        body["tool_choice"] = "required" if request.must_call else "auto"
    if request.metadata:
        body["metadata"] = dict(request.metadata)
    if stream:
        body["stream_options"] = {"include_usage": True}
    return dump(body)


def _message(message: Message, controls: ControlTexts) -> dict[str, object]:
    told: dict[str, object] = {"role": message.role.value, "content": controls.escaped(message.text)}
    if message.calls:
        told["tool_calls"] = [
            {"id": c.id, "type": "function", "function": {"name": c.name, "arguments": controls.escaped(c.arguments)}}
            for c in message.calls
        ]
    if message.role is ChatRole.TOOL:
        told["tool_call_id"] = message.call_id
    return told


def read_reply(data: bytes) -> ChatReply:
    """A whole chat completion."""
    value = _object(data)
    choice = _choice(value)
    message = choice.get("message")
    if not isinstance(message, dict):
        raise _malformed("it has no message")
    building = _Building()
    building.take(message, whole=True)
    return building.reply(_text(choice, "finish_reason"), value.get("usage"))


def read_stream(pieces: Iterable[bytes], heard: Callable[[str], None]) -> ChatReply:
    """Server-sent events to their end, `[DONE]`; BROKEN_OFF when they stop before."""
    building, reason, usage = _Building(), "", None
    for data in _events(pieces):
        if data == b"[DONE]":
            break
        value = _object(data)
        usage = value.get("usage") or usage
        if not value.get("choices"):
            continue  # the last one has the counts alone
        choice = _choice(value)
        delta = choice.get("delta")
        if not isinstance(delta, dict):
            raise _malformed("a piece of it has no delta")
        heard(building.take(delta, whole=False))
        reason = _text(choice, "finish_reason") or reason
    else:
        raise RequestFailed(ChatFault.BROKEN_OFF, "the model server's stream ended within the reply")
    return building.reply(reason, usage)


@dataclass(slots=True)
class _Call:
    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)
    size: int = 0


@dataclass(slots=True)
class _Building:
    text: list[str] = field(default_factory=list)
    reasoning: list[str] = field(default_factory=list)
    calls: dict[int, _Call] = field(default_factory=dict)
    size: int = 0

    def take(self, part: Mapping[str, object], *, whole: bool) -> str:
        """A message, or a piece of one; answers the text that is new."""
        text = _text(part, "content")
        reasoning = _text(part, "reasoning_content") or _text(part, "reasoning")
        self.size += len(text) + len(reasoning)
        if self.size > MOST_TEXT:
            raise _malformed(f"it is longer than {MOST_TEXT} characters")
        self.text.append(text)
        self.reasoning.append(reasoning)
        calls = part.get("tool_calls") or []
        if not isinstance(calls, list) or len(calls) > MOST_CALLS:
            raise _malformed("its calls are not a list of at most 64")
        for number, call in enumerate(calls):
            self._call(number if whole else None, call)
        return text

    def _call(self, number: int | None, value: object) -> None:
        if not isinstance(value, dict) or not isinstance(value.get("function", {}), dict):
            raise _malformed("a call of it is not an object")
        at = number if number is not None else value.get("index", 0)
        if type(at) is not int or not 0 <= at < MOST_CALLS:
            raise _malformed(f"a call of it has the number {at!r}")
        call, function = self.calls.setdefault(at, _Call()), value.get("function", {})
        call.id, call.name = call.id or _text(value, "id"), call.name or _text(function, "name")
        given = function.get("arguments")
        arguments = dump(given).decode().strip() if isinstance(given, dict) else _text(function, "arguments")
        call.size += len(arguments)
        if call.size > MOST_TEXT or max(len(call.id), len(call.name)) > _MOST_NAME:
            raise _malformed("a call of it is too long")
        call.arguments.append(arguments)

    def reply(self, reason: str, usage: object) -> ChatReply:
        counts = usage if isinstance(usage, dict) else {}
        details = counts.get("prompt_tokens_details")
        calls = [self.calls[at] for at in sorted(self.calls)]
        if any(not call.name for call in calls):
            raise _malformed("a call of it names no tool")
        return ChatReply(
            text=sound("".join(self.text)),
            reasoning=sound("".join(self.reasoning)),
            calls=tuple(
                ToolCall(id=sound(c.id) or f"call-{at}", name=sound(c.name), arguments=sound("".join(c.arguments)))
                for at, c in enumerate(calls)
            ),
            cut=reason == "length",
            prompt_tokens=_count(counts, "prompt_tokens"),
            cached_tokens=_count(details if isinstance(details, dict) else {}, "cached_tokens"),
            reply_tokens=_count(counts, "completion_tokens"),
        )


def sound(text: str) -> str:
    """Text without lone surrogates, which no file and no terminal takes."""
    return text if text.isascii() else text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def failure_of(status: int, data: bytes) -> RequestFailed:
    """What an answer other than 200, or an error within a stream, means."""
    try:
        value = load(data)
    except ValueError:
        value = None
    error = value.get("error", value) if isinstance(value, dict) else {}
    error = error if isinstance(error, dict) else {"message": error}
    words = " ".join(str(error.get(key, "")) for key in ("code", "type", "message"))
    told = str(error.get("message") or data[:200].decode("utf-8", "replace"))
    if status in (400, 413, 422, 500) and _CONTEXT.search(words):
        return RequestFailed(ChatFault.CONTEXT_EXCEEDED, f"the conversation is longer than the model reads: {told}")
    if status == 503 and ("loading" in words.lower() or not error):
        return RequestFailed(ChatFault.LOADING, f"the model server is still loading: {told}")
    if status in (408, 425, 429, 502, 503, 504):
        return RequestFailed(ChatFault.OVERLOADED, f"the model server is busy (status {status}): {told}")
    if status >= 500:
        fault = ChatFault.MALFORMED if "parse" in words.lower() else ChatFault.OVERLOADED
        return RequestFailed(fault, f"the model server failed (status {status}): {told}")
    if 300 <= status < 400:
        return RequestFailed(ChatFault.REFUSED, f"the model server redirects (status {status}), which is not followed")
    return RequestFailed(ChatFault.REFUSED, f"the model server refuses (status {status}): {told}")


def _events(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The data of each event, lines of it joined; comments and other fields are passed over."""
    rest, data = b"", list[bytes]()
    for piece in pieces:
        *lines, rest = (rest + piece).split(b"\n")
        if len(rest) + sum(map(len, data)) > MOST_TEXT:
            raise _malformed("an event of it is too long")
        for line in lines:
            bare = line.rstrip(b"\r")
            if bare.startswith(b"data:"):
                data.append(bare[5:].removeprefix(b" "))
            elif not bare and data:
                yield b"\n".join(data)
                data = []


def _object(data: bytes) -> Mapping[str, object]:
    try:
        value = load(data)
    except ValueError as fault:
        begins = data[:60].decode("utf-8", "replace")
        raise _malformed(f"it is not JSON ({fault}); it begins {begins!r}") from None
    if not isinstance(value, dict):
        raise _malformed("it is not an object")
    if value.get("error"):
        error = value["error"]
        code = error.get("code") if isinstance(error, dict) else None
        raise failure_of(code if type(code) is int and 400 <= code < 600 else 500, data)
    return value


def _choice(value: Mapping[str, object]) -> Mapping[str, object]:
    choices = value.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        raise _malformed("it has no choices")
    return choices[0]


def _text(table: Mapping[str, object], name: str) -> str:
    value = table.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise _malformed(f"{name!r} of it is not a text")
    return value


def _count(table: Mapping[str, object], name: str) -> int:
    value = table.get(name)
    return value if type(value) is int and 0 <= value < _MOST_TOKENS else -1


def _malformed(why: str) -> RequestFailed:
    return RequestFailed(ChatFault.MALFORMED, f"the model server's answer is no chat completion: {why}")
