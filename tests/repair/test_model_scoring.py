"""What the model is asked about first, and what an edit costs before and after it spoke."""

import concurrent.futures as cf
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.choice_builder import NO_OPINION
from test_repair_task import Digits, Events, Gates, Laboratory, Mending, Oracle

from localagent.domain.edit import Edit, Reading, Scope, Splice
from localagent.domain.paths import RepoPath
from localagent.domain.task import Budget, Task
from localagent.localize.fuse import SpectrumLocalizer
from localagent.ports import EditMender
from localagent.repair.ordering.model_scoring import (
    STRETCH_BYTES,
    Ordering,
    ScoringRequest,
    scoring_order,
    stretches_of,
)
from localagent.repair.ordering.scored_edit import Open
from localagent.repair.ordering.weights import Weights
from localagent.repair.search.run_context import RunContext
from localagent.repair.search.search_node import Lineage, SearchStep
from localagent.repair.search.state import Parts

ROOT = Lineage(number=None, edits=(), changed={}, identity=frozenset(), cost=0.0, round=0, failures=(), lines={})
A, B = RepoPath("a.py"), RepoPath("b.py")


def scope(start: int, end: int) -> Scope:
    return Scope(
        name="f", qualname="f", class_name=None, first_line=1, last_line=9, start=start, end=end, body_start=start
    )


def opened(path: RepoPath, at: int, suspicion: float, around: Scope | None = None, cost: float = 0.0) -> Open:
    splices = (Splice(start=at, end=at + 1, text=b"x"),)
    edit = Edit(path=path, splices=splices, operator="digit", line=1, end_line=1, prior=0.0, scope=around)
    step = SearchStep(parent=ROOT, edit=edit, cost=cost)
    return Open(step=step, crowd=0, suspicion=suspicion, gain=0.0, bare_gain=0.0)


def asked(path: RepoPath, *edits: Open) -> ScoringRequest:
    return ScoringRequest(parent=ROOT, path=path, edits=edits, gains=lambda edits: [0.0] * len(edits))


def turns_of(*asked: ScoringRequest) -> list[list[ScoringRequest]]:
    return scoring_order([stretch for one in asked for stretch in stretches_of(one)])


def places(turn: Sequence[ScoringRequest]) -> list[tuple[str, int]]:
    return [(str(one.path), each.step.edit.splices[0].start) for one in turn for each in one.edits]


def test_the_most_suspicious_functions_of_all_files_come_first() -> None:
    first, second, third = scope(0, 3_000), scope(4_000, 7_000), scope(0, 3_000)
    a = asked(A, opened(A, 10, 0.2, first), opened(A, 4_010, 0.9, second), opened(A, 4_020, 0.1, second))
    b = asked(B, opened(B, 10, 0.5, third))
    turns = [places(turn) for turn in turns_of(a, b)]
    assert turns == [[("a.py", 4_010), ("a.py", 4_020)], [("b.py", 10), ("a.py", 10)]]


def test_neighbours_are_asked_about_together_and_long_functions_piece_by_piece() -> None:
    near = asked(A, opened(A, 10, 0.9, scope(0, 500)), opened(A, 710, 0.1, scope(700, 1_000)))
    far = asked(B, opened(B, 10, 0.5, scope(0, 4_500)))
    assert places(turns_of(near, far)[0])[:2] == [("a.py", 10), ("a.py", 710)]
    long = scope(0, 20 * STRETCH_BYTES)
    pieces = asked(A, *(opened(A, k * STRETCH_BYTES + 5, 0.1 * k, long) for k in range(9)))
    turns = turns_of(pieces)
    assert [places(turn) for turn in turns[:2]] == [
        [("a.py", k * STRETCH_BYTES + 5) for k in ks] for ks in ((8,), (7, 6))
    ]
    assert len(turns) == 5


