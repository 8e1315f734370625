"""Differences between old and new: which the turned tests explain, of which kind the others are."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localagent.domain.claim import Effect, FunctionEffect
from localagent.domain.verification import Origin
from localagent.verify.evidence.collateral_changes import Answer, Kind, Pair, function_effects, judged


def answer(text: str, kind: Kind = Kind.OK, state: str = "") -> Answer:
    shown = f"raises {text}: why" if kind in (Kind.RAISED, Kind.REFUSED) else text
    return Answer(kind=kind, text=shown, digest=f"{kind}{text}{state}", alone=f"{kind}{text}", held={})


def pair(
    was: Answer,
    now: Answer,
    *,
    origin: Origin = Origin.NEAR,
    old: tuple[int, ...] = (1,),
    new: tuple[int, ...] = (1,),
    **more: object,
) -> Pair:
    made = Pair(
        text="", origin=origin, careless=False, of_turned=False, parts=(), was=was, now=now,
        way=frozenset({*((False, n) for n in old), *((True, n) for n in new)}),
    )  # fmt: skip
    return replace(made, **more)  # type: ignore[arg-type]


WRONG, RIGHT, OTHER = answer("1"), answer("2"), answer("3")
DEMANDED = pair(WRONG, RIGHT, origin=Origin.DEMANDED, old=(1, 2), new=(1, 3))
STEADY = pair(OTHER, OTHER, origin=Origin.TESTED, old=(1, 8), new=(1, 8))


def judge(one: Pair, *others: Pair) -> tuple[Effect, bool]:
    (found,) = [j for j in judged([DEMANDED, STEADY, *others, one]) if j.pair is one]
    return found.effect, found.explained


def test_the_way_of_a_demanded_call_explains_and_that_of_a_steady_one_does_not() -> None:
    assert judge(pair(WRONG, OTHER, old=(1, 2), new=(1, 3))) == (Effect.ANSWER, True)
    assert judge(pair(WRONG, OTHER, old=(1, 2, 4), new=(1, 3, 4))) == (Effect.ANSWER, True)
    assert judge(pair(WRONG, OTHER, old=(1, 8), new=(1, 8))) == (Effect.ANSWER, False)
    assert judge(pair(WRONG, OTHER, old=(1, 8), new=(1, 9))) == (Effect.ANSWER, False)


def test_a_function_of_one_way_is_explained_by_any_demanded_call() -> None:
    same = replace(DEMANDED, way=STEADY.way)
    assert judge(pair(WRONG, OTHER, old=(1, 8), new=(1, 8)), same) == (Effect.ANSWER, True)


def test_what_a_passing_test_asks_is_watched_whatever_its_way() -> None:
    assert judge(pair(WRONG, RIGHT, origin=Origin.TESTED, old=(1, 2), new=(1, 3))) == (Effect.TESTED, False)


def test_the_symptom_of_the_failing_tests_explains_and_a_new_crash_is_never_explained() -> None:
    crash = answer("KeyError", Kind.RAISED)
    failing = replace(DEMANDED, was=crash)
    assert judge(pair(crash, RIGHT, old=(1, 8), new=(1, 8)), failing) == (Effect.ANSWER, True)
    assert judge(pair(crash, RIGHT, origin=Origin.TESTED), failing) == (Effect.TESTED, True)
    assert judge(pair(WRONG, crash, old=(1, 2), new=(1, 3))) == (Effect.CRASH, False)
    assert judge(pair(WRONG, answer("late", Kind.LATE), old=(1, 2), new=(1, 3))) == (Effect.CRASH, False)
    assert judge(pair(WRONG, crash, old=(1, 2), new=(1, 3)), replace(DEMANDED, now=crash)) == (Effect.ANSWER, True)


def test_crashes_on_inputs_that_nobody_means_are_counted_apart() -> None:
    assert judge(pair(WRONG, answer("KeyError", Kind.RAISED), careless=True)) == (Effect.CARELESS, False)
    made_up = pair(WRONG, answer("TypeError", Kind.RAISED), origin=Origin.GENERATED)
    assert judge(made_up) == (Effect.CARELESS, False)
    assert judge(replace(made_up, now=answer("IndexError", Kind.RAISED)))[0] is Effect.CRASH


def test_refusals_and_states_are_kinds_of_their_own() -> None:
    assert judge(pair(WRONG, answer("ValueError", Kind.REFUSED)))[0] is Effect.REFUSAL
    assert judge(pair(WRONG, answer("1", state="x")))[0] is Effect.STATE


def test_without_a_demanded_call_only_its_variations_are_explained() -> None:
    (near,) = judged([STEADY, pair(WRONG, RIGHT, of_turned=True)])
    (far,) = judged([STEADY, pair(WRONG, RIGHT)])
    assert (near.explained, far.explained) == (True, False)


kinds = st.sampled_from([Kind.OK, Kind.REFUSED, Kind.RAISED, Kind.LATE])
answers = st.builds(answer, st.sampled_from("abc"), kinds)
ways = st.lists(st.integers(1, 4), max_size=3).map(tuple)
pairs = st.builds(pair, answers, answers, origin=st.sampled_from(Origin), old=ways, new=ways)


@given(st.lists(pairs, max_size=12))
def test_every_difference_that_is_not_demanded_is_judged_once_and_no_other(some: list[Pair]) -> None:
    found = list(judged(some))
    assert [j.pair for j in found] == [p for p in some if p.differs and p.origin is not Origin.DEMANDED]


@given(st.lists(pairs.map(lambda p: replace(p, origin=Origin.TESTED)), max_size=12))
def test_where_nothing_turned_nothing_is_explained(some: list[Pair]) -> None:
    assert not any(j.explained for j in judged(some))


def test_a_constant_answer_and_a_lost_parameter_are_seen() -> None:
    constant = [pair(answer(str(n)), answer("0")) for n in range(6)]
    assert list(function_effects(constant)) == [(FunctionEffect.CONSTANT, "")]
    assert list(function_effects([*constant, pair(answer("9"), answer("9"))])) == []
    lost = [pair(answer(f"{a}{b}"), answer(a), parts=(("0", a), ("style", b))) for a in ("x", "y") for b in ("k", "l")]
    assert list(function_effects(lost)) == [(FunctionEffect.LOST_PARAMETER, "style")]
    used = [replace(p, now=p.was) if p.parts == (("0", "y"), ("style", "l")) else p for p in lost]
    assert list(function_effects(used)) == []


@pytest.mark.parametrize("kind", [Kind.RAISED, Kind.REFUSED])
def test_an_argument_that_only_decided_whether_it_fails_is_not_lost(kind: Kind) -> None:
    some = [
        pair(answer("E", kind) if b == "l" else answer(a), answer(a), parts=(("0", a), ("style", b)))
        for a in ("x", "y")
        for b in ("k", "l")
    ]
    assert list(function_effects(some)) == []
