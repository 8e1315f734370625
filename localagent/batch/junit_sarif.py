"""The morning report for other programs: JUnit XML and SARIF 2.1.0. Everything from a repository is escaped."""

from typing import Any
from xml.sax.saxutils import escape, quoteattr

from localagent import __version__
from localagent.batch.batch_report import headline
from localagent.batch.fleet import WorkKind
from localagent.batch.task_result import SETTLED, RepositoryState
from localagent.report.review_formats import uri_of
from localagent.text.strict_json import dump
from localagent.text.visible_text import one_line

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_ERRORS = {RepositoryState.FAULT, RepositoryState.CANNOT_ENFORCE, RepositoryState.OUT_OF_BUDGET}
_RULES = {
    "failing-test": "a test fails on the tree as it stands",
    "repository-needs-person": "a repository could not be settled without a person",
}
_TEXT = 2_000


def junit(report: dict[str, Any]) -> bytes:
    """A suite a repository, a case a kind of work."""
    suites, totals = [], [0, 0, 0, 0]
    for row in report["repositories"]:
        cases = [_case(row, step) for step in row["steps"]] or [_case(row, {**row, "work": "batch"})]
        counts = [len(cases), *(sum(f"<{kind} " in case for case in cases) for kind in ("failure", "error", "skipped"))]
        totals = [a + b for a, b in zip(totals, counts, strict=True)]
        suites.append(f' <testsuite name={quoteattr(_xml(row["name"]))} time="{row["seconds"]:.3f}" {_head(counts)}>')
        suites += [*cases, " </testsuite>"]
    name = quoteattr(_xml(headline(report)))
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', f"<testsuites name={name} {_head(totals)}>", *suites]
    return ("\n".join([*lines, "</testsuites>"]) + "\n").encode("utf-8")


def _head(counts: list[int]) -> str:
    names = ("tests", "failures", "errors", "skipped")
    return " ".join(f'{name}="{count}"' for name, count in zip(names, counts, strict=True))


def _case(row: dict[str, Any], step: dict[str, Any]) -> str:
    state = RepositoryState(step["state"])
    body = ""
    if state not in SETTLED:
        kind = "skipped" if state is RepositoryState.NOT_REACHED else "error" if state in _ERRORS else "failure"
        told = _xml(one_line(step["reason"], _TEXT))
        rest = "" if kind == "skipped" else escape(_xml(one_line(row["what_to_do"], _TEXT)))
        typed = "" if kind == "skipped" else f" type={quoteattr(state.value)}"
        body = f"<{kind} message={quoteattr(told)}{typed}>{rest}</{kind}>"
    name = quoteattr(_xml(row["name"]))
    return f'  <testcase classname={name} name={quoteattr(step["work"])} time="{step["seconds"]:.3f}">{body}</testcase>'


def _xml(text: str) -> str:
    """Text that XML 1.0 can hold."""
    shown = one_line(text, _TEXT)
    return "".join(c if c >= " " and c not in "\ufffe\uffff" else "\ufffd" for c in shown)


def sarif(report: dict[str, Any]) -> bytes:
    """One run: failing tests and known mistakes at their places, and each repository that needs a person."""
    results = [result for row in report["repositories"] for result in _results(row)]
    rules = sorted({result["ruleId"] for result in results} | set(_RULES))
    index = {rule: n for n, rule in enumerate(rules)}
    run = {
        "tool": {
            "driver": {
                "name": "localagent batch",
                "semanticVersion": __version__,
                "rules": [{"id": rule, "shortDescription": {"text": _RULES.get(rule, _known(rule))}} for rule in rules],
            }
        },
        "automationDetails": {"id": f"{report['fleet']}/{report['run']}"},
        "invocations": [{"executionSuccessful": report["complete"], "startTimeUtc": _utc(report["began"])}],
        "originalUriBaseIds": {
            _base(row): {"description": {"text": f"the root of {row['name']}"}} for row in report["repositories"]
        },
        "columnKind": "unicodeCodePoints",
        "properties": {"digest": report["digest"], "complete": report["complete"]},
        "results": [{**result, "ruleIndex": index[result["ruleId"]]} for result in results],
    }
    return dump({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=1)


def _known(rule: str) -> str:
    if not rule.startswith("hook/"):
        return f"a finding of another tool: {rule}"
    return f"a known mistake: `localagent hook check --rules` describes {rule}"


def _utc(began: str) -> str:
    return began.replace("+00:00", "Z")


def _base(row: dict[str, Any]) -> str:
    return f"REPOSITORY-{row['name']}"


def _results(row: dict[str, Any]) -> list[dict[str, Any]]:
    found = []
    for step in row["steps"]:
        fixed = step["state"] in SETTLED and bool(step["patch"])
        if step["work"] == WorkKind.FAILING_TESTS:
            for failing in step["failing"]:
                place = failing["where"][-1] if failing["where"] else {}
                said = f"{failing['id']} fails: {failing['exception']}: {failing['message']}"
                found.append(_result(row, "failing-test", "error", said, place, fixed=fixed))
        for one in step["repaired"]:
            found.append(_result(row, f"hook/{one['rule']}", "warning", one["message"], one, fixed=True))
        for one in step["findings"]:
            said = f"{one['message']} ({one['state']}: {one['why']})"
            rule = one_line(f"{one['tool']}/{one['rule']}", 200)
            place = one if one["path"] else {}
            if not one["settled"]:
                found.append(_result(row, rule, "warning", said, place, fixed=one["state"] == "fixed"))
    if RepositoryState(row["state"]) not in SETTLED and row["state"] != RepositoryState.NOT_REACHED:
        said = f"{row['state']}: {row['reason']}; what to do: {row['what_to_do']}"
        found.append(_result(row, "repository-needs-person", "error", said, {}, fixed=False))
    return found


def _result(
    row: dict[str, Any], rule: str, level: str, said: str, place: dict[str, Any], *, fixed: bool
) -> dict[str, Any]:
    locations = []
    if place:
        artifact = {"uri": uri_of(str(place["path"])), "uriBaseId": _base(row)}
        region = {"region": {"startLine": int(place["line"])}} if int(place["line"]) > 0 else {}
        locations = [{"physicalLocation": {"artifactLocation": artifact, **region}}]
    return {
        "ruleId": rule,
        "level": level,
        "message": {"text": one_line(said, _TEXT)},
        "locations": locations,
        "properties": {"repository": row["name"], "patchOffered": fixed},
    }
