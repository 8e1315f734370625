"""Single questions to a model, without a tree: calls in each dialect, texts found again, speed, reviews.

Every answer is bounded in time and tokens; what a model does not answer is not counted as shown.
"""

import json
import random
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from localagent.agent.context import CHARACTERS_PER_TOKEN, prompt_budget
from localagent.agent.events import ReviewAnswer
from localagent.agent.prompts import IMPLEMENTER
from localagent.agent.replies import as_event
from localagent.agent.reviewer import Reviewer
from localagent.agent.tools.catalogue import TOOLS
from localagent.app.agent.challenge_run import well_formed
from localagent.app.agent.challenges import draw_function
from localagent.app.agent.model_profile import FormatCalls, ToolFormat
from localagent.domain.chat import ChatFailure, ChatFault, ChatReply, ChatRequest, ChatRole, Message, Sampling
from localagent.domain.edit import FileChange, FileFate, Patch
from localagent.domain.paths import RepoPath
from localagent.domain.strength import Share
from localagent.errors import AnswerIsNo
from localagent.llm.chat.gguf_model import GgufModel
from localagent.ports import ChatModel
from localagent.repo.diff.write_diff import unified_diff

GO_ON = 0.5
"""The share of calls as asked from which on a model is given tasks, which measure it better than these few."""
_PROBES = 6
_CALL_TOKENS = 160
_REPLY_SECONDS = 60.0
_PARTS = (0.25, 0.5, 1.0)
_MOST_CONTEXT = 131_072
_NEEDLE_TOKENS = 1024
_COUNT_TOKENS = 128
_PAIRS = 3
_WAIT_SECONDS = 1.0
_MOST_CHARACTERS = 8.0  # of a token, on average
_ASKED = ("read", "edit", "finish")
_LATER = (ChatFault.LOADING, ChatFault.OVERLOADED)
_ITS_OWN = (ChatFault.MALFORMED, ChatFault.TIMED_OUT, ChatFault.BROKEN_OFF, ChatFault.CONTEXT_EXCEEDED)
_REMEDY = "see that its server takes tools (llama-server --jinja), and measure again"


