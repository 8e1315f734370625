"""The loop with a guard: what breaks a test outside the goal is never accepted, by no way, and its time is beside."""

import pytest
from test_repair_task import Laboratory, M, Tests, number, repair

from localagent.domain.guard import MOST_CHECKS, Guard, GuardScope, guard_of
from localagent.domain.task import Budget, Choosing, Verdict

TESTS: Tests = {"a": lambda s: s["a"] in (5, 6)}


def six(space: object) -> bool:
    return space["a"] == 6  # type: ignore[index,no-any-return]


@pytest.mark.parametrize("choosing", [Choosing.ASSUME, Choosing.FIRST])
def test_the_next_one_is_tried_where_one_breaks_a_test_outside(choosing: Choosing) -> None:
    result, events = repair(Laboratory(b"a = 1\n", TESTS, outside=six), choosing=choosing, goal=("t",))
    assert result.verdict is Verdict.ACCEPTED
    assert result.patch is not None
    assert result.patch.after(M) == b"a = 6\n"
    assert result.full is not None
    assert result.full.guard is not None
    assert (result.full.guard.ran, result.full.guard.broken) == (1, ())
    checks = [e.data for e in events.seen if e.kind == "full-check"]
    assert [c["accepted"] for c in checks] == [False, True]
    assert checks[0]["reasons"] == ["breaks tests outside --test: test_other.py::test_o"]


def test_proposals_pass_the_guard_too() -> None:
    tests: Tests = {"a": lambda s: s["a"] in (5, 6, 7)}
    lab = Laboratory(b"a = 1\n", tests, answers=lambda s: s["a"], outside=lambda s: s["a"] != 5)
    result, _ = repair(lab, goal=("t",))
    assert result.verdict is Verdict.AMBIGUOUS
    assert [c.patch.after(M) for c in result.proposals] == [b"a = 6\n", b"a = 7\n"]
    assert [full.guard.ran for full in result.proposed if full.guard is not None] == [1, 1]


def test_nothing_is_accepted_where_all_break_it() -> None:
    lab = Laboratory(b"a = 1\n", TESTS, outside=lambda _: False)
    result, _ = repair(lab, goal=("t",), choosing=Choosing.ASSUME)
    assert (result.verdict, result.patch) == (Verdict.GAVE_UP, None)


@pytest.mark.parametrize(
    ("goal", "guard", "runs", "why"),
    [
        (("t",), Guard(scope=GuardScope.NONE), 0, "--guard none"),
        ((), Guard(), 0, "all tests are among those to repair, and the full check ran them"),
        ((), guard_of(["x"], 9.0), 1, "no tests found outside --test"),
        (("t",), Guard(), 1, "no tests found outside --test"),
    ],
)
def test_when_a_guard_runs(goal: tuple[str, ...], guard: Guard, runs: int, why: str) -> None:
    lab = Laboratory(b"a = 1\n", {"a": number("a", 8), "b": lambda _: True})
    result, events = repair(lab, goal=goal, guard=guard)
    assert result.verdict is Verdict.ACCEPTED
    assert result.full is not None
    assert result.full.guard is not None
    assert result.full.guard.why == why
    assert len(lab.guards) == runs
    assert [e.data["stage"] for e in events.seen if e.kind == "stage"].count("guard") == runs


def test_its_seconds_are_beside_the_budget() -> None:
    tests: Tests = {"a": lambda s: s["a"] in (3, 9)}  # far enough from each other that the search has to go on
    lab = Laboratory(b"a = 1\n", tests, outside=lambda s: s["a"] == 9, guard_takes=2.0)
    result, _ = repair(
        lab, goal=("t",), choosing=Choosing.FIRST, budget=Budget(max_candidates=500, max_seconds=1.8, jobs=1)
    )
    assert result.verdict is Verdict.ACCEPTED  # the first guard alone took more than the budget
    assert result.seconds["guard"] >= 4.0


def test_all_guard_checks_of_a_task_are_bounded() -> None:
    tests: Tests = {"a": lambda s: s["a"] in range(2, 10)}
    lab = Laboratory(b"a = 1\n", tests, outside=lambda s: s["a"] == 9, guard_takes=1.1)
    result, _ = repair(lab, goal=("t",), guard=guard_of([], 1.0), choosing=Choosing.ASSUME)
    assert len(lab.guards) == MOST_CHECKS - 1  # each took more than its second
    assert result.full is not None
    assert result.full.guard is not None
    assert result.full.guard.why == "earlier candidates used up the 4 s of all guard checks"
