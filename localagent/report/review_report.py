"""A patch's review as JSON (`localagent/gate/1`, described in docs/gate.md) and as text for a person. Both bounded."""

import hashlib
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from localagent.domain.gate import Allow, Finding, Severity
from localagent.domain.review import PatchApproval, PatchReview, PatchVerdict, RuleText
from localagent.text.visible_text import one_line

SCHEMA = "localagent/gate/1"
MOST_FINDINGS = 1_000
_MOST_FILES = 2_000
_NUMBERS = re.compile(r"\d+")
_SAID = {
    PatchVerdict.ALLOWED: "allowed",
    PatchVerdict.NEEDS_PERSON: "needs a person",
    PatchVerdict.REFUSED: "refused",
}


def findings(review: PatchReview) -> list[tuple[str, Finding, RuleText]]:
    """(gate, finding, its rule) of every finding, the worst first; at most MOST_FINDINGS."""
    order = list(Severity)
    found = [(d.gate, f, review.rules.get(f.rule) or _unknown(f)) for d in review.decisions for f in d.findings]
    found.sort(key=lambda item: (item[2].asks_person, -order.index(item[1].severity), item[1].path or "", item[1].line))
    return found[:MOST_FINDINGS]


def _unknown(finding: Finding) -> RuleText:
    return RuleText(
        id=finding.rule, severity=finding.severity, why=finding.message, remedy="see the message", asks_person=False
    )


def fingerprints(review: PatchReview) -> Iterator[str]:
    """One a finding, in the order of `findings`: the same as long as rule, file and message are, whatever the line."""
    seen: Counter[str] = Counter()
    for _, f, _ in findings(review):
        text = "\0".join((f.rule, f.path or "", _NUMBERS.sub("#", f.message[:1_000])))
        seen[text] += 1
        yield hashlib.sha256(f"{text}\0{seen[text]}".encode("utf-8", "surrogatepass")).hexdigest()[:32]


def review_json(review: PatchReview) -> dict[str, Any]:
    """The review as JSON types."""
    total = sum(len(d.findings) for d in review.decisions)
    asked = {d.gate: d.answer.value for d in review.decisions}
    return {
        "schema": SCHEMA,
        "verdict": review.verdict.value,
        "exit": review.exit,
        "policy": review.policy,
        "patch": review.digest,
        "change": review.change,
        "approval": None if review.approval is None else _approval(review.approval),
        "patch_line": review.patch_line,
        "files": [
            {"path": f.path, "source": f.source, "kind": f.kind, "moved_lines": list(f.moved_lines)}
            for f in review.files[:_MOST_FILES]
        ],
        "gates": [{"gate": gate, "answer": asked.get(gate, "not-reached")} for gate in review.gates],
        "not_asked": review.not_asked,
        "findings": [
            {
                "rule": f.rule,
                "gate": gate,
                "severity": f.severity.value,
                "path": f.path,
                "line": f.line,
                "message": one_line(f.message),
                "why": rule.why,
                "remedy": remedy(review, f, rule),
                "asks_person": rule.asks_person,
                "fingerprint": mark,
            }
            for (gate, f, rule), mark in zip(findings(review), fingerprints(review), strict=True)
        ],
        "findings_left_out": max(0, total - MOST_FINDINGS),
    }


def _approval(approval: PatchApproval) -> dict[str, Any]:
    return {"who": approval.who, "at": approval.at, "reason": one_line(approval.reason), "policy": approval.policy}


def remedy(review: PatchReview, finding: Finding, rule: RuleText) -> str:
    """What to do: the one that the reader of the patch named, else the rule's."""
    return review.remedy if review.remedy and finding.rule.startswith("patch-") else rule.remedy


def review_text(review: PatchReview) -> str:
    """The review for a person: the answer, then findings by file."""
    lines = [headline(review)]
    by_file: dict[str, list[tuple[Finding, RuleText]]] = {}
    for _, f, rule in findings(review):
        by_file.setdefault(one_line(f.path) if f.path is not None else "the patch", []).append((f, rule))
    for name, group in by_file.items():
        lines += ["", name]
        told: set[str] = set()
        for f, rule in group:
            place = f"line {f.line}: " if f.line else ""
            person = ", needs a person" if rule.asks_person else ""
            lines.append(f"  {place}{one_line(f.message)}  [{f.rule}, {f.severity}{person}]")
            if f.rule not in told:
                told.add(f.rule)
                if rule.why not in f.message:
                    lines.append(f"      why: {rule.why}")
                lines.append(f"      what to do: {remedy(review, f, rule)}")
    lines += list(_remarks(review))
    return "\n".join(lines)


def headline(review: PatchReview) -> str:
    """The answer in one line."""
    if review.title:
        return one_line(review.title)
    found = sum(len(d.findings) for d in review.decisions)
    count = f", {found} finding{'s' if found != 1 else ''}" if found else ""
    files = f"{len(review.files)} file{'s' if len(review.files) != 1 else ''}" if review.files else "not read"
    approval = review.approval
    who = f", approved by {one_line(approval.who)} at {approval.at}" if approval is not None else ""
    return f"Patch {_SAID[review.verdict]}{who} under policy {one_line(review.policy)}: {files}{count}"


def _remarks(review: PatchReview) -> Iterator[str]:
    total = sum(len(d.findings) for d in review.decisions)
    if total > MOST_FINDINGS:
        yield f"\n{total - MOST_FINDINGS} more findings are not shown"
    moved = [f for f in review.files if f.moved_lines]
    for f in moved[:20]:
        hunks = ", ".join(f"{n:+d}" for n in f.moved_lines[:10])
        yield f"\n{one_line(f.path)}: hunks were applied at an offset of {hunks} lines"
    asked = {d.gate for d in review.decisions}
    left = [gate for gate in review.gates if gate not in asked]
    if left:
        why = (
            "the patch could not be read"
            if review.patch_line or not review.files
            else "the review stopped at the first refusal"
        )
        more = "" if not review.files else "; use --all to run them too"
        yield f"\nnot run, because {why}: {', '.join(left)}{more}"
    errors = [d.gate for d in review.decisions if d.answer is Allow.ERROR]
    if errors:
        yield f"\ncould not answer: {', '.join(errors)}"
