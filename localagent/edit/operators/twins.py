"""The same mistake in every copy: what was written twice, or copied and adapted, is often wrong in all places alike.

Only likely small changes are repeated, and only within one statement or one run of statements of the same form.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from itertools import combinations, islice

import libcst as cst

from localagent.edit.layout import movable
from localagent.edit.operator_context import Change, OperatorContext
from localagent.edit.operator_registry import operator
from localagent.edit.operators.arithmetic import arithmetic_swap, augmented_swap
from localagent.edit.operators.calls import callee_swap
from localagent.edit.operators.comparisons import compare_swap
from localagent.edit.unit import Stmt
from localagent.text.visible_text import shortened

_LEAST = -0.2  # only changes at least so likely are made in all places
_MOST_PLACES = 8
_MOST_PAIRS = 20


@operator("twin-swap", prior=-0.8)
def twin_swap(ctx: OperatorContext) -> Iterator[Change]:
    """One small swap at all places of a statement, or of statements that follow each other: `min` to `max`."""
    owners = _Owners(ctx.statements)
    for propose in (compare_swap, arithmetic_swap, augmented_swap, callee_swap):
        groups: dict[str, dict[int, list[Change]]] = defaultdict(lambda: defaultdict(list))
        for change in propose(ctx):
            if change.delta >= _LEAST and len(change.splices) == 1:
                owner = owners.of(change.splices[0][0])
                if owner is not None:
                    groups[change.note][id(owner)].append(change)
        for note, found in groups.items():
            yield from _within(ctx, note, [(owners.by_id[key], changes) for key, changes in found.items()])
            yield from _across(ctx, note, {key: changes[0] for key, changes in found.items()}, owners.by_id)


class _Owners:
    """Finds the simple statement around a place, or the compound one whose head holds it."""

    def __init__(self, statements: list[Stmt]) -> None:
        self.by_id = {id(s): s for s in statements}
        parts = ([s for s in statements if not s.compound], [s for s in statements if s.compound])
        self._rows = [sorted(rows, key=lambda s: s.start) for rows in parts]
        self._starts = [[s.start for s in rows] for rows in self._rows]

    def of(self, at: int) -> Stmt | None:
        """The statement, or None where a clause's own head holds the place."""
        for rows, starts in zip(self._rows, self._starts, strict=True):
            k = bisect_right(starts, at) - 1
            if k >= 0 and at < (rows[k].head_end if rows[k].compound else rows[k].end):
                return rows[k]
        return None


def _within(ctx: OperatorContext, note: str, found: list[tuple[Stmt, list[Change]]]) -> Iterator[Change]:
    for owner, changes in found:
        splices = tuple(sorted({c.splices[0] for c in changes}))
        if 1 < len(splices) <= _MOST_PLACES:
            delta = max(c.delta for c in changes)
            yield ctx.splice(owner, *splices, delta=delta, note=f"every {note} in the statement")


def _across(ctx: OperatorContext, note: str, first: dict[int, Change], owners: dict[int, Stmt]) -> Iterator[Change]:
    """The outermost place of each statement, for the longest runs of like statements."""
    done: set[int] = set()
    for owner in sorted((owners[key] for key in first), key=lambda s: s.start):
        if id(owner) in done or owner.compound:
            continue
        run = [owner]
        rows = owner.suite.statements
        while (at := run[-1].index + 1) < len(rows) and id(rows[at]) in first and _alike(run[-1], rows[at]):
            run.append(rows[at])
        done.update(id(s) for s in run)
        if 1 < len(run) <= _MOST_PLACES:
            changes = [first[id(s)] for s in run]
            change = ctx.splice(owner, *(c.splices[0] for c in changes), delta=max(c.delta for c in changes))
            yield change._replace(end_line=run[-1].end_line, note=f"{note} in {len(run)} statements")


def _alike(one: Stmt, other: Stmt) -> bool:
    return type(one.node) is type(other.node) and not one.compound and not other.compound


@operator("assignment-mix", prior=-0.6)
def assignment_mix(ctx: OperatorContext) -> Iterator[Change]:
    """Two assignments that follow each other exchange their targets, or their values: left and right mixed up."""
    for s in ctx.statements:
        if s.index + 1 >= len(s.suite.statements) or not movable(s):
            continue
        other = s.suite.statements[s.index + 1]
        one, two = s.node, other.node
        if not isinstance(one, cst.Assign) or not isinstance(two, cst.Assign):
            continue
        if len(one.targets) != 1 or len(two.targets) != 1:
            continue
        parts = (one.targets[0].target, two.targets[0].target), (one.value, two.value)
        for delta, (a, b) in zip((0.0, -0.1), parts, strict=True):
            spans = ctx.unit.span(a), ctx.unit.span(b)
            texts = ctx.unit.slice(*spans[0]), ctx.unit.slice(*spans[1])
            if texts[0] == texts[1] or any(isinstance(x, cst.Tuple) for x in (a, b)):
                continue
            note = f"{shortened(texts[0], 40)} and {shortened(texts[1], 40)} change places"
            change = ctx.splice(s, (*spans[0], texts[1]), (*spans[1], texts[0]), delta=delta, note=note)
            yield change._replace(end_line=other.end_line)


@operator("counter-mix", prior=-0.8)
def counter_mix(ctx: OperatorContext) -> Iterator[Change]:
    """Two augmented assignments of one operator and value exchange their targets: two counters mixed up."""
    counted: dict[tuple[str, str], list[tuple[Stmt, cst.AugAssign]]] = defaultdict(list)
    for s in ctx.statements:
        if isinstance(s.node, cst.AugAssign):
            counted[type(s.node.operator).__name__, ctx.unit.code(s.node.value)].append((s, s.node))
    for rows in counted.values():
        for (one, a), (two, b) in islice(combinations(rows, 2), _MOST_PAIRS):
            spans = ctx.unit.span(a.target), ctx.unit.span(b.target)
            texts = ctx.unit.slice(*spans[0]), ctx.unit.slice(*spans[1])
            if texts[0] != texts[1]:
                note = f"{shortened(texts[0], 40)} and {shortened(texts[1], 40)} change places"
                change = ctx.splice(one, (*spans[0], texts[1]), (*spans[1], texts[0]), note=note)
                yield change._replace(end_line=two.end_line)
