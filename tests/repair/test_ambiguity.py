"""Too little proof is said: rivals, guesses, inventions and weak tests leave it to a person."""

from dataclasses import replace

import pytest
from support.choice_builder import COLON, SWAP, alone, candidate, edit, near, standings

from localagent.domain.behaviour import Behaviours
from localagent.domain.edit import Edit, Splice
from localagent.repair.acceptance.ambiguity import settled, undecided, unproven, weak
from localagent.repair.acceptance.ranking import RankedCandidate, ranked


def test_many_guesses_under_few_tests_are_not_believed() -> None:
    guessed = candidate(1, 0.0, COLON, SWAP, SWAP)
    assert unproven(alone(guessed), 3, 1)
    assert not unproven(alone(guessed), 4, 1)
    assert not unproven(alone(guessed), 3, 2)
    elsewhere = replace(SWAP, line=2)
    assert not unproven(alone(candidate(1, 0.0, SWAP, elsewhere)), 1, 1)
    assert unproven(alone(candidate(1, 0.0, SWAP, SWAP)), 1, 1)
    assert not unproven(alone(candidate(1, 0.0, COLON, COLON, edit("undefined-name", "a -> b"), SWAP)), 1, 1)
    dropped = edit("undefined-name", "a dropped")
    assert unproven(alone(candidate(1, 0.0, COLON, COLON, dropped, SWAP)), 1, 1)
    meant = edit("missing-method-meaning", "self.total(a) -> sum(a)")
    assert unproven(alone(candidate(1, 0.0, COLON, meant, meant)), 1, 1)  # words of a name are a guess


def test_several_guesses_are_believed_where_what_else_passes_behaves_alike() -> None:
    guessed = RankedCandidate(candidate=candidate(1, 0.0, COLON, SWAP, SWAP), cost=0.0, row=("ok:a",))
    same = RankedCandidate(candidate=candidate(2, 1.0, COLON, SWAP, SWAP), cost=1.0, row=("ok:a",))
    assert not unproven([guessed, same], 1, 1)
    assert unproven([guessed], 1, 1)
    assert unproven([guessed, replace(same, row=())], 1, 1)
    assert unproven([replace(guessed, row=()), same, same], 1, 1)
    assert unproven([guessed, same, replace(same, row=("ok:b",))], 1, 1)
    off = replace(guessed, candidate=candidate(1, 0.0, edit("sibling-call", "f -> g")))
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
    token = [candidate(k, 0.1 * k, edit("tokens.replace-token", note)) for k, note in ((1, "= -> -"), (2, "= -> %"))]
    assert [s.candidate.number for s in undecided(ranked(token, Behaviours()), 1, 60)] == [2]


def test_an_assignment_in_a_condition_was_meant_to_compare_even_where_every_program_passes() -> None:
    def rivals(note: str) -> int:
        first = candidate(0, 0.0, edit("tokens.assign-compare", note))
        rest = [candidate(k, 0.1, edit("tokens.assign-compare", f"= -> {k}")) for k in range(1, 9)]
        return len(undecided(ranked([first, *rest], Behaviours()), 1, 9))

    assert rivals("= -> ==") == 0
    assert rivals("= -> <=") == 8


