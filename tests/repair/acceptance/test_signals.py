"""The signals: what is known of a candidate beside its rivals, and what is not known is told as that."""

from dataclasses import replace

from support.choice_builder import SWAP, M, candidate, standings

from localagent.code.test_literals import Literals
from localagent.domain.behaviour import Behaviours
from localagent.domain.collateral import Changes, Collateral
from localagent.domain.edit import Candidate, Edit, EditEffect, FileChange, Patch
from localagent.domain.outcome import Baseline, Failure, Frame, Outcome, TestResult
from localagent.domain.task import Suspicion
from localagent.repair.acceptance.ranking import RankedCandidate
from localagent.repair.acceptance.signals import Choice, hardened_signals, near_rival, signals

NOTHING = Baseline(tests=(), failing=(), passing=())


def choice(order: list[RankedCandidate], near: Behaviours | None = None, baseline: Baseline = NOTHING) -> Choice:
    return Choice(
        order=order,
        near=near or Behaviours(),
        baseline=baseline,
        suspicions=[Suspicion(path=M, line=1, end_line=1, score=0.5)],
        sources={},
        verified=100,
        natural={},
        tested=Literals(),
    )


def test_a_lone_behaviour_has_the_whole_share() -> None:
    alike = standings(1.0, 2.0, row="ok:same")
    found = signals(choice(alike))
    assert found[1]["share"].value == 1.0
    assert found[1]["kinds"].value == 0.0
    assert "no other repair" in found[1]["kinds"].text


def test_rivals_share_by_their_costs() -> None:
    found = signals(choice(standings(1.0, 3.0)))
    assert found[1]["share"].value > 0.8 > found[2]["share"].value
    assert (found[1]["lead"].value, found[2]["lead"].value) == (2.0, -2.0)
    assert "1 other behaviour that passed" in found[1]["kinds"].text


def test_another_behaviour_that_is_about_as_likely_is_a_near_rival() -> None:
    order = standings(1.0, 1.5, 9.0)
    told = [near_rival(n, order)["near-rival"].value for n in (1, 2, 3)]
    assert told == [1.0, 1.0, 1.0]
    assert near_rival(1, standings(1.0, 3.0))["near-rival"].value == 0.0
    assert near_rival(1, standings(1.0, 1.5, row="ok:same"))["near-rival"].value == 0.0
    assert near_rival(1, [s for s in order if s.candidate.number != 2])["near-rival"].value == 0.0


def test_collateral_is_told_with_its_counts() -> None:
    told = Collateral(tested=Changes(calls=10, changed=2, crashes=1), near=Changes(calls=30, changed=3))
    found = signals(choice(standings(1.0), Behaviours(collateral={1: told})))[1]
    assert found["collateral-tested"].value == 0.2
    assert "2 of 10 calls" in found["collateral-tested"].text
    assert found["new-crashes"].value == 1 / 40
    unknown = signals(choice(standings(1.0)))[1]
    assert unknown["collateral-known"].value == 0.0
    assert unknown["collateral-tested"].value == 0.0
    assert "could be compared" in unknown["collateral-known"].text


def test_tests_that_pass_by_a_crash_are_told() -> None:
    found = signals(choice(standings(1.0), Behaviours(collateral={1: Collateral(crashing=1)})))[1]
    assert found["passes-by-crash"].value == 1.0
    assert "crashes" in found["passes-by-crash"].text


def test_where_it_edits_beside_where_the_failure_comes_from() -> None:
    frame = Frame(path=M, line=3, function="f")
    test = TestResult(
        id="t", outcome=Outcome.FAILED, failure=Failure(exception="KeyError", message="", frames=(frame,))
    )
    baseline = Baseline(tests=(test,), failing=("t",), passing=())
    found = signals(choice([RankedCandidate(candidate=candidate(1, 0.0, SWAP), cost=0.0, row=())], baseline=baseline))[
        1
    ]
    assert found["at-crash"].value == 1.0
    assert found["traceback-known"].value == 1.0
    assert found["suspicion"].value == 1.0


def test_one_test_with_many_parameters_is_one_failing_test() -> None:
    def failing(*names: str) -> float:
        baseline = Baseline(tests=(), failing=names, passing=())
        return signals(choice(standings(1.0), baseline=baseline))[1]["failing"].value

    one = failing("t.py::test_a")
    assert failing(*(f"t.py::test_a[{n}]" for n in range(40))) == one
    assert failing("t.py::test_a", "t.py::test_b") > one
    assert failing(*(f"t.py::test_{n}" for n in range(4))) == failing(*(f"t.py::test_{n}" for n in range(40)))


def test_code_that_is_nested_too_deeply_to_be_read_speaks_against() -> None:
    rest = "    y = " + " + ".join("x" * 600) + "\n    return y\n"
    before, after = "def f(x):\n    if x:\n        return 1\n" + rest, "def f(x):\n    return 1\n" + rest
    change = FileChange(path=M, before=before.encode(), after=after.encode())
    deep = Candidate(number=1, patch=Patch(changes=(change,)), edits=(), cost=1.0)
    found = signals(choice([RankedCandidate(candidate=deep, cost=1.0, row=("ok:1",))]))[1]
    assert found["soft-contradictions"].value == 1.0
    assert "nested too deeply" in found["soft-contradictions"].text


def test_what_only_takes_back_what_broke_the_tests_is_told_where_that_is_known() -> None:
    asked = choice(standings(1.0))
    (made,) = asked.order[0].candidate.patch.changes
    assert "takes-back" not in signals(asked)[1]
    told = signals(replace(asked, reverted={(made.path, made.after)}))[1]["takes-back"]
    assert (told.value, "the first bad commit" in told.text) == (1.0, True)
    assert signals(replace(asked, reverted={(made.path, made.before)}))[1]["takes-back"].value == 0.0


def test_one_import_from_where_a_name_lies_now_is_told() -> None:
    standing = standings(1.0)[0]
    edit = Edit(path=M, splices=(), operator="moved-import", line=1, end_line=1, prior=0.0, note="")
    moved = replace(edit, effects=frozenset({EditEffect.FOLLOWS_MOVE}))

    def value(*edits: Edit) -> float:
        candidate = replace(standing.candidate, edits=edits)
        return signals(choice([replace(standing, candidate=candidate)]))[candidate.number]["follows-move"].value

    assert [value(moved), value(edit), value(moved, edit)] == [1.0, 0.0, 0.0]


def test_a_candidate_that_was_made_sturdier_keeps_what_it_does_and_is_read_itself() -> None:
    asked = choice(standings(1.0))
    before = signals(asked)[1]
    two = replace(asked.order[0].candidate, number=9, edits=asked.order[0].candidate.edits * 2, parent=1)
    found = hardened_signals(two, before, asked)
    assert (found["edits"].value, before["edits"].value) == (1.0, 0.0)
    assert found["lead"] == before["lead"]
