"""Why a replay departs: what two events say differently, and what is known to make such a difference.

Made of the two journals alone. Limitations: a journal holds what came of a time limit and not what used the time up, so
causes are named as what they may be.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from localagent.text.visible_text import one_line

Data = Mapping[str, Any]
Names = Mapping[int, str]
Told = tuple[str, Data]  # an event's kind and data

_SHOWN = 5
_ABSENT = object()
_BUSY = "a machine that was busier in one of the two runs"
_CHANCE = "it depends on time, chance, memory or what else ran"
_TIMING = (
    f"answers of tests and of the model come when they come, and the search goes on from what is there: {_BUSY}, or "
    "more than one job"
)
_CAUSES: Mapping[str, str] = {
    "baseline": f"nothing was patched yet: a test ends otherwise on its own; {_CHANCE}, or its limit was reached",
    "snapshot": "the tree is another one",
    "localized": f"the failing tests went other ways through the code: {_CHANCE}, or tracing was cut off",
    "ranked": f"candidates are compared on inputs near the tests' within 40 s, 2 s each, 0.05 s a call: {_BUSY}",
    "full-check": f"tests, ruff, mypy or the guard of the same patch ended otherwise: {_CHANCE}",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class ReplayExplanation:
    """`differs`: what the events say differently. `causes`: what may have made it."""

    differs: tuple[str, ...]
    causes: tuple[str, ...]


def explained(recorded: Sequence[Told], replayed: Sequence[Told], at: int) -> ReplayExplanation:
    """The first difference of two runs, at the event `at` (from 0) of both; before it they are the same."""
    then = recorded[at] if at < len(recorded) else None
    now = replayed[at] if at < len(replayed) else None
    names = _names([*recorded[: at + 1], *replayed[at : at + 1]])
    if then is None or now is None or then[0] != now[0]:
        told = [f"then came: {_shown(then, names)}", f"now came: {_shown(now, names)}"]
        return ReplayExplanation(differs=tuple(told), causes=(_TIMING,))
    found = [line for name in dict.fromkeys([*then[1], *now[1]]) for line in _field(name, then[1], now[1])]
    more = [f"and {len(found) - _SHOWN} more differences"] if len(found) > _SHOWN else []
    return ReplayExplanation(differs=(*found[:_SHOWN], *more), causes=(_CAUSES.get(then[0], _TIMING),))


def _names(events: Sequence[Told]) -> dict[int, str]:
    """What each candidate edits, by number: the newest that was told of it."""
    found: dict[int, str] = {}
    for kind, data in events:
        number, edit = data.get("number"), data.get("edit")
        if kind in ("checked", "denied") and isinstance(number, int) and edit:
            text = "; ".join(map(str, edit)) if isinstance(edit, list | tuple) else str(edit)
            found[number] = one_line(text, 120)
    return found


def _shown(event: Told | None, names: Names) -> str:
    """An event on one line."""
    if event is None:
        return "nothing more"
    kind, data = event
    number = data.get("number")
    edit = names.get(number, "") if isinstance(number, int) else ""
    who = "" if number is None else f" of candidate {number}" + (f" ({edit})" if edit else "")
    rest = ", ".join(f"{name} {_value(value)}" for name, value in data.items() if name not in ("number", "edit"))
    return f"{kind}{who}" + (f": {rest}" if rest else "")


def _field(name: str, then: Data, now: Data) -> Iterator[str]:
    yield from _differences(name, then.get(name, _ABSENT), now.get(name, _ABSENT))


def _differences(name: str, was: object, came: object) -> Iterator[str]:
    """Where two values differ, down to the elements that do."""
    if isinstance(was, Mapping) and isinstance(came, Mapping):
        for key in dict.fromkeys([*was, *came]):
            yield from _differences(f"{name}.{key}", was.get(key, _ABSENT), came.get(key, _ABSENT))
    elif isinstance(was, list | tuple) and isinstance(came, list | tuple):
        for at, (one, other) in enumerate(zip_longest(was, came, fillvalue=_ABSENT)):
            yield from _differences(f"{name}[{at}]", one, other)
    elif was is _ABSENT or came is _ABSENT or was != came:
        yield f"{one_line(name, 120)}: {_value(was)}, now {_value(came)}"


def _value(value: object) -> str:
    return "nothing" if value is _ABSENT else one_line(str(value), 120)
