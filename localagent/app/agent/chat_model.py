"""Which model a session talks to: a server of the user's, or a registered GGUF in a confined child.

Without one that writes nothing is begun.
"""

import contextlib
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from pathlib import Path

from localagent.agent.events import IMPLEMENTER
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
from localagent.llm.model.registry import ModelFile, Registry
from localagent.llm.process.model_client import Served
from localagent.ports import ChatModel, Jail
from localagent.recipes.instruction import RECIPES

MODEL_REMEDY = (
    "give --model unix:SOCKET, a model server of your own that speaks OpenAI chat completions "
    "(llama-server --host SOCKET.sock, or vLLM behind a socket); or --model NAME, a GGUF that was trained to call "
    "tools and is registered (`localagent model add FILE`)"
)
WITHOUT_MODEL = f"""without a model:
- `localagent fix --test TEST` repairs small mistakes that a failing test shows
- `localagent do --from-tests TEST` writes simple functions that a test asks for
- `localagent do` takes these instructions: {"; ".join(RECIPES)}"""


@contextlib.contextmanager
def open_chat_model(
    name: str,
    settings: Settings,
    jail: Callable[[], Jail],
    stop: Stop,
    *,
    roles: Collection[str] = (),
    by_profile: bool = True,
) -> Iterator[ChatModel]:
    """A model that calls tools, closed at the end; nothing of the session is spent yet.

    `roles` are those that it is to play. `by_profile`: it is asked for tools in the way in which it called them best
    when it was qualified.

    AnswerIsNo where there is none, or it was shown to be unfit for a role; UsageFault for a wrong name, CannotEnforce
    for a file that is not registered.
    """
    if not name:
        raise _none_named(settings)
    if name.startswith(PREFIX):
        with contextlib.closing(_server(name)) as server:
            _refuse_unfit(name, server.digest if roles else "", roles, settings)
            yield server
        return
    file = replace(_registry(settings).resolve(name), mender=None)  # a mender belongs to `fix`
    _refuse_bundled(file, roles)
    _refuse_unfit(name, f"sha256:{file.sha256}", roles, settings)
    with _gguf(file, settings, jail(), stop) as model:
        profile = last_profile(settings, model.digest) if by_profile else None
        yield model.in_own_format() if profile is not None and profile.dialect == ToolFormat.OWN else model


def refuse_absent(name: str, settings: Settings, roles: Collection[str] = ()) -> None:
    """As `open_chat_model` where there is no such model, or it is unfit for a role; nothing is loaded or read whole."""
    if not name:
        raise _none_named(settings)
    if name.startswith(PREFIX):
        with contextlib.closing(_server(name)) as server:
            _refuse_unfit(name, server.digest if roles else "", roles, settings)
        return
    registry = _registry(settings)
    file = next((known for known in registry.list() if known.name == name), None) or registry.resolve(name)
    _refuse_bundled(file, roles)
    _refuse_unfit(name, f"sha256:{file.sha256}", roles, settings)


def _refuse_bundled(file: ModelFile, roles: Collection[str]) -> None:
    if file.default and roles:
        why = f"{file.name} is the bundled model: it ranks edits, and is far too small to write or review a change"
        raise AnswerIsNo(why, remedy=f"{MODEL_REMEDY}\n{WITHOUT_MODEL}")


def _refuse_unfit(name: str, digest: str, roles: Collection[str], settings: Settings) -> None:
    """AnswerIsNo for a model that was shown to be unfit for a role."""
    profile = last_profile(settings, digest) if roles else None
    if profile is None:
        return
    unfit = {role: why for role in roles if (why := profile.unfit_as(role))}
    if not unfit:
        return
    by_reason = {why: " or ".join(role for role, other in unfit.items() if other == why) for why in unfit.values()}
    told = "; nor ".join(f"as {names}: {why}" for why, names in by_reason.items())
    left = [role for role in roles if role not in unfit]
    less = f"--roles {','.join(left)}, or " if IMPLEMENTER in left else ""
    anew = f"measure it anew with `localagent model qualify {name} --each 10`"
    instead = "" if less else f"\n{WITHOUT_MODEL}"
    raise AnswerIsNo(
        f"when {name} was qualified it was not fit {told}", remedy=f"{less}name another model, or {anew}{instead}"
    )


def weaknesses(model: ChatModel, settings: Settings) -> tuple[str, ...]:
    """What a person should know of a model before it spends time on a task. For a model that is loaded.

    Of one that was qualified: what was shown then.
    """
    profile = last_profile(settings, model.digest)
    found = list(profile.warnings) if profile is not None else []
    if not isinstance(model, GgufModel):
        return tuple(found)
    if profile is None and (why := model.dialect.native_fault):
        found.append(f"{model.name} is asked for tools in localagent's own format, which it may not know: {why}")
    return tuple(found)


def _none_named(settings: Settings) -> AnswerIsNo:
    others = [known.name for known in _registry(settings).list() if not known.default and known.path is not None]
    named = f"; registered here: {', '.join(others)}" if others else ""
    return AnswerIsNo(
        f"no model that writes was given (the bundled one only ranks edits{named}), and this is none of the "
        "instructions that need none",
        remedy=f"{MODEL_REMEDY}\n{WITHOUT_MODEL}",
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
def _gguf(file: ModelFile, settings: Settings, jail: Jail, stop: Stop) -> Iterator[GgufModel]:
    """A registered file, loaded."""
    library = find_library()
    with contextlib.ExitStack() as stack:
        shim = stack.enter_context(contextlib.closing(ChatShim(jail, library))) if library is not None else None
        served = stack.enter_context(contextlib.closing(Served(file, jail, offload=offload_of(settings.gpu_layers))))
        stack.enter_context(stop.calling(served.close))
        if not served.ready(served.load_limit_seconds):
            why = served.warning or f"{file.name} did not load in {served.load_limit_seconds:.0f} s"
            raise AnswerIsNo(why, remedy="free memory, or name a smaller model")
        yield GgufModel(served, shim)
