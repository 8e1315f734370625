"""The conversation that a model is shown, computed from the log.

Append-only: what is rendered of n events, whose calls have their results, is a prefix of what is rendered of more, so
that a model reads only what is new. Only a `Condensed` event breaks that, at a boundary of calls and once for many
results.
"""

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from localagent.agent.events import (
    UNCALLED,
    AgentEvent,
    Answered,
    Condensed,
    Noted,
    PersonSaid,
    Replied,
    ResultKind,
    writes_of,
)
from localagent.domain.chat import ChatRole, Message, ToolCall, ToolSchema
from localagent.text.visible_text import shortened

CHARACTERS_PER_TOKEN = 3.2  # of code and JSON, on the safe side
_LINE = 110
_MOST_FAILED = 20_000  # characters of a call that came to nothing; longer ones are not sent again and again
_KEPT_RESULTS = 3
_UNKNOWN_CONTEXT = 32_768


@dataclass(frozen=True, kw_only=True, slots=True)
class Opening:
    """How a conversation begins: the system's words and the first of the user's. Frozen for a session."""

    system: str
    instruction: str


def render(opening: Opening, events: Sequence[AgentEvent]) -> tuple[Message, ...]:
    """The messages of a log."""
    condensed = [e for e in events if isinstance(e, Condensed)]
    lines = max((e.upto for e in condensed), default=0)
    gone = max((e.upto for e in condensed if e.summary), default=0)
    found = [
        Message(role=ChatRole.SYSTEM, text=opening.system),
        Message(role=ChatRole.USER, text=opening.instruction),
    ]
    if gone:
        found.append(Message(role=ChatRole.USER, text=_summary(tuple(events[:gone]))))
    failed = {e.call_id for e in events if isinstance(e, Answered) and e.kind is not ResultKind.DONE}
    for number, event in enumerate(events):
        if number >= gone and (message := _message(event, failed, short=number < lines)) is not None:
            found.append(message)
    return tuple(found)


def _message(event: AgentEvent, failed: Collection[str], *, short: bool) -> Message | None:
    match event:
        case Replied():
            vain = {c.id for c in event.calls if c.id in failed and len(c.arguments) > _MOST_FAILED}
            calls = tuple(_short_call(c) if short or c.id in vain else c for c in event.calls)
            return Message(role=ChatRole.ASSISTANT, text=event.text, calls=calls)
        case Answered(tool=tool) if tool in UNCALLED:
            return Message(role=ChatRole.USER, text=f"[Changed without you: {one_line(event.text)}]")
        case Answered():
            text = one_line(event.text) if short else event.text
            return Message(role=ChatRole.TOOL, text=text, call_id=event.call_id)
        case Noted():
            return Message(role=ChatRole.USER, text=event.text)
        case PersonSaid():
            return Message(role=ChatRole.USER, text=f"The user says: {event.text}")
    return None


def one_line(text: str) -> str:
    """The first line of a result and how much was left out."""
    first, _, rest = text.partition("\n")
    shown = shortened(first, _LINE)
    return shown if not rest and shown == first else f"{shown} [{text.count(chr(10)) + 1} lines, left out: ask again]"


def _short_call(call: ToolCall) -> ToolCall:
    """A call whose long texts are left out."""
    if len(call.arguments) <= 2 * _LINE:
        return call
    try:
        given = json.loads(call.arguments)
    except (ValueError, RecursionError):
        given = None
    kept = {k: v for k, v in given.items() if isinstance(v, str) and len(v) <= _LINE} if isinstance(given, dict) else {}
    return ToolCall(id=call.id, name=call.name, arguments=json.dumps(kept, ensure_ascii=False))


def _summary(events: tuple[AgentEvent, ...]) -> str:
    """What happened, by rule: what was looked at, what was changed, what the tests said last."""
    calls = {c.id: c for e in events if isinstance(e, Replied) for c in e.calls}
    results = [e for e in events if isinstance(e, Answered)]
    looked = dict.fromkeys(
        f"{e.tool} {one_line(calls[e.call_id].arguments)}"
        for e in results
        if e.tool in ("read", "symbol", "search", "references") and e.kind is ResultKind.DONE and e.call_id in calls
    )
    tests = [e for e in results if e.tool == "run_tests"]
    plan = next((e.plan for e in reversed(results) if e.plan), ())
    changed = [f"{path} ({'deleted' if text is None else 'changed'})" for path, text in writes_of(events).items()]
    said = [e.text for e in events if isinstance(e, PersonSaid)]
    lines = [
        "[Earlier steps were left out for want of space. What they came to:]",
        *(["Plan: " + "; ".join(plan)] if plan else []),
        "Changed so far: " + (", ".join(changed) or "nothing"),
        *(["Looked at: " + "; ".join(list(looked)[-8:])] if looked else []),
        *(["Tests, last: " + one_line(tests[-1].text)] if tests else []),
        *(f"The user said: {one_line(text)}" for text in said),
    ]
    return "\n".join(lines)


def estimate(messages: Sequence[Message], tools: Sequence[ToolSchema]) -> int:
    """About how many tokens a request is."""
    size = sum(len(m.text) + 24 + sum(len(c.arguments) + len(c.name) + 60 for c in m.calls) for m in messages)
    size += sum(len(t.name) + len(t.description) + len(json.dumps(dict(t.parameters))) + 40 for t in tools)
    return int(size / CHARACTERS_PER_TOKEN)


def reserve(context_tokens: int) -> int:
    """What is kept free for a reply: 15 % of the context, at least 2,000 and at most 20,000 tokens."""
    return min(20_000, max(2_000, context_tokens * 15 // 100))


def prompt_budget(context_tokens: int | None) -> int:
    """How many tokens a prompt may have."""
    whole = context_tokens or _UNKNOWN_CONTEXT
    return max(1_000, whole - min(reserve(whole), whole // 2))


def result_limit(context_tokens: int | None) -> int:
    """How many characters one result may have."""
    return max(1_500, min(16_000, int(prompt_budget(context_tokens) * CHARACTERS_PER_TOKEN / 5)))


def condense(events: Sequence[AgentEvent]) -> Condensed | None:
    """The next step of making room: results become lines, then the past a summary; None where there is none left.

    The results of the last replies stay as they are.
    """
    replies = [n for n, e in enumerate(events) if isinstance(e, Replied)]
    if len(replies) < 2:
        return None
    done = [e for e in events if isinstance(e, Condensed)]
    lines = max((e.upto for e in done), default=0)
    gone = max((e.upto for e in done if e.summary), default=0)
    keep = replies[-min(_KEPT_RESULTS, len(replies) - 1)]
    if keep > lines:
        return Condensed(upto=keep)
    if keep > gone:
        return Condensed(upto=keep, summary=True)
    if replies[-1] > max(lines, gone):
        return Condensed(upto=replies[-1], summary=True)
    return None
