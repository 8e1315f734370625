"""Why a repair ended: what is told of patches, and of what still fails."""

from support.choice_builder import M, candidate, edit

from localagent.domain.behaviour import Crash
from localagent.domain.outcome import Failure, FullResult
from localagent.report import repair_reasons


def test_what_still_fails_is_told_apart_by_what_runs_the_change() -> None:
    full = FullResult(
        accepted=True, reasons=(), fail_to_pass=("a",), pass_to_pass=(), pass_to_fail=(), still_failing=("b", "c")
    )
    told = repair_reasons.progress(full, ["b"], named=False)
    assert (
        told == "turns 1 of 3 failing tests; 1 does not run what it changes and still fails; 1 more still fails: b, c"
    )
    assert "3 tests and checks that were asked for; 2 still fail: b, c" in repair_reasons.progress(full, [], named=True)


def test_patches_are_shown_by_place_and_description_and_not_all_of_them() -> None:
    made = [candidate(n, 0.0, edit()) for n in range(6)]
    assert repair_reasons.undecided(made, proposed=True).count(f"{M}:1 o") == 4
    assert repair_reasons.accepted(made[0]) == "accepted: o"


def test_a_crash_is_told_with_its_call() -> None:
    crash = Crash(call="f([])", failure=Failure(exception="IndexError", message="m"))
    assert "(IndexError in f([]))" in repair_reasons.crashing([candidate(1, 0.0, edit())], crash)


def test_gates_that_protect_everything_are_named() -> None:
    assert repair_reasons.nowhere([]).endswith("could be linked to the failing tests")
    assert repair_reasons.nowhere([], ["b.py", "a.py"]).endswith("is never edited: a.py, b.py")
    assert repair_reasons.nowhere("abcd").endswith("may not be repaired: a; b; c")
