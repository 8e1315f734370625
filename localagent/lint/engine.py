"""Looks for every selected rule in one walk over a file, and honours suppressions.

`# localagent: ignore[RULE, ...] reason` holds for findings on its own line, and on the next line where it stands alone.
A suppression without a reason holds for nothing. Comments of other tools (`# noqa: E711`) hold for our rules that find
the same mistake; `tool_suppressions` says which.
"""

import ast
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from localagent.lint.file_view import FileView
from localagent.lint.lint_rule import Cut, FixGrade, Hit, LintRule, Reliance
from localagent.lint.rules import BY_ID, RULES
from localagent.lint.tool_suppressions import MARKS, Comment, comments, tool_suppressions

UNREADABLE = "unreadable"
NEWER_PYTHON = "newer-python"
UNKNOWN = "unknown-suppression"
NO_REASON = "suppression-without-reason"
UNUSED = "unused-suppression"
OWN = {
    UNREADABLE: "the file does not parse, or is larger, longer or more deeply nested than the limits",
    NEWER_PYTHON: "the file has syntax of a newer Python than the one that localagent runs on, and is skipped",
    UNKNOWN: "a suppression names a rule that does not exist",
    NO_REASON: "a suppression without a reason has no effect",
    UNUSED: "an unused suppression would hide the next mistake",
}
_MARK = re.compile(r"#\s*localagent:\s*ignore\[([^\]\n]*)\](.*)")


@dataclass(frozen=True, kw_only=True, slots=True)
class LintFinding:
    """A rule's hit in a file. Lines are 1-based, columns 0-based UTF-8; cuts are in UTF-8 offsets of the file.

    `place` is the element's span where it is a simple statement or an expression, other than a tuple; `relies` are the
    names that the rule resolved to find it.
    """

    rule: str
    line: int
    column: int
    message: str
    grade: FixGrade
    cuts: tuple[Cut, ...] | None = None
    anchor: ast.AST | None = None
    place: tuple[int, int] | None = None
    relies: tuple[Reliance, ...] = ()

    @property
    def repairable(self) -> bool:
        """Whether its repair may be made without asking."""
        return self.cuts is not None and self.grade is FixGrade.SAFE

    @property
    def suggested(self) -> bool:
        """Whether its repair is only shown, or it is a remark; such a finding fails no check that is not strict."""
        return self.rule == NEWER_PYTHON or (self.cuts is not None and self.grade is FixGrade.SUGGESTION)


@dataclass(slots=True)
class _Suppression:
    line: int
    holds_for: frozenset[int]
    rules: tuple[str, ...]
    reason: str
    used: bool = False


def choose(select: Collection[str] = (), ignore: Collection[str] = ()) -> tuple[LintRule, ...]:
    """The rules that run: the standard ones or those selected (`all` for every one), without the ignored."""
    wanted = {r.id for r in RULES if "all" in select or (r.id in select if select else r.standard)}
    return tuple(r for r in RULES if r.id in wanted and r.id not in ignore)


def find(view: FileView, rules: Sequence[LintRule]) -> list[LintFinding]:
    """Every finding that no suppression covers, in source order, and faults of the suppressions themselves."""
    found = find_despite_other_tools(view, rules)
    if found and any(mark in view.source.utf8.lower() for mark in MARKS):
        holding = tool_suppressions(view, comments(view))
        found = [f for f in found if not any(f.rule in s.rules and s.first <= f.line <= s.last for s in holding)]
    return found


def find_despite_other_tools(view: FileView, rules: Sequence[LintRule]) -> list[LintFinding]:
    """As `find`, but only our own suppressions hold: for what another tool reported all the same."""
    found = find_all(view, rules)
    if b"localagent:" in view.source.utf8:
        found = _suppressed(view, found, {r.id for r in rules})
    return sorted(found, key=lambda f: (f.line, f.column, f.rule))


def find_all(view: FileView, rules: Sequence[LintRule]) -> list[LintFinding]:
    """Every finding, whatever a suppression says."""
    return [_finding(view, rule, hit, relies) for rule, hit, relies in _hits(view, rules)]


def _hits(view: FileView, rules: Sequence[LintRule]) -> Iterator[tuple[LintRule, Hit, tuple[Reliance, ...]]]:
    table: dict[type[ast.AST], list[LintRule]] = {}
    text = view.source.utf8
    for rule in rules:
        if not rule.words or any(word in text for word in rule.words):
            for kind in rule.on:
                table.setdefault(kind, []).append(rule)
    quoted = view.walk.quoted
    for node in view.walk.nodes:
        for rule in table.get(node.__class__, ()):
            if node in quoted:
                continue
            view.asked.clear()
            for hit in rule.find(view, node):
                yield rule, hit, tuple(dict.fromkeys(view.asked))


def _finding(view: FileView, rule: LintRule, hit: Hit, relies: tuple[Reliance, ...]) -> LintFinding:
    start = view.start(hit.node)
    line = view.source.line_of(start)
    cuts = None if hit.cuts is None else tuple(sorted(c for c in hit.cuts if c[0] < c[1] or c[2]))
    simple = (isinstance(hit.node, ast.expr) and not isinstance(hit.node, ast.Tuple)) or (
        isinstance(hit.node, ast.stmt) and not hasattr(hit.node, "body")
    )
    grade = hit.grade or rule.grade
    return LintFinding(
        rule=rule.id,
        line=line,
        column=start - view.source.line_starts[line - 1],
        message=hit.message,
        grade=grade if cuts else FixGrade.SUGGESTION,
        cuts=cuts or None,
        anchor=hit.anchor or hit.node,
        place=(start, view.end(hit.node)) if simple else None,
        relies=relies,
    )


def _suppressed(view: FileView, found: list[LintFinding], ran: Collection[str]) -> list[LintFinding]:
    suppressions, own = [], []
    for suppression in _suppressions(comments(view)):
        unknown = [name for name in suppression.rules if name not in BY_ID]
        own += [_own(UNKNOWN, suppression.line, f"there is no rule {name!r}") for name in unknown]
        if not suppression.reason:
            own.append(_own(NO_REASON, suppression.line, "write a reason after the bracket"))
        else:
            suppressions.append(suppression)
    kept = []
    for finding in found:
        holds = [s for s in suppressions if finding.line in s.holds_for and finding.rule in s.rules]
        for suppression in holds:
            suppression.used = True
        if not holds:
            kept.append(finding)
    for s in suppressions:
        if not s.used and s.rules and all(name in ran for name in s.rules):
            own.append(_own(UNUSED, s.line, f"nothing to suppress: {', '.join(s.rules)}"))
    return kept + own


def _own(rule: str, line: int, message: str) -> LintFinding:
    return LintFinding(rule=rule, line=line, column=0, message=message, grade=FixGrade.SUGGESTION)


def _suppressions(found: Iterable[Comment]) -> Iterator[_Suppression]:
    for comment in found:
        if match := _MARK.match(comment.text):
            rules = tuple(name.strip() for name in match[1].split(",") if name.strip())
            holds = frozenset({comment.line, comment.line + 1} if comment.alone else {comment.line})
            yield _Suppression(comment.line, holds, rules, match[2].strip())
