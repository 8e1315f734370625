"""The parent's side of drawing texts: one request, checked answers. Nothing is raised for what the model does."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from localagent.llm.model.unavailable import Dropped, number
from localagent.llm.process.batched_sampling import Draw, Drawn, SampleEnd
from localagent.llm.process.model_client import Served
from localagent.llm.process.protocol import Message

_LAST = frozenset({"done", "crowded"})
_GRACE_SECONDS = 0.5
_MAX_TOKEN_BYTES = 512


@dataclass(frozen=True, kw_only=True, slots=True)
class Prompt:
    """What a model is asked: `form` is text or chat; `parts` its texts. Make one with the functions below."""

    form: str
    parts: Mapping[str, Any] = field(default_factory=dict)


def text_prompt(text: str) -> Prompt:
    """A document that goes on."""
    return Prompt(form="text", parts={"text": text})


def chat_prompt(messages: Sequence[tuple[str, str]], answer: str = "") -> Prompt:
    """A conversation (roles system, user, assistant), and how the answer begins."""
    return Prompt(form="chat", parts={"messages": [list(m) for m in messages], "answer": answer})


@dataclass(frozen=True, kw_only=True, slots=True)
class Samples:
    """Texts in the order of their seeds, those that were not finished left out; `refused` says why there are none."""

    drawn: tuple[Drawn, ...] = ()
    refused: str = ""


class ModelSampler:
    """Asks one served model. `tokens_used` counts what these requests alone decoded."""

    def __init__(self, served: Served) -> None:
        self._served = served
        self.tokens_used = 0

    @property
    def alive(self) -> bool:
        """False once the model was dropped."""
        return not self._served.warning

    @property
    def path_tokens(self) -> int:
        """How long question and answer may be together, once it is loaded."""
        return self._served.path_tokens

    def remark(self, text: str) -> None:
        """What a report should say of questions that could not be asked."""
        self._served.unasked.append(text)

    def knows(self) -> frozenset[str]:
        """Which forms of prompts the model knows, after it was loaded (which is waited for); empty without one."""
        return self._served.forms(self._served.load_limit_seconds)

    def draw(self, prompt: Prompt, how: Draw, *, timeout_seconds: float) -> Samples:
        """Texts drawn until time runs out; partial ones, ended by SECONDS, are among them."""
        request: Message = {
            "kind": "sample",
            "prompt": {"form": prompt.form, **prompt.parts},
            "seeds": list(how.seeds),
            "most_tokens": how.most_tokens,
            "temperature": how.temperature,
            "top_k": how.top_k,
            "top_p": how.top_p,
            "min_p": how.min_p,
            "stops": [stop.decode("utf-8", "surrogateescape") for stop in how.stops],
            "grammar": how.grammar,
            "seconds": max(0.0, min(how.seconds, timeout_seconds - _GRACE_SECONDS)),
        }
        found: dict[int, Drawn] = {}
        refused = ""
        with self._served.guarded():
            for message in self._served.exchange(request, _LAST, timeout_seconds=timeout_seconds):
                if message["kind"] == "drawn":
                    drawn = _drawn(message, how)
                    found[drawn.number] = drawn
                elif message["kind"] == "done":
                    self._served.book(message)
                    self.tokens_used += int(number(message.get("tokens")))
                elif message["kind"] == "crowded":
                    refused = str(message.get("why"))[:500]
        return Samples(drawn=tuple(found[k] for k in sorted(found)), refused=refused)


def _drawn(message: Message, how: Draw) -> Drawn:
    which, text, tokens = message.get("number"), message.get("text"), message.get("tokens")
    if type(which) is not int or not 0 <= which < len(how.seeds) or type(tokens) is not int:
        raise Dropped("the child drew what was not asked")
    if not 0 <= tokens <= how.most_tokens or not isinstance(text, str) or len(text) > tokens * _MAX_TOKEN_BYTES:
        raise Dropped("the child drew more than was asked")
    likelihood = number(message.get("likelihood"))
    try:
        end, raw = SampleEnd(message.get("end")), text.encode("latin-1")
    except (ValueError, UnicodeEncodeError):
        raise Dropped("the child sent a malformed text") from None
    if likelihood > 0.0:
        raise Dropped("the child sent a log-probability above 0")
    return Drawn(number=which, text=raw, tokens=tokens, likelihood=likelihood, end=end)
