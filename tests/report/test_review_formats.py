"""What is said of a patch: whole, bounded, and harmless whatever the patch holds."""

import json
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localagent.domain.gate import Allow, Decision, Finding, Severity
from localagent.domain.paths import RepoPath
from localagent.domain.review import FileNote, PatchApproval, PatchReview, PatchVerdict
from localagent.gate.rule_catalogue import rule_texts
from localagent.policy.load import load_policy
from localagent.report.review_formats import junit, page, sarif, uri_of
from localagent.report.review_report import MOST_FINDINGS, fingerprints, review_json, review_text

RULES = rule_texts(load_policy(Path(__file__).parents[2] / "policies" / "default.toml"))
HOSTILE = "\x1b[2J<script>alert(1)</script>\"'&]]>\u202e\udcff\x00\x0b\n--><!--{{7*7}}"
NAME = RepoPath("pkg/<img src=x onerror=alert(1)>\x1b\udcff\n.py")


def finding(rule: str = "run-text", line: int = 3, message: str = HOSTILE, path: RepoPath | None = NAME) -> Finding:
    return Finding(rule=rule, severity=Severity.HIGH, path=path, line=line, message=message)


def review(*found: Finding, verdict: PatchVerdict = PatchVerdict.REFUSED, policy: str = "default") -> PatchReview:
    answer = Allow.DENY if found else Allow.ALLOW
    return PatchReview(
        verdict=verdict,
        policy=policy,
        digest="sha256:00",
        gates=("patch", "dangerous", "weakness"),
        decisions=(
            Decision(gate="patch", answer=Allow.ALLOW),
            Decision(gate="dangerous", answer=answer, findings=found),
        ),
        rules=RULES,
        files=(FileNote(path=NAME, source=NAME, kind="modified", moved_lines=(2,)),),
        not_asked={"special-case": "no tests are known"},
    )


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, list[tuple[str, str | None]]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, attrs))


def sarif_of(made: PatchReview) -> dict[str, Any]:
    log: dict[str, Any] = json.loads(sarif(made))
    return log


def test_sarif_has_what_the_standard_requires() -> None:
    log = sarif_of(review(finding(), finding(rule="bandit", line=0), finding(rule="no-such-rule", path=None)))
    assert log["version"] == "2.1.0"
    assert log["$schema"].endswith("sarif-schema-2.1.0.json")
    (run,) = log["runs"]
    driver = run["tool"]["driver"]
    assert driver["name"]
    ids = [rule["id"] for rule in driver["rules"]]
    assert len(ids) == len(set(ids))
    for rule in driver["rules"]:
        assert rule["help"]["text"]
        assert rule["shortDescription"]["text"]
        assert rule["defaultConfiguration"]["level"] in ("none", "note", "warning", "error")
    marks = [r["partialFingerprints"]["localagentGate/v1"] for r in run["results"]]
    assert len(set(marks)) == len(marks) == 3
    for result in run["results"]:
        assert result["message"]["text"]
        assert result["level"] in ("none", "note", "warning", "error")
        if "ruleIndex" in result:
            assert ids[result["ruleIndex"]] == result["ruleId"]
        for location in result["locations"]:
            place = location["physicalLocation"]
            assert re.fullmatch(r"[A-Za-z0-9._~/%-]+", place["artifactLocation"]["uri"])
            assert place["artifactLocation"]["uriBaseId"] in run["originalUriBaseIds"]
            assert place.get("region", {"startLine": 1})["startLine"] >= 1


@pytest.mark.parametrize(
    ("path", "uri"), [("a b/c#d.py", "a%20b/c%23d.py"), ("\u00fc\udcff", "%C3%BC%FF"), ("x:y", "x%3Ay")]
)
def test_paths_become_uris_byte_by_byte(path: str, uri: str) -> None:
    assert uri_of(path) == uri


def test_a_fingerprint_outlives_a_move_of_the_lines() -> None:
    one, two = review(finding(line=3)), review(finding(line=300))
    assert list(fingerprints(one)) == list(fingerprints(two))
    assert len(set(fingerprints(review(finding(), finding(line=9))))) == 2


def test_junit_is_xml_with_a_case_a_gate() -> None:
    root = ET.fromstring(junit(review(finding())))
    cases = root.findall("./testsuite/testcase")
    assert [c.get("name") for c in cases] == ["patch", "dangerous", "weakness", "special-case"]
    assert [c.find("failure") is not None for c in cases] == [False, True, False, False]
    assert [c.find("skipped") is not None for c in cases] == [False, False, True, True]
    assert root.get("failures") == "1"


