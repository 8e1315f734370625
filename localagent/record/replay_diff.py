"""Why a replay departs: what two events say differently, in words, and what is known to make such a difference.

Made of the two journals alone. Not promised: the cause. A journal holds what came of a time limit and not what used the
time up, so causes are named as what they may be.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from localagent.text.visible_text import one_line

Data = Mapping[str, Any]
Names = Mapping[int, str]
Told = tuple[str, Data]  # an event's kind and data

_SHOWN = 5
_BUSY = "a machine that was busier in one of the two runs"
_CHANCE = "it depends on time, chance, memory or what else ran"


@dataclass(frozen=True, kw_only=True, slots=True)
class Explanation:
    """`differs`: what the events say differently. `causes`: what may have made it, and what it comes to."""

    differs: tuple[str, ...]
    causes: tuple[str, ...]


def explained(recorded: Sequence[Told], replayed: Sequence[Told], at: int) -> Explanation:
    """The first difference of two runs, at the event `at` (from 0) of both; before it they are the same."""
    then = recorded[at] if at < len(recorded) else None
    now = replayed[at] if at < len(replayed) else None
    names = _names([*recorded[: at + 1], *replayed[at : at + 1]])
    if then is None or now is None:
        return _ended(then, now, names)
    if then[0] != now[0]:
        return Explanation(
            differs=(f"then came: {_shown(then, names)}", f"now came: {_shown(now, names)}"),
            causes=(
                f"the search took another step from the same answers: an answer or the model's scores were in time in "
                f"one run alone ({_BUSY}), or the order of two equal candidates is not settled",
            ),
        )
    made = _OF_KIND.get(then[0], _fields)(then[1], now[1], names)
    return made if made.differs else _fields(then[1], now[1], names)


def _ended(then: Told | None, now: Told | None, names: Names) -> Explanation:
    over, other, which = ("the replay", then, "record") if now is None else ("the record", now, "replay")
    more = "nothing" if other is None else _shown(other, names)
    return Explanation(
        differs=(f"{over} ends here; the {which} goes on with: {more}",),
        causes=(f"one of the two found nothing more to do or broke off: a limit of time or memory, {_BUSY}",),
    )


def _names(events: Sequence[Told]) -> dict[int, str]:
    """What each candidate edits, by number: the newest that was told of it."""
    found: dict[int, str] = {}
    for kind, data in events:
        number, edit = data.get("number"), data.get("edit")
        if kind in ("checked", "denied") and isinstance(number, int) and edit:
            text = "; ".join(map(str, edit)) if isinstance(edit, list | tuple) else str(edit)
            found[number] = one_line(text, 120)
    return found


def _candidate(number: object, names: Names) -> str:
    edit = names.get(number, "") if isinstance(number, int) else ""
    return f"candidate {number} ({edit})" if edit else f"candidate {number}"


def _shown(event: Told, names: Names) -> str:
    """An event on one line."""
    kind, data = event
    who = f" of {_candidate(data['number'], names)}" if "number" in data else ""
    rest = ", ".join(f"{name} {_value(value)}" for name, value in data.items() if name not in ("number", "edit"))
    return f"{kind}{who}" + (f": {rest}" if rest else "")


def _value(value: object) -> str:
    return one_line(str(value), 120)


def _fields(then: Data, now: Data, _: Names) -> Explanation:
    """Field by field, for events that nothing more is known of."""
    found = []
    for name in dict.fromkeys([*then, *now]):
        if then.get(name) != now.get(name) or (name in then) is not (name in now):
            was, is_now = (_value(data[name]) if name in data else "not told" for data in (then, now))
            found.append(f"{name}: {was}, now {is_now}")
    return Explanation(differs=_few(found), causes=())


def _few(lines: Sequence[str]) -> tuple[str, ...]:
    more = len(lines) - _SHOWN
    return (*lines[:_SHOWN], *([f"and {more} more differences"] if more > 0 else []))


# ---- the choice among plausible candidates ---------------------------------------------------------------------------


def _ranked(then: Data, now: Data, names: Names) -> Explanation:
    """Order and costs, and the answers on inputs near the tests' that they rest on."""
    differs = [*_standings(then, now, names)]
    rows, causes = _rows(_table(then, "behaviours"), _table(now, "behaviours"), names)
    differs += rows
    crashes, crashed = _table(then, "crashes"), _table(now, "crashes")
    for key in dict.fromkeys([*crashes, *crashed]):
        if crashes.get(key) != crashed.get(key):
            who = _candidate(_number(key), names)
            differs.append(f"{who} crashed on {crashes.get(key, 0)} of those inputs, now on {crashed.get(key, 0)}")
    if then.get("sturdier") != now.get("sturdier"):
        ends = [_candidate(x, names) if x is not None else "none" for x in (then.get("sturdier"), now.get("sturdier"))]
        differs.append(f"the edit that ends its crashes: {ends[0]}, now {ends[1]}")
    if differs and not causes:
        causes = [
            "the answers in the journal are the same: what differs are answers to inputs that it leaves out, or "
            "the model's reading of the candidates (another number of threads, other weights)"
        ]
    if differs and _first(then) == _first(now):
        differs.append(f"the first is the same: {_candidate(_first(then), names)}")
    return Explanation(differs=tuple(differs), causes=tuple(causes))


