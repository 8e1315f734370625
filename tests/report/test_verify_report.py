"""The report of `verify`: every verdict fits its schema, its page, SARIF, JUnit and HTML."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from support.schema_checker import checker

from localagent.domain.claim import Claim, DifferenceKind, FunctionEffect
from localagent.domain.gate import Allow, Decision, Finding, Severity
from localagent.domain.outcome import FullResult
from localagent.domain.paths import RepoPath
from localagent.domain.review import PatchApproval, PatchReview, PatchVerdict, RuleText
from localagent.domain.strength import Grade, Limit, Share, graded, limited
from localagent.domain.verification import (
    ContractBreak,
    ContractResult,
    Contracts,
    Difference,
    Differential,
    FunctionChange,
    FunctionReach,
    InputOrigin,
    Mutants,
    Necessity,
    PersonReason,
    PropertyBreak,
    UnneededPart,
    Verification,
    VerifyVerdict,
)
from localagent.report.review_formats import junit, page, sarif
from localagent.report.verify_report import HEAD, verification_json, verification_text
from localagent.report.verify_review import as_review

DOCS = Path(__file__).parents[2] / "docs"
SCHEMA = json.loads((DOCS / "verify.schema.json").read_text())
EVIL = "f('\x1b]0;x\x07<script>\udcff\n')"
PATH = RepoPath("a.py")
FULL = FullResult(
    accepted=False,
    reasons=("still failing: t::a", "ruff has new findings: x", "files that no longer collect: b.py"),
    fail_to_pass=("t::turned",),
    pass_to_pass=("t::kept",),
    pass_to_fail=("t::broken",),
    still_failing=("t::a", "t::left"),
    checks={"tests": "1 turned", "ruff": "x"},
)
NEAR = Differential(
    functions=(FunctionReach(path=PATH, function="f", compared=9, agreed=8, answered=9),),
    differences=(
        Difference(path=PATH, function="f", call=EVIL, old="1", new=EVIL, origin=InputOrigin.NEAR, crash=True),
    ),
    unexplained={DifferenceKind.CRASH: 1},
    function_changes=(
        FunctionChange(path=PATH, function=EVIL, effect=FunctionEffect.LOST_PARAMETER, parameter=EVIL),
        FunctionChange(path=PATH, function="f", effect=FunctionEffect.CONSTANT),
    ),
    properties_held={"length kept": 9},
    broken_properties=(PropertyBreak(path=PATH, function="f", name="length kept", held=9, call=EVIL, old="", new=""),),
)
MEASURED = graded(
    lines=Share(part=9, whole=10, missing=("a.py:3",)), mutants=None, functions=Share(part=1, whole=1),
    unknown={"mutants": "none"},
)  # fmt: skip
STRENGTH = limited(MEASURED, Claim.FIXES, (Limit(most=Grade.D, reason=EVIL),))
CONTRACTS = (
    Contracts(
        path=PATH,
        function=EVIL,
        said=ContractResult.BROKEN,
        broken=(
            ContractBreak(contract="post: x", line=4, found=EVIL, held=True),
            ContractBreak(contract=EVIL, line=5, found="false", held=False),
        ),
        dropped=(EVIL,),
    ),
    Contracts(path=PATH, function="g", said=ContractResult.COULD_NOT, why=EVIL),
)
WHOLE = Verification(
    verdict=VerifyVerdict.VERIFIED,
    reason="r",
    exit=0,
    patch="sha256:" + "0" * 64,
    full=FULL,
    left_alone=("t::left",),
    removed=("t::gone",),
    differential=NEAR,
    mutants=Mutants(tried=2, killed=1, space=3, alive=(EVIL,)),
    necessity=Necessity(
        parts=3, asked=2, unneeded=(UnneededPart(path=PATH, line=3, text=EVIL),), differences=None, example=EVIL
    ),
    claim=Claim.FIXES,
    strength=STRENGTH,
    contracts=CONTRACTS,
    seconds={"gates": 0.5},
)


@pytest.mark.parametrize("verdict", list(VerifyVerdict))
def test_every_verdict_fits_the_schema_and_has_a_headline(verdict: VerifyVerdict) -> None:
    for one in (WHOLE, Verification(verdict=verdict, reason="r", exit=1, patch=WHOLE.patch)):
        told = json.loads(json.dumps(verification_json(replace(one, verdict=verdict, exit=0 if verdict.yes else 1))))
        checker(SCHEMA).validate(told)
        assert set(told) == set(SCHEMA["required"])
    assert verification_text(replace(WHOLE, verdict=verdict)).startswith(HEAD[verdict])


def test_the_page_names_every_field_and_verdict() -> None:
    text = (DOCS / "verify.md").read_text()
    assert [
        name for name in SCHEMA["properties"] if f"`{name}`" not in text and name not in ("schema", "localagent")
    ] == []
    assert [v for v in VerifyVerdict if f"`{v}`" not in text] == []


def test_text_of_a_repository_is_made_visible_everywhere() -> None:
    text = verification_text(WHOLE)
    assert "\x1b" not in text
    assert "\x07" not in text
    shown = page(as_review(WHOLE)).decode()
    assert "<script>" not in shown
    assert "&lt;script&gt;" in shown
    ET.fromstring(junit(as_review(WHOLE)))
    json.loads(sarif(as_review(WHOLE)))


def test_what_refuses_is_a_finding_and_what_is_left_alone_is_none() -> None:
    review = as_review(replace(WHOLE, verdict=VerifyVerdict.REFUSED, exit=1))
    found = [(f.rule, f.message) for d in review.decisions for f in d.findings]
    assert ("verify-pass-to-fail", "t::broken passed before") in found
    assert ("verify-still-failing", "t::a still fails") in found
    assert not any("t::left" in message for _, message in found)
    assert ("verify-tool", "ruff has new findings: x") in found
    assert ("verify-run", "files that no longer collect: b.py") in found
    assert ("verify-run", "t::gone is gone") in found
    assert review.exit == 1


@pytest.mark.parametrize(
    ("verdict", "rule"),
    [
        (VerifyVerdict.TOO_WEAK, "verify-strength"),
        (VerifyVerdict.UNPROVEN, "verify-unproven"),
        (VerifyVerdict.REFUTED, "verify-refuted"),
        (VerifyVerdict.COULD_NOT, "verify-answer"),
        (VerifyVerdict.CANNOT_ENFORCE, "verify-answer"),
        (VerifyVerdict.INTERRUPTED, "verify-answer"),
    ],
)
def test_every_no_has_a_finding(verdict: VerifyVerdict, rule: str) -> None:
    one = Verification(verdict=verdict, reason="r", exit=1, patch=WHOLE.patch)
    review = as_review(one)
    assert [f.rule for d in review.decisions for f in d.findings] == [rule]
    counted = ET.fromstring(junit(review))
    assert (counted.get("failures"), counted.get("errors")) == (("0", "1") if rule == "verify-answer" else ("1", "0"))


def test_contracts_against_a_patch_are_findings_and_those_that_could_not_be_asked_none() -> None:
    review = as_review(replace(WHOLE, verdict=VerifyVerdict.REFUSED, exit=1))
    (found,) = [d.findings for d in review.decisions if d.gate == "contracts"]
    assert [f.rule for f in found] == ["verify-contract", "verify-contract-asked", "verify-contract-asked"]
    assert not review.rules["verify-contract"].asks_person
    assert review.rules["verify-contract-asked"].asks_person
    assert "contracts" in review.gates
    assert "contracts" not in as_review(replace(WHOLE, contracts=None)).gates
    text = verification_text(WHOLE)
    assert "broken: post: x: " in text
    assert "contracts of g: could-not-answer (" in text


def test_the_claim_stands_in_every_output_and_what_speaks_against_it_is_a_finding() -> None:
    text = verification_text(WHOLE)
    assert "strength D of A to E, of the claim: fixes (inferred)" in text
    assert "  against the claim: f(" in text
    assert "  parts that the repaired tests need: 1 of 2 (1 of 3 not tried)" in text
    assert "      not needed: a.py:3: " in text
    told = verification_json(replace(WHOLE, claim_inferred=False))
    assert (told["claim"], told["claim_inferred"], told["strength"]["claim"]) == ("fixes", False, "fixes")
    assert told["differential"]["unexplained"] == {"crash": 1}
    review = as_review(WHOLE)
    assert "verify-claim" in [f.rule for d in review.decisions for f in d.findings]
    assert b"of the claim: fixes" in page(review)
    assert "verify-claim" in {r["ruleId"] for r in json.loads(sarif(review))["runs"][0]["results"]}
    assert b"(claim: fixes)" in junit(review)
    assert json.loads(sarif(review))["runs"][0]["properties"]["answer"].endswith("(claim: fixes)")


def test_the_headline_is_what_was_shown() -> None:
    one = replace(WHOLE, headline="Tests pass as before")
    assert verification_text(one).startswith("Tests pass as before: r\n")
    assert as_review(one).title == "Tests pass as before: r (claim: fixes)"
    assert "by tests" not in verification_text(replace(WHOLE, full=None)).partition("\n")[0]


def test_mutants_that_read_alike_are_one_line() -> None:
    alive = ("a.py:3 sign: 1 -> -1",) * 8 + ("a.py:4 sign: 2 -> -2",)
    strength = replace(STRENGTH, mutants=Share(part=1, whole=10, missing=alive))
    lines = verification_text(replace(WHOLE, strength=strength)).splitlines()
    assert [line.strip() for line in lines if "alive:" in line] == [
        f"alive: {alive[0]}  (and 7 alike)",
        f"alive: {alive[-1]}",
    ]


GATE = PatchReview(
    verdict=PatchVerdict.NEEDS_PERSON,
    policy="default",
    digest=WHOLE.patch,
    gates=("stakes",),
    decisions=(
        Decision(
            gate="stakes",
            answer=Allow.DENY,
            findings=(Finding(rule="stakes-changed", severity=Severity.LOW, path=PATH, line=1, message="m"),),
        ),
    ),
    rules={
        "stakes-changed": RuleText(id="stakes-changed", severity=Severity.LOW, why="w", remedy="r", asks_person=True)
    },
    not_asked={},
)
APPROVED = replace(
    GATE,
    verdict=PatchVerdict.ALLOWED,
    approval=PatchApproval(
        patch=GATE.digest, change="c", repo="/r", findings="f", policy="p", who="me", reason="why", at="now"
    ),
)
DROPPED = (Contracts(path=PATH, function="g", said=ContractResult.BROKEN, dropped=("post: x",)),)


@pytest.mark.parametrize(
    ("asked", "changes", "failing"),
    [
        (PersonReason.GATES, {"review": GATE}, ["stakes"]),
        (PersonReason.GATES, {"review": GATE, "differential": None}, ["stakes"]),
        (PersonReason.BEHAVIOUR, {}, ["behaviour"]),
        (PersonReason.BEHAVIOUR, {"review": GATE}, ["stakes", "behaviour"]),
        (PersonReason.BEHAVIOUR, {"review": APPROVED}, ["behaviour"]),
        (PersonReason.CONTRACTS, {"contracts": DROPPED}, ["contracts"]),
        (PersonReason.DOCTESTS, {}, ["tests"]),
        (None, {}, []),
        (None, {"review": APPROVED}, []),
    ],
)
def test_junit_fails_where_a_person_is_asked_and_nowhere_else(
    asked: PersonReason | None, changes: dict[str, Any], failing: list[str]
) -> None:
    """Exit 0 is a run without failures, and what is told of a gate that allows is none."""
    verdict = VerifyVerdict.VERIFIED if asked is None else VerifyVerdict.NEEDS_PERSON
    full = replace(FULL, reasons=(), pass_to_fail=(), still_failing=("t::left",))
    base = replace(
        WHOLE, verdict=verdict, exit=int(not verdict.yes), asked=asked, full=full, removed=(), contracts=None
    )
    root = ET.fromstring(junit(as_review(replace(base, asked=asked, **changes))))
    cases = root.findall("./testsuite/testcase")
    assert [case.get("name") for case in cases if case.find("failure") is not None] == failing
    assert (root.get("failures"), root.get("errors")) == (str(len(failing)), "0")
    told = [case.findtext("system-out", "") for case in cases if case.get("name") == "behaviour"]
    assert ("verify-differs" in told[0]) == ("behaviour" not in failing and "differential" not in changes)
