"""What speaks against a claim limits the grade: never upwards, and the worst of it counts."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localagent.domain.claim import Claim, DifferenceKind, FunctionEffect
from localagent.domain.claim_limits import MANY, claim_limits
from localagent.domain.paths import RepoPath
from localagent.domain.strength import Grade, Limit, Share, graded, limited
from localagent.domain.verification import (
    Difference,
    Differential,
    FunctionChange,
    FunctionReach,
    InputOrigin,
    Mutants,
    Necessity,
    PropertyBreak,
    UnneededPart,
)

PATH = RepoPath("a.py")
FULL = Share(part=20, whole=20)
BEST = graded(lines=FULL, mutants=FULL, functions=FULL, unknown={})
ONE = Difference(path=PATH, function="f", call="f(1)", old="1", new="2", origin=InputOrigin.NEAR)
SAME = Differential(
    functions=(FunctionReach(path=PATH, function="f", compared=99, agreed=99, answered=99),), demanded=1
)
UNNEEDED = Necessity(parts=2, asked=2, unneeded=(UnneededPart(path=PATH, line=3, text="1 -> 2"),), differences=4)

shares = st.none() | st.integers(0, 20).flatmap(lambda n: st.integers(0, n).map(lambda k: Share(part=k, whole=n)))
strengths = st.builds(lambda a, b, c: graded(lines=a, mutants=b, functions=c, unknown={}), shares, shares, shares)


def with_(effect: DifferenceKind, many: int) -> Differential:
    return replace(SAME, differences=(ONE,) * many, unexplained={effect: many})


def grade(
    claim: Claim,
    near: Differential | None,
    necessity: Necessity | None = None,
    *,
    by_checks: bool = False,
    new_tests_ran: bool = True,
) -> Grade:
    found = claim_limits(claim, near, necessity, by_checks=by_checks, new_tests_ran=new_tests_ran)
    return limited(BEST, claim, found).grade


@given(strengths, st.sampled_from(Claim), st.lists(st.builds(Limit, most=st.sampled_from(Grade), reason=st.just("x"))))
def test_limits_only_lower(strength: object, claim: Claim, limits: list[Limit]) -> None:
    found = limited(strength, claim, limits)  # type: ignore[arg-type]
    assert strength.grade.reaches(found.grade)  # type: ignore[attr-defined]
    assert all(limit.most.reaches(found.grade) for limit in limits)
    assert found.claim is claim
    assert len(found.limits) == len(limits)


def test_nothing_against_it_leaves_the_grade() -> None:
    for claim in Claim:
        assert grade(claim, None) is Grade.A
    assert grade(Claim.FIXES, replace(SAME, differences=(ONE,), explained=1)) is Grade.A
    assert grade(Claim.FIXES, SAME, Necessity(parts=2, asked=2)) is Grade.A
    assert grade(Claim.FIXES, with_(DifferenceKind.CARELESS, 3)) is Grade.A


def test_what_was_not_asked_or_what_a_constant_would_pass_limits() -> None:
    alive = Mutants(tried=9, killed=8, space=9, alive=("m.py:3 return-value: a + 1 -> 0",), constant=("m.py:3",))
    either = Necessity(parts=2, asked=2, alternatives=UNNEEDED.unneeded)
    for claim in (Claim.FIXES, Claim.ADDS):
        assert grade(claim, SAME, Necessity(parts=2, asked=0, note="why")) is Grade.C
        assert grade(claim, SAME, either) is Grade.B
        assert limited(BEST, claim, claim_limits(claim, SAME, mutants=alive)).grade is Grade.C
        assert limited(BEST, claim, claim_limits(claim, SAME, fails_on=["t::a", "t::b"])).grade is Grade.C
        assert limited(BEST, claim, claim_limits(claim, SAME, undecided=["t::a"])).grade is Grade.C
    assert grade(Claim.FIXES, SAME, Necessity(parts=0, asked=0, note="no part can be taken back")) is Grade.A


def test_a_property_that_no_test_asks_to_break_and_a_base_of_what_is_raised_limit() -> None:
    broken = PropertyBreak(
        path=PATH, function="f", name="never falls", held=162, call="f(10)", old="5", new="5", unasked=True
    )
    near = replace(SAME, broken_properties=(broken,))
    asked = replace(SAME, broken_properties=(replace(broken, unasked=False),))
    wider = Mutants(tried=9, killed=8, space=9, wider=("m.py:3 exception-swap: KeyError -> LookupError",))
    for claim in (Claim.FIXES, Claim.ADDS):
        assert grade(claim, near) is Grade.C
        assert grade(claim, asked) is Grade.A
        assert limited(BEST, claim, claim_limits(claim, SAME, mutants=wider)).grade is Grade.C
    kept = claim_limits(Claim.PRESERVES, replace(SAME, demanded=0), mutants=wider)
    assert not kept, "what keeps all behaviour is asked of no test"


@pytest.mark.parametrize("claim", [Claim.FIXES, Claim.ADDS])
@pytest.mark.parametrize("effect", [effect for effect in DifferenceKind if effect is not DifferenceKind.CARELESS])
def test_one_unexplained_difference_is_c_and_many_are_d(claim: Claim, effect: DifferenceKind) -> None:
    assert grade(claim, with_(effect, 1)) is Grade.C
    assert grade(claim, with_(effect, MANY)) is Grade.C
    assert grade(claim, with_(effect, 30)) is Grade.D


def test_calls_of_tests_alone_are_no_inputs_near_them() -> None:
    place = replace(SAME, functions=(replace(SAME.functions[0], in_place=True),))
    assert [grade(claim, place) for claim in (Claim.FIXES, Claim.ADDS)] == [Grade.B, Grade.B]
    assert grade(Claim.PRESERVES, replace(place, demanded=0)) is Grade.B
    few = replace(place.functions[0], compared=4)
    assert grade(Claim.FIXES, replace(place, functions=(few,))) is Grade.A  # not reached: the parts tell that


def test_functions_parts_and_checks_have_a_say() -> None:
    lost = FunctionChange(path=PATH, function="f", effect=FunctionEffect.LOST_PARAMETER, parameter="style")
    constant = FunctionChange(path=PATH, function="f", effect=FunctionEffect.CONSTANT)
    assert grade(Claim.FIXES, replace(SAME, function_changes=(lost,))) is Grade.C
    assert grade(Claim.FIXES, replace(SAME, function_changes=(constant,))) is Grade.D
    assert grade(Claim.FIXES, SAME, UNNEEDED) is Grade.C
    for seen in (None, 0, 1):
        assert grade(Claim.FIXES, SAME, replace(UNNEEDED, differences=seen)) is Grade.C
    assert grade(Claim.FIXES, SAME, by_checks=True) is Grade.C
    assert grade(Claim.ADDS, SAME, new_tests_ran=False) is Grade.C
    assert grade(Claim.FIXES, SAME, new_tests_ran=False) is Grade.A
    (unseen,) = claim_limits(Claim.FIXES, SAME, replace(UNNEEDED, differences=0))
    assert "no input that was tried shows what it does" in unseen.reason
    told = claim_limits(Claim.FIXES, replace(SAME, function_changes=(lost, constant)), UNNEEDED)
    assert [str(limit) for limit in told] == [
        "the argument 'style' of f no longer matters: C at most",
        "f returns the same for every input: D at most",
        "every test passes without a part of it: a.py:3 (1 -> 2); 4 inputs answer otherwise because of it: C at most",
    ]


@pytest.mark.parametrize("effect", list(DifferenceKind))
def test_whatever_differs_counts_where_nothing_should(effect: DifferenceKind) -> None:
    assert grade(Claim.UNKNOWN, with_(effect, 1)) is Grade.D
    assert grade(Claim.PRESERVES, with_(effect, 1)) is Grade.E
