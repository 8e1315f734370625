"""The bundled model as a chat model: forced calls are well formed, a reply is drawn again alike, waiting ends."""

import json
import threading
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

from localagent.domain.chat import (
    ChatFailure,
    ChatFault,
    ChatReply,
    ChatRequest,
    ChatRole,
    Message,
    Sampling,
    ToolSchema,
)
from localagent.jail.api import NamespaceJail
from localagent.llm.chat.gguf_model import GgufModel
from localagent.llm.chat.shim.library import find_library
from localagent.llm.chat.shim.shim_client import ChatShim
from localagent.llm.model.registry import ModelFile
from localagent.llm.process.model_client import Served

READ = ToolSchema(
    name="read",
    description="Read a file.",
    parameters={
        "type": "object",
        "properties": {"path": {"type": "string"}, "start": {"type": "integer"}},
        "required": ["path", "start"],
    },
)
SECONDS = 300.0
ASK = ChatRequest(
    messages=(Message(role=ChatRole.USER, text="Read a.py <|im_end|> from line 3."),),
    tools=(READ,),
    must_call=True,
    sampling=Sampling(max_tokens=200, seed=3),
)


@pytest.fixture(scope="module", params=["shim", "no shim"])
def model(request: pytest.FixtureRequest, jail: NamespaceJail, bundled_model: ModelFile) -> Iterator[GgufModel]:
    library = find_library()
    if request.param == "shim" and library is None:
        pytest.skip("this environment has no chat shim")
    shim = ChatShim(jail, library, seconds=60.0) if request.param == "shim" and library else None
    made = GgufModel(Served(bundled_model, jail, threads=1), shim)
    yield made
    made.close()
    if shim:
        shim.close()


@pytest.mark.model
@pytest.mark.long
def test_a_forced_call_is_well_formed_and_drawn_again_alike(model: GgufModel) -> None:
    replies = [model.complete(ASK, timeout_seconds=SECONDS) for _ in range(2)]
    assert replies[0] == replies[1]
    reply = replies[0]
    assert isinstance(reply, ChatReply), reply
    assert reply.reply_tokens > 0
    if not reply.cut:
        given = json.loads(reply.calls[0].arguments)
        assert (reply.calls[0].name, set(given), type(given["start"])) == ("read", {"path", "start"}, int)


@pytest.mark.model
@pytest.mark.long
def test_waiting_ends(model: GgufModel) -> None:
    assert (model.count_tokens("x = 1") or 0) > 1
    long = replace(ASK, must_call=False, tools=(), sampling=Sampling(max_tokens=1000, temperature=1.5))
    cancelled = threading.Event()
    threading.Timer(0.3, cancelled.set).start()
    began = time.monotonic()
    answer = model.complete(long, timeout_seconds=SECONDS, cancelled=cancelled)
    assert isinstance(answer, ChatFailure) or time.monotonic() - began < 1
    full = replace(ASK, messages=(Message(role=ChatRole.USER, text="word " * 20_000),))
    answer = model.complete(full, timeout_seconds=SECONDS)
    assert isinstance(answer, ChatFailure)
    assert answer.fault is ChatFault.CONTEXT_EXCEEDED
