"""Mutants lie on the lines, differ from the program and from one another, and are drawn alike for a seed."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from localagent.domain.edit import Candidate
from localagent.domain.outcome import JailOutcome, Outcome, QuickResult, QuickRoute
from localagent.domain.paths import RepoPath
from localagent.edit.space import open_edit_space
from localagent.repair.search.code_equivalence import behaviour_key
from localagent.verify.evidence.mutants import (
    OPERATORS,
    MutantFate,
    alike,
    booked,
    fate_of,
    fate_of_run,
    mutants_of,
    same_answer,
    try_mutants,
)

PATH = RepoPath("m.py")
SOURCE = b"def f(a, b):\n    if a < b:\n        return a + 1\n    return b\n\n\ndef g(n):\n    return n * 2\n"


def drawn(lines: set[int], *, seed: int = 0, most: int = 40) -> tuple[list[Candidate], int]:
    sources: Mapping[RepoPath, bytes] = {PATH: SOURCE}
    return mutants_of(open_edit_space({}), sources, {PATH: frozenset(lines)}, behaviour_key, seed=seed, most=most)


def test_each_is_a_program_of_its_own_on_the_lines() -> None:
    chosen, total = drawn({2, 3})
    texts = [c.patch.changes[0].after for c in chosen]
    assert len(chosen) == min(40, total) > 10
    keys = {behaviour_key(t, None, 0) for t in (*texts, SOURCE)}
    assert len(keys) == len(texts) + 1  # none is equal to the program or to another
    assert len(set(texts)) == len(texts)
    assert {c.edits[0].line for c in chosen} == {2, 3}
    assert {c.edits[0].operator for c in chosen} <= OPERATORS
    assert all(t.endswith(SOURCE[SOURCE.index(b"\n\n\ndef g") :]) for t in texts)


def test_other_lines_are_mutated_where_these_have_none() -> None:
    sources: Mapping[RepoPath, bytes] = {PATH: SOURCE}
    instead = {PATH: frozenset({3})}
    for line, expected in ((6, {3}), (2, {2})):
        lines = {PATH: frozenset({line})}
        chosen, _ = mutants_of(open_edit_space({}), sources, lines, behaviour_key, seed=0, instead=instead)
        assert {c.edits[0].line for c in chosen} == expected


def test_what_compiles_to_the_same_is_none() -> None:
    """Constants are folded, and what stands after a return is never reached."""
    source = b"def f(a, b):\n    return 0 + (2 * 1)\n    return b\n"
    space, sources = open_edit_space({}), {PATH: source}
    chosen, _ = mutants_of(space, sources, {PATH: frozenset({2, 3})}, behaviour_key, seed=0)
    same = {e.note for e in space.edits(PATH, sources, lines=frozenset({2, 3}), failures=()) if e.line == 3}
    assert same
    keys = [behaviour_key(c.patch.changes[0].after, None, 0) for c in chosen]
    assert len(set(keys)) == len(keys) > 3
    assert behaviour_key(source, None, 0) not in keys


def test_annotations_are_not_mutated() -> None:
    sources = {PATH: b"X: dict[str, int] = {}\n\n\ndef f(a: int = 1) -> int:\n    b: int = a\n    return b\n"}
    space = open_edit_space({})
    chosen, _ = mutants_of(space, sources, {PATH: frozenset({1, 4, 5})}, behaviour_key, seed=0)
    assert chosen
    kept = [c.patch.changes[0].after for c in chosen if c.edits[0].operator != "statement-delete"]
    assert all(t.count(b": dict[str, int] =") == 1 and t.count(b": int = ") == 2 and b") -> int:" in t for t in kept)


def test_a_literal_in_the_place_of_what_is_worked_out_is_told() -> None:
    chosen, total = drawn({3}, most=200)
    made = booked([(c, MutantFate.ALIVE) for c in chosen], total, "")
    assert made.constant
    assert all(" return-value: a + 1 -> " in text for text in made.constant)
    assert booked([(c, MutantFate.KILLED) for c in chosen], total, "").constant == ()


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("raise UnicodeError(n)", True),
        ("raise ValueError(n)", False),  # what it is itself, or a kind of it, is no base
        ("except UnicodeError:", False),  # what is caught may well be more than what comes
    ],
)
def test_a_base_of_what_is_raised_is_told(line: str, told: bool) -> None:
    text = f"def f(n):\n    try:\n        {line}\n    except OSError:\n        pass\n"
    if line.startswith("except"):
        text = f"def f(n):\n    try:\n        int(n)\n    {line}\n        pass\n"
    number = text[: text.index(line)].count("\n") + 1
    sources = {PATH: text.encode()}
    chosen, total = mutants_of(
        open_edit_space({}), sources, {PATH: frozenset({number})}, behaviour_key, seed=0, most=200
    )
    swapped = [c for c in chosen if c.edits[0].operator == "exception-swap"]
    assert swapped
    made = booked([(c, MutantFate.ALIVE) for c in chosen], total, "")
    assert bool(made.wider) is told, made
    assert all("-> ValueError" in text or "-> Exception" in text for text in made.wider)
    assert booked([(c, MutantFate.KILLED) for c in chosen], total, "").wider == ()


@pytest.mark.long
def test_lines_take_turns_and_the_seed_decides() -> None:
    chosen, total = drawn({2, 8}, most=6)
    assert total > 6
    assert [c.edits[0].line for c in chosen] == [2, 8, 2, 8, 2, 8]
    assert chosen == drawn({2, 8}, most=6)[0]
    assert chosen != drawn({2, 8}, most=6, seed=1)[0]


def test_operators_take_turns_within_a_line() -> None:
    chosen, _ = drawn({2}, most=4)
    assert len({c.edits[0].operator for c in chosen}) == 4


class Judge:
    """A quick check that notices what is said to be noticed."""

    def __init__(self, ending: JailOutcome = JailOutcome.EXITED, *, complete: bool = True) -> None:
        self.ending, self.complete = ending, complete

    def check(self, candidate: Candidate, *, cpu_seconds: float, stop_early: bool = True) -> QuickResult:
        broken = ("t",) if candidate.number % 2 else ()
        return QuickResult(
            outcomes=dict.fromkeys(broken, Outcome.FAILED), turned=(), broken=broken, complete=self.complete,
            plausible=False, route=QuickRoute.SWAP, ending=self.ending,
        )  # fmt: skip

    def close(self) -> None:
        return


def nothing(_alive: Sequence[Candidate]) -> Mapping[int, Sequence[str]]:
    return {}


VARIED = [f"ok:{n:016x}:{n % 3}" for n in range(40)]


@pytest.mark.parametrize(
    ("rows", "numbers", "same"),
    [
        ({0: VARIED, 1: VARIED, 2: [*VARIED[:-1], "late:"]}, {1}, 0),
        ({0: VARIED[:20], 1: VARIED[:20]}, set(), 0),  # too few
        ({0: ["raised:1"] * 40, 1: ["raised:1"] * 40}, set(), 0),  # no answers at all
        ({0: [f"ok:{n:016x}:1" for n in range(40)], 1: [f"ok:{n:016x}:1" for n in range(40)]}, set(), 40),
        (
            {0: [f"ok:{n:016x}" for n in range(40)], 1: [f"ok:{n:016x}" for n in range(40)]},
            {1},
            0,
        ),  # what it did varies
        ({1: VARIED}, set(), 0),
    ],
)
def test_alike_is_what_answers_as_the_patch_where_that_answers_this_and_that(
    rows: Mapping[int, Sequence[str]], numbers: set[int], same: int
) -> None:
    assert alike(rows) == numbers
    assert same_answer(rows) == same


def test_those_alike_count_neither_as_tried_nor_as_alive() -> None:
    chosen, total = drawn({2, 3}, most=8)

    def all_but_one(alive: Sequence[Candidate]) -> Mapping[int, Sequence[str]]:
        return {0: VARIED, **{mutant.number: VARIED for mutant in alive[1:]}}

    said = try_mutants(Judge(), chosen, total, jobs=1, answers=all_but_one)
    assert (said.tried, said.killed, said.alike, len(said.alive)) == (5, 4, 3, 1)
    assert "3 more answer every input that was tried as the patch does" in said.note


def test_killed_is_what_a_test_notices_or_what_ends_its_process() -> None:
    chosen, total = drawn({2, 3}, most=8)
    said = try_mutants(Judge(), chosen, total, jobs=2, answers=nothing)
    assert (said.tried, said.killed, said.space, len(said.alive)) == (8, 4, total, 4)
    assert try_mutants(Judge(JailOutcome.SIGNALLED), chosen, total, jobs=1, answers=nothing).killed == 8


def test_what_runs_over_its_own_limits_is_killed_and_shown_as_such() -> None:
    chosen, total = drawn({2, 3}, most=8)
    said = try_mutants(Judge(JailOutcome.CPU), chosen, total, jobs=1, answers=nothing)
    assert (said.killed, said.timed_out, said.alive) == (8, 4, ())
    assert "4 of the killed ran over their own limits" in said.note


@pytest.mark.parametrize(("ending", "complete"), [(JailOutcome.CANCELLED, True), (JailOutcome.EXITED, False)])
def test_what_did_not_come_to_its_end_for_no_fault_of_its_own_was_not_asked(
    ending: JailOutcome, complete: bool
) -> None:
    chosen, total = drawn({2, 3}, most=8)
    said = try_mutants(Judge(ending, complete=complete), chosen, total, jobs=1, answers=nothing)
    assert (said.tried, said.killed, said.timed_out) == (4, 4, 0)
    assert "4 of 8 were not run" in said.note


@pytest.mark.parametrize(
    ("outcomes", "whole", "in_time", "fate"),
    [
        ([Outcome.PASSED, Outcome.FAILED], False, False, MutantFate.KILLED),
        ([Outcome.TIMED_OUT], False, True, MutantFate.LATE),
        ([Outcome.TIMED_OUT], True, False, None),  # our clock may have cut it off
        ([Outcome.TIMED_OUT, Outcome.ERROR], True, False, MutantFate.KILLED),
        ([Outcome.PASSED], True, False, MutantFate.ALIVE),
        ([Outcome.PASSED], False, True, None),
    ],
)
def test_a_timeout_counts_only_while_our_own_time_is_not_up(
    outcomes: list[Outcome], whole: bool, in_time: bool, fate: MutantFate | None
) -> None:
    assert fate_of_run(outcomes, whole=whole, in_time=in_time) is fate


def test_a_test_that_ran_over_its_limit_is_late_however_the_process_ended() -> None:
    late = replace(Judge().check(drawn({2})[0][0], cpu_seconds=1.0), outcomes={"t": Outcome.TIMED_OUT}, broken=("t",))
    assert fate_of(late) is MutantFate.LATE
    both = replace(late, outcomes={"t": Outcome.TIMED_OUT, "u": Outcome.FAILED}, broken=("t", "u"))
    assert fate_of(both) is MutantFate.KILLED


def test_what_the_clock_cuts_off_is_said_and_does_not_count() -> None:
    chosen, total = drawn({2, 3}, most=8)
    said = try_mutants(Judge(), chosen, total, jobs=1, answers=nothing, seconds=-1.0)
    assert (said.tried, said.killed) == (0, 0)
    assert "8 of 8 were not run" in said.note


def test_those_that_live_are_told_smallest_first() -> None:
    chosen, total = drawn({2, 3})
    told = booked([(c, MutantFate.ALIVE) for c in chosen], total, "").alive
    sizes = {f"{e.path}:{e.line} {e.operator}: {e.note}": sum(len(s.text) + s.end - s.start for s in e.splices)
             for c in chosen for e in c.edits}  # fmt: skip
    assert [sizes[text] for text in told] == sorted(sizes[text] for text in told)
    assert sizes[told[0]] == min(sizes.values())
