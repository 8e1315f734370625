"""A model's reply becomes an event: bounded, with ids where the model's are none, calls in its text found."""

from collections.abc import Collection, Sequence

from localagent.agent.agent_ports import JudgeAnswer
from localagent.agent.events import AgentEvent, Answered, Ended, EndKind, Replied, ResultKind
from localagent.agent.text_calls import calls_in
from localagent.agent.tools.tool import Done
from localagent.domain.chat import ChatReply, ToolCall

MOST_CALLS = 16
_MOST_ARGUMENTS = 650_000  # the journal keeps lines below a megabyte
_MOST_TEXT = 60_000
_MOST_NAME = 64


def as_event(reply: ChatReply, names: Collection[str], events: Sequence[AgentEvent]) -> Replied:
    """The event of a reply. Calls beyond the bound are dropped; arguments beyond it become unreadable, and fail so."""
    used = {call.id for e in events if isinstance(e, Replied) for call in e.calls}
    calls = reply.calls
    recovered = not calls and not reply.cut
    if recovered:
        calls = calls_in(reply.text, names, len(events))
    kept: list[ToolCall] = []
    left = _MOST_ARGUMENTS
    for number, call in enumerate(calls[:MOST_CALLS]):
        plain = call.id if 0 < len(call.id) <= 2 * _MOST_NAME and call.id.isprintable() and call.id not in used else ""
        one = plain or f"call_{len(events)}_{number}"
        used.add(one)
        fits = len(call.arguments) <= left
        left -= len(call.arguments) if fits else 0
        kept.append(
            ToolCall(
                id=one,
                name="".join(c for c in call.name[:_MOST_NAME] if c.isprintable()) or "?",
                arguments=call.arguments if fits else "(too long)",
            )
        )
    return Replied(
        text=reply.text[:_MOST_TEXT],
        calls=tuple(kept),
        recovered=recovered and bool(kept),
        prompt_tokens=reply.prompt_tokens,
        reply_tokens=reply.reply_tokens,
    )


def outcome_of(done: Done) -> Ended | None:
    """The end that a call means; None where the session goes on."""
    if done.asks:
        return Ended(kind=EndKind.NEEDS_PERSON, reason=f"the model asks: {done.asks}")
    if done.judgement is None:
        return None
    kinds = {JudgeAnswer.NEEDS_PERSON: EndKind.NEEDS_PERSON, JudgeAnswer.AGREED: EndKind.NEXT_ROLE}
    return Ended(kind=kinds.get(done.judgement.answer, EndKind.FINISHED), reason=done.judgement.reason)


def quoted(answer: Answered) -> str:
    """What a result says in the words of the repository, or of a program that ran: our own words are none."""
    if answer.tool == "run_tests" and answer.kind is ResultKind.ERROR:
        return answer.text  # what pytest said where it could not be run
    if answer.tool in ("plan", "no_test", "ask", "delete") or (
        answer.kind is ResultKind.REFUSED and answer.tool != "finish"
    ):
        return ""
    ours_first = answer.kind is not ResultKind.DONE or answer.tool in ("run_tests", "run", "edit", "create", "finish")
    return answer.text.partition("\n")[2] if ours_first else answer.text