def test_junit_of_an_approved_patch_has_no_failure_and_a_gate_that_could_not_answer_is_an_error() -> None:
    approval = PatchApproval(
        patch="p", change="c", repo="/", findings="f", policy="p", who="me", reason="why", at="now"
    )
    asking = review(finding(), verdict=PatchVerdict.NEEDS_PERSON)
    approved = ET.fromstring(junit(replace(asking, verdict=PatchVerdict.ALLOWED, approval=approval)))
    assert (approved.get("failures"), approved.get("errors")) == ("0", "0")
    assert "run-text" in str(approved.findtext("./testsuite/testcase[@name='dangerous']/system-out"))
    broken = replace(asking, decisions=(Decision(gate="dangerous", answer=Allow.ERROR, findings=(finding(),)),))
    root = ET.fromstring(junit(broken))
    assert (root.get("failures"), root.get("errors")) == ("0", "1")
    assert root.find("./testsuite/testcase[@name='dangerous']/error") is not None


def test_the_page_holds_nothing_active_and_nothing_from_elsewhere() -> None:
    made = review(finding(), policy=HOSTILE)
    text = page(made).decode("utf-8")
    tags = Tags()
    tags.feed(text)
    allowed = {
        "html",
        "head",
        "meta",
        "title",
        "style",
        "body",
        "div",
        "h1",
        "h2",
        "p",
        "table",
        "tr",
        "th",
        "td",
        "br",
        "span",
    }
    assert {tag for tag, _ in tags.seen} <= allowed
    assert {name for _, attrs in tags.seen for name, _ in attrs} <= {
        "lang",
        "charset",
        "http-equiv",
        "content",
        "name",
        "class",
    }
    assert "default-src 'none'" in text
    assert "http:" not in text
    assert "https:" not in text


@pytest.mark.parametrize("make", [sarif, junit, page, lambda r: review_text(r).encode("utf-8")])
def test_no_control_character_and_no_lone_surrogate_gets_out(make: Any) -> None:
    text = make(review(finding(), policy=HOSTILE)).decode("utf-8")
    assert not [c for c in text if (ord(c) < 32 and c not in "\n\t") or c in "\u202e\x7f"]


@pytest.mark.long
@pytest.mark.parametrize("make", [sarif, junit, page])
def test_outputs_are_bounded(make: Any) -> None:
    made = review(*(finding(line=n, message="x" * 100_000) for n in range(3 * MOST_FINDINGS)))
    assert len(make(made)) < 4_000_000
    told = review_json(made)
    assert len(told["findings"]) == MOST_FINDINGS
    assert told["findings_left_out"] == 2 * MOST_FINDINGS
    assert "2000 more findings" in review_text(made)


# what a file system can hold: any bytes, as Python reads them
NAMES = st.binary(min_size=1, max_size=30).map(
    lambda data: data.replace(b"\0", b"0").replace(b"/", b"_").decode("utf-8", "surrogateescape")
)


@pytest.mark.long
@settings(max_examples=60, deadline=None)
@given(st.text(st.characters(), max_size=60), NAMES)
def test_any_text_keeps_every_form_well_formed(message: str, name: str) -> None:
    made = review(finding(message=message, path=RepoPath("d/x" + name)))
    json.loads(sarif(made))
    ET.fromstring(junit(made))
    json.dumps(review_json(made), ensure_ascii=True)
    tags = Tags()
    tags.feed(page(made).decode("utf-8"))
    assert {tag for tag, _ in tags.seen}.isdisjoint({"script", "img", "link", "iframe", "a", "svg"})


def test_the_text_says_where_why_and_what_to_do() -> None:
    text = review_text(review(finding(message="newly introduced call eval")))
    assert "line 3: newly introduced call eval  [run-text, high]" in text
    assert "why: " in text
    assert "what to do: " in text
    assert "at an offset of +2 lines" in text
    assert "not run" in text
    assert "weakness" in text


def test_an_allowed_patch_is_told_in_one_line() -> None:
    allowed = PatchReview(
        verdict=PatchVerdict.ALLOWED, policy="p", digest="sha256:0", gates=("patch",),
        decisions=(Decision(gate="patch", answer=Allow.ALLOW),), rules=RULES,
        files=(FileNote(path="a.py", source="a.py", kind="modified"),), not_asked={},
    )  # fmt: skip
    assert review_text(allowed) == "Patch allowed under policy p: 1 file"
    assert allowed.exit == 0