def _order(data: Data) -> dict[int, float]:
    """Costs by candidate, in order; what is no pair of numbers is left out."""
    pairs = data.get("order")
    found = [p for p in pairs if isinstance(p, list | tuple) and len(p) == 2] if isinstance(pairs, list | tuple) else []
    return {n: cost for n, cost in found if isinstance(n, int) and isinstance(cost, int | float)}


def _first(data: Data) -> int | None:
    return next(iter(_order(data)), None)


def _standings(then: Data, now: Data, names: Names) -> Iterator[str]:
    was, came = _order(then), _order(now)
    for number in dict.fromkeys([*was, *came]):
        if number not in came or number not in was:
            when = "then and not now" if number in was else "now and not then"
            yield f"{_candidate(number, names)} was among those to choose from {when}"
    costs = [n for n in was if n in came and was[n] != came[n]]
    yield from _few([f"{_candidate(n, names)}: cost {was[n]:.2f}, now {came[n]:.2f}" for n in costs])
    both = [n for n in was if n in came]
    if both != [n for n in came if n in was]:
        before, after = (" ".join(map(str, order[:10])) for order in (list(was), list(came)))
        yield f"the order: {before}; now {after}"


def _table(data: Data, name: str) -> Mapping[str, Any]:
    found = data.get(name)
    return {str(key): value for key, value in found.items()} if isinstance(found, Mapping) else {}


def _number(key: str) -> int | None:
    return int(key) if key.isdecimal() and len(key) < 10 else None


def _rows(then: Data, now: Data, names: Names) -> tuple[list[str], list[str]]:
    """What is told differently of each program's answers, and what may have made it."""
    if bool(then) != bool(now):
        when = "then, and not now" if then else "now, and not then"
        return (
            [f"what candidates answer on inputs near the tests' was compared {when}"],
            [f"the comparison has a limit of time (40 s at most) and of memory, and broke off in one run: {_BUSY}"],
        )
    differs, causes = [], []
    for key in dict.fromkeys([*then, *now]):
        who = "the program without a patch" if key == "0" else _candidate(_number(key), names)
        was, came = then.get(key), now.get(key)
        if not isinstance(was, list | tuple) or not isinstance(came, list | tuple):
            differs.append(f"{who} was compared {'now and not then' if was is None else 'then and not now'}")
            causes.append(f"comparing one candidate has a limit of processor time (2 s), which it reached: {_BUSY}")
        elif len(was) != len(came):
            differs.append(f"{who} was asked {len(was)} calls, now {len(came)}")
            causes.append(
                f"the calls are taken from the tests, which were cut off or called otherwise: {_BUSY}; or {_CHANCE}"
            )
        elif other := [(a, b) for a, b in zip(was, came, strict=True) if a != b]:
            late = sum(str(a).startswith("late:") != str(b).startswith("late:") for a, b in other)
            told = f", {late} of them too late in one of the runs" if late else ""
            differs.append(f"{who} answers {len(other)} of {len(was)} calls otherwise{told}")
            if late:
                causes.append(f"a call has 0.05 s of processor time, and some need about as much: {_BUSY}")
            if late < len(other):
                causes.append(f"the program answers the same call otherwise: {_CHANCE}")
    return list(_few(differs)), list(dict.fromkeys(causes))


