"""Too little proof is said: rivals, guesses, inventions and weak tests leave it to a person."""

from dataclasses import replace

import pytest
from support.choice_builder import COLON, SWAP, alone, candidate, edit, near, standings

from localagent.domain.behaviour import Behaviours
from localagent.domain.edit import Edit
from localagent.domain.edit import EditEffect as E
from localagent.repair.acceptance.ambiguity import settled, undecided, unproven, weak
from localagent.repair.acceptance.ranking import RankedCandidate, ranked

NAMED, LEXEME = edit(E.MENDS_NAME, E.EXPLAINED, E.RESEMBLES), edit(E.MENDS_SYNTAX, E.REPLACES_LEXEME)
BODY = (E.REPLACES_CALL, E.MENDS_NAME, E.INVENTS)
LINE = edit(E.MENDS_SYNTAX, E.DELETES, E.DELETES_LINE)


def test_many_guesses_under_few_tests_are_not_believed() -> None:
    guessed = candidate(1, 0.0, COLON, SWAP, SWAP)
    assert unproven(alone(guessed), 3, 1)
    assert not unproven(alone(guessed), 4, 1)
    assert not unproven(alone(guessed), 3, 2)
    elsewhere = replace(SWAP, line=2)
    assert not unproven(alone(candidate(1, 0.0, SWAP, elsewhere)), 1, 1)
    assert unproven(alone(candidate(1, 0.0, SWAP, SWAP)), 1, 1)
    assert not unproven(alone(candidate(1, 0.0, COLON, COLON, NAMED, SWAP)), 1, 1)
    dropped = edit(E.MENDS_NAME, E.EXPLAINED, E.DROPS_UNDEFINED)
    assert unproven(alone(candidate(1, 0.0, COLON, COLON, dropped, SWAP)), 1, 1)
    meant = edit(E.MENDS_NAME)
    assert unproven(alone(candidate(1, 0.0, COLON, meant, meant)), 1, 1)  # words of a name are a guess


def test_several_guesses_are_believed_where_what_else_passes_behaves_alike() -> None:
    guessed = RankedCandidate(candidate=candidate(1, 0.0, COLON, SWAP, SWAP), cost=0.0, row=("ok:a",))
    same = RankedCandidate(candidate=candidate(2, 1.0, COLON, SWAP, SWAP), cost=1.0, row=("ok:a",))
    assert not unproven([guessed, same], 1, 1)
    assert unproven([guessed], 1, 1)
    assert unproven([guessed, replace(same, row=())], 1, 1)
    assert unproven([replace(guessed, row=()), same, same], 1, 1)
    assert unproven([guessed, same, replace(same, row=("ok:b",))], 1, 1)
    off = replace(guessed, candidate=candidate(1, 0.0, edit(E.REUSES_CALL, E.INVENTS, E.RESEMBLES)))
    assert unproven([off, same], 1, 1)  # a single one that was made up stays so


def test_near_rivals_that_do_something_else_leave_it_undecided() -> None:
    close = ranked([candidate(1, 0.0, SWAP), candidate(2, 0.1, SWAP)], near({1: ("ok:a",), 2: ("ok:b",)}))
    assert [s.candidate.number for s in undecided(close, 1, 60)] == [2]
    assert undecided(close, 4, 60) == []
    alike = ranked([candidate(1, 0.0, SWAP), candidate(2, 0.1, SWAP)], near({1: ("ok:a",), 2: ("ok:a",)}))
    assert undecided(alike, 1, 60) == []


def test_where_the_parser_failed_the_smallest_repair_is_believed_unless_any_token_would_do() -> None:
    colon = [candidate(1, 0.0, COLON), candidate(2, 0.1, SWAP)]
    assert undecided(ranked(colon, Behaviours()), 1, 60) == []
    token = [candidate(k, 0.1 * k, LEXEME) for k in (1, 2)]
    assert [s.candidate.number for s in undecided(ranked(token, Behaviours()), 1, 60)] == [2]


def test_an_assignment_in_a_condition_was_meant_to_compare_even_where_every_program_passes() -> None:
    def rivals(*first: Edit) -> int:
        rest = [candidate(k, 0.1, COLON) for k in range(1, 9)]
        return len(undecided(ranked([candidate(0, -1.0, *first), *rest], Behaviours()), 1, 9))

    compares = edit(E.MENDS_SYNTAX, E.COMPARES)
    assert rivals(compares) == 0
    assert rivals(COLON) == rivals(compares, compares) == 8