def test_what_error_messages_explain_is_no_guess() -> None:
    named = edit("undefined-name", "lst -> flst")

    def rivals(*edits: Edit, apart: float = 0.5) -> int:
        first = candidate(1, 0.0, *edits)
        rest = [candidate(k, apart + sum(1.0 for _ in edits[1:]), SWAP) for k in range(2, 9)]
        return len(undecided(ranked([first, *rest], Behaviours()), 1, 60))

    assert rivals(COLON, named, apart=-0.5) == 0  # the parser and a NameError told both
    assert rivals(named, COLON, apart=-0.5) == 0
    token = edit("tokens.replace-token", "= -> -")
    assert rivals(COLON, token, apart=0.1) == rivals(token, COLON, apart=0.1) == 7
    assert rivals(edit("tokens.insert-colon+replace-token"), apart=0.1) == 7
    assert rivals(edit("tokens.insert-colon+replace-token"), apart=0.6) == 7  # two slips of which one is a guess
    assert rivals(token, apart=0.6) == 0
    assert rivals(named, SWAP) == 0  # one guess beside it counts as one edit
    assert rivals(SWAP, SWAP) == 7
    assert rivals(COLON, edit("undefined-name", "lst dropped"), apart=-0.5) > 0


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
    both = edit("tokens.foreign-sign+assign-compare", "drop ;; = -> ==")
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
        ((COLON, edit("reported-bounds", "if i >= len(a): break")), True),
        ((COLON, edit("missing-method-body", "self.rest(a, b) -> (a % b)")), True),
        ((COLON, edit("missing-method-body", "self.get_values(d) -> d.values()")), False),
        ((COLON, edit("missing-method-meaning", "self.rest(a, b) -> a % b")), False),
        ((COLON, edit("missing-everywhere", ".push -> .append at 2 places")), False),
        ((edit("missing-method-body", "self.rest(a, b) -> (a % b)"),), False),
        ((edit("missing-method-body", "self.turned(a) -> set(a)"),), True),
        ((COLON, edit("undefined-loop", "for item in range(len(items)):")), True),
        ((edit("undefined-loop", "for item in items:"),), False),
        ((edit("missing-method-body", "self.lowered(a) -> a.lower()"),), False),
        ((edit("off-by-one", "+ 1"),), False),
        ((edit("sibling-call", "len(a) -> len(b)"),), True),
        ((edit("tokens.delete-line", "drop the line"), SWAP), True),
        ((edit("tokens.delete-line", "drop the line"), COLON), False),
        ((edit("tokens.comment-statement+insert-pass"),), True),
        ((edit("tokens.comment-line"),), False),
        ((edit("compare-swap", "== -> !="),), True),
        ((edit("logic-swap", "is not -> is"),), True),
        ((edit("compare-swap", "> -> >="),), False),
        ((edit("augmented-swap", "*= -> +="),), True),
        ((edit("augmented-swap", "-= -> +="),), False),
        ((edit("return-missing", "return True at the end"),), True),
        ((edit("return-missing", "return total at the end"),), False),
        ((edit("undefined-initialise", "total = 0"),), False),
        ((edit("undefined-initialise", "seen = set()"),), False),
        ((edit("undefined-initialise", "total = len(items)"),), True),
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
    made_up = edit("reported-bounds", "if i >= len(a): continue")
    one = [replace(s, candidate=candidate(s.candidate.number, s.cost, made_up)) for s in standings(1.0, 9.0)]
    assert not settled(one, 60)


@pytest.mark.parametrize(
    ("operator", "note"),
    [
        ("statement-delete", "delete x = f(x)"),
        ("guard-loop", "if not j: break"),
        ("guard-return", "if not a: return 0"),
        ("unblock", "only the body stays"),
        ("tokens.replace-token", "= -> -"),
        ("undefined-name", "value -> 1"),
    ],
)
def test_what_only_takes_away_or_makes_a_value_up_is_left_to_a_person_under_few_tests(operator: str, note: str) -> None:
    assert unproven(alone(candidate(1, 0.0, edit(operator, note))), 3, 1)
    assert not unproven(alone(candidate(1, 0.0, edit(operator, note))), 4, 1)


@pytest.mark.parametrize("note", ["null -> None", "curt -> curr", "flag -> True"])
def test_a_missing_name_that_becomes_another_or_a_constant_is_believed(note: str) -> None:
    assert not unproven(alone(candidate(1, 0.0, edit("undefined-name", note))), 1, 1)


def test_a_bare_word_for_a_whole_expression_is_left_to_a_person_under_few_tests() -> None:
    def put(length: int, text: bytes, operator: str = "return-value") -> Edit:
        return replace(edit(operator, "f(...) -> n"), splices=(Splice(start=0, end=length, text=text),))

    assert unproven(alone(candidate(1, 0.0, put(60, b"n"))), 1, 1)
    assert unproven(alone(candidate(1, 0.0, put(60, b"n_items"))), 1, 1)
    everywhere = replace(
        edit("undefined-everywhere"), splices=tuple(Splice(start=n, end=n + 9, text=b"n") for n in (0, 9, 18, 27, 36))
    )
    assert not unproven(alone(candidate(1, 0.0, everywhere)), 1, 1)
    assert unproven(alone(candidate(1, 0.0, put(20, b"n"))), 1, 1)  # a call is gone
    summed = replace(put(20, b"n"), note="a.b + c -> n")
    assert not unproven(alone(candidate(1, 0.0, summed)), 1, 1)
    unwrapped = replace(put(20, b"n"), note="f(n, ...) -> n")
    assert not unproven(alone(candidate(1, 0.0, unwrapped)), 1, 1)
    assert not unproven(alone(candidate(1, 0.0, put(60, b"max(n, 0)"))), 1, 1)
    assert not unproven(alone(candidate(1, 0.0, put(60, b"n", "tokens.drop-tail"))), 1, 1)
