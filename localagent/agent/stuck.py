"""Signs that a session goes round in circles. Each is told once, with another way; then the session ends."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from localagent.agent.events import (
    AgentEvent,
    Answered,
    Ended,
    EndKind,
    Noted,
    Replied,
    ResultKind,
    Undone,
    last_said,
    writes_of,
)
from localagent.domain.chat import ToolCall

_SAME_CALLS = 3
_TURNS = 3  # of two states
_SILENT = 3  # replies without a call
_ERRORS = 20  # results in a row
_JUDGED = 3  # refusals of `finish` by the proof
NOTE = "[stuck] "


class StuckKind(StrEnum):
    """In what way."""

    SAME_CALL = "the same call with the same result, three times"
    TWO_STATES = "edits that undo each other"
    NO_CALLS = "replies without a tool call"
    ERRORS = "one error after another"


_WAYS = {
    StuckKind.SAME_CALL: "It will not answer otherwise. Read another file, make an edit, or run the tests.",
    StuckKind.TWO_STATES: "Run the tests, read what they say, and change another place.",
    StuckKind.NO_CALLS: "Answer with a call of one of the tools; when all is done, call finish.",
    StuckKind.ERRORS: "Read the file again and copy `old` from it exactly, or use replace_function.",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Stuck:
    """A sign. `told`: it was said to the model before, and nothing came of it."""

    kind: StuckKind
    told: bool

    @property
    def advice(self) -> str:
        """What the model is told."""
        return f"{NOTE}{self.kind.value}. {_WAYS[self.kind]}"


def stuck(events: Sequence[AgentEvent]) -> Stuck | None:
    """The first sign since the last one that was told, or since a person spoke."""
    said = last_said(events)
    told = {e.text: n for n, e in enumerate(events) if n > said and isinstance(e, Noted) and e.text.startswith(NOTE)}
    recent = tuple(events[max(told.values(), default=said) + 1 :])
    before = tuple(events[: len(events) - len(recent)])
    for kind, is_so in (
        (StuckKind.NO_CALLS, _silent(recent)),
        (StuckKind.SAME_CALL, _same_call(recent)),
        (StuckKind.TWO_STATES, _two_states(before, recent)),
        (StuckKind.ERRORS, _errors(recent)),
    ):
        if is_so:
            sign = Stuck(kind=kind, told=False)
            return Stuck(kind=kind, told=sign.advice in told)
    return None


def too_often_refused(events: Sequence[AgentEvent]) -> Ended | None:
    """The end of a session whose `finish` the proof refused again and again since a person spoke; else None."""
    finished = [e for e in events[last_said(events) + 1 :] if isinstance(e, Answered) and e.tool == "finish"]
    if len([e for e in finished if e.kind is ResultKind.REFUSED]) < _JUDGED:
        return None
    return Ended(kind=EndKind.GAVE_UP, reason=f"finish was refused {_JUDGED} times: {finished[-1].text}")


def _silent(events: Sequence[AgentEvent]) -> bool:
    replies = [e for e in events if isinstance(e, Replied)]
    return len(replies) >= _SILENT and not any(r.calls for r in replies[-_SILENT:])


def _same_call(events: Sequence[AgentEvent]) -> bool:
    calls = {c.id: c for e in events if isinstance(e, Replied) for c in e.calls}
    done = [(_key(calls.get(e.call_id)), e.text) for e in events if isinstance(e, Answered)]
    return len(done) >= _SAME_CALLS and len({*done[-_SAME_CALLS:]}) == 1


def _key(call: ToolCall | None) -> tuple[str, str]:
    return ("", "") if call is None else (call.name, call.arguments)


def _two_states(before: tuple[AgentEvent, ...], recent: Sequence[AgentEvent]) -> bool:
    states: list[str] = []
    for number, event in enumerate(recent):
        if (isinstance(event, Answered) and event.writes) or isinstance(event, Undone):
            states.append(state_digest((*before, *recent[: number + 1])))
    last = states[-2 * _TURNS :]
    return len(last) == 2 * _TURNS and len({*last[::2]}) == 1 and len({*last[1::2]}) == 1 and last[0] != last[1]


def _errors(events: Sequence[AgentEvent]) -> bool:
    results = [e.kind for e in events if isinstance(e, Answered)]
    return len(results) >= _ERRORS and {*results[-_ERRORS:]} == {ResultKind.ERROR}


def state_digest(events: tuple[AgentEvent, ...]) -> str:
    """One digest of all that was written."""
    whole = hashlib.sha256()
    for path, text in sorted(writes_of(events).items()):
        data = b"" if text is None else text.encode("utf-8", "surrogateescape")
        whole.update(f"{path!r} {text is None} {len(data)} ".encode("utf-8", "surrogateescape") + data)
    return whole.hexdigest()
