"""Differences between old and new: which the turned tests explain, of which kind the others are."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localagent.domain.claim import DifferenceKind, FunctionEffect
from localagent.domain.verification import InputOrigin
from localagent.verify.evidence.collateral_changes import AnswerPair, CallAnswer, CallOutcome, function_effects, judged


def answer(text: str, kind: CallOutcome = CallOutcome.OK, state: str = "") -> CallAnswer:
    shown = f"raises {text}: why" if kind in (CallOutcome.RAISED, CallOutcome.REFUSED) else text
    return CallAnswer(kind=kind, text=shown, digest=f"{kind}{text}{state}", alone=f"{kind}{text}", held={})


def pair(
    was: CallAnswer,
    now: CallAnswer,
    *,
    origin: InputOrigin = InputOrigin.NEAR,
    old: tuple[int, ...] = (1,),
    new: tuple[int, ...] = (1,),
    **more: object,
) -> AnswerPair:
    made = AnswerPair(
        text="", origin=origin, careless=False, of_turned=False, in_place=False, parts=(), was=was, now=now,
        way=frozenset({*((False, n) for n in old), *((True, n) for n in new)}),
    )  # fmt: skip
    return replace(made, **more)  # type: ignore[arg-type]


WRONG, RIGHT, OTHER = answer("1"), answer("2"), answer("3")
DEMANDED = pair(WRONG, RIGHT, origin=InputOrigin.DEMANDED, old=(1, 2), new=(1, 3))
STEADY = pair(OTHER, OTHER, origin=InputOrigin.TESTED, old=(1, 8), new=(1, 8))


def judge(one: AnswerPair, *others: AnswerPair) -> tuple[DifferenceKind, bool]:
    (found,) = [j for j in judged([DEMANDED, STEADY, *others, one]) if j.pair is one]
    return found.effect, found.explained


def test_the_way_of_a_demanded_call_explains_and_that_of_a_steady_one_does_not() -> None:
    assert judge(pair(WRONG, OTHER, old=(1, 2), new=(1, 3))) == (DifferenceKind.ANSWER, True)
    assert judge(pair(WRONG, OTHER, old=(1, 2, 4), new=(1, 3, 4))) == (DifferenceKind.ANSWER, True)
    assert judge(pair(WRONG, OTHER, old=(1, 8), new=(1, 8))) == (DifferenceKind.ANSWER, False)
    assert judge(pair(WRONG, OTHER, old=(1, 8), new=(1, 9))) == (DifferenceKind.ANSWER, False)


def test_a_function_of_one_way_is_explained_by_any_demanded_call() -> None:
    same = replace(DEMANDED, way=STEADY.way)
    assert judge(pair(WRONG, OTHER, old=(1, 8), new=(1, 8)), same) == (DifferenceKind.ANSWER, True)


def test_what_a_passing_test_asks_is_watched_whatever_its_way() -> None:
    assert judge(pair(WRONG, RIGHT, origin=InputOrigin.TESTED, old=(1, 2), new=(1, 3))) == (
        DifferenceKind.TESTED,
        False,
    )


def test_what_a_passing_test_only_leaves_otherwise_is_explained_by_the_very_way_of_a_demanded_call() -> None:
    left = answer("1", state="x")
    one = pair(WRONG, left, origin=InputOrigin.TESTED, old=(1, 2), new=(1, 3))
    assert judge(one) == (DifferenceKind.TESTED, True)
    assert judge(replace(one, now=RIGHT)) == (DifferenceKind.TESTED, False)
    assert judge(pair(WRONG, left, origin=InputOrigin.TESTED, old=(1, 2), new=(1, 3, 4))) == (
        DifferenceKind.TESTED,
        False,
    )
    assert judge(one, replace(STEADY, way=one.way)) == (DifferenceKind.TESTED, False), "some call stays on that way"
    unknown = replace(one, way=frozenset())
    assert judge(unknown, replace(DEMANDED, way=frozenset())) == (DifferenceKind.TESTED, False)


def test_the_symptom_of_the_failing_tests_explains_and_a_new_crash_is_never_explained() -> None:
    crash = answer("KeyError", CallOutcome.RAISED)
    failing = replace(DEMANDED, was=crash)
    assert judge(pair(crash, RIGHT, old=(1, 8), new=(1, 8)), failing) == (DifferenceKind.ANSWER, True)
    assert judge(pair(crash, RIGHT, origin=InputOrigin.TESTED), failing) == (DifferenceKind.TESTED, True)
    assert judge(pair(WRONG, crash, old=(1, 2), new=(1, 3))) == (DifferenceKind.CRASH, False)
    assert judge(pair(WRONG, answer("late", CallOutcome.LATE), old=(1, 2), new=(1, 3))) == (DifferenceKind.CRASH, False)
    assert judge(pair(WRONG, crash, old=(1, 2), new=(1, 3)), replace(DEMANDED, now=crash)) == (
        DifferenceKind.ANSWER,
        True,
    )


def test_crashes_on_inputs_that_nobody_means_are_counted_apart() -> None:
    assert judge(pair(WRONG, answer("KeyError", CallOutcome.RAISED), careless=True)) == (DifferenceKind.CARELESS, False)
    made_up = pair(WRONG, answer("TypeError", CallOutcome.RAISED), origin=InputOrigin.GENERATED)
    assert judge(made_up) == (DifferenceKind.CARELESS, False)
    assert judge(replace(made_up, now=answer("IndexError", CallOutcome.RAISED)))[0] is DifferenceKind.CRASH


def test_refusals_and_states_are_kinds_of_their_own() -> None:
    assert judge(pair(WRONG, answer("ValueError", CallOutcome.REFUSED)))[0] is DifferenceKind.REFUSAL
    assert judge(pair(WRONG, answer("1", state="x")))[0] is DifferenceKind.STATE


def test_without_a_demanded_call_only_its_variations_are_explained() -> None:
    (near,) = judged([STEADY, pair(WRONG, RIGHT, of_turned=True)])
    (far,) = judged([STEADY, pair(WRONG, RIGHT)])
    assert (near.explained, far.explained) == (True, False)


kinds = st.sampled_from([CallOutcome.OK, CallOutcome.REFUSED, CallOutcome.RAISED, CallOutcome.LATE])
answers = st.builds(answer, st.sampled_from("abc"), kinds)
ways = st.lists(st.integers(1, 4), max_size=3).map(tuple)
pairs = st.builds(pair, answers, answers, origin=st.sampled_from(InputOrigin), old=ways, new=ways)


@given(st.lists(pairs, max_size=12))
def test_every_difference_that_is_not_demanded_is_judged_once_and_no_other(some: list[AnswerPair]) -> None:
    found = list(judged(some))
    assert [j.pair for j in found] == [p for p in some if p.differs and p.origin is not InputOrigin.DEMANDED]


@given(st.lists(pairs.map(lambda p: replace(p, origin=InputOrigin.TESTED)), max_size=12))
def test_where_nothing_turned_nothing_is_explained(some: list[AnswerPair]) -> None:
    assert not any(j.explained for j in judged(some))


def test_a_constant_answer_and_a_lost_parameter_are_seen() -> None:
    constant = [pair(answer(str(n)), answer("0")) for n in range(6)]
    assert list(function_effects(constant)) == [(FunctionEffect.CONSTANT, "")]
    some = [*constant, pair(answer("9"), answer("9"))]
    assert list(function_effects(some)) == [(FunctionEffect.ONE_CHANGE, "")]
    demanded = [
        pair(answer(str(n)), answer("0"), origin=InputOrigin.DEMANDED, parts=(("n", str(n)),)) for n in range(1, 4)
    ]
    assert list(function_effects([*some, *demanded])) == [], "then tests ask for that answer"
    lost = [pair(answer(f"{a}{b}"), answer(a), parts=(("0", a), ("style", b))) for a in ("x", "y") for b in ("k", "l")]
    assert list(function_effects(lost)) == [(FunctionEffect.LOST_PARAMETER, "style")]
    used = [replace(p, now=p.was) if p.parts == (("0", "y"), ("style", "l")) else p for p in lost]
    assert list(function_effects(used)) == []


def test_most_answers_changed_for_one_demanded_call_and_nothing_shows_what_stays() -> None:
    asked = pair(answer("1"), answer("-1"), origin=InputOrigin.DEMANDED, parts=(("n", "1"),))
    near = [pair(answer(str(n)), answer(f"-{n}")) for n in range(2, 6)]
    assert list(function_effects([asked, *near])) == [(FunctionEffect.MOST_CHANGED, "")]
    stays = pair(answer("0"), answer("0"), origin=InputOrigin.TESTED)
    assert list(function_effects([asked, *near, stays])) == []
    refuses = replace(
        stays, was=answer("IndexError", CallOutcome.REFUSED), now=answer("IndexError", CallOutcome.REFUSED)
    )
    assert list(function_effects([asked, *near, refuses])) == [(FunctionEffect.MOST_CHANGED, "")]
    as_before = [pair(answer(str(n)), answer(str(n))) for n in range(10, 16)]
    assert list(function_effects([asked, *near, *as_before])) == []
    broke = [replace(p, was=answer("ValueError", CallOutcome.RAISED)) for p in near]
    assert list(function_effects([asked, *broke])) == [], "what broke before gave no answer that could stay"


def test_answers_of_a_wrong_type_compare_nothing() -> None:
    bad = answer("TypeError", CallOutcome.RAISED)
    assert [pair(bad, bad).misfit, pair(bad, WRONG).misfit, pair(WRONG, WRONG).misfit] == [True, False, False]


@pytest.mark.parametrize("kind", [CallOutcome.RAISED, CallOutcome.REFUSED])
def test_an_argument_that_only_decided_whether_it_fails_is_not_lost(kind: CallOutcome) -> None:
    some = [
        pair(answer("E", kind) if b == "l" else answer(a), answer(a), parts=(("0", a), ("style", b)))
        for a in ("x", "y")
        for b in ("k", "l")
    ]
    assert list(function_effects(some)) == []
