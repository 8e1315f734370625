"""The first line says what was shown, and no more. Laws over all cases; the wording by example."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localagent.app.review.claim_verdict import Case, shown
from localagent.app.review.patch_evidence import Evidence
from localagent.domain.claim import Claim
from localagent.domain.claim_limits import claim_limits
from localagent.domain.outcome import FullResult
from localagent.domain.paths import RepoPath
from localagent.domain.strength import Share, graded, limited
from localagent.domain.verification import (
    Basis,
    Difference,
    Differential,
    FunctionReach,
    InputOrigin,
    Mutants,
    VerifyVerdict,
)

PATH = RepoPath("a.py")
FULL = FullResult(accepted=True, reasons=(), fail_to_pass=(), pass_to_pass=("t::a",), pass_to_fail=(), still_failing=())
ONE = Difference(path=PATH, function="f", call="f(1)", old="1", new="2", origin=InputOrigin.NEAR)


def case(
    claim: Claim, turned: tuple[str, ...], differences: int, compared: int, rests: set[Basis], **more: Any
) -> Case:
    near = Differential(
        functions=(FunctionReach(path=PATH, function="f", compared=compared, agreed=compared, answered=compared),),
        differences=(ONE,) * differences,
    )
    tests = tuple(i for i in turned if not i.startswith("check:"))
    evidence = Evidence(differential=near, turned=tests, mutants=Mutants(tried=5, killed=5, space=5))
    share = Share(part=9, whole=9)
    strength = limited(
        graded(lines=share, mutants=share, functions=share, unknown={}), claim, claim_limits(claim, near)
    )
    made = Case(
        claim=claim,
        full=replace(FULL, fail_to_pass=turned),
        evidence=evidence,
        strength=strength,
        rests=tuple(rests),
        tested=True,
        changes=True,
        left=0,
    )
    return replace(made, **more)


cases = st.builds(
    case,
    st.sampled_from(Claim),
    st.lists(st.sampled_from(["t::b", "t::c", "check:python x.py"]), unique=True).map(tuple),
    st.integers(0, 3),
    st.integers(0, 9),
    st.sets(st.sampled_from(Basis)),
    tested=st.booleans(),
    changes=st.booleans(),
    left=st.integers(0, 2),
)


@given(cases)
def test_only_a_turned_test_makes_verified_by_tests(one: Case) -> None:
    said = shown(one)
    if not one.evidence.turned:
        assert "verified by tests" not in f"{said.headline}: {said.reason}"
    if not one.turned:
        assert "verified" not in f"{said.headline}: {said.reason}"


@given(cases)
def test_a_refactoring_that_answers_otherwise_is_never_a_yes(one: Case) -> None:
    near = one.near
    assert near is not None
    if one.claim is Claim.PRESERVES and (near.others or one.turned):
        assert shown(one).verdict is VerifyVerdict.REFUTED


@given(cases)
def test_no_difference_that_nobody_asked_for_is_a_yes_without_a_turned_test(one: Case) -> None:
    said = shown(one)
    near = one.near
    assert near is not None
    if not one.turned and near.others:
        assert not said.verdict.yes
    assert said.verdict.yes or said.remedy


@given(cases)
def test_a_claim_to_fix_or_add_needs_something_that_turned(one: Case) -> None:
    if one.claim in (Claim.FIXES, Claim.ADDS):
        assert shown(one).verdict is (VerifyVerdict.VERIFIED if one.turned else VerifyVerdict.UNPROVEN)


def first_line(one: Case) -> str:
    said = shown(one)
    return f"{said.headline}: {said.reason}" if said.headline else said.reason


@pytest.mark.parametrize(
    ("one", "line"),
    [
        (
            case(Claim.FIXES, ("t::b",), 0, 9, {Basis.TESTS}),
            "Patch verified by tests: 1 fail-to-pass, 1 pass-to-pass, 0 pass-to-fail",
        ),
        (
            case(Claim.FIXES, ("check:x",), 0, 9, {Basis.CHECKS}),
            "Patch verified by its check, not by tests: 1 fail-to-pass, 1 pass-to-pass, 0 pass-to-fail",
        ),
        (
            case(Claim.UNKNOWN, (), 2, 9, {Basis.TESTS}),
            "tests pass as before; 2 of 9 inputs answer otherwise: what it is for is not known, the smallest: "
            "f(1): 1 -> 2",
        ),
        (
            case(Claim.PRESERVES, (), 0, 9, {Basis.TESTS}),
            "Patch keeps what it touches as it was: tests pass as before (0 fail-to-pass, 1 pass-to-pass, "
            "0 pass-to-fail), and no answer differs on all 9 inputs that were tried",
        ),
        (case(Claim.PRESERVES, (), 1, 9, set()), "1 of 9 inputs answer otherwise, the smallest: f(1): 1 -> 2"),
        (
            case(Claim.PRESERVES, ("t::b",), 0, 9, set()),
            "t::b failed before and passes with it, so it does not keep what was there",
        ),
        (
            case(Claim.PRESERVES, (), 0, 2, {Basis.TESTS}),
            "Tests pass as before: 0 fail-to-pass, 1 pass-to-pass, 0 pass-to-fail; old and new could not be compared "
            "on all that it changes",
        ),
        (
            case(Claim.ADDS, (), 0, 9, {Basis.TESTS}),
            "no test that failed before passes with it, so that it adds anything was not shown; 0 fail-to-pass, "
            "1 pass-to-pass, 0 pass-to-fail",
        ),
    ],
)
def test_the_first_line(one: Case, line: str) -> None:
    assert first_line(one) == line


def test_what_speaks_against_a_fix_stands_in_its_first_line() -> None:
    near = Differential(functions=case(Claim.FIXES, (), 0, 9, set()).near.functions, differences=(ONE,))  # type: ignore[union-attr]
    one = case(Claim.FIXES, ("t::b",), 0, 9, {Basis.TESTS})
    assert one.strength is not None
    weak = limited(one.strength, Claim.FIXES, claim_limits(Claim.FIXES, near, by_checks=True))
    line = first_line(replace(one, strength=weak))
    assert line.startswith("Patch turns its tests, and there is more to it than they show: 1 fail-to-pass")
    assert line.endswith("; only checks turned, and no mutant was put to them: C at most")


def test_files_that_could_not_be_imported_are_told_as_such() -> None:
    turned = Evidence(turned=("tests/test_b.py::test_a", "tests/test_b.py::test_b", "tests/test_c.py::test_d"))
    said = shown(
        case(Claim.ADDS, ("collect:tests/test_b.py", "tests/test_c.py::test_d"), 0, 9, {Basis.TESTS}, evidence=turned)
    )
    assert "2 fail-to-pass (a file that could not be imported before, with 2 tests), 1 pass-to-pass" in said.reason
