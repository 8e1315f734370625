"""Rivals by the mass of what does the same."""

import math

from support.choice_builder import SWAP, candidate

from localagent.repair.acceptance.behaviour_clusters import by_mass, mass
from localagent.repair.acceptance.ranking import RankedCandidate


def standing(number: int, cost: float, row: str) -> RankedCandidate:
    return RankedCandidate(candidate=candidate(number, cost, SWAP), cost=cost, row=(row,) if row else ())


def numbers(order: list[RankedCandidate]) -> list[int]:
    return [s.candidate.number for s in order]


def test_three_that_agree_outweigh_one_that_costs_a_little_less_and_their_cheapest_is_taken() -> None:
    order = [standing(1, 1.0, "a"), standing(2, 1.2, "b"), standing(3, 1.3, "b"), standing(4, 1.4, "b")]
    taken, rivals = by_mass(order, order[1:])
    assert numbers(taken) == [2, 3, 4, 1]
    assert numbers(rivals) == [1]


def test_many_that_cost_far_more_outweigh_nothing() -> None:
    order = [standing(1, 1.0, "a"), *(standing(n, 5.0, "b") for n in range(2, 8))]
    taken, rivals = by_mass(order, order[1:2])
    assert numbers(taken) == [1, 2, 3, 4, 5, 6, 7]
    assert numbers(rivals) == [2]


def test_those_that_nobody_could_compare_do_not_agree() -> None:
    order = [standing(1, 1.0, "a"), *(standing(n, 1.1, "") for n in (2, 3, 4))]
    assert numbers(by_mass(order, order[1:])[0]) == [1, 2, 3, 4]


def test_whoever_is_no_rival_stays_behind_and_speaks_for_its_cluster() -> None:
    order = [standing(1, 1.0, "a"), standing(2, 1.1, "b"), standing(3, 1.6, "c"), standing(4, 1.7, "b")]
    taken, rivals = by_mass(order, [order[1]])
    assert numbers(taken) == [2, 1, 3, 4]
    assert numbers(rivals) == [1]


def test_the_mass_of_two_equals_is_theirs_together() -> None:
    assert math.isclose(mass([standing(1, 2.0, "a"), standing(2, 2.0, "a")]), math.log(2) - 2.0)
