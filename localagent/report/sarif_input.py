"""Other tools' findings: a SARIF 2.1.0 log read strictly, and given back with answers added.

The log is hostile: its size, depth and counts are bounded and every part that is used is checked. A result that cannot
be read, or whose first location leaves the repository, is listed with the reason; the others are read. What is not used
is given back as it came. Not promised: that the log is valid by the whole SARIF schema; what comes out is as valid as
what came in.
"""

import codecs
import copy
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from localagent.domain.paths import RepoPath
from localagent.errors import UsageFault
from localagent.text.strict_json import dump, load
from localagent.text.visible_text import one_line

# Parts of a hostile JSON document, each checked where it is taken. Not promised: that unused parts are sound.

MAX_LINE = 10_000_000
MAX_TEXT = 4_096


class Wrong(ValueError):  # noqa: N818 - named for what it says
    """One fault of a log."""


def member_of(value: Mapping[str, Any], name: str, default: object) -> object:
    """A member of an object; the default where it is absent or null, which mean the same to SARIF's writers."""
    found = value.get(name)
    return default if found is None else found


def object_of(value: object, name: str) -> Mapping[str, Any]:
    """An object. Wrong for anything else."""
    if not isinstance(value, dict):
        raise Wrong(f"{name} is no object")
    return value


def list_of(value: object, name: str, most: int) -> list[Any]:
    """An array of at most `most` elements."""
    if not isinstance(value, list):
        raise Wrong(f"{name} is no array")
    if len(value) > most:
        raise Wrong(f"{name} holds more than {most:,}")
    return value


def text_of(value: object, name: str) -> str:
    """A text that is not empty, of at most MAX_TEXT characters."""
    if not isinstance(value, str) or not value:
        raise Wrong(f"{name} is no text")
    if len(value) > MAX_TEXT:
        raise Wrong(f"{name} is longer than {MAX_TEXT:,} characters")
    return value


def number_of(value: object, name: str, *, least: int = 1) -> int:
    """A whole number from `least` to MAX_LINE."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= MAX_LINE:
        raise Wrong(f"{name} is no number from {least} to {MAX_LINE:,}")
    return value


def one_of(value: object, name: str, words: Sequence[str]) -> str:
    """One of some words."""
    if value not in words:
        raise Wrong(f"{name} is {shown(value)}, not one of {', '.join(words)}")
    return str(value)


def shown(value: object) -> str:
    """A value as a message may show it."""
    return one_line(repr(value)[:80])


# Where a SARIF result lies: a file of the repository, by a URI that may not leave it, and lines.
#
# Nothing is looked at: links and missing files are the reader's. Not promised: code flows and related locations, which
# are given back as they came.

MAX_ARTIFACTS = 50_000
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_PERCENT = re.compile(rb"%([0-9A-Fa-f]{2})")
_DIGEST = re.compile(r"[0-9A-Fa-f]{64}")


def location_of(
    value: Mapping[str, Any], around: Mapping[str, Any], roots: Sequence[Path]
) -> tuple[RepoPath | None, int, int, int, str]:
    """Path, lines, column and digest of the first location; no path where the tool names none."""
    locations = list_of(member_of(value, "locations", []), "locations", 10_000)
    first = object_of(locations[0], "locations[0]") if locations else {}
    physical = object_of(member_of(first, "physicalLocation", {}), "physicalLocation")
    artifact = object_of(member_of(physical, "artifactLocation", {}), "artifactLocation")
    if not artifact:  # a logical location or an address of memory
        return None, 0, 0, 0, ""
    listed: Mapping[str, Any] = {}
    index = member_of(artifact, "index", -1)
    if index != -1:
        artifacts = list_of(member_of(around, "artifacts", []), "artifacts", MAX_ARTIFACTS)
        listed = _element(artifacts, index, "artifacts")
    named = member_of(artifact, "uri", None) is not None
    location = artifact if named else object_of(member_of(listed, "location", {}), "artifacts.location")
    path = path_of(text_of(location.get("uri"), "uri"), _base(location, around), roots)
    digest = member_of(object_of(member_of(listed, "hashes", {}), "hashes"), "sha-256", "")
    if not isinstance(digest, str) or (digest and not _DIGEST.fullmatch(digest)):
        raise Wrong("hashes: sha-256 is no digest")
    region = object_of(member_of(physical, "region", {}), "region")
    line = number_of(member_of(region, "startLine", 0), "startLine", least=0)
    end = number_of(member_of(region, "endLine", line), "endLine", least=0)
    if end < line:
        raise Wrong("the region ends before it begins")
    return path, line, end, number_of(member_of(region, "startColumn", 0), "startColumn", least=0), digest.lower()


def _base(location: Mapping[str, Any], around: Mapping[str, Any]) -> str:
    """The URI that a location is relative to; "" for the repository's root."""
    bases = object_of(member_of(around, "originalUriBaseIds", {}), "originalUriBaseIds")
    name, uri = location.get("uriBaseId"), ""
    for _ in range(8):
        if name is None:
            return uri
        base = object_of(member_of(bases, text_of(name, "uriBaseId"), {}), f"originalUriBaseIds.{shown(name)}")
        own = member_of(base, "uri", "")
        if not isinstance(own, str) or len(own) > MAX_TEXT or (own and not own.endswith("/")):
            raise Wrong(f"the base {shown(name)} is no URI of a folder")
        uri = own + uri
        if _SCHEME.match(own):
            return uri
        name = base.get("uriBaseId")
    raise Wrong("uriBaseId: bases refer to each other without end")


