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


def unreadable(item: Any, **around: Any) -> str:
    """Why a result is listed as unreadable; the one behind it is read all the same."""
    odd, good = read_log(log({**run(item, result("E713")), **around}), ROOTS).results
    assert (odd.path, odd.line, good.path, good.unreadable) == (None, 0, "a.py", "")
    assert odd.unreadable.startswith("runs[0].results[0]: ")
    return odd.unreadable


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
        ("file:///work/repo/", "names no file"),
        ("./", "names no file"),
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
def test_a_result_whose_uri_leaves_is_listed_and_the_next_is_read(uri: str, why: str) -> None:
    assert why in unreadable(result("E711", uri=uri))


def test_bases() -> None:
    item = result("E711", uri="a.py")
    item["locations"][0]["physicalLocation"]["artifactLocation"]["uriBaseId"] = "SRC"

    def path(**bases: Any) -> str:
        return str(read_log(log(run(item, originalUriBaseIds=bases)), ROOTS).results[0].path)

    assert path() == "a.py"
    assert path(SRC={"uri": "src/", "uriBaseId": "ROOT"}, ROOT={"uri": "file:///ci/checkout/"}) == "src/a.py"
    away = {"SRC": {"uri": "file:///etc/"}}
    assert "leaves" in unreadable(item, originalUriBaseIds=away)
    assert "without end" in unreadable(item, originalUriBaseIds={"SRC": {"uriBaseId": "SRC"}})
    assert "no URI of a folder" in unreadable(item, originalUriBaseIds={"SRC": {"uri": "src"}})


def test_artifacts_by_index_and_their_digest() -> None:
    item = result("E711")
    item["locations"][0]["physicalLocation"]["artifactLocation"] = {"index": 0}
    artifact = {"location": {"uri": "b.py"}, "hashes": {"sha-256": "AB" * 32}}
    (found,) = read_log(log(run(item, artifacts=[artifact])), ROOTS).results
    assert (found.path, found.digest) == ("b.py", "ab" * 32)
    assert "points at nothing of artifacts" in unreadable(item)


@pytest.mark.parametrize(
    ("more", "settled"),
    [
        ({"suppressions": [{"kind": "inSource"}]}, "suppressed in the log"),
        ({"suppressions": [{"kind": "external", "status": "rejected"}]}, ""),
        ({"suppressions": [{"kind": "external"}, {"kind": "external", "status": "underReview"}]}, ""),
        ({"suppressions": []}, ""),
        ({"baselineState": "absent"}, "the log says that it is gone"),
        ({"kind": "pass"}, "the log says pass, not fail"),
        ({"kind": "pass", "message": None, "locations": "odd"}, "the log says pass, not fail"),
        ({"suppressions": None, "baselineState": None, "kind": None, "fixes": None, "properties": None}, ""),
    ],
)
def test_what_is_settled(more: dict[str, Any], settled: str) -> None:
    assert read_one(**more).settled == settled


def test_rules_by_index() -> None:
    item = {"message": {"text": "x"}, "ruleIndex": 1}
    driver = {"driver": {"name": "t", "rules": [{"id": "A"}, {"id": "B"}]}}
    (found,) = read_log(log({"tool": driver, "results": [item]}), ROOTS).results
    assert (found.rule, found.path) == ("B", None)
    other = {"message": {"text": "x"}, "rule": {"index": 0, "toolComponent": {"index": 0}}}
    extended = {**driver, "extensions": [{"name": "more", "rules": [{"id": "C"}]}]}
    assert read_log(log({"tool": extended, "results": [other]}), ROOTS).results[0].rule == "C"
    for index in (2, -2, True, "1"):
        assert "tool.driver.rules" in unreadable(item | {"ruleIndex": index}, tool=driver)
    assert "nothing of tool.extensions" in unreadable(other, tool=driver)


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
        (b'{"version": "2.1.0", "runs": [[]]}', "runs[0] is no object"),
        (b'{"version": "2.1.0", "runs": [{"results": {}}]}', "runs[0].results is no array"),
        ('{"version": "2.1.0", "runs": []}'.encode("utf-16"), "UTF-16"),
        (b"[" * 5000 + b"]" * 5000, "nested"),
        (b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1), "nested"),
        (b"\xff", "not a SARIF log"),
    ],
)
def test_what_is_no_log(data: bytes, why: str) -> None:
    assert why in faults(data)