# ---- the other kinds -------------------------------------------------------------------------------------------------


def _checked(then: Data, now: Data, names: Names) -> Explanation:
    if then.get("number") != now.get("number"):
        both = [_candidate(data.get("number"), _names([("checked", data)])) for data in (then, now)]
        return Explanation(
            differs=(f"the next answer was of {both[0]}, now of {both[1]}",),
            causes=(f"answers came in another order: {_BUSY}",),
        )
    found = [f"{_candidate(now.get('number'), names)}: {line}" for line in _fields(then, now, names).differs]
    causes = []
    if then.get("late") or now.get("late"):
        causes.append(f"a limit of time cut tests off ({then.get('late', 0)} then, {now.get('late', 0)} now): {_BUSY}")
    if any(then.get(name) != now.get(name) for name in ("plausible", "turned", "broken")) and not causes:
        causes.append(f"the same tests of the same patch ended otherwise: {_CHANCE}")
    if then.get("cost") != now.get("cost") or then.get("edit") != now.get("edit"):
        causes.append("the model scored it otherwise: other weights, another number of threads, or another processor")
    return Explanation(differs=tuple(found), causes=tuple(causes))


def _baseline(then: Data, now: Data, _: Names) -> Explanation:
    found = []
    for name in ("failing", "flaky"):
        was, came = (set(map(str, data.get(name) or ())) for data in (then, now))
        found += [f"{one_line(test, 200)} was {name} then and is not now" for test in sorted(was - came)]
        found += [f"{one_line(test, 200)} is {name} now and was not then" for test in sorted(came - was)]
    if then.get("passing") != now.get("passing"):
        found.append(f"{then.get('passing')} tests passed, now {now.get('passing')}")
    why = f"nothing was patched yet: a test ends otherwise on its own; {_CHANCE}, or its limit of time was reached"
    return Explanation(differs=_few(found), causes=(why,))


def _because(why: str) -> Callable[[Data, Data, Names], Explanation]:
    """Field by field, with a cause."""

    def told(then: Data, now: Data, names: Names) -> Explanation:
        return Explanation(differs=_fields(then, now, names).differs, causes=(why,))

    return told


_OF_KIND: Mapping[str, Callable[[Data, Data, Names], Explanation]] = {
    "ranked": _ranked,
    "checked": _checked,
    "baseline": _baseline,
    "localized": _because(f"the failing tests went other ways through the code: {_CHANCE}, or tracing was cut off"),
    "ordered": _because(f"the model had scored another number of edits when its time was up: {_BUSY}"),
    "read-on": _because(f"the model had read another number of edits on when its time was up: {_BUSY}"),
    "written": _because(
        f"the model wrote something else: other weights, another number of threads; or its time was up: {_BUSY}"
    ),
    "read": _because("the model reads the texts otherwise: other weights, or another number of threads"),
    "full-check": _because(
        f"tests, ruff, mypy or the guard of the same patch ended otherwise: {_CHANCE}, or a limit was reached"
    ),
    "snapshot": _because("the tree is another one"),
}
