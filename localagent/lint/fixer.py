"""Repairs one file's bytes: safe repairs that do not meet, in rounds, each proven before the next.

Bytes outside the cuts stay what they are, whatever the encoding and line ends. After every round the file parses and
its tree is the same outside the repaired elements, or the round is taken apart and what cannot be proven is withheld.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from localagent.lint.engine import LintFinding, find
from localagent.lint.file_view import CannotReadError, FileView, view_of
from localagent.lint.lint_rule import Cut, LintRule
from localagent.lint.unchanged_check import same_outside

MAX_ROUNDS = 10


@dataclass(frozen=True, kw_only=True, slots=True)
class FixedFile:
    """A file before and after. `applied` are findings of their own round; `left` those of the bytes after."""

    before: bytes
    after: bytes
    applied: tuple[LintFinding, ...]
    left: tuple[LintFinding, ...]
    withheld: tuple[tuple[LintFinding, str], ...] = ()


def repair(view: FileView, rules: Sequence[LintRule], found: list[LintFinding] | None = None) -> FixedFile:
    """Every safe repair that can be proven."""
    before = view.source.raw
    applied: list[LintFinding] = []
    withheld: dict[tuple[str, str], tuple[LintFinding, str]] = {}
    found = find(view, rules) if found is None else found
    for _ in range(MAX_ROUNDS):
        chosen = _chosen(f for f in found if f.repairable and _key(view, f) not in withheld)
        if not chosen:
            break
        chosen = _confirmed(view, chosen, withheld)
        done, after = _proven(view, chosen, withheld)
        if after is not None:
            applied += done
            view = after
            found = find(view, rules)
    return FixedFile(
        before=before,
        after=view.source.raw,
        applied=tuple(applied),
        left=tuple(found),
        withheld=tuple((f, withheld[k][1]) for f in found if f.cuts and (k := _key(view, f)) in withheld),
    )


def _key(view: FileView, finding: LintFinding) -> tuple[str, str]:
    """What a withheld repair is known by in later rounds, where offsets moved."""
    first, last = _reach(finding)
    line = view.source.line_starts[finding.line - 1]
    return finding.rule, view.between(min(line, first), view.line_end(last)) + repr([c[2] for c in finding.cuts or ()])


def _chosen(found: object) -> list[LintFinding]:
    """The first of those that meet: no cut of one lies between the first and last of another."""
    chosen: list[LintFinding] = []
    at = -1
    for finding in sorted(found, key=_reach):  # type: ignore[call-overload]
        start, end = _reach(finding)
        if start > at:
            chosen.append(finding)
            at = end
    return chosen


def _reach(finding: LintFinding) -> tuple[int, int]:
    cuts = finding.cuts or ()
    return cuts[0][0], cuts[-1][1]


def _confirmed(
    view: FileView, chosen: list[LintFinding], withheld: dict[tuple[str, str], tuple[LintFinding, str]]
) -> list[LintFinding]:
    from localagent.lint.libcst_check import refused  # noqa: PLC0415 - libcst takes a sixth of a second to import

    reasons = refused(view, chosen)
    for n, reason in reasons.items():
        withheld[_key(view, chosen[n])] = (chosen[n], reason)
    return [f for n, f in enumerate(chosen) if n not in reasons]


def _proven(
    view: FileView, chosen: list[LintFinding], withheld: dict[tuple[str, str], tuple[LintFinding, str]]
) -> tuple[list[LintFinding], FileView | None]:
    """All of them at once; if that cannot be proven, one after the other, of which the first that can is taken."""
    if not chosen:
        return [], None
    after = after_repairs(view, chosen)
    if after is not None:
        return chosen, after
    for finding in chosen:
        after = after_repairs(view, [finding])
        if after is not None:
            return [finding], after
        withheld[_key(view, finding)] = (finding, "what it would change cannot be proven to be all")
    return [], None


def after_repairs(view: FileView, findings: Sequence[LintFinding]) -> FileView | None:
    """The file after some repairs; None unless it parses, keeps its comments, and is the same outside them."""
    cuts = sorted(cut for f in findings for cut in f.cuts or ())
    if any(view.between(a, b).count("#") > text.count("#") for a, b, text in cuts):
        return None
    raw = spliced(view, cuts)
    if raw is None:
        return None
    try:
        after = view_of(raw, view.name)
    except CannotReadError:
        return None
    if after.source.utf8 != _spliced(view.source.utf8, [(a, b, text.encode()) for a, b, text in cuts]):
        return None
    repairs = [(f.anchor or view.tree, f.cuts or ()) for f in findings]
    return after if same_outside(view, after, repairs) else None


def spliced(view: FileView, cuts: Sequence[Cut]) -> bytes | None:
    """The file's bytes with cuts made; None where its encoding cannot say the new text."""
    source = view.source
    pieces = []
    for start, end, text in cuts:
        new = source.raw_text(text)
        if new is None:
            return None
        pieces.append((source.raw_offset(start), source.raw_offset(end), new))
    return _spliced(source.raw, pieces)


def _spliced(data: bytes, pieces: Sequence[tuple[int, int, bytes]]) -> bytes:
    out, at = [], 0
    for start, end, text in pieces:
        out += [data[at:start], text]
        at = end
    return b"".join((*out, data[at:]))
