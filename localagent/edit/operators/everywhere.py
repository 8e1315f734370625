"""The same change at every place that is alike: a mistake is seldom made once where its line was copied."""

import math
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence

from localagent.edit.operator_context import Change, OperatorContext
from localagent.edit.operator_registry import operator, operators
from localagent.edit.text_difference import parted

_MOST_PLACES = 6
_EACH_MORE = 0.2  # what a third, fourth, … place costs
_RUNGS, _LADDER = 3, 0.8  # the comparisons of one value are of one kind
_MANY = frozenset({"attribute-swap", "callee-swap"})  # each name to each: those that are less likely by themselves
_LEAST_LIKELY = -1.0  # than this are not put together, which takes longer than anything else in a large class
_NEAR_BYTES = 24  # where words in front and behind are looked for
_BEFORE, _BEHIND = re.compile(r"\w+\W*\Z"), re.compile(r"\W*\w+")
# Whose changes are put together: places where the same words go and come; with _WHOLE, from the same expression;
# with the others also those that have the same word in front, or behind.
_WHOLE = frozenset({"off-by-one", "operand-drop"})
_NEIGHBOURS = frozenset({"argument-drop", "arithmetic-swap", "augmented-swap"})
_ALONE = frozenset({"index-drop", "attribute-drop", "attribute-swap", "callee-swap", "compare-swap"})


@operator("same-everywhere", prior=-1.0)
def same_everywhere(ctx: OperatorContext) -> Iterator[Change]:
    """One small change at two to six similar places of a function: each `min(` to `max(`, each `[0]` dropped."""
    for name in sorted(_ALONE | _NEIGHBOURS | _WHOLE):
        for changes in repeated(ctx, name, least=_LEAST_LIKELY if name in _MANY else -math.inf):
            more = min(c.delta for c in changes) - _EACH_MORE * (len(changes) - 2)
            more += _LADDER if name == "compare-swap" and _is_ladder(ctx, changes) else 0.0
            yield together(changes, operators()[name].prior + more)


def _is_ladder(ctx: OperatorContext, changes: Sequence[Change]) -> bool:
    """Whether one name is compared three times and more: `n > 9`, `n > 8`, `n > 7`."""
    places = [c.splices[0][0] for c in changes]
    near = [ctx.unit.text[max(0, at - _NEAR_BYTES) : at].decode("utf-8", "replace") for at in places]
    names = {found[0] if (found := _BEFORE.search(text)) else "" for text in near}
    return len(changes) >= _RUNGS and len(names) == 1 and "" not in names


def repeated(ctx: OperatorContext, name: str, *, least: float = -math.inf) -> Iterator[list[Change]]:
    """Changes of an operator, at least so likely, that are the same at several places, in the order of these."""
    groups: dict[tuple[str, ...], dict[int, Change]] = defaultdict(dict)
    for change in operators()[name].propose(ctx):
        if len(change.splices) == 1 and change.delta >= least:
            at, kinds = _kinds(ctx, name, change)
            for kind in kinds:
                groups[kind].setdefault(at, change)
    seen: set[tuple[int, ...]] = set()  # by what is changed: those of one word in front are often all there are
    for places in groups.values():
        if 2 <= len(places) <= _MOST_PLACES:
            changes = [places[at] for at in sorted(places)]
            key = tuple(map(id, changes))
            if key not in seen:
                seen.add(key)
                yield changes


def together(changes: Sequence[Change], delta: float) -> Change:
    """One change of several, each of one splice."""
    return Change(
        splices=tuple(change.splices[0] for change in changes),
        delta=delta,
        line=changes[0].line,
        end_line=changes[-1].end_line,
        note=f"{changes[0].note} at {len(changes)} places",
        old=changes[0].old,
        new=changes[0].new,
    )


def _kinds(ctx: OperatorContext, name: str, change: Change) -> tuple[int, list[tuple[str, ...]]]:
    """Where a change departs; what goes and comes there, and what may tell it from others where the same goes."""
    (start, end, new) = change.splices[0]
    old, text = ctx.unit.slice(start, end), ctx.unit.text
    front, back = parted(old, new)
    kind = (name, old[front : len(old) - back], new[front : len(new) - back])
    at, to = start + len(old[:front].encode()), end - len(old[len(old) - back :].encode())
    if name in _WHOLE:
        return at, [(*kind, old)]
    before = _BEFORE.search(text[max(0, at - _NEAR_BYTES) : at].decode("utf-8", "replace"))
    behind = _BEHIND.match(text[to : to + _NEAR_BYTES].decode("utf-8", "replace"))
    found: list[tuple[str, ...]] = [] if name in _NEIGHBOURS else [kind]
    found += [(*kind, "before", before[0])] if before else []
    return at, found + ([(*kind, "behind", behind[0])] if behind else [])
