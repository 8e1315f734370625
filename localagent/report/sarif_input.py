"""Other tools' findings: a SARIF 2.1.0 log read strictly, and given back with answers added.

The log is hostile: its size, depth and counts are bounded, every part that is used is checked, and a first location
that leaves the repository refuses the whole log. What is not used is given back as it came. Not promised: that the log
is valid by the whole SARIF schema; what comes out is as valid as what came in.
"""

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from localagent.domain.paths import RepoPath
from localagent.errors import UsageFault
from localagent.report.sarif_checks import MAX_TEXT, Wrong, list_of, number_of, object_of, one_of, shown, text_of
from localagent.report.sarif_location import location_of
from localagent.text.strict_json import dump, load
from localagent.text.visible_text import one_line

MAX_BYTES = 32 << 20
MAX_DEPTH = 40
MAX_RUNS = 100
MAX_RESULTS = 50_000
SHOWN_FAULTS = 20
_KINDS = ("notApplicable", "pass", "fail", "review", "open", "informational")
_STATES = ("new", "unchanged", "updated", "absent")
_STATUSES = ("accepted", "underReview", "rejected")


@dataclass(frozen=True, kw_only=True, slots=True)
class Reported:
    """One result of a log. Lines are 1-based, 0 where the tool names none; `column` is 1-based, 0 where unknown.

    `settled` says why nothing is to be done about it (suppressed, absent, no failure), "" where something is.
    `digest` is the file's SHA-256 (lower-case hex) when it was analysed, "" where the log does not tell.
    """

    run: int
    number: int
    tool: str
    rule: str
    message: str
    path: RepoPath | None
    line: int
    end_line: int
    column: int
    settled: str = ""
    digest: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Replaced:
    """Whole lines that a fix replaces: [first, last], 1-based, by a text without its last line end."""

    first: int
    last: int
    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class ResultUpdate:
    """What is added to a result: its state with a reason, and a fix where one was found."""

    state: str
    why: str
    proof: str = ""
    fix: Replaced | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class SarifLog:
    """A log that was read: the document as it came, and its results in order."""

    document: Mapping[str, Any]
    results: tuple[Reported, ...]


def read_log(data: bytes, roots: Sequence[Path]) -> SarifLog:
    """A log of at most MAX_BYTES. `roots` are where the repository stands, or stood. UsageFault lists every fault."""
    if len(data) > MAX_BYTES:
        raise UsageFault(f"the SARIF log is larger than {MAX_BYTES:,} bytes", remedy="split it by runs")
    try:
        document = load(data)
        _bounded(document)
    except ValueError as fault:
        raise UsageFault(f"not a SARIF log: {fault}", remedy=_AGAIN) from None
    faults: list[str] = []
    results: list[Reported] = []
    try:
        for run, number, value, around in _each(document):
            try:
                results.append(_result(run, number, value, around, roots))
            except Wrong as fault:
                faults.append(f"runs[{run}].results[{number}]: {fault}")
    except Wrong as fault:
        faults.append(str(fault))
    if faults:
        more = [f"and {len(faults) - SHOWN_FAULTS} more"] if len(faults) > SHOWN_FAULTS else []
        raise UsageFault([*faults[:SHOWN_FAULTS], *more], remedy=_AGAIN)
    return SarifLog(document=document, results=tuple(results))


_AGAIN = "make the log anew in this repository; --was-at names the folder that it was made in, where that was another"


def answered(log: SarifLog, answers: Mapping[tuple[int, int], ResultUpdate], tool: Mapping[str, Any]) -> bytes:
    """The log with an answer in each result's properties, and a fix where there is one. All else stays."""
    document: dict[str, Any] = copy.deepcopy(dict(log.document))
    for (run, number), answer in answers.items():
        result = document["runs"][run]["results"][number]
        told = {"state": answer.state, "why": one_line(answer.why)}
        told |= {"proof": answer.proof} if answer.proof else {}
        result["properties"] = {**result.get("properties", {}), "localagent": told}
        if answer.fix is not None:
            place = result["locations"][0]["physicalLocation"]["artifactLocation"]
            replacement = {
                "deletedRegion": {"startLine": answer.fix.first, "endLine": answer.fix.last},
                "insertedContent": {"text": answer.fix.text},
            }
            fix = {
                "description": {"text": f"localagent: {one_line(answer.why)}"},
                "artifactChanges": [{"artifactLocation": place, "replacements": [replacement]}],
            }
            result["fixes"] = [*result.get("fixes", []), fix]
    document["properties"] = {**document.get("properties", {}), "localagent": dict(tool)}
    return dump(document, indent=2)


