"""Repairs one file's bytes: safe repairs that do not meet, in rounds, each proven before the next.

Bytes outside the cuts stay what they are, whatever the encoding and line ends. After every round the file parses and
its tree is the same outside the repaired elements, or the round is taken apart and what cannot be proven is withheld.
"""

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from localagent.lint.engine import LintFinding, find
from localagent.lint.file_view import CannotReadError, FileView, view_of
from localagent.lint.lint_rule import Cut, LintRule

# Proof that a repair changed nothing else: both trees are equal but for the elements that hold the cuts.


def same_outside(before: FileView, after: FileView, repairs: Sequence[tuple[ast.AST, Sequence[Cut]]]) -> bool:
    """Whether the trees differ inside the anchors only. An anchor whose place moved gives way to what is around."""
    cuts = sorted(cut for _, own in repairs for cut in own)
    places = _nodes_by_span(after)
    marked: dict[ast.AST, ast.AST] = {}
    for anchor, _ in repairs:
        pair = _pair(before, anchor, cuts, places)
        if pair is None:
            return False
        marked[pair[0]] = pair[1]
    return _equal(before.tree, after.tree, marked)


def _nodes_by_span(view: FileView) -> dict[tuple[int, int, bool], ast.AST]:
    """The outermost statement and expression at each span."""
    found: dict[tuple[int, int, bool], ast.AST] = {}
    for node in view.walk.nodes:
        if isinstance(node, ast.expr | ast.stmt) and node not in view.walk.quoted:
            found.setdefault((view.start(node), view.end(node), isinstance(node, ast.stmt)), node)
    return found


def _pair(
    before: FileView, node: ast.AST, cuts: Iterable[Cut], places: dict[tuple[int, int, bool], ast.AST]
) -> tuple[ast.AST, ast.AST] | None:
    """An anchor and what stands at its place afterwards; None where only the whole module does."""
    for element in (node, *before.parents(node)):
        if not isinstance(element, ast.expr | ast.stmt):
            continue
        start, end = before.start(element), before.end(element)
        first = start + sum(len(c[2].encode()) - (c[1] - c[0]) for c in cuts if c[0] < start)
        last = end + sum(len(c[2].encode()) - (c[1] - c[0]) for c in cuts if c[1] <= end)
        other = places.get((first, last, isinstance(element, ast.stmt)))
        if other is not None:
            return element, other
    return None


def _equal(one: ast.AST, two: ast.AST, marked: dict[ast.AST, ast.AST]) -> bool:
    """The classes decide, exactly: nothing of another class is equal. Plain values count as they are written."""
    stack: list[tuple[Any, Any]] = [(one, two)]
    while stack:
        a, b = stack.pop()
        if a is None or a is b:
            if a is not b:
                return False
            continue
        kind = a.__class__
        if kind is not b.__class__:
            if not isinstance(a, ast.AST) or marked.get(a) is not b:
                return False
            continue
        if kind is str:
            if a != b:
                return False
        elif kind is list:
            if len(a) != len(b):
                return False
            stack += zip(a, b, strict=True)
        elif isinstance(a, ast.AST):
            other = marked.get(a)
            if other is None:
                stack += [(getattr(a, name, None), getattr(b, name, None)) for name in a._fields]
            elif other is not b:
                return False
        elif repr(a) != repr(b):
            return False
    return True


MAX_ROUNDS = 100  # as deep as repairs may lie in one another; no two rules undo each other, which is tested


@dataclass(frozen=True, kw_only=True, slots=True)
class FixedFile:
    """A file that was repaired. `applied` are findings of their own round; `left` those of the bytes after."""

    after: bytes
    applied: tuple[LintFinding, ...]
    left: tuple[LintFinding, ...]
    withheld: tuple[tuple[LintFinding, str], ...] = ()


def repair(
    view: FileView, rules: Sequence[LintRule], found: list[LintFinding] | None = None, longest_line: int = 0
) -> FixedFile:
    """Every safe repair that can be proven, and that makes no line longer than `longest_line` (0: any may be)."""
    applied: list[LintFinding] = []
    withheld: dict[tuple[str, str], tuple[LintFinding, str]] = {}
    found = find(view, rules) if found is None else found
    for _ in range(MAX_ROUNDS):
        chosen = _chosen(f for f in found if f.repairable and _key(view, f) not in withheld)
        if not chosen:
            break
        chosen = _fitting(view, _confirmed(view, chosen, withheld), withheld, longest_line)
        done, after = _proven(view, chosen, withheld)
        if after is not None:
            applied += done
            view = after
            found = find(view, rules)
    return FixedFile(
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


def _fitting(
    view: FileView,
    chosen: list[LintFinding],
    withheld: dict[tuple[str, str], tuple[LintFinding, str]],
    longest_line: int,
) -> list[LintFinding]:
    """Those whose lines are not too long afterwards."""
    fitting = []
    for finding in chosen:
        after = after_repairs(view, [finding]) if longest_line else None
        if after is not None and lengthened(view, after, longest_line):
            withheld[_key(view, finding)] = (finding, too_long(longest_line))
        else:
            fitting.append(finding)
    return fitting


def too_long(longest_line: int) -> str:
    """Why a repair that lengthens a line is not made."""
    return f"a line would be longer than the {longest_line} characters of the project's linters"


def lengthened(before: FileView, after: FileView, longest_line: int) -> bool:
    """Whether a line is new and longer than so many characters (0: none is too long)."""
    if not longest_line:
        return False
    old = set(before.source.utf8.splitlines())
    return any(len(line.decode("utf-8")) > longest_line for line in after.source.utf8.splitlines() if line not in old)


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