def test_what_error_messages_explain_is_no_guess() -> None:
    def rivals(*edits: Edit, apart: float = 0.5) -> int:
        first = candidate(1, 0.0, *edits)
        rest = [candidate(k, apart + sum(1.0 for _ in edits[1:]), SWAP) for k in range(2, 9)]
        return len(undecided(ranked([first, *rest], Behaviours()), 1, 60))

    assert rivals(COLON, NAMED, apart=-0.5) == 0  # the parser and a NameError told both
    assert rivals(NAMED, COLON, apart=-0.5) == 0
    assert rivals(COLON, LEXEME, apart=0.1) == rivals(LEXEME, COLON, apart=0.1) == 7
    both = edit(E.MENDS_SYNTAX, E.REPLACES_LEXEME, E.SEVERAL_FIXES)
    assert rivals(both, apart=0.1) == 7
    assert rivals(both, apart=0.6) == 7  # two slips of which one is a guess
    assert rivals(LEXEME, apart=0.6) == 0
    assert rivals(NAMED, SWAP) == 0  # one guess beside it counts as one edit
    assert rivals(SWAP, SWAP) == 7
    assert rivals(COLON, edit(E.MENDS_NAME, E.EXPLAINED, E.DROPS_UNDEFINED), apart=-0.5) > 0


def test_programs_of_many_kinds_that_pass_mean_tests_that_tell_little() -> None:
    def order(kinds: int) -> list[RankedCandidate]:
        candidates = [candidate(k, 0.4 * k, SWAP) for k in range(kinds + 2)]
        return ranked(candidates, near({k: (f"ok:{k % kinds}",) for k in range(kinds + 2)}))

    assert undecided(order(3), 1, 60) == []
    assert {s.row for s in undecided(order(4), 1, 60)} == {("ok:1",), ("ok:2",), ("ok:3",)}
    assert {s.row for s in undecided(order(5), 1, 60)} == {("ok:1",), ("ok:2",), ("ok:3",), ("ok:4",)}
    assert undecided(order(5), 4, 60) == []


def test_four_kinds_make_rivals_of_what_costs_up_to_two_more() -> None:
    def order(apart: float) -> list[RankedCandidate]:
        costs = [0.0, apart, apart + 2.5, apart + 2.5]
        return ranked([candidate(k, c, SWAP) for k, c in enumerate(costs)], near({k: (f"ok:{k}",) for k in range(4)}))

    assert [s.candidate.number for s in undecided(order(1.9), 1, 60)] == [1]
    assert undecided(order(2.1), 1, 60) == []


def test_a_quarter_of_all_programs_passing_means_the_same() -> None:
    order = ranked(
        [candidate(k, 0.3 * k, SWAP) for k in range(10)], near({k: ("ok:a" if k < 9 else "ok:b",) for k in range(10)})
    )
    assert undecided(order, 1, 60) == []
    assert [s.candidate.number for s in undecided(order, 1, 39)] == [9]


def test_several_slips_of_the_parser_under_weak_tests_need_a_person() -> None:
    both = edit(E.MENDS_SYNTAX, E.SEVERAL_FIXES)
    order = ranked([candidate(1, 0.0, both), *(candidate(k, 0.3 * k, SWAP) for k in range(2, 9))], Behaviours())
    assert undecided(order, 1, 60) == []
    assert len(undecided(order, 1, 20)) == 7
    assert undecided(ranked([candidate(1, 0.0, COLON), candidate(2, 1.0, SWAP)], Behaviours()), 1, 4) == []
    many = ranked([candidate(1, 0.0, COLON), *(candidate(k, 1.0, SWAP) for k in range(2, 9))], Behaviours())
    assert undecided(many, 1, 17) == []
    assert len(undecided(many, 1, 15)) == 7  # half of all programs pass: such tests say nothing


def test_weak_tests_do_not_make_a_rival_of_what_costs_far_more() -> None:
    rows = {k: (f"ok:{k}",) for k in range(6)}
    order = ranked([candidate(k, 0.0 if k == 0 else 3.1 + 0.01 * k, SWAP) for k in range(6)], near(rows))
    assert weak(order, 60)
    assert undecided(order, 1, 60) == []