def path_of(uri: str, base: str, roots: Sequence[Path]) -> RepoPath:
    """The file of the repository that a URI names. Anything else is refused, and never looked at."""
    whole = uri if _SCHEME.match(uri) or uri.startswith("/") else base + uri
    try:
        data = whole.encode()
    except UnicodeEncodeError:
        raise Wrong(f"the URI {shown(whole)} is no text") from None
    if any(c in whole for c in "?#\\") or b"%" in _PERCENT.sub(b"", data):
        raise Wrong(f"the URI {shown(whole)} is not one of a file")
    decoded = _PERCENT.sub(lambda m: bytes((int(m[1], 16),)), data)
    name = decoded.decode("utf-8", "surrogateescape")
    scheme = _SCHEME.match(whole)
    if scheme:
        if scheme[0].lower() != "file:":
            raise Wrong(f"the URI {shown(whole)} is not one of a file")
        name = name[len("file:") :]
        name = re.sub(r"\A//(localhost)?(?=/)", "", name)
    if ".." in name.split("/"):
        raise Wrong(f"the URI {shown(whole)} leaves the repository")
    if name.startswith("/"):
        plain = os.path.normpath(name) if not name.startswith("//") else name
        inside = [plain[len(str(r)) + 1 :] for r in roots if f"{plain}/".startswith(str(r).rstrip("/") + "/")]
        if not inside:
            raise Wrong(f"the URI {shown(whole)} leaves the repository ({_ELSEWHERE})")
        name = inside[0]
    try:
        return RepoPath("/".join(part for part in name.split("/") if part != "."))
    except UsageFault:
        raise Wrong(f"the URI {shown(whole)} names no file of the repository") from None


_ELSEWHERE = "--was-at names the folder that the log was made in, where that was another"
MAX_BYTES = 32 << 20
MAX_DEPTH = 40
MAX_RUNS = 100
MAX_RESULTS = 50_000
_KINDS = ("notApplicable", "pass", "fail", "review", "open", "informational")
_STATES = ("new", "unchanged", "updated", "absent")
_STATUSES = ("accepted", "underReview", "rejected")


@dataclass(frozen=True, kw_only=True, slots=True)
class Reported:
    """One result of a log. Lines are 1-based, 0 where the tool names none; `column` is 1-based, 0 where unknown.

    `settled` says why nothing is to be done about it (suppressed, absent, no failure), "" where something is.
    `unreadable` says why nothing else could be read of it, "" where it was.
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
    unreadable: str = ""


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
    """A log of at most MAX_BYTES. `roots` are where the repository stands, or stood. UsageFault for what is no log."""
    if len(data) > MAX_BYTES:
        raise UsageFault(f"the SARIF log is larger than {MAX_BYTES:,} bytes", remedy="split it by runs")
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise UsageFault("not a SARIF log: UTF-16, and JSON is exchanged as UTF-8", remedy="write it as UTF-8")
    try:
        document = load(data.removeprefix(codecs.BOM_UTF8))
        _bounded(document)
        results = tuple(_reported(run, number, value, around, roots) for run, number, value, around in _each(document))
    except ValueError as fault:
        raise UsageFault(f"not a SARIF log: {fault}", remedy="give the tool's SARIF 2.1.0 output, unchanged") from None
    return SarifLog(document=document, results=results)


def answered(log: SarifLog, answers: Mapping[tuple[int, int], ResultUpdate], tool: Mapping[str, Any]) -> bytes:
    """The log with an answer in each result's properties, and a fix where there is one. All else stays."""
    document: dict[str, Any] = copy.deepcopy(dict(log.document))
    for (run, number), answer in answers.items():
        result = document["runs"][run]["results"][number]
        properties = member_of(result, "properties", {}) if isinstance(result, dict) else None
        if not isinstance(properties, dict):
            continue  # such a result is unreadable, and has no place for an answer
        told = {"state": answer.state, "why": one_line(answer.why)}
        told |= {"proof": answer.proof} if answer.proof else {}
        result["properties"] = {**properties, "localagent": told}
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
            result["fixes"] = [*(result.get("fixes") or ()), fix]
    document["properties"] = {**(document.get("properties") or {}), "localagent": dict(tool)}
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