@dataclass(frozen=True, kw_only=True, slots=True)
class Prober:
    """Asks one model. `left` tells the seconds that may still be spent."""

    seed: int
    cancelled: threading.Event
    left: Callable[[], float]
    clock: Callable[[], float] = time.monotonic
    wait: Callable[[float], None] = time.sleep

    def dialects(self, model: ChatModel) -> dict[ToolFormat, tuple[ChatModel, FormatCalls]]:
        """In which ways it may be asked for tools, and how well it calls in each."""
        ways: dict[ToolFormat, ChatModel] = {ToolFormat.SERVER: model}
        if isinstance(model, GgufModel):
            native = {} if model.dialect.native_fault else {ToolFormat.NATIVE: model}
            ways = {**native, ToolFormat.OWN: model.in_own_format()}
        return {way: (asked, self._calls(asked)) for way, asked in ways.items()}

    def _calls(self, model: ChatModel) -> FormatCalls:
        """Asked until it is plain that too few would be right. AnswerIsNo where the model cannot be asked at all."""
        good = right = tried = 0
        failed: list[str] = []
        while tried < _PROBES and right + _PROBES - tried >= GO_ON * _PROBES:
            rng = random.Random(f"{self.seed} call {tried}")  # noqa: S311 - tasks that can be made again
            path, first = f"src/module_{rng.randint(100, 999)}.py", rng.randint(2, 90)
            wanted: Mapping[str, object] = {"path": path, "start": first, "end": first + 20}
            text = f"Call the tool read now: lines {first} to {first + 20} of {path}."
            said = self._ask(model, text, system=IMPLEMENTER, tools=_ASKED, most=_CALL_TOKENS, number=tried)
            tried += 1
            if isinstance(said, ChatFailure):
                if said.fault not in _ITS_OWN:
                    raise AnswerIsNo(f"{model.name} cannot be asked: {said.reason}", remedy=_REMEDY)
                failed.append(said.reason)
                continue
            reply = as_event(said, TOOLS, ())
            if well_formed(reply):
                good += 1
                right += [c.name for c in reply.calls] == ["read"] and _says(reply.calls[0].arguments, wanted)
        if len(failed) == tried and not isinstance(model, GgufModel):  # says nothing of the model behind the server
            raise AnswerIsNo(f"{model.name} gave no reply in {tried} tries: {failed[-1]}", remedy=_REMEDY)
        return FormatCalls(well_formed=Share(part=good, whole=tried), right=Share(part=right, whole=tried))

    def speed(self, model: ChatModel) -> float:
        """Tokens of a reply a second; 0 where that is not known."""
        text = "Write the numbers from 1 to 200 in words, one a line, and nothing else."
        begin = self.clock()
        said = self._ask(model, text, most=_COUNT_TOKENS)
        took = self.clock() - begin
        if isinstance(said, ChatFailure):
            return 0.0
        tokens = min(_COUNT_TOKENS, _tokens(model, said.reply_tokens, said.text + said.reasoning))
        return tokens / took if tokens and took > 0 else 0.0

    def context(self, model: ChatModel, reply_speed: float) -> tuple[int, float]:
        """The longest prompt, in tokens, in which a line was found again; tokens of prompts read in a second."""
        whole = min(prompt_budget(model.context_tokens), _MOST_CONTEXT)
        shown, speed = 0, 0.0
        for part in _PARTS:
            rng = random.Random(f"{self.seed} context {part}")  # noqa: S311 - tasks that can be made again
            text, value = _haystack(model, int(whole * part), rng)
            begin = self.clock()
            said = self._ask(model, text, most=_NEEDLE_TOKENS)
            took = self.clock() - begin
            if isinstance(said, ChatFailure) or value not in said.text:
                break
            prompt = _tokens(model, said.prompt_tokens, text)
            shown = min(whole, prompt or int(len(text) / CHARACTERS_PER_TOKEN))
            writing = _tokens(model, said.reply_tokens, said.text) / reply_speed if reply_speed else 0.0
            fresh = prompt - max(0, said.cached_tokens)
            speed = max(speed, fresh / (took - writing)) if prompt and took - writing > 0.05 * took else speed
        return shown, speed

    def reviews(self, model: ChatModel) -> Share:
        """Right and faulty changes that it judges rightly as a reviewer, in turn while there is time."""
        sampling = Sampling(temperature=0.2, seed=self.seed, max_tokens=1024)
        right, missed, tried = 0, [], 0
        for number in range(2 * _PAIRS):
            if self.left() <= 0:
                break
            tried += 1
            reviewer = Reviewer(model=model, sampling=sampling, cancelled=self.cancelled, seconds=self.left())
            rng = random.Random(f"{self.seed} review {number // 2}")  # noqa: S311 - tasks that can be made again
            made, path = draw_function(rng, f"chosen_{rng.randint(100, 999)}"), RepoPath("numbers.py")
            faulty = number % 2 == 1
            text = (made.faulty if faulty else made.source).encode()
            change = FileChange(path=path, before=b"", after=text, fate=FileFate.CREATED)
            diff = unified_diff(Patch(changes=(change,))).decode()
            said = reviewer.review(f"Add to {path} the function {made.words}.", diff, ["the tests pass"], {path})
            if said.answer is (ReviewAnswer.OBJECT if faulty else ReviewAnswer.APPROVE):
                right += 1
            else:
                missed.append(f"{'faulty' if faulty else 'right'} change {number // 2 + 1}: {said.answer.value}")
        return Share(part=right, whole=tried, missing=tuple(missed))

    def _ask(
        self,
        model: ChatModel,
        text: str,
        *,
        system: str = "Answer shortly.",
        tools: tuple[str, ...] = (),
        most: int,
        number: int = 0,
    ) -> ChatReply | ChatFailure:
        request = ChatRequest(
            messages=(Message(role=ChatRole.SYSTEM, text=system), Message(role=ChatRole.USER, text=text)),
            tools=tuple(TOOLS[name].schema for name in tools),
            sampling=Sampling(seed=self.seed + number, max_tokens=most),
            metadata={"role": "implementer"},
        )
        while True:
            seconds = max(1.0, min(_REPLY_SECONDS if tools else self.left() / 2, self.left()))
            said = model.complete(request, timeout_seconds=seconds, cancelled=self.cancelled)
            if not isinstance(said, ChatFailure) or said.fault not in _LATER or self.left() <= 0:
                return said
            self.wait(_WAIT_SECONDS)


def _says(arguments: str, wanted: Mapping[str, object]) -> bool:
    """Whether arguments, which can be read, are exactly those."""
    return bool(json.loads(arguments) == wanted)


def _tokens(model: ChatModel, told: int, text: str) -> int:
    """As the model tells with its reply, else as it counts; 0 where it does neither. Never more than characters."""
    return min(len(text), told if told > 0 else model.count_tokens(text) or 0)


def _haystack(model: ChatModel, tokens: int, rng: random.Random) -> tuple[str, str]:
    """A question about one of many lines, of about so many tokens, and its answer."""
    lines = [f"entry_{rng.randint(10**5, 10**6)} = {rng.randint(10**6, 10**7)}" for _ in range(200)]
    sample = "\n".join(lines)
    counted = model.count_tokens(sample) or len(sample) / CHARACTERS_PER_TOKEN
    each = max(len(sample) / _MOST_CHARACTERS, min(len(sample), counted)) / len(lines)
    count = max(10, int((tokens - 200) / each))
    lines = [f"entry_{rng.randint(10**5, 10**6)} = {rng.randint(10**6, 10**7)}" for _ in range(count)]
    name, _, value = lines[rng.randrange(count // 5, count - count // 5)].partition(" = ")
    return "\n".join([*lines, "", f"Which value has {name}? Answer with the number alone."]), value
