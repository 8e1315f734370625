"""A patch's review for other programs: SARIF 2.1.0, JUnit XML, and one HTML page that needs nothing else.

Everything from the patch is escaped: bytes that are no text and control characters stand as escapes.
"""

import html
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from localagent import __version__
from localagent.domain.gate import Allow, Finding, Severity
from localagent.domain.review import PatchReview, RuleText
from localagent.report.review_report import findings, fingerprints, headline, remedy
from localagent.text.strict_json import dump
from localagent.text.visible_text import one_line

_LEVELS = {Severity.INFO: "note", Severity.LOW: "note", Severity.MEDIUM: "warning", Severity.HIGH: "error"}
_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_PLAIN = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/")
_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:60rem;padding:0 1rem;color:#1c1c1c}"
    "h1{font-size:1.3rem}h2{font-size:1rem;font-family:monospace;margin:2rem 0 .5rem;overflow-wrap:anywhere}"
    "table{border-collapse:collapse;width:100%}td,th{border-top:1px solid #ccc;padding:.4rem;text-align:left;"
    "vertical-align:top;overflow-wrap:anywhere}.high{color:#a00000}.medium{color:#7a4b00}.why{color:#555}"
    ".refused,.needs-person,.allowed{border-left:.4rem solid #a00000;padding-left:1rem}"
    ".needs-person{border-color:#7a4b00}.allowed{border-color:#00601a}"
)
_CSP = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


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
    """The review as JUnit XML: a test case a gate; one that was not asked is skipped."""
    answers = {d.gate: d for d in review.decisions}
    by_gate: dict[str, list[tuple[Finding, RuleText]]] = {}
    for gate, f, rule in findings(review):
        by_gate.setdefault(gate, []).append((f, rule))
    cases: list[str] = []
    failures = skipped = 0
    for gate in (*review.gates, *review.not_asked):
        found = by_gate.get(gate, [])
        body = ""
        if gate not in answers:
            skipped += 1
            why = review.not_asked.get(gate, "stopped at an earlier refusal")
            body = f"<skipped message={quoteattr(_xml(why))}/>"
        elif found and answers[gate].answer is not Allow.ALLOW:
            failures += 1
            text = "\n".join(_said(review, f, rule) for f, rule in found)
            first = _xml(one_line(found[0][0].message))
            body = (
                f"<failure type={quoteattr(found[0][0].rule)} message={quoteattr(first)}>{escape(_xml(text))}</failure>"
            )
        cases.append(
            f"  <testcase classname={quoteattr(review.tool.replace(' ', '.'))} name={quoteattr(gate)}>{body}</testcase>"
        )
    head = f'tests="{len(cases)}" failures="{failures}" errors="0" skipped="{skipped}"'
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f"<testsuites name={quoteattr(review.tool)} {head}>",
        f" <testsuite name={quoteattr(_xml(headline(review)))} {head}>",
        *cases,
        " </testsuite>",
        "</testsuites>",
    ]
    return ("\n".join(lines) + "\n").encode("utf-8")


def _said(review: PatchReview, f: Finding, rule: RuleText) -> str:
    place = one_line(f.path) if f.path is not None else "the patch"
    line = f":{f.line}" if f.line else ""
    return f"{place}{line}: {f.rule} ({f.severity}): {one_line(f.message)}; what to do: {remedy(review, f, rule)}"


def page(review: PatchReview) -> bytes:
    """The review as one HTML page: no script, no link, nothing from elsewhere."""

    def shown(text: str) -> str:
        return html.escape(one_line(text), quote=True)

    by_file: dict[str, list[tuple[Finding, RuleText]]] = {}
    for _, f, rule in findings(review):
        by_file.setdefault(f.path if f.path is not None else "the patch", []).append((f, rule))
    out = [
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{_CSP}">',
        '<meta name="referrer" content="no-referrer">',
        f"<title>{shown(headline(review))}</title>\n<style>{_STYLE}</style>\n</head>\n<body>",
        f'<div class="{review.verdict.value}"><h1>{shown(headline(review))}</h1>',
        f'<p class="why">{shown(review.digest)}</p></div>',
    ]
    for name, group in by_file.items():
        out.append(f"<h2>{shown(name)}</h2>\n<table><tr><th>line</th><th>finding</th><th>what to do</th></tr>")
        for f, rule in group:
            person = ", needs a person" if rule.asks_person else ""
            out.append(
                f'<tr><td>{f.line or ""}</td><td>{shown(f.message)}<br><span class="{f.severity.value}">'
                f'{shown(f.rule)}, {f.severity.value}{person}</span><br><span class="why">{shown(rule.why)}</span></td>'
                f"<td>{shown(remedy(review, f, rule))}</td></tr>"
            )
        out.append("</table>")
    for section in review.sections:
        head = "".join(f"<th>{shown(text)}</th>" for text in section.head)
        out.append(f"<h2>{shown(section.title)}</h2>\n<table><tr>{head}</tr>")
        out += ["<tr>" + "".join(f"<td>{shown(text)}</td>" for text in row) + "</tr>" for row in section.rows]
        out.append("</table>")
    answers = {d.gate: d.answer.value for d in review.decisions}
    out.append("<h2>gates</h2>\n<table>")
    out += [f"<tr><td>{shown(g)}</td><td>{shown(answers.get(g, 'not run'))}</td></tr>" for g in review.gates]
    out += [f"<tr><td>{shown(g)}</td><td>not asked: {shown(why)}</td></tr>" for g, why in review.not_asked.items()]
    out.append("</table>\n</body>\n</html>\n")
    return "\n".join(out).encode("utf-8")
