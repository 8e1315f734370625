"""Repairs of chosen findings of one file, and of no others: what `remediate` and suggestions need.

Held to what `repair` holds itself to: libcst confirms the place and the names, the file parses afterwards, keeps its
comments, and its tree is the same outside the repaired elements. Chosen findings may be suggestions; whoever chooses
them answers for what they change.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from localagent.lint.engine import LintFinding, find_despite_other_tools
from localagent.lint.file_view import FileView
from localagent.lint.fixer import MAX_ROUNDS, after_repairs
from localagent.lint.rules import BY_ID

UNPROVEN = "what it would change cannot be proven to be all"


@dataclass(frozen=True, kw_only=True, slots=True)
class Targeted:
    """A file after some repairs. `withheld` says of each target (by its index) that was not repaired why not."""

    after: bytes
    withheld: Mapping[int, str]


def repair_targets(view: FileView, targets: Sequence[LintFinding]) -> Targeted:
    """Every target that can be proven, in rounds of those that do not meet."""
    pending = {n: target for n, target in enumerate(targets) if target.cuts}
    withheld = {n: "there is no repair for it" for n, target in enumerate(targets) if not target.cuts}
    for _ in range(MAX_ROUNDS):
        if not pending:
            return Targeted(after=view.source.raw, withheld=withheld)
        chosen = _apart(pending)
        taken, after = _round(view, {n: pending[n] for n in chosen}, withheld)
        pending = {n: target for n, target in pending.items() if n not in taken and n not in withheld}
        if after is not None:
            pending = _moved(view, after, [targets_cut for n in taken for targets_cut in taken[n].cuts or ()], pending)
            view = after
    withheld |= dict.fromkeys(pending, f"still meets other repairs after {MAX_ROUNDS} rounds")
    return Targeted(after=view.source.raw, withheld=withheld)


def _apart(pending: Mapping[int, LintFinding]) -> list[int]:
    """The first of those that meet."""
    chosen, at = [], -1
    for n in sorted(pending, key=lambda n: (_reach(pending[n]), n)):
        start, end = _reach(pending[n])
        if start > at:
            chosen.append(n)
            at = end
    return chosen


def _reach(finding: LintFinding) -> tuple[int, int]:
    cuts = finding.cuts or ((0, 0, ""),)
    return cuts[0][0], cuts[-1][1]


def _round(
    view: FileView, chosen: Mapping[int, LintFinding], withheld: dict[int, str]
) -> tuple[Mapping[int, LintFinding], FileView | None]:
    """Those repaired at once, with the file after them; what is refused is added to `withheld`."""
    from localagent.lint.libcst_check import refused  # noqa: PLC0415 - libcst takes a sixth of a second to import

    numbers = list(chosen)
    reasons = refused(view, [chosen[n] for n in numbers])
    withheld |= {numbers[k]: reason for k, reason in reasons.items()}
    left = {n: chosen[n] for n in numbers if n not in withheld}
    if not left:
        return {}, None
    after = after_repairs(view, list(left.values()))
    if after is not None:
        return left, after
    for n, finding in left.items():
        after = after_repairs(view, [finding])
        if after is not None:
            return {n: finding}, after
        withheld[n] = UNPROVEN
    return {}, None


def _moved(
    before: FileView, after: FileView, cuts: Sequence[tuple[int, int, str]], pending: Mapping[int, LintFinding]
) -> dict[int, LintFinding]:
    """What waits, found again in the file after a round. What is no longer found went with another repair."""
    if not pending:
        return {}
    found = find_despite_other_tools(
        after, [BY_ID[name] for name in sorted({target.rule for target in pending.values()})]
    )
    again: dict[int, LintFinding] = {}
    for n, target in pending.items():
        near = [f for f in found if f.rule == target.rule and f not in again.values() and f.cuts]
        first, last = (_shifted(at, cuts) for at in _extent(before, target))
        inside = [f for f in near if first <= _start(after, f) <= last]
        if inside:
            again[n] = min(inside, key=lambda f: abs(_start(after, f) - first))
    return again


def _extent(view: FileView, finding: LintFinding) -> tuple[int, int]:
    """From where a finding begins to the end of what it would change."""
    start, (low, high) = _start(view, finding), _reach(finding)
    return min(start, low), max(start, high)


def _start(view: FileView, finding: LintFinding) -> int:
    return view.source.line_starts[finding.line - 1] + finding.column


def _shifted(at: int, cuts: Sequence[tuple[int, int, str]]) -> int:
    """Where an offset went: past every cut before it, to the end of one around it."""
    return at + sum(len(text.encode()) - (end - start) for start, end, text in cuts if end <= at)
