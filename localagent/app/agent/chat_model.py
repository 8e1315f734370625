"""Which model a session talks to. Without one that writes nothing is begun."""

from pathlib import Path

from localagent.domain.chat import ChatFault
from localagent.errors import AnswerIsNo, UsageFault
from localagent.llm.chat.server_model import PREFIX, ServerModel
from localagent.ports import ChatModel
from localagent.recipes.instruction import RECIPES

_REMEDY = (
    "give --model unix:SOCKET, a model server of your own that speaks OpenAI chat completions "
    "(llama-server --host SOCKET.sock, or vLLM behind a socket)"
)


def open_chat_model(name: str) -> ChatModel:
    """A model that calls tools. AnswerIsNo where there is none, UsageFault for a wrong name; nothing is spent yet."""
    if not name:
        raise AnswerIsNo(
            "no model that writes was given (the bundled one only ranks edits), and this is none of the instructions "
            f"that need no model: {'; '.join(RECIPES)}",
            remedy=f"say it in one of these ways, or {_REMEDY}",
        )
    if not name.startswith(PREFIX):
        raise AnswerIsNo(f"{name} cannot be talked to: this version talks to model servers only", remedy=_REMEDY)
    if len(name) <= len(PREFIX):
        raise UsageFault("--model unix: names no socket", remedy=_REMEDY)
    model = ServerModel(Path(name.removeprefix(PREFIX)).absolute())
    failure = model.health()
    if failure is not None and failure.fault in (ChatFault.UNREACHABLE, ChatFault.REFUSED, ChatFault.TIMED_OUT):
        raise AnswerIsNo(f"no model server answers at {name}: {failure.reason}", remedy=_REMEDY)
    return model
