"""A conversation with a model that may call tools: messages, requests, replies and what a model server can do wrong.

Nothing a model says is trusted: the arguments of a call are its own text, parsed by whoever runs the tool.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import PurePosixPath

PREFIX = "unix:"
"""What the socket of a model server is named with."""
_MOST_SOCKET = 107  # bytes of a Unix socket's path
_REGISTERED = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def chat_model_fault(name: str) -> str:
    """What is wrong with a chat model as a file of settings names it, "" where nothing is."""
    socket = PurePosixPath(name.removeprefix(PREFIX))
    if name.startswith(PREFIX):
        fits = socket.is_absolute() and "\0" not in name and len(str(socket).encode("utf-8", "replace")) <= _MOST_SOCKET
    else:
        fits = _REGISTERED.fullmatch(name) is not None
    return "" if fits else f"{name!r:.200} is neither unix:/SOCKET of a model server nor the name of a registered model"


class ChatRole(Enum):
    """Who speaks, in the words of chat completions."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolCall:
    """One asking of a model for a tool; `arguments` is JSON as the model wrote it, not yet parsed."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Message:
    """One turn. `calls` are an assistant's, `call_id` says which call a tool's message answers."""

    role: ChatRole
    text: str
    calls: tuple[ToolCall, ...] = ()
    call_id: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolSchema:
    """A tool as a model is told of it; `parameters` is a JSON schema of type object."""

    name: str
    description: str
    parameters: Mapping[str, object]


@dataclass(frozen=True, kw_only=True, slots=True)
class Sampling:
    """How a reply is drawn; `max_tokens` bounds it, the same seed draws the same where the model can promise it."""

    temperature: float = 0.7
    top_p: float = 1.0
    seed: int = 0
    max_tokens: int = 4096


@dataclass(frozen=True, kw_only=True, slots=True)
class ChatRequest:
    """What a model is asked. `must_call`: the reply has to be a call; `metadata` names the role."""

    messages: tuple[Message, ...]
    tools: tuple[ToolSchema, ...] = ()
    sampling: Sampling = Sampling()
    must_call: bool = False
    metadata: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class ChatReply:
    """A whole reply. `cut` says that it ended by its length; counts are tokens, -1 where the model did not say."""

    text: str
    calls: tuple[ToolCall, ...]
    reasoning: str = ""
    cut: bool = False
    prompt_tokens: int = -1
    cached_tokens: int = -1
    reply_tokens: int = -1


class ChatFault(Enum):
    """Why there is no reply."""

    CONTEXT_EXCEEDED = "context exceeded"  # shorten the conversation
    LOADING = "loading"  # the same again later
    OVERLOADED = "overloaded"  # the same again later
    BROKEN_OFF = "broken off"  # the connection ended within the reply
    MALFORMED = "malformed"  # the answer is no chat completion
    REFUSED = "refused"  # the server takes no such request: the same again is of no use
    UNREACHABLE = "unreachable"  # no server there
    TIMED_OUT = "timed out"
    CANCELLED = "cancelled"

    @property
    def again(self) -> bool:
        """Whether the same request may do better."""
        return self in (ChatFault.LOADING, ChatFault.OVERLOADED, ChatFault.BROKEN_OFF, ChatFault.MALFORMED)


@dataclass(frozen=True, kw_only=True, slots=True)
class ChatFailure:
    """No reply; `reason` is one line for a person, with what to do."""

    fault: ChatFault
    reason: str
