"""The choice: agreement counts voices, faults count against the majority, what an edit takes away costs."""

from dataclasses import replace

import pytest
from support.choice_builder import SWAP, candidate, edit, near, standings

from localagent.domain.behaviour import Behaviours
from localagent.domain.edit import EditEffect as E
from localagent.repair.acceptance.ranking import FAR, agreement, faults, malus, other_behaviours, ranked, reread


def test_equal_programs_are_one_voice_and_the_unpatched_one_has_none() -> None:
    rows = {0: ("ok:z", "ok:z"), 1: ("ok:a", "ok:b"), 2: ("ok:a", "ok:b"), 3: ("ok:a", "ok:c")}
    assert agreement(rows) == {1: 0.5, 2: 0.5, 3: 0.5}


def test_an_outlier_agrees_least() -> None:
    found = agreement({1: ("ok:a", "ok:b"), 2: ("ok:a", "ok:c"), 3: ("ok:x", "ok:y")})
    assert found[1] == found[2] > found[3] == 0.0


def test_only_faults_where_most_answer_count() -> None:
    rows = {1: ("ok:a", "raised:r"), 2: ("ok:b", "raised:s"), 3: ("raised:q", "raised:r")}
    assert faults(rows) == {1: 0.0, 2: 0.0, 3: 0.5}


def test_losing_a_call_costs_more_than_correcting_its_name() -> None:
    lost, kept = edit(E.REPLACES_CALL, E.DROPS_CALL), edit(E.REPLACES_CALL)
    assert malus(lost) > malus(kept)
    assert malus(lost, choosing=False) == malus(kept, choosing=False)  # a search that goes on from it tries both
    assert malus(edit(E.MENDS_NAME, E.DROPS_UNDEFINED)) > malus(edit(E.MENDS_NAME))


def test_denying_a_condition_of_several_parts_costs_more_than_denying_one() -> None:
    assert malus(edit(E.NEGATES_SEVERAL)) > malus(edit())


def test_the_strongest_of_what_is_taken_away_counts_and_the_rest_is_added() -> None:
    assert malus(edit(E.DELETES, E.WRAPS)) == malus(edit(E.DELETES)) > malus(edit(E.WRAPS)) > 0.0
    assert malus(edit(E.WRAPS, E.NEGATES_ORDER)) == malus(edit(E.WRAPS)) + malus(edit(E.NEGATES_ORDER))


def test_a_missing_name_that_becomes_one_like_it_is_believed_more() -> None:
    assert malus(edit(E.MENDS_NAME, E.RESEMBLES)) < malus(edit(E.MENDS_NAME))
    assert malus(edit(E.INVENTS, E.RESEMBLES)) == malus(edit(E.INVENTS))  # no name was missing


def test_a_candidate_nobody_could_compare_is_neither_better_nor_worse_for_it() -> None:
    alike = {2: ("ok:a",), 3: ("ok:a",)}
    order = ranked([candidate(1, 0.5, SWAP), candidate(2, 1.0, SWAP), candidate(3, 2.0, SWAP)], near(alike))
    assert [s.candidate.number for s in order] == [1, 2, 3]


def test_a_program_that_crashes_near_the_tests_costs_more_where_that_is_asked() -> None:
    rows = {1: ("ok:a", *("raised:x",) * 4), 2: ("ok:a", *("ok:b",) * 4)}
    told = Behaviours(rows=rows, kept=(False, *(True,) * 4), seen=(True, *(False,) * 4))
    both = [candidate(1, 0.0, SWAP), candidate(2, 1.0, SWAP)]
    assert [s.candidate.number for s in ranked(both, told)] == [1, 2]
    assert [s.candidate.number for s in ranked(both, told, shaky=2.0)] == [2, 1]


def test_an_operator_of_another_kind_is_believed_less_and_a_stray_one_goes_for_less() -> None:
    assert malus(edit(E.CHANGES_ARITHMETIC)) > 0.0 > malus(edit(E.DROPS_ONE))


def test_behaviours_far_behind_are_no_rivals() -> None:
    costs = (1.0, 1.0 + FAR, 1.5 + FAR, 1.2, 0.5)
    rows = (("a",), ("b",), ("c",), (), ("a",))
    order = [replace(s, row=row) for s, row in zip(standings(*costs), rows, strict=True)]
    assert other_behaviours(order[0], order) == 1
    assert other_behaviours(order[2], order) == 2
    assert other_behaviours(order[3], order) == 0  # nobody knows what it does


def test_what_reads_more_naturally_comes_first_and_the_unread_stay_behind() -> None:
    order = reread(standings(1.0, 1.2, 1.3), {1: -9.0, 2: -2.0})
    assert [s.candidate.number for s in order] == [2, 1, 3]
    assert order[0].cost == 1.2  # the likeliest costs nothing more
    assert order[2].cost - 1.3 == pytest.approx(order[1].cost - 1.0)
    far = reread(standings(1.0, 1.2), {1: -900.0, 2: -2.0})
    assert far[1].cost == pytest.approx(7.0)  # bounded: one odd text is not infinitely wrong