def test_of_a_file_the_likeliest_edits_come_first() -> None:
    one = asked(A, *(opened(A, k, 0.5, scope(0, 100), cost) for k, cost in enumerate((3.0, 1.0, 2.0))))
    assert places(turns_of(one)[0]) == [("a.py", 1), ("a.py", 2), ("a.py", 0)]


EDITS = st.lists(
    st.tuples(st.integers(0, 30_000), st.floats(0.0, 1.0), st.none() | st.integers(1, 9_000)), min_size=1, max_size=40
)


@given(EDITS, EDITS)
def test_every_edit_is_asked_about_once(
    a: list[tuple[int, float, int | None]], b: list[tuple[int, float, int | None]]
) -> None:
    groups = [
        asked(
            path,
            *(
                opened(path, at, s, None if size is None else scope(max(0, at - size // 2), at + size))
                for at, s, size in found
            ),
        )
        for path, found in ((A, a), (B, b))
    ]
    turns = turns_of(*groups)
    got = [id(each) for turn in turns for one in turn for each in one.edits]
    assert sorted(got) == sorted(id(each) for one in groups for each in one.edits)
    assert len(got) == len(set(got))
    best = [max(each.suspicion for one in turn for each in one.edits) for turn in turns]
    assert best == sorted(best, reverse=True)
    assert all(len({one.path for one in turn}) == len(turn) for turn in turns)


@given(st.floats(-20.0, 20.0), st.booleans())
def test_what_nothing_was_told_of_is_dearer_by_the_same_for_all(cost: float, mends: bool) -> None:
    weights = Weights()
    each = opened(A, 0, 0.5, cost=cost)
    expected = -weights.model * weights.unscored - (weights.mended * weights.unmended if mends else 0.0)
    assert each.priced(weights, mends=mends).cost == pytest.approx(cost + expected)
    assert each.priced(weights, mends=mends).model_score is None


@pytest.mark.parametrize(("ratio", "nats", "ahead"), [(0.0, -0.5, True), (-9.0, -40.0, False)])
def test_what_the_model_likes_passes_what_it_was_not_asked_about_and_what_it_does_not_falls_behind(
    ratio: float, nats: float, ahead: bool
) -> None:
    weights, unread = Weights(), opened(A, 0, 0.5)
    told = opened(A, 0, 0.5)
    told.reading, told.nats = Reading(ratio=ratio, stood=-1.0), nats
    difference = unread.priced(weights, mends=True).cost - told.priced(weights, mends=True).cost
    assert (difference > 0) is ahead
    assert abs(difference) > 1.0


def test_what_the_learned_order_takes_off_changes_with_what_was_read() -> None:
    each = opened(A, 0, 0.5, cost=1.0)  # 0.25 were taken off without a reading
    each.bare_gain, each.gain = 0.25, 0.25
    before = each.priced(Weights(), mends=False).cost
    each.gain = 0.75
    assert each.priced(Weights(), mends=False).cost == pytest.approx(before - 0.5)


def run_of(scorer: Oracle, mender: EditMender | None = None) -> tuple[RunContext, Events]:
    lab, events = Laboratory(b"a = 1\n", {}), Events()
    parts = Parts(
        verifier=lab,
        localizer=SpectrumLocalizer(),
        space=Digits(),
        gates=Gates(),
        scorer=scorer,
        sink=events,
        sources={A: b"x" * 9_000, B: b"x" * 9_000},
        weights=Weights(),
        confidence=NO_OPINION,
        context=lambda path, baseline: "",
        mender=mender,
    )
    run = RunContext(Task(id="t", repo="/r", budget=Budget(max_candidates=9, max_seconds=30, jobs=1)), parts)
    run.baseline = lab.baseline()
    return run, events


def taken(run: RunContext, ordering: Ordering) -> None:
    cf.wait(ordering.coming)
    ordering.take()


def test_what_is_suspicious_enough_is_asked_about_while_other_files_are_still_enumerated() -> None:
    run, events = run_of(Oracle("none"))
    ordering = Ordering(run)
    ordering.note(asked(A, opened(A, 10, 0.6, scope(0, 100)), opened(A, 5_000, 0.2, scope(4_900, 5_100))))
    ordering.ask(least=0.7)
    assert (len(ordering.coming), run.state.awaits_order) == (0, False)
    ordering.ask(least=0.5)
    assert (len(ordering.coming), run.state.awaits_order) == (1, True)
    ordering.note(asked(B, opened(B, 10, 0.5, scope(0, 100))))
    ordering.ask()
    assert len(ordering.coming) == 3
    taken(run, ordering)
    assert [e.data for e in events.seen] == 3 * [{"edits": 1, "scored": 1}]
    assert (ordering.spoke, run.state.awaits_order) == (True, False)
    ordering.close()


def test_each_few_are_read_and_mended_before_the_next() -> None:
    run, events = run_of(Oracle("none"), Mending(""))
    ordering = Ordering(run)
    functions = ((10, 0.6, scope(0, 2_400)), (3_010, 0.4, scope(3_000, 5_400)), (6_010, 0.2, scope(6_000, 8_400)))
    ordering.note(asked(A, *(opened(A, at, suspicion, around) for at, suspicion, around in functions)))
    ordering.ask()
    taken(run, ordering)
    assert [next(key for key in e.data if key != "edits") for e in events.seen] == ["scored", "mended"] * 2
    ordering.close()


def test_all_that_was_asked_about_is_put_back_when_the_model_is_dropped_before_it_spoke() -> None:
    scorer = Oracle("none", broken=True)
    run, events = run_of(scorer)
    ordering = Ordering(run)
    edits = [opened(A, 10, 0.6, scope(0, 100), 1.0), opened(A, 5_000, 0.2, scope(4_900, 5_100), 2.0)]
    run.frontier.push(ordering.priced(edits))
    assert run.frontier.next_cost > 1.0
    ordering.note(asked(A, *edits))
    ordering.ask()
    taken(run, ordering)
    assert run.frontier.next_cost == 1.0
    assert [(e.kind, e.data["edits"]) for e in events.seen] == [("ordered", 0), ("unordered", 2)]
    assert not ordering.spoke
    ordering.close()


def test_heirs_are_not_asked_about_and_are_told_what_their_elders_are_told() -> None:
    run, events = run_of(Oracle("none"), Mending("none"))
    ordering = Ordering(run)
    elder, heir, late = (opened(A, k, 0.5, scope(0, 100), 1.0) for k in (10, 20, 30))
    heir.inherit(elder)
    late.inherit(heir)
    late.step = SearchStep(parent=ROOT, edit=late.step.edit, cost=0.0)
    run.frontier.push(ordering.priced([heir, late]))
    ordering.note(asked(A, elder))
    ordering.note(asked(A, heir, late))
    ordering.ask()
    unread = run.frontier.next_cost
    taken(run, ordering)
    assert [e.data for e in events.seen] == [{"edits": 1, "scored": 1}, {"edits": 1, "mended": 1}]
    assert elder.reading == heir.reading == late.reading == Reading(ratio=-9.0, stood=-1.0)
    assert elder.nats == heir.nats == late.nats == -99.0
    (told,) = ordering.priced([late])
    assert run.frontier.next_cost == told.cost > unread
    ordering.close()


def test_who_inherits_late_is_told_at_once() -> None:
    elder, heir = opened(A, 0, 0.5), opened(A, 9, 0.5)
    elder.record(Reading(ratio=-2.0, stood=-1.0))
    elder.gained(0.75)
    heir.inherit(elder)
    assert (heir.reading, heir.nats, heir.gain) == (elder.reading, None, 0.75)
    elder.record(-3.0)
    elder.record(None)
    assert (heir.reading, heir.nats) == (elder.reading, -3.0)
    fresh = opened(A, 5, 0.5)
    fresh.gain = fresh.bare_gain = 0.25
    fresh.inherit(opened(A, 0, 0.5))
    assert fresh.gain == 0.25  # of what was not read, its own