def test_many_programs_that_all_behave_alike_are_no_sign_of_weak_tests() -> None:
    made = [candidate(k, 0.1 * k, SWAP) for k in range(1, 6)]
    alike = ranked(made, near(dict.fromkeys(range(1, 6), ("ok:a",))))
    assert not weak(alike, 12)
    assert weak(ranked(made, near({k: (f"ok:{k % 2}",) for k in range(1, 6)})), 12)
    assert weak(ranked(made, Behaviours()), 12)  # nobody knows what they do


@pytest.mark.parametrize(
    ("edits", "doubted"),
    [
        ((COLON, edit(E.GUARDS_BOUNDS, E.INVENTS)), True),
        ((COLON, edit(*BODY)), True),
        ((COLON, edit(*BODY, E.RESEMBLES)), False),
        ((COLON, edit(E.MENDS_NAME)), False),
        ((edit(*BODY),), False),
        ((edit(*BODY, E.CALLS_WITH_ARGUMENTS),), True),
        ((edit(*BODY, E.CALLS_WITH_ARGUMENTS, E.RESEMBLES),), False),
        ((edit(E.MOVES_BOUNDARY, E.INVENTS),), False),
        ((edit(E.REUSES_CALL, E.INVENTS),), True),
        ((edit(E.WRITTEN_BY_MODEL),), True),
        ((LINE, SWAP), True),
        ((LINE, COLON), False),
        ((edit(E.MENDS_SYNTAX, E.COMMENTS_OUT, E.SEVERAL_FIXES),), True),
        ((edit(E.NEGATES_EQUALITY),), True),
        ((edit(E.NEGATES_ORDER),), False),
        ((edit(E.CHANGES_ARITHMETIC),), True),
        ((edit(E.RETURNS_LITERAL),), True),
        ((edit(E.STARTS_FROM_EXPRESSION),), True),
        ((COLON, SWAP), False),
    ],
)
def test_what_is_made_up_is_not_believed_beside_other_edits(edits: tuple[Edit, ...], doubted: bool) -> None:
    assert unproven(alone(candidate(1, 0.0, *edits)), 1, 1) is doubted
    assert not unproven(alone(candidate(1, 0.0, *edits)), 4, 2)


def test_a_reread_order_settles_by_a_margin_only() -> None:
    assert settled(standings(1.0, 1.25), 60)
    assert not settled(standings(1.0, 1.15), 60)
    assert settled(standings(1.0, 1.1, row="ok:same"), 60)
    assert settled(standings(1.0, 1.5, 2.0, 2.0, row="ok:same"), 60)
    assert not settled(standings(1.0, 1.5, 2.0, 2.0, row="ok:same"), 12)  # so many pass that the tests tell little
    assert settled(standings(1.0, 9.0, 9.0), 60)
    assert settled(standings(1.0, *[9.0] * 5), 60)
    assert settled(standings(1.0, *[2.1] * 3), 60)
    assert not settled(standings(1.0, *[1.9] * 3), 60)  # four kinds need a lead of one
    assert settled(standings(1.0, 1.9, 1.9), 60)
    assert not settled(standings(1.0, *[9.0] * 6), 60)  # seven kinds of programs pass
    two = [replace(s, candidate=candidate(s.candidate.number, s.cost, SWAP, SWAP)) for s in standings(1.0, 9.0)]
    assert not settled(two, 60)
    made_up = edit(E.GUARDS_BOUNDS, E.INVENTS)
    one = [replace(s, candidate=candidate(s.candidate.number, s.cost, made_up)) for s in standings(1.0, 9.0)]
    assert not settled(one, 60)


@pytest.mark.parametrize(
    "effect",
    [E.DELETES, E.LEAVES_EARLY, E.UNWRAPS_BLOCK, E.REPLACES_LEXEME, E.SHORTENS_TO_WORD, E.INVENTS_LITERAL],
)
def test_what_only_takes_away_or_makes_a_value_up_is_left_to_a_person_under_few_tests(effect: E) -> None:
    assert unproven(alone(candidate(1, 0.0, edit(effect))), 3, 1)
    assert not unproven(alone(candidate(1, 0.0, edit(effect))), 4, 1)


def test_tokens_that_are_deleted_to_mend_the_syntax_take_nothing_away() -> None:
    assert not unproven(alone(candidate(1, 0.0, edit(E.MENDS_SYNTAX, E.DELETES))), 1, 1)


def test_a_missing_name_that_becomes_another_is_believed() -> None:
    assert not unproven(alone(candidate(1, 0.0, NAMED)), 1, 1)
