"""A report as text for a person: what failed, where, the patch, what was tried, what the answer rests on.

Takes the JSON of a report and nothing else, so an old report reads as it did. Control characters are the renderer's
business: nothing here is escaped.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from localagent.report.confidence_text import confidence_line
from localagent.report.guard_text import guard_line
from localagent.report.strength_text import assessment_lines
from localagent.text.visible_text import counted

_SHOWN = 10
_NONE_TURNED = "accepted: the patch passes every check"  # what rules repair turns no test
_ANALYSED = "accepted: the script of the analysis, run again from nothing, came to the same"
_BY_CHECKS = "accepted: the patch makes every requested check pass and breaks none"
_HEADLINES = {
    "accepted": "accepted: the patch makes every failing test pass and breaks none",
    "nothing-to-fix": "nothing to fix",
    "progress": "progress: the patch makes some failing tests pass and breaks none; others still fail",
    "gave-up": "gave up: no patch was accepted",
    "no-tests": "no tests were found",
    "untrusted-tests": "the tests are not reliable enough to judge a patch",
    "all-denied": "the gates refused every candidate",
    "ambiguous": "ambiguous: several patches pass, and the tests do not tell which is right",
    "low-confidence": "low confidence: a patch passes every check, but may not be right",
    "needs-person": "needs a person",
    "interrupted": "interrupted; no file was changed",
    "cannot-enforce": "the jail or a gate cannot be enforced here: nothing ran",
    "fault": "internal error",
}


def render_text(report: Mapping[str, Any]) -> str:
    """The whole report, one section after the other; sections with nothing to say are left out."""
    sections: list[tuple[str, Callable[[Mapping[str, Any]], Iterator[str]]]] = [
        ("What failed", _failing),
        ("What was suspected", _suspected),
        ("Diagnosis", _diagnosis),
        ("Patch", _patch),
        ("Confidence", _confidence),
        ("Proposals to choose from", _proposals),
        ("Where they differ", _differ),
        ("What was tried", _tried),
        ("Nearest misses", _near_misses),
        ("Evidence", _rests_on),
        ("Strength of the evidence", _strength),
        ("What to look at", _for_a_person),
        ("Text that addresses a language model", _spoken),
        ("Warnings", _warnings),
    ]
    lines = [_one(line) for line in _head(report)]
    for title, section in sections:
        body = list(section(report))
        if body:
            lines += ["", title, *(f"  {_one(line)}" for line in body)]
    return "\n".join(lines)


def _one(line: str) -> str:
    """A line that stays one: names of files and tests may hold line ends."""
    return line.replace("\n", "\\n")


def _head(report: Mapping[str, Any]) -> Iterator[str]:
    outcome = str(report["outcome"])
    headline = _HEADLINES.get(outcome, outcome)
    if outcome == "accepted" and _analysis(report) is not None:
        headline = _ANALYSED
    elif outcome == "accepted" and not report["fail_to_pass"]:
        headline = _NONE_TURNED
    elif outcome == "accepted" and all(name.startswith("check:") for name in report["fail_to_pass"]):
        headline = _BY_CHECKS
    yield f"Task {report['task']}: {headline} (exit {report['exit']})"
    if report["reason"]:
        yield f"Reason: {report['reason']}"
    if report.get("remedy"):  # reports of older tasks say none
        yield f"What to do: {report['remedy']}"
    yield f"Repository: {report['repo']}"
    if report["text"]:
        yield f"Asked: {report['text']}"


def _capped(items: list[str], noun: str) -> Iterator[str]:
    yield from items[:_SHOWN]
    if len(items) > _SHOWN:
        yield f"... and {len(items) - _SHOWN} more {noun}"


def _location(where: Mapping[str, Any]) -> str:
    last = where.get("end_line", where["line"])
    lines = str(where["line"]) if last == where["line"] else f"{where['line']}-{last}"
    return f"{where['path']}:{lines}"


def _failing(report: Mapping[str, Any]) -> Iterator[str]:
    lines = []
    for test in report["failing"]:
        message = next(iter(test["message"].splitlines()), "")
        symptom = ": ".join(part for part in (test["exception"], message) if part)
        at = f" at {_location(test['where'][-1])}" if test["where"] else ""
        lines.append(f"{test['id']}{at}" + (f" - {symptom}" if symptom else ""))
    yield from _capped(lines, "failing")
    if report["flaky"]:
        yield f"flaky, ignored: {', '.join(report['flaky'][:_SHOWN])}"


def _suspected(report: Mapping[str, Any]) -> Iterator[str]:
    for place in report["localization"]:
        why = f"  ({place['why']})" if place["why"] else ""
        yield f"{place['score']:.3f}  {_location(place)}{why}"


def _diagnosis(report: Mapping[str, Any]) -> Iterator[str]:
    diagnosis = report["diagnosis"]
    if diagnosis is None:
        return
    for label, key in (("Kind", "kind"), ("Symptom", "symptom"), ("Suspected cause", "cause"), ("Smallest fix", "fix")):
        if diagnosis[key]:
            yield f"{label}: {diagnosis[key]}"
    if diagnosis["lines"]:
        yield f"Lines: {', '.join(diagnosis['lines'])}"
    if diagnosis["may_affect"]:
        yield f"May affect: {', '.join(diagnosis['may_affect'])}"


def _patch(report: Mapping[str, Any]) -> Iterator[str]:
    for part in report.get("provenance", ()):
        if part["origin"] == "model":
            yield f"written by the model {part['model']}, not enumerated: {part['edit']}"
    if report["patch"]:
        yield from report["patch"].rstrip("\n").split("\n")


def _confidence(report: Mapping[str, Any]) -> Iterator[str]:
    yield from confidence_lines(report.get("confidence"))  # reports of version 1 have none


def confidence_lines(told: Mapping[str, Any] | None) -> Iterator[str]:
    """The confidence of a patch with what speaks for and against it; nothing where it is not known."""
    if told is None:
        return
    yield confidence_line(told)
    yield from (f"  for: {text}" for text in told["for"])
    yield from (f"  against: {text}" for text in told["against"])


def _proposals(report: Mapping[str, Any]) -> Iterator[str]:
    proposals = report.get("proposals", ())
    for proposal in proposals:
        yield f"{proposal['number']}. {'; '.join(proposal['edits'])}"
        yield from confidence_lines(proposal.get("confidence"))
        if still := proposal.get("still_failing"):  # reports of older tasks say none
            yield f"fixes {', '.join(proposal['fail_to_pass'][:_SHOWN])}"
            yield f"still failing with it: {', '.join(still[:_SHOWN])}"
        yield from proposal["patch"].rstrip("\n").split("\n")
        if guard := proposal.get("guard"):
            yield guard_line(guard)
    if proposals:
        numbers = "|".join(str(p["number"]) for p in proposals)
        passes = "It breaks nothing." if report["outcome"] == "progress" else "Each passes every check."
        yield f"{passes} To apply one: localagent apply {report['task']} --choose {numbers}"


def _differ(report: Mapping[str, Any]) -> Iterator[str]:
    ambiguity = report.get("ambiguity")
    if ambiguity is not None:
        yield ambiguity["call"]
        yield from (f"  proposal {number}: {answer}" for number, answer in ambiguity["answers"].items())


def _tried(report: Mapping[str, Any]) -> Iterator[str]:
    denied = report["candidates_denied"]
    yield (
        f"{report['candidates_enumerated']} candidates enumerated, {_written(report)}{sum(denied.values())} denied, "
        f"{report['candidates_verified']} run in the jail, {report['plausible']} plausible, "
        f"{counted(report['rounds'], 'round')}"
    )
    if report["rank_of_first_plausible"] is not None:
        yield f"First plausible candidate: number {report['rank_of_first_plausible']}"
    yield from (f"denied by {rule}: {count}" for rule, count in sorted(denied.items(), key=lambda kv: -kv[1]))
    model = report["model"]
    if model is None:
        yield "Model: none"
    else:
        yield f"Model: {model['name']} ({model['digest'] or 'no digest'}), {report['model_tokens']} tokens"
    if report["seconds"]:
        yield "Seconds: " + ", ".join(f"{stage} {spent:.2f}" for stage, spent in report["seconds"].items())
    for limit, count in report["limits_hit"].items():
        yield f"limit hit: {limit}, {count} times"


def _written(report: Mapping[str, Any]) -> str:
    count = report.get("candidates_written", 0)
    return f"{count} written by the model, " if count else ""


def _near_misses(report: Mapping[str, Any]) -> Iterator[str]:
    if report["outcome"] == "accepted":
        return
    for miss in report["near_misses"][:_SHOWN]:
        yield f"candidate {miss['number']}: {'; '.join(miss['edits'])}"
        yield f"  fixed {len(miss['turned'])}: {', '.join(miss['turned'][:3])}"
        if miss["broken"]:
            yield f"  broke {len(miss['broken'])}: {', '.join(miss['broken'][:3])}"


def _analysis(report: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """What a data analysis of `do` came to, None for any other task."""
    agent = report.get("agent") or {}
    found: Mapping[str, Any] | None = agent.get("analysis")
    return found


def _rests_on(report: Mapping[str, Any]) -> Iterator[str]:
    if report["outcome"] != "accepted":
        return
    if (analysis := _analysis(report)) is not None:
        yield from (f"read: {file['name']}, {file['digest']}" for file in analysis["inputs"])
        yield from (f"wrote: {file['name']}, {file['digest']}" for file in analysis["outputs"])
        yield f"run in the jail {report['jail']['backend']} (level {report['jail']['level']})"
        yield f"Python {analysis['interpreter']['python']}; results in {analysis['results']}"
        yield "run twice is not right: whether the script answers the question is for a person to read"
        return
    yield from _capped([f"now passes: {name}" for name in report["fail_to_pass"]], "that now pass")
    yield f"{len(report['pass_to_pass'])} tests that passed before still pass"
    if guard := report.get("guard"):  # reports of older tasks have none
        yield guard_line(guard)
    yield from (f"{check}: {answer}" for check, answer in report["checks"].items())
    jail = report["jail"]
    if jail["level"]:
        yield f"run in the jail {jail['backend']} (level {jail['level']})"
        yield f"Python {report['python']}, pytest {report['pytest']}"
    else:
        yield "nothing was run: no test covers it"
    if signed := report.get("attestation"):
        yield f"attested: {signed['file']}, key {signed['key'][:16]} (localagent attest verify)"
    if report["plausible"] > 1:
        yield f"{report['plausible']} plausible candidates: the tests allow more than one repair"
    if jail["level"]:
        yield "plausible is not correct: only the tests above were checked"


def _strength(report: Mapping[str, Any]) -> Iterator[str]:
    told = report.get("assessment")
    if told is not None:
        yield from assessment_lines(told, most=_SHOWN)


def _for_a_person(report: Mapping[str, Any]) -> Iterator[str]:
    if report["outcome"] in ("accepted", "nothing-to-fix"):
        return
    seen = set()
    for place in report["localization"][:3]:
        seen.add(_location(place))
        yield f"{_location(place)}: most suspicious statement by the failing tests"
    for test in report["failing"][:3]:
        if test["where"] and _location(test["where"][-1]) not in seen:
            seen.add(_location(test["where"][-1]))
            yield f"{_location(test['where'][-1])}: where {test['id']} fails"
    for miss in report["near_misses"][:1]:
        yield f"candidate {miss['number']}: the nearest miss, as a starting point ({'; '.join(miss['edits'])})"
    if report["candidates_enumerated"] and report["candidates_verified"] >= report["budget"]["max_candidates"]:
        yield "the budget of candidates ran out: --max-candidates raises it"


def _spoken(report: Mapping[str, Any]) -> Iterator[str]:
    for found in report.get("findings", ()):
        where = f"{found['path']}:{found['line']}" if found["test"] is None else f"the message of {found['test']}"
        yield f"{where}: {found['text']!a} ({found['rule']})"


def _warnings(report: Mapping[str, Any]) -> Iterator[str]:
    yield from report["warnings"]
