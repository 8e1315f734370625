"""Which model a session talks to: a server of the user's, or a registered GGUF in a confined child.

Without one that writes nothing is begun.
"""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from localagent.app.agent.model_profile import ToolFormat, last_profile
from localagent.app.cancellation import Stop
from localagent.app.settings import Settings
from localagent.domain.chat import PREFIX, ChatFault
from localagent.errors import AnswerIsNo, UsageFault
from localagent.llm.chat.gguf_model import GgufModel
from localagent.llm.chat.server_model import ServerModel
from localagent.llm.chat.shim.library import find_library
from localagent.llm.chat.shim.shim_client import ChatShim
from localagent.llm.model.gpu import offload_of
from localagent.llm.model.registry import Registry
from localagent.llm.process.model_client import Served
from localagent.ports import ChatModel, Jail
from localagent.recipes.instruction import RECIPES

MODEL_REMEDY = (
    "give --model unix:SOCKET, a model server of your own that speaks OpenAI chat completions "
    "(llama-server --host SOCKET.sock, or vLLM behind a socket); or --model NAME, a GGUF that was trained to call "
    "tools and is registered (`localagent model add FILE`)"
)


@contextlib.contextmanager
def open_chat_model(
    name: str, settings: Settings, jail: Callable[[], Jail], stop: Stop, *, by_profile: bool = True
) -> Iterator[ChatModel]:
    """A model that calls tools, closed at the end; nothing of the session is spent yet.

    `by_profile`: it is asked for tools in the way in which it called them best when it was qualified.

    AnswerIsNo where there is none, UsageFault for a wrong name, CannotEnforce for a file that is not registered.
    """
    if not name:
        raise _none_named(settings)
    if name.startswith(PREFIX):
        with contextlib.closing(_server(name)) as server:
            yield server
        return
    with _gguf(name, settings, jail(), stop) as model:
        profile = last_profile(settings, model.digest) if by_profile else None
        yield model.in_own_format() if profile is not None and profile.dialect == ToolFormat.OWN else model


def refuse_absent(name: str, settings: Settings) -> None:
    """As `open_chat_model` where there is no such model; nothing is loaded."""
    if not name:
        raise _none_named(settings)
    if name.startswith(PREFIX):
        _server(name).close()
    else:
        _registry(settings).resolve(name)


def weaknesses(model: ChatModel, settings: Settings) -> tuple[str, ...]:
    """What a person should know of a model before it spends time on a task. For a model that is loaded.

    Of one that was qualified: what was shown then.
    """
    profile = last_profile(settings, model.digest)
    found = list(profile.warnings) if profile is not None else []
    if not isinstance(model, GgufModel):
        return tuple(found)
    if any(known.default and known.name == model.name for known in _registry(settings).list()):
        found.append(f"{model.name} is the bundled model: it ranks edits, and is far too small to write a change")
    if profile is None and (why := model.dialect.native_fault):
        found.append(f"{model.name} is asked for tools in localagent's own format, which it may not know: {why}")
    return tuple(found)


def _none_named(settings: Settings) -> AnswerIsNo:
    return AnswerIsNo(_nothing_named(settings), remedy=f"say it in one of these ways, or {MODEL_REMEDY}")


def _nothing_named(settings: Settings) -> str:
    others = [known.name for known in _registry(settings).list() if not known.default and known.path is not None]
    named = f"; registered here: {', '.join(others)}" if others else ""
    return (
        f"no model that writes was given (the bundled one only ranks edits{named}), and this is none of the "
        f"instructions that need no model: {'; '.join(RECIPES)}"
    )


def _registry(settings: Settings) -> Registry:
    return Registry(settings.models_dir, settings.data_dir)


def _server(name: str) -> ServerModel:
    if len(name) <= len(PREFIX):
        raise UsageFault("--model unix: names no socket", remedy=MODEL_REMEDY)
    model = ServerModel(Path(name.removeprefix(PREFIX)).absolute())
    failure = model.health()
    if failure is not None and failure.fault in (ChatFault.UNREACHABLE, ChatFault.REFUSED, ChatFault.TIMED_OUT):
        raise AnswerIsNo(f"no model server answers at {name}: {failure.reason}", remedy=f"start it, or {MODEL_REMEDY}")
    return model


@contextlib.contextmanager
def _gguf(name: str, settings: Settings, jail: Jail, stop: Stop) -> Iterator[GgufModel]:
    """The registered file, loaded. A mender belongs to `fix` and is left out."""
    file = replace(_registry(settings).resolve(name), mender=None)
    library = find_library()
    with contextlib.ExitStack() as stack:
        shim = stack.enter_context(contextlib.closing(ChatShim(jail, library))) if library is not None else None
        served = stack.enter_context(contextlib.closing(Served(file, jail, offload=offload_of(settings.gpu_layers))))
        stack.enter_context(stop.calling(served.close))
        if not served.ready(served.load_limit_seconds):
            why = served.warning or f"{name} did not load in {served.load_limit_seconds:.0f} s"
            raise AnswerIsNo(why, remedy="free memory, or name a smaller model")
        yield GgufModel(served, shim)
