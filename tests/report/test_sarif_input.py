"""Reading other tools' SARIF, and giving it back."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.sarif_builder import log, result, run

from localagent.errors import UsageFault
from localagent.report.sarif_input import MAX_DEPTH, Replaced, ResultUpdate, answered, read_log

ROOTS = (Path("/work/repo"), Path("/ci/checkout"))


def read_one(**more: Any) -> Any:
    return read_log(log(run(result("E711", **more))), ROOTS).results[0]


def faults(data: bytes) -> str:
    with pytest.raises(UsageFault) as fault:
        read_log(data, ROOTS)
    return "\n".join(fault.value.faults)


def test_a_result_is_read() -> None:
    item = read_one(uri="./src/a%20b.py", line=7, column=3)
    assert (item.tool, item.rule, item.path, item.line, item.end_line, item.column) == (
        "ruff", "E711", "src/a b.py", 7, 7, 3,
    )  # fmt: skip
    assert item.settled == ""


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("file:///work/repo/src/a.py", "src/a.py"),
        ("file://localhost/work/repo/a.py", "a.py"),
        ("file:/work/repo/./a.py", "a.py"),
        ("/ci/checkout/a.py", "a.py"),
        ("%C3%A4.py", "ä.py"),
        ("ä.py", "ä.py"),
        ("%FF.py", "\udcff.py"),
    ],
)
def test_uris_of_the_repository(uri: str, path: str) -> None:
    assert read_one(uri=uri).path == path


@pytest.mark.parametrize(
    ("uri", "why"),
    [
        ("../a.py", "leaves"),
        ("a/%2e%2e/%2e%2e/b.py", "leaves"),
        ("a/..%2f../b.py", "leaves"),
        ("file:///work/repo/../other/a.py", "leaves"),
        ("file:///etc/passwd", "leaves"),
        ("file:///work/repository/a.py", "leaves"),
        ("//evil/work/repo/a.py", "leaves"),
        ("file://evil/work/repo/a.py", "leaves"),
        ("/etc/passwd", "leaves"),
        ("file:///work/repo/", "leaves"),
        ("a//b.py", "names no file"),
        ("a%00.py", "names no file"),
        ("http://x/a.py", "not one of a file"),
        ("C:\\a.py", "not one of a file"),
        ("a.py?x", "not one of a file"),
        ("a%zz.py", "not one of a file"),
        ("\ud800.py", "no text"),
        ("", "uri is no text"),
    ],
)
def test_uris_that_leave_refuse_the_log(uri: str, why: str) -> None:
    assert why in faults(log(run(result("E711", uri=uri))))


def test_bases() -> None:
    item = result("E711", uri="a.py")
    item["locations"][0]["physicalLocation"]["artifactLocation"]["uriBaseId"] = "SRC"

    def path(**bases: Any) -> str:
        return str(read_log(log(run(item, originalUriBaseIds=bases)), ROOTS).results[0].path)

    assert path() == "a.py"
    assert path(SRC={"uri": "src/", "uriBaseId": "ROOT"}, ROOT={"uri": "file:///ci/checkout/"}) == "src/a.py"
    away = {"SRC": {"uri": "file:///etc/"}}
    assert "leaves" in faults(log(run(item, originalUriBaseIds=away)))
    assert "without end" in faults(log(run(item, originalUriBaseIds={"SRC": {"uriBaseId": "SRC"}})))
    assert "no URI of a folder" in faults(log(run(item, originalUriBaseIds={"SRC": {"uri": "src"}})))


def test_artifacts_by_index_and_their_digest() -> None:
    item = result("E711")
    item["locations"][0]["physicalLocation"]["artifactLocation"] = {"index": 0}
    artifact = {"location": {"uri": "b.py"}, "hashes": {"sha-256": "AB" * 32}}
    (found,) = read_log(log(run(item, artifacts=[artifact])), ROOTS).results
    assert (found.path, found.digest) == ("b.py", "ab" * 32)
    assert "no artifact" in faults(log(run(item)))


@pytest.mark.parametrize(
    ("more", "settled"),
    [
        ({"suppressions": [{"kind": "inSource"}]}, "suppressed in the log"),
        ({"suppressions": [{"kind": "external", "status": "rejected"}]}, ""),
        ({"suppressions": [{"kind": "external"}, {"kind": "external", "status": "underReview"}]}, ""),
        ({"suppressions": []}, ""),
        ({"baselineState": "absent"}, "the log says that it is gone"),
        ({"kind": "pass"}, "the log says pass, not fail"),
    ],
)
def test_what_is_settled(more: dict[str, Any], settled: str) -> None:
    assert read_one(**more).settled == settled


def test_rules_by_index() -> None:
    item = {"message": {"text": "x"}, "ruleIndex": 1}
    driver = {"driver": {"name": "t", "rules": [{"id": "A"}, {"id": "B"}]}}
    (found,) = read_log(log({"tool": driver, "results": [item]}), ROOTS).results
    assert (found.rule, found.path) == ("B", None)
    item["ruleIndex"] = 2
    assert "points at no rule" in faults(log({"tool": driver, "results": [item]}))


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"{", "not a SARIF log"),
        (b'{"version": "2.1.0", "version": "2.1.0"}', "twice"),
        (b'{"version": "2.1.0", "runs": [], "properties": {"x": NaN}}', "NaN"),
        (b'{"version": "2.1.0", "runs": [], "properties": {"x": 1e999}}', "too large"),
        (b'{"version": "2.1.0", "runs": [], "properties": {"x": ' + b"9" * 5000 + b"}}", "SARIF log"),
        (b'{"version": "2.0.0", "runs": []}', "'2.0.0' is not SARIF 2.1.0"),
        (b"[]", "no object"),
        (b'{"version": "2.1.0"}', "runs is no array"),
        (b'{"version": "2.1.0", "runs": [{}]}', "tool is no object"),
        (b"[" * 5000 + b"]" * 5000, "nested"),
        (b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1), "nested"),
        (b"\xff", "not a SARIF log"),
    ],
)
def test_what_is_no_log(data: bytes, why: str) -> None:
    assert why in faults(data)


def test_every_fault_is_listed() -> None:
    told = faults(log(run(result("A", uri="../x"), result("B", line=-1), result("C", kind="odd"))))
    assert [told.count(x) for x in ("results[0]", "results[1]", "results[2]")] == [1, 1, 1]


def test_answers_keep_everything_else() -> None:
    item = result(
        "E711",
        fingerprints={"x/v1": "abc"},
        partialFingerprints={"y/v1": "def"},
        suppressions=[{"kind": "external", "status": "rejected", "justification": "no"}],
        fixes=[{"description": {"text": "its own"}, "artifactChanges": []}],
        properties={"tags": ["t"]},
        somethingNew={"a": [1.5, None]},
    )
    other = result("E999", suppressions=[{"kind": "inSource"}])
    before = read_log(log(run(item, other, columnKind="utf16CodeUnits"), inlineExternalProperties=[]), ROOTS)
    fix = Replaced(first=2, last=3, text="x\ny")
    out = answered(before, {(0, 0): ResultUpdate(state="fixed", why="w", proof="tests", fix=fix)}, {"version": "1"})
    after = json.loads(out)
    got = after["runs"][0]["results"][0]
    assert got["fixes"][0] == item["fixes"][0]
    (change,) = got["fixes"][1]["artifactChanges"]
    assert change["artifactLocation"] == {"uri": "a.py"}
    assert change["replacements"] == [
        {"deletedRegion": {"startLine": 2, "endLine": 3}, "insertedContent": {"text": "x\ny"}}
    ]
    assert got["properties"] == {"tags": ["t"], "localagent": {"state": "fixed", "why": "w", "proof": "tests"}}
    for name in ("fixes", "properties"):
        got.pop(name)
        item.pop(name)
    assert got == item
    assert after["runs"][0]["results"][1] == other
    assert after["runs"][0]["columnKind"] == "utf16CodeUnits"
    assert read_log(out, ROOTS).results == before.results
    assert "fixes" in before.document["runs"][0]["results"][0], "what was read must not change"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 10**12) | st.text(max_size=8) | st.floats(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
PLACES = (
    ("ruleId",), ("message",), ("locations",), ("locations", 0), ("locations", 0, "physicalLocation"), ("kind",),
    ("locations", 0, "physicalLocation", "artifactLocation"), ("locations", 0, "physicalLocation", "region"),
    ("locations", 0, "physicalLocation", "artifactLocation", "uri"), ("suppressions",), ("rule",), ("ruleIndex",),
    ("fixes",), ("properties",), ("baselineState",),
)  # fmt: skip


@pytest.mark.long
@settings(max_examples=300, deadline=None)
@given(st.sampled_from(PLACES), JSON)
def test_whatever_stands_anywhere_is_read_or_refused(place: tuple[str | int, ...], value: Any) -> None:
    item = result("E711")
    at: Any = item
    for step in place[:-1]:
        at = at[step]
    at[place[-1]] = value
    try:
        found = read_log(log(run(item)), ROOTS)
    except UsageFault as fault:
        assert fault.faults  # noqa: PT017 - any other exception fails the test
        return
    out = answered(found, {(0, 0): ResultUpdate(state="failed", why="w")}, {})
    assert read_log(out, ROOTS).results == found.results
