"""Forced tool calls of the bundled model under the chat templates of other models: how many are well formed, how fast.

  chat_dialects.py                          12 templates of llama.cpp's source package, 100 replies each
  chat_dialects.py --replies 10 --only qwen

The model knows none of these formats: what makes a call well formed is llama.cpp's grammar, and its parser reads it
back. A reply that was cut at its limit of tokens holds no call, is told as cut, and does not count: this model goes on
and on in a text without bounds. `free` draws as many replies to the same prompt without a grammar; the rates are tokens
a second of the whole answer, prompt and all. Bars: of those that ended 95 % well formed under every template, rate at
least 0.85 of free. Exit 1 where one is missed.
"""

import argparse
import contextlib
import json
import sys
import tarfile
import time
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from localagent.app import Settings
from localagent.domain.chat import ChatReply, ChatRequest, ChatRole, Message, Sampling, ToolSchema
from localagent.jail.api import open_jail
from localagent.llm.chat.gguf_model import GgufModel
from localagent.llm.chat.shim.library import find_library
from localagent.llm.chat.shim.shim_client import ChatShim
from localagent.llm.chat.tool_dialect import ToolDialect
from localagent.llm.model.registry import Registry
from localagent.llm.process.model_client import Served

DOWNLOADS = Path(__file__).resolve().parents[1] / ".build" / "downloads"
TEMPLATES = (
    "Qwen-Qwen2.5-7B-Instruct", "Qwen3-Coder", "Qwen-Qwen3-0.6B", "meta-llama-Llama-3.1-8B-Instruct",
    "mistralai-Mistral-Nemo-Instruct-2407", "NousResearch-Hermes-3-Llama-3.1-8B-tool_use", "GLM-4.6", "MiniMax-M2",
    "openai-gpt-oss-120b", "deepseek-ai-DeepSeek-V3.2", "ibm-granite-granite-4.0",
    "google-gemma-2-2b-it",
)  # fmt: skip
READ = ToolSchema(
    name="read",
    description="Read lines of a file.",
    parameters={
        "type": "object",
        "properties": {"path": {"type": "string", "maxLength": 60}, "start": {"type": "integer"}},
        "required": ["path", "start"],
    },
)
SEARCH = ToolSchema(
    name="search",
    description="Find a text in the repository.",
    parameters={
        "type": "object",
        "properties": {"query": {"type": "string", "maxLength": 60}},
        "required": ["query"],
    },
)
TOOLS = (READ, SEARCH)
ASKED = "Which function parses the dates of an order? Begin with shop/orders.py."
LEAST_WELL_FORMED, LEAST_RATE = 0.95, 0.85
SECONDS = 120.0


class Templated(GgufModel):
    """The bundled weights behind another model's template."""

    def __init__(self, served: Served, shim: ChatShim, template: str) -> None:
        super().__init__(served, shim)
        self._text, self._beside = template, shim

    @cached_property
    def dialect(self) -> ToolDialect:
        """Of the given template."""
        front, end = self._served.ends
        return ToolDialect(self._text, front=front, end=end, shim=self._beside)


@dataclass(kw_only=True, slots=True)
class Counted:
    """Of one template: replies by how they came back, tokens and seconds."""

    well_formed: int = 0
    cut: int = 0
    wrong: int = 0
    tokens: int = 0
    seconds: float = 0.0

    @property
    def rate(self) -> float:
        """Tokens a second."""
        return self.tokens / self.seconds if self.seconds else 0.0


def is_well_formed(reply: ChatReply) -> bool:
    """Whether there is a call, and every call is one of a tool's, with what its schema asks for."""
    kinds = {"string": str, "integer": int}
    for call in reply.calls:
        schema = next((t.parameters for t in TOOLS if t.name == call.name), None)
        try:
            given = json.loads(call.arguments)
        except ValueError:
            return False
        if schema is None or not isinstance(given, dict):
            return False
        wanted = schema["properties"]
        assert isinstance(wanted, dict)
        if set(given) != set(wanted) or any(type(given[n]) is not kinds[wanted[n]["type"]] for n in wanted):
            return False
    return bool(reply.calls)


def draw(model: GgufModel, request: ChatRequest, replies: int) -> Counted:
    """So many replies with seeds of their own."""
    counted = Counted()
    for seed in range(replies):
        begin = time.monotonic()
        asked = replace(request, sampling=replace(request.sampling, seed=seed))
        reply = model.complete(asked, timeout_seconds=SECONDS)
        counted.seconds += time.monotonic() - begin
        if not isinstance(reply, ChatReply):
            counted.wrong += 1
            continue
        counted.tokens += max(0, reply.reply_tokens)
        if is_well_formed(reply):
            counted.well_formed += 1
        elif reply.cut:
            counted.cut += 1
        else:
            counted.wrong += 1
    return counted


def templates(only: str) -> dict[str, str]:
    """By name, of llama.cpp's source package. SystemExit where it is not there."""
    source = next(iter(sorted(DOWNLOADS.glob("llama_cpp_python-*.tar.gz"))), None)
    if source is None:
        raise SystemExit("the source package of llama.cpp is not in .build/downloads: run make setup")
    found = {}
    with tarfile.open(source) as package:
        for member in package:
            name = Path(member.name).stem
            if "/models/templates/" in member.name and name in TEMPLATES and only.lower() in name.lower():
                stream = package.extractfile(member)
                assert stream is not None
                found[name] = stream.read().decode("utf-8")
    return found


def main() -> int:
    """0, or 1 where a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replies", type=int, default=100)
    parser.add_argument("--only", default="", help="part of a template's name")
    args = parser.parse_args()
    settings = Settings.from_environ()
    library = find_library()
    if library is None:
        raise SystemExit("this environment has no chat shim: run make setup")
    jail = open_jail()
    file = replace(Registry(settings.models_dir, settings.data_dir).resolve(""), mender=None)
    request = ChatRequest(
        messages=(Message(role=ChatRole.USER, text=ASKED),), tools=TOOLS, must_call=True,
        sampling=Sampling(max_tokens=200, temperature=0.8),
    )  # fmt: skip
    missed = 0
    with contextlib.ExitStack() as stack:
        served = stack.enter_context(contextlib.closing(Served(file, jail)))
        shim = stack.enter_context(contextlib.closing(ChatShim(jail, library, seconds=60.0)))
        print(f"{'template':48} format  well formed  cut  wrong  tokens/s  of free")
        for name, text in templates(args.only).items():
            model = Templated(served, shim, text)
            if not served.ready(served.load_limit_seconds):
                raise SystemExit(served.warning or "the model did not load")
            forced = draw(model, request, args.replies)
            free = draw(model, replace(request, must_call=False), args.replies)
            share = forced.rate / free.rate if free.rate else 0.0
            ours = "ours" if model.dialect.native_fault else "native"
            print(
                f"{name:48} {ours:6} {forced.well_formed:12} {forced.cut:4} {forced.wrong:6}"
                f" {forced.rate:9.0f} {share:8.2f}", flush=True,
            )  # fmt: skip
            missed += forced.well_formed < LEAST_WELL_FORMED * (args.replies - forced.cut) or share < LEAST_RATE
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main())
