"""Costs of candidates that ran before the model had spoken of them, beside those of others."""

from dataclasses import replace

import pytest
from test_model_scoring import A, B, opened

from localagent.domain.edit import Candidate, Patch, Reading
from localagent.repair.ordering.scored_edit import Open, repriced
from localagent.repair.ordering.weights import Weights

WEIGHTS = Weights()


def candidate(number: int, each: Open) -> Candidate:
    step = each.priced(WEIGHTS, mends=True)
    return Candidate(number=number, patch=Patch(changes=()), edits=(step.edit,), cost=step.cost)


def of(*edits: Open) -> dict[int, Open]:
    return {id(each.step.edit): each for each in edits}


def test_who_ran_before_the_answer_costs_what_it_would_have_cost_after_it() -> None:
    early, late = opened(A, 0, 0.5, cost=-0.8), opened(A, 5, 0.5, cost=-0.3)
    late.reading, late.nats = Reading(ratio=-1.0, stood=-1.0), -2.0
    ran = [candidate(1, early), candidate(2, late)]
    assert ran[0].cost > ran[1].cost  # unread: what an average edit costs
    early.reading, early.nats = late.reading, late.nats
    again = repriced(ran, of(early, late), WEIGHTS, mends=True, by_hand=False)
    assert again[0].cost == pytest.approx(again[1].cost - 0.5)
    assert again[1].cost == pytest.approx((ran[1].cost + late.step.cost) / 2)


def test_what_was_not_read_counts_as_the_mean_of_those_that_were() -> None:
    unread, good, bad = (opened(A, k, 0.5) for k in range(3))
    good.reading, bad.reading = Reading(ratio=0.0, stood=-1.0), Reading(ratio=-4.0, stood=-1.0)
    again = repriced(
        [candidate(k, each) for k, each in enumerate((unread, good, bad))],
        of(unread, good, bad),
        WEIGHTS,
        mends=False,
        by_hand=False,
    )
    assert [c.cost for c in again] == pytest.approx([1.0 * WEIGHTS.model, 0.0, 2.0 * WEIGHTS.model])


def test_without_the_model_and_for_what_it_was_not_asked_about_nothing_is_added() -> None:
    asked, written = opened(A, 0, 0.5, cost=1.0), opened(A, 9, 0.5, cost=7.0)
    asked.reading = Reading(ratio=-4.0, stood=-1.0)
    ran = [candidate(1, asked), replace(candidate(2, written), cost=7.0)]
    by_hand = repriced(ran, of(asked), WEIGHTS, mends=True, by_hand=True)
    assert [c.cost for c in by_hand] == [1.0, 7.0]
    assert [c.number for c in by_hand] == [1, 2]


def test_an_edit_that_was_joined_to_another_keeps_the_cost_of_both() -> None:
    """Where the files differ it is the very edit that the snapshot's candidate had, and not its cost."""
    first, second = opened(A, 0, 0.5, cost=3.0), opened(B, 0, 0.5, cost=1.0)
    second.reading = Reading(ratio=0.0, stood=-1.0)
    joined = Candidate(number=3, patch=Patch(changes=()), edits=(first.step.edit, second.step.edit), cost=9.0, parent=1)
    (again,) = repriced([joined], of(first, second), WEIGHTS, mends=False, by_hand=False)
    assert again == joined


def test_what_was_made_of_it_when_it_was_read_on_stays() -> None:
    each = opened(A, 0, 0.5)
    each.reading = Reading(ratio=-1.0, stood=-1.0)
    before = each.priced(WEIGHTS, mends=False).cost
    each.read_on = 2.5
    assert each.priced(WEIGHTS, mends=False).cost == before + 2.5
    (again,) = repriced([candidate(1, each)], of(each), WEIGHTS, mends=False, by_hand=False)
    assert again.cost == pytest.approx((before + 2.5) / 2)