def _each(document: object) -> Iterator[tuple[int, int, object, Mapping[str, Any]]]:
    """Every result with its place and its run."""
    log = object_of(document, "the log")
    if log.get("version") != "2.1.0":
        raise Wrong(f"version {shown(log.get('version'))} is not SARIF 2.1.0")
    object_of(member_of(log, "properties", {}), "properties")
    count = 0
    for n, value in enumerate(list_of(log.get("runs"), "runs", MAX_RUNS)):
        run = object_of(value, f"runs[{n}]")
        results = list_of(member_of(run, "results", []), f"runs[{n}].results", MAX_RESULTS)
        count += len(results)
        if count > MAX_RESULTS:
            raise Wrong(f"more than {MAX_RESULTS:,} results")
        for number, result in enumerate(results):
            yield n, number, result, run


# ---- one result ---------------------------------------------------------------------------------------------------


def _reported(run: int, number: int, value: object, around: Mapping[str, Any], roots: Sequence[Path]) -> Reported:
    """One result; with no more than the reason, and the names that are there, where it cannot be read."""
    read = Reported(run=run, number=number, tool="", rule="", message="", path=None, line=0, end_line=0, column=0)
    try:
        tool = object_of(around.get("tool"), f"runs[{run}].tool")
        driver = object_of(tool.get("driver"), f"runs[{run}].tool.driver")
        read = replace(read, tool=text_of(driver.get("name"), f"runs[{run}].tool.driver.name"))
        result = object_of(value, "it")
        for name in ("properties", "fingerprints", "partialFingerprints"):
            object_of(member_of(result, name, {}), name)
        list_of(member_of(result, "fixes", []), "fixes", 1_000)
        read = replace(read, rule=_rule(result, tool))
        if settled := _settled(result):  # nothing is to be done, so nothing more is needed
            return replace(read, settled=settled)
        path, line, end_line, column, digest = location_of(result, around, roots)
        return replace(
            read, message=_message(result), path=path, line=line, end_line=end_line, column=column, digest=digest
        )
    except Wrong as fault:
        return replace(read, unreadable=f"runs[{run}].results[{number}]: {fault}")


def _message(value: Mapping[str, Any]) -> str:
    """What the tool says of it; "" where it says nothing here."""
    message = object_of(member_of(value, "message", {}), "message")
    text = next((message[name] for name in ("text", "markdown", "id") if message.get(name) is not None), "")
    if not isinstance(text, str):
        raise Wrong("message has no text")
    return text[:MAX_TEXT]


def _rule(value: Mapping[str, Any], tool: Mapping[str, Any]) -> str:
    """The rule's id, given outright or through the rules of the driver or an extension; "" where the tool says none."""
    reference = object_of(member_of(value, "rule", {}), "rule")
    for text, name in ((value.get("ruleId"), "ruleId"), (reference.get("id"), "rule.id")):
        if text is not None:
            return text_of(text, name)
    index = member_of(value, "ruleIndex", member_of(reference, "index", -1))
    if index == -1:
        return ""
    component, name = tool["driver"], "tool.driver"
    extension = member_of(object_of(member_of(reference, "toolComponent", {}), "rule.toolComponent"), "index", -1)
    if extension != -1:
        extensions = list_of(member_of(tool, "extensions", []), "tool.extensions", MAX_RUNS)
        component, name = _element(extensions, extension, "tool.extensions"), "tool.extensions"
    rules = list_of(member_of(component, "rules", []), f"{name}.rules", MAX_RESULTS)
    return text_of(_element(rules, index, f"{name}.rules").get("id"), "the rule's id")


def _element(values: Sequence[Any], index: object, name: str) -> Mapping[str, Any]:
    """The object that an index points at."""
    position = number_of(index, f"the index into {name}", least=0)
    if position >= len(values):
        raise Wrong(f"the index {position} points at nothing of {name}")
    return object_of(values[position], f"{name}[{position}]")


def _settled(value: Mapping[str, Any]) -> str:
    kind = one_of(member_of(value, "kind", "fail"), "kind", _KINDS)
    state = one_of(member_of(value, "baselineState", "new"), "baselineState", _STATES)
    holding = []
    for n, item in enumerate(list_of(member_of(value, "suppressions", []), "suppressions", 1_000)):
        suppression = object_of(item, f"suppressions[{n}]")
        one_of(suppression.get("kind"), f"suppressions[{n}].kind", ("inSource", "external"))
        status = one_of(member_of(suppression, "status", "accepted"), f"suppressions[{n}].status", _STATUSES)
        holding.append(status == "accepted")
    if holding and all(holding):  # SARIF 3.27.23: one that is rejected or under review leaves the result open
        return "suppressed in the log"
    if kind not in ("fail", "review", "open"):
        return f"the log says {kind}, not fail"
    return "the log says that it is gone" if state == "absent" else ""