@pytest.mark.parametrize(
    ("item", "why"),
    [
        (None, "it is no object"),
        ([], "it is no object"),
        ("E711", "it is no object"),
        (result("E711", line=-1), "startLine is no number"),
        (result("E711", line=True), "startLine is no number"),
        (result("E711", kind="odd"), "kind is 'odd'"),
        (result("E711", kind=["fail"]), "kind is ['fail']"),
        (result("E711", message="text"), "message is no object"),
        (result("E711", message={"text": 3}), "message has no text"),
        (result("E711", properties=[]), "properties is no object"),
        (result("E711", locations={}), "locations is no array"),
        (result("E711", locations=[3]), "locations[0] is no object"),
        (result("E711" * 2000), "ruleId is longer"),
        (result("E711", suppressions=[{"kind": "because"}]), "suppressions[0].kind"),
    ],
)
def test_an_odd_result_is_listed_and_comes_back_as_it_was(item: Any, why: str) -> None:
    assert why in unreadable(item)
    data = log(run(item, result("E713")))
    out = answered(read_log(data, ROOTS), {(0, n): ResultUpdate(state="won't-fix", why=why) for n in (0, 1)}, {})
    odd, good = json.loads(out)["runs"][0]["results"]
    if isinstance(odd, dict) and isinstance(odd.get("properties"), dict):
        assert odd["properties"].pop("localagent")["why"] == why
        del odd["properties"]
    assert odd == item
    assert good["properties"]["localagent"]["state"] == "won't-fix"


def test_a_run_without_a_tool_is_listed_and_the_next_is_read() -> None:
    odd, good = read_log(log({"results": [result("E711")]}, run(result("E713"))), ROOTS).results
    assert (odd.unreadable, good.rule) == ("runs[0].results[0]: runs[0].tool is no object", "E713")


def test_nulls_and_a_byte_order_mark_are_nothing() -> None:
    data = b"\xef\xbb\xbf" + log({"tool": {"driver": {"name": "t"}}, "results": None}, run(result("E713")))
    assert [one.rule for one in read_log(data, ROOTS).results] == ["E713"]


def test_what_names_no_file_has_no_path() -> None:
    address = {"physicalLocation": {"address": {"absoluteAddress": 16}}}
    nowhere: list[Any] = [None, [], [{}], [{"logicalLocations": [{"name": "f"}]}], [address]]
    for locations in nowhere:
        found = read_one(locations=locations)
        assert (found.path, found.line, found.unreadable) == (None, 0, "")


FIXTURES = Path(__file__).parents[1] / "fixtures" / "sarif"
FILE = "shop/orders.py"
OF_TOOLS = {
    "ruff": [("B006", FILE, 4), ("E711", FILE, 5), ("SIM118", FILE, 7), ("E722", FILE, 11)],
    "bandit": [("B324", FILE, 12)],
    "semgrep": [
        ("python.lang.security.insecure-hash-algorithms-md5.insecure-hash-algorithm-md5", FILE, 12)
    ],
    "codeql": [("py/weak-sensitive-data-hashing", FILE, 12), ("py/summary/lines-of-code", "not fail", 0)],
    "pylint": [("C0114", FILE, 1), ("W0702", FILE, 11), ("F0001", "uri is no text", 0)],
    "mypy": [("comparison-overlap", FILE, 5), ("import-untyped", FILE, 0)],
    "sonarqube": [
        ("python:S5754", FILE, 11),
        ("python:S4790", "suppressed in the log", 0),
        ("common-python:InsufficientLineCoverage", "names no file of the repository", 0),
        ("python:S1481", "not fail", 0),
    ],
    "trivy": [
        ("CVE-2024-0001", "usr/local/lib/python3.12/site-packages/requests-2.31.0.dist-info/METADATA", 1),
        ("CVE-2024-0001", "", 0),
        ("CVE-2024-0001", "leaves the repository", 0),
    ],
}  # fmt: skip


@pytest.mark.parametrize("tool", OF_TOOLS)
def test_logs_as_tools_write_them(tool: str) -> None:
    found = read_log((FIXTURES / f"{tool}.sarif").read_bytes(), (Path("/home/runner/work/shop/shop"),))
    assert [one.rule for one in found.results] == [rule for rule, _, _ in OF_TOOLS[tool]]
    for one, (_, told, line) in zip(found.results, OF_TOOLS[tool], strict=True):
        assert told in (one.path or one.settled or one.unreadable)
        assert one.line == line
    answers = {(one.run, one.number): ResultUpdate(state="failed", why="w") for one in found.results}
    assert read_log(answered(found, answers, {}), (Path("/home/runner/work/shop/shop"),)).results == found.results


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
