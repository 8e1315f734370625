"""A patch's review for other programs: SARIF 2.1.0, JUnit XML, and one HTML page that needs nothing else.

Everything from the patch is escaped: bytes that are no text and control characters stand as escapes.
"""

from collections import Counter
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from localagent import __version__
from localagent.domain.gate import Allow, Finding, Severity
from localagent.domain.review import PatchReview, RuleText
from localagent.report.html import render
from localagent.report.review_report import findings, fingerprints, headline, remedy
from localagent.text.strict_json import dump
from localagent.text.visible_text import one_line

_LEVELS = {Severity.INFO: "note", Severity.LOW: "note", Severity.MEDIUM: "warning", Severity.HIGH: "error"}
_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_PLAIN = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/")


def uri_of(path: str) -> str:
    """A relative path as a URI reference: every byte but the plain ones as %XX."""
    data = path.encode("utf-8", "surrogateescape")
    return "".join(chr(b) if b in _PLAIN else f"%{b:02X}" for b in data)


def sarif(review: PatchReview) -> bytes:
    """The review as a SARIF 2.1.0 log with one run; every rule with its help."""
    rules = sorted(review.rules.values(), key=lambda r: r.id)
    index = {rule.id: n for n, rule in enumerate(rules)}
    results = [
        _result(review, f, rule, index, mark)
        for (_, f, rule), mark in zip(findings(review), fingerprints(review), strict=True)
    ]
    run = {
        "tool": {
            "driver": {
                "name": review.tool,
                "semanticVersion": __version__,
                "rules": [_rule(rule) for rule in rules],
            }
        },
        "invocations": [{"executionSuccessful": review.exit in (0, 1), "exitCode": review.exit}],
        "originalUriBaseIds": {"SRCROOT": {"description": {"text": "the repository's root"}}},
        "columnKind": "unicodeCodePoints",
        "properties": {
            "verdict": review.verdict.value,
            "policy": one_line(review.policy),
            "patch": review.digest,
            **({"answer": one_line(review.title, 4_000)} if review.title else {}),
        },
        "results": results,
    }
    return dump({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2)


def _rule(rule: RuleText) -> dict[str, Any]:
    help_text = f"Why: {rule.why}.\nWhat to do: {rule.remedy}."
    return {
        "id": rule.id,
        "shortDescription": {"text": rule.why},
        "fullDescription": {"text": rule.why},
        "help": {"text": help_text},
        "defaultConfiguration": {"level": _LEVELS[rule.severity]},
        "properties": {"severity": rule.severity.value, "asksPerson": rule.asks_person},
    }


def _result(review: PatchReview, f: Finding, rule: RuleText, index: dict[str, int], mark: str) -> dict[str, Any]:
    result: dict[str, Any] = {
        "ruleId": f.rule,
        "level": _LEVELS[f.severity],
        "message": {"text": f"{one_line(f.message)}. What to do: {remedy(review, f, rule)}"},
        "partialFingerprints": {"localagentGate/v1": mark},
        "locations": [],
    }
    if f.rule in index:
        result["ruleIndex"] = index[f.rule]
    if f.path is not None:
        place: dict[str, Any] = {"artifactLocation": {"uri": uri_of(f.path), "uriBaseId": "SRCROOT"}}
        if f.line:
            place["region"] = {"startLine": f.line}
        result["locations"] = [{"physicalLocation": place}]
    return result


def _xml(text: str) -> str:
    """Text that XML 1.0 can hold."""
    return "".join(c if c in "\n\t" or (c >= " " and c not in "\ufffe\uffff") else "\ufffd" for c in text)


def junit(review: PatchReview) -> bytes:
    """The review as JUnit XML: a test case a gate; one that was not asked is skipped.

    A gate that refuses, or asks a person who did not approve, is a failure; one that could not answer is an error.
    """
    answers = {d.gate: d for d in review.decisions}
    by_gate: dict[str, list[tuple[Finding, RuleText]]] = {}
    for gate, f, rule in findings(review):
        by_gate.setdefault(gate, []).append((f, rule))
    cases: list[str] = []
    counts = Counter[str]()
    for gate in (*review.gates, *review.not_asked):
        found = by_gate.get(gate, [])
        body = ""
        if gate not in answers:
            counts["skipped"] += 1
            why = review.not_asked.get(gate, "stopped at an earlier refusal")
            body = f"<skipped message={quoteattr(_xml(why))}/>"
        elif found:
            text = escape(_xml("\n".join(_finding_line(review, f, rule) for f, rule in found)))
            first, answer = quoteattr(_xml(one_line(found[0][0].message))), answers[gate].answer
            if answer is Allow.ALLOW or review.approval is not None:
                body = f"<system-out>{text}</system-out>"
            else:
                kind = "error" if answer is Allow.ERROR else "failure"
                counts[kind] += 1
                body = f"<{kind} type={quoteattr(found[0][0].rule)} message={first}>{text}</{kind}>"
        cases.append(
            f"  <testcase classname={quoteattr(review.tool.replace(' ', '.'))} name={quoteattr(gate)}>{body}</testcase>"
        )
    head = (
        f'tests="{len(cases)}" failures="{counts["failure"]}" errors="{counts["error"]}" skipped="{counts["skipped"]}"'
    )
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f"<testsuites name={quoteattr(review.tool)} {head}>",
        f" <testsuite name={quoteattr(_xml(headline(review)))} {head}>",
        *cases,
        " </testsuite>",
        "</testsuites>",
    ]
    return ("\n".join(lines) + "\n").encode("utf-8")


def _finding_line(review: PatchReview, f: Finding, rule: RuleText) -> str:
    place = one_line(f.path) if f.path is not None else "the patch"
    line = f":{f.line}" if f.line else ""
    return f"{place}{line}: {f.rule} ({f.severity}): {one_line(f.message)}; what to do: {remedy(review, f, rule)}"


def page(review: PatchReview) -> bytes:
    """The review as one HTML page: no script, no link, nothing from elsewhere."""
    by_file: dict[str, list[tuple[Finding, RuleText, str]]] = {}
    for _, f, rule in findings(review):
        by_file.setdefault(f.path if f.path is not None else "the patch", []).append((f, rule, remedy(review, f, rule)))
    answers = {d.gate: d.answer.value for d in review.decisions}
    return render("review.html", title=headline(review), review=review, by_file=by_file, answers=answers)