# ---- bounds and shapes --------------------------------------------------------------------------------------------


def _bounded(value: object) -> None:
    """ValueError for what is too deep, or no number that JSON can say again."""
    level: list[object] = [value]
    for _ in range(MAX_DEPTH):
        below: list[object] = []
        for item in level:
            if isinstance(item, dict):
                below += item.values()
            elif isinstance(item, list):
                below += item
            elif isinstance(item, int | float) and not abs(item) < 1e300:
                raise ValueError("a number is too large")
        if not below:
            return
        level = below
    raise ValueError(f"nested more than {MAX_DEPTH} deep")


def _each(document: object) -> Iterator[tuple[int, int, Mapping[str, Any], Mapping[str, Any]]]:
    """Every result with its place and its run."""
    log = object_of(document, "the log")
    if log.get("version") != "2.1.0":
        raise Wrong(f"version {shown(log.get('version'))} is not SARIF 2.1.0")
    if "properties" in log:
        object_of(log["properties"], "properties")
    runs = list_of(log.get("runs"), "runs", MAX_RUNS)
    count = 0
    for n, value in enumerate(runs):
        run = object_of(value, f"runs[{n}]")
        driver = object_of(object_of(run.get("tool"), f"runs[{n}].tool").get("driver"), f"runs[{n}].tool.driver")
        text_of(driver.get("name"), f"runs[{n}].tool.driver.name")
        results = list_of(run.get("results", []), f"runs[{n}].results", MAX_RESULTS)
        count += len(results)
        if count > MAX_RESULTS:
            raise Wrong(f"more than {MAX_RESULTS:,} results")
        for number, result in enumerate(results):
            yield n, number, object_of(result, f"runs[{n}].results[{number}]"), run


# ---- one result ---------------------------------------------------------------------------------------------------


def _result(
    run: int, number: int, value: Mapping[str, Any], around: Mapping[str, Any], roots: Sequence[Path]
) -> Reported:
    message = object_of(value.get("message"), "message")
    text = message.get("text", message.get("markdown", message.get("id", "")))
    if not isinstance(text, str):
        raise Wrong("message has no text")
    for name in ("properties", "fingerprints", "partialFingerprints"):
        object_of(value.get(name, {}), name)
    list_of(value.get("fixes", []), "fixes", 1_000)
    settled = _settled(value)
    path, line, end_line, column, digest = location_of(value, around, roots)
    return Reported(
        run=run,
        number=number,
        tool=around["tool"]["driver"]["name"],
        rule=_rule(value, around),
        message=text[:MAX_TEXT],
        path=path,
        line=line,
        end_line=end_line,
        column=column,
        settled=settled,
        digest=digest,
    )


def _rule(value: Mapping[str, Any], around: Mapping[str, Any]) -> str:
    """The rule's id, given outright or through the driver's rules; "" where the tool says none."""
    reference = object_of(value.get("rule", {}), "rule")
    if "ruleId" in value:
        return text_of(value["ruleId"], "ruleId")
    if "id" in reference:
        return text_of(reference["id"], "rule.id")
    index = value.get("ruleIndex", reference.get("index", -1))
    if index == -1:
        return ""
    rules = list_of(around["tool"]["driver"].get("rules", []), "tool.driver.rules", MAX_RESULTS)
    position = number_of(index, "ruleIndex", least=0)
    if position >= len(rules):
        raise Wrong(f"ruleIndex {position} points at no rule of the driver")
    return text_of(object_of(rules[position], "tool.driver.rules").get("id"), "the rule's id")


def _settled(value: Mapping[str, Any]) -> str:
    kind = one_of(value.get("kind", "fail"), "kind", _KINDS)
    state = one_of(value.get("baselineState", "new"), "baselineState", _STATES)
    holding = []
    for n, item in enumerate(list_of(value.get("suppressions", []), "suppressions", 1_000)):
        suppression = object_of(item, f"suppressions[{n}]")
        one_of(suppression.get("kind"), f"suppressions[{n}].kind", ("inSource", "external"))
        status = one_of(suppression.get("status", "accepted"), f"suppressions[{n}].status", _STATUSES)
        holding.append(status == "accepted")
    if holding and all(holding):  # SARIF 3.27.23: one that is rejected or under review leaves the result open
        return "suppressed in the log"
    if kind not in ("fail", "review", "open"):
        return f"the log says {kind}, not fail"
    return "the log says that it is gone" if state == "absent" else ""
