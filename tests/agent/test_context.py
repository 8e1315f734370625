"""The conversation: append-only until it is condensed, and then still whole."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from localagent.agent import context
from localagent.agent.events import RECIPE, Answered, Condensed, Noted, PersonSaid, Replied, ResultKind, Started
from localagent.domain.chat import ChatRole, ToolCall

OPENING = context.Opening(system="s", instruction="i")


def _step(number: int, size: int) -> list[object]:
    call = ToolCall(id=f"c{number}", name="read", arguments='{"path": "a.py"}')
    return [
        Replied(text="", calls=(call,)),
        Started(call_id=call.id),
        Answered(call_id=call.id, tool="read", kind=ResultKind.DONE, text="x\n" * size),
    ]


events = st.lists(
    st.one_of(
        st.integers(0, 400).map(lambda n: ("step", n)),
        st.text(max_size=20).map(lambda t: ("note", t)),
        st.text(max_size=20).map(lambda t: ("person", t)),
    ),
    max_size=12,
)


def _log(script: Any) -> Any:
    log = []
    for number, (kind, value) in enumerate(script):
        if kind == "step":
            log += _step(number, value)
        else:
            log.append(Noted(text=value) if kind == "note" else PersonSaid(text=value))
    return log


@given(events, st.integers(0, 40))
def test_what_is_rendered_of_less_is_a_prefix_of_what_is_rendered_of_more(script: Any, cut: int) -> None:
    log = _log(script)
    less, more = context.render(OPENING, log[:cut]), context.render(OPENING, log)
    assert more[: len(less)] == less


def test_a_huge_call_that_came_to_nothing_is_not_sent_again_and_again() -> None:
    call = ToolCall(id="c", name="create", arguments=json.dumps({"path": "a.txt", "content": "x" * 50_000}))
    for kind, whole in ((ResultKind.REFUSED, False), (ResultKind.ERROR, False), (ResultKind.DONE, True)):
        answer = Answered(call_id="c", tool="create", kind=kind, text="said")
        shown = context.render(OPENING, [Replied(text="", calls=(call,)), answer])[2].calls[0]
        assert (len(shown.arguments) > 50_000) is whole
        assert json.loads(shown.arguments)["path"] == "a.txt"


def test_what_a_recipe_did_is_no_answer_to_a_call() -> None:
    answer = Answered(call_id=RECIPE, tool=RECIPE, kind=ResultKind.DONE, text="renamed a to b")
    done, said = context.render(OPENING, [answer, PersonSaid(text="go on")])[2:]
    assert (done.role, said.role) == (ChatRole.USER, ChatRole.USER)
    assert "renamed a to b" in done.text


@given(events)
def test_condensing_ends_and_keeps_calls_and_results_in_pairs(script: Any) -> None:
    log = _log(script)
    for _ in range(10):
        step = context.condense(log)
        if step is None:
            break
        log.append(step)
        shown = context.render(OPENING, log)
        asked = [c.id for m in shown for c in m.calls]
        assert [m.call_id for m in shown if m.role is ChatRole.TOOL] == asked
    else:
        raise AssertionError("it goes on for ever")


def test_room_is_made_and_the_last_result_stays() -> None:
    log: list[Any] = [event for number in range(8) for event in _step(number, 500)]
    before = context.estimate(context.render(OPENING, log), ())
    log.append(context.condense(log))
    assert isinstance(log[-1], Condensed)
    after = context.render(OPENING, log)
    assert context.estimate(after, ()) < before / 2
    assert after[-1].text == "x\n" * 500


def test_a_budget_leaves_room_for_a_reply() -> None:
    assert context.reserve(8192) == 2000
    assert context.reserve(1_000_000) == 20_000
    assert context.prompt_budget(8192) == 6192
    assert context.prompt_budget(1000) >= 500
