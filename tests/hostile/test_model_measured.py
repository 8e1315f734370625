"""Models and servers that lie about themselves while they are measured: counts, names, answers."""

import re
import threading

import pytest
from support.agent_builder import ScriptedModel, calls

from localagent.app.agent.model_probes import Prober
from localagent.domain.chat import ChatFailure, ChatFault, ChatReply, ChatRequest
from localagent.errors import AnswerIsNo


class _Liar(ScriptedModel):
    """Finds every line, and tells numbers that cannot be."""

    def __init__(self, count: int, told: int) -> None:
        super().__init__([], 1 << 26)
        self.count, self.told = count, told

    def complete(self, request: ChatRequest, **_: object) -> ChatReply:
        self.asked.append(request)
        text = request.messages[-1].text
        wanted = re.search(r"Which value has (\w+)\?", text)
        found = re.search(rf"^{wanted[1]} = (\d+)$", text, re.MULTILINE) if wanted else None
        said = found[1] if found else "x"
        return ChatReply(text=said, calls=(), prompt_tokens=self.told, cached_tokens=-5, reply_tokens=self.told)

    def count_tokens(self, text: str) -> int:
        return self.count


def _prober() -> Prober:
    ticks = iter(range(10_000))
    return Prober(
        seed=1, cancelled=threading.Event(), left=lambda: 100.0, clock=lambda: float(next(ticks)), wait=lambda _: None
    )


@pytest.mark.parametrize(("count", "told"), [(1, 1 << 40), (1 << 60, -1), (0, 0)])
def test_numbers_that_cannot_be_neither_blow_up_the_prompt_nor_count(count: int, told: int) -> None:
    model = _Liar(count, told)
    shown, speed = _prober().context(model, 10.0)
    longest = max(len(request.messages[-1].text) for request in model.asked)
    assert longest < 8 * 131_072 + 10_000
    assert shown <= 131_072
    assert 0 <= speed < 1e8
    assert _prober().speed(model) <= 128


def test_who_cannot_be_asked_is_told_and_is_not_called_unfit() -> None:
    refused = ChatFailure(fault=ChatFault.REFUSED, reason="tools param requires --jinja flag")
    with pytest.raises(AnswerIsNo, match="requires --jinja"):
        _prober().dialects(ScriptedModel([refused]))
    for fault in (ChatFault.MALFORMED, ChatFault.TIMED_OUT, ChatFault.BROKEN_OFF):
        dead = ChatFailure(fault=fault, reason="no chat completion")
        with pytest.raises(AnswerIsNo, match="gave no reply in 4 tries: no chat completion"):
            _prober().dialects(ScriptedModel([dead]))
    [(_, once)] = _prober().dialects(ScriptedModel([dead, calls(("read", {"path": "x"}))])).values()
    assert (once.well_formed.part, once.well_formed.whole) == (3, 4)
    loading = ChatFailure(fault=ChatFault.LOADING, reason="loading")
    model = ScriptedModel([loading, loading, calls(("read", {"path": "x"}))])
    [(_, shown)] = _prober().dialects(model).values()
    assert (shown.well_formed.part, shown.right.part) == (4, 0)  # after four no half of six can be right
    assert len(model.asked) == 6
