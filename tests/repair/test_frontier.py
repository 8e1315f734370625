"""Whose turn it is."""

from hypothesis import given
from hypothesis import strategies as st

from localagent.domain.edit import Edit, Splice
from localagent.domain.paths import RepoPath
from localagent.repair.search.frontier import Frontier
from localagent.repair.search.search_node import Lineage, SearchStep

M = RepoPath("m.py")


def edit(at: int = 0) -> Edit:
    splice = Splice(start=at, end=at, text=b"")
    return Edit(path=M, splices=(splice,), operator="o", line=1, end_line=1, prior=0)


def lineage(*edits: Edit) -> Lineage:
    return Lineage(
        number=1 if edits else None,
        edits=edits,
        changed={},
        identity=frozenset(),
        cost=0,
        round=len(edits),
        failures=(),
        lines={},
    )


ROOT, KEPT = lineage(), lineage(edit())


def step(cost: float, parent: Lineage = ROOT) -> SearchStep:
    return SearchStep(parent=parent, edit=edit(), cost=cost)


def drained(frontier: Frontier) -> list[SearchStep]:
    out = []
    while (s := frontier.pop()) is not None:
        assert isinstance(s, SearchStep)
        out.append(s)
    return out


@given(st.lists(st.floats(-50, 50)))
def test_one_programs_edits_pop_by_cost(costs: list[float]) -> None:
    frontier = Frontier()
    frontier.push(step(c) for c in costs)
    assert [s.cost for s in drained(frontier)] == sorted(costs)


def test_the_scored_edits_of_the_snapshot_that_are_open_come_the_cheapest_first() -> None:
    frontier = Frontier()
    scored = [SearchStep(parent=ROOT, edit=edit(k), cost=float(c), model_score=-1.0) for k, c in enumerate((3, 1, 2))]
    frontier.push([*scored, step(0), SearchStep(parent=KEPT, edit=edit(), cost=0.5, model_score=-1.0)])
    frontier.push_expansion(KEPT, 0.2)
    assert frontier.scored() == [scored[1], scored[2], scored[0]]
    while scored[1] in frontier.scored():
        frontier.pop()
    assert frontier.scored() == [scored[2], scored[0]]


def test_reordering_touches_only_what_is_still_open() -> None:
    frontier = Frontier()
    a, b, c = step(1), step(2), step(3)
    frontier.push([a, b, c])
    assert frontier.pop() is a
    fresh = [SearchStep(parent=s.parent, edit=s.edit, cost=-s.cost) for s in (a, b, c)]
    frontier.reorder(fresh)
    assert drained(frontier) == [fresh[2], fresh[1]]


@given(st.lists(st.floats(-9, 0), min_size=1, max_size=60))
def test_the_models_order_delays_a_step_at_most_fourfold(scores: list[float]) -> None:
    frontier = Frontier()
    steps = [step(float(k)) for k in range(len(scores))]
    frontier.push(steps)
    frontier.reorder(
        [SearchStep(parent=s.parent, edit=s.edit, cost=s.cost - v) for s, v in zip(steps, scores, strict=True)]
    )
    ranks = {id(s.edit): k for k, s in enumerate(drained(frontier), 1)}
    assert all(ranks[id(s.edit)] <= 4 * k for k, s in enumerate(steps, 1))


def test_a_kept_candidates_edits_do_not_starve_the_snapshots() -> None:
    frontier = Frontier()
    frontier.push(step(9.0) for _ in range(40))
    frontier.push(step(0.0, KEPT) for _ in range(40))
    first = drained(frontier)[:40]
    assert sum(s.parent is ROOT for s in first) == 10


def test_urgent_steps_come_first_by_their_own_cost_and_once() -> None:
    frontier = Frontier()
    frontier.push([step(-5.0)])
    frontier.push_urgent(step(7.0), 2.0)
    frontier.push_urgent(step(3.0), 1.0)
    assert len(frontier) == 3
    assert [s.cost for s in drained(frontier)] == [3.0, 7.0, -5.0]
    assert len(frontier) == 0


def test_many_urgent_steps_do_not_starve_the_others() -> None:
    frontier = Frontier()
    frontier.push(step(0.0) for _ in range(40))
    for _ in range(40):
        frontier.push_urgent(step(9.0), 0.0)
    first = drained(frontier)[:40]
    assert 4 <= sum(s.cost == 9.0 for s in first) <= 8


def test_a_kept_candidate_waits_its_turn() -> None:
    frontier = Frontier()
    frontier.push([step(1.0), step(3.0)])
    frontier.push_expansion(KEPT, 2.0)
    assert frontier.pop() is not KEPT
    frontier.pop()  # the snapshot's turn
    assert frontier.pop() is KEPT


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=20), st.booleans())
def test_a_step_that_was_put_off_stays_so_much_dearer_when_it_is_reordered(costs: list[float], anew: bool) -> None:
    frontier = Frontier()
    late = step(0.0)
    frontier.push([late])
    assert frontier.pop() is late
    frontier.put_off(late, 2.0)
    others = [step(c) for c in costs]
    frontier.push(others)
    if anew:
        frontier.reorder([SearchStep(parent=s.parent, edit=s.edit, cost=s.cost + 1.0) for s in (late, *others)])
    cheaper = sum(c <= 2.0 - 1e-9 for c in costs)
    place = next(k for k, s in enumerate(drained(frontier)) if s.edit is late.edit)
    assert place >= cheaper
    assert len(frontier) == 0


@given(st.lists(st.sampled_from([0.0, 1.5, 2.0]), min_size=1, max_size=3))
def test_what_was_put_off_keeps_its_turn_by_what_it_cost_before_the_model_spoke(delays: list[float]) -> None:
    frontier = Frontier()
    first = step(0.0)
    frontier.push([first, *(step(3.0) for _ in range(400))])
    dearer = SearchStep(parent=ROOT, edit=first.edit, cost=10.0)
    frontier.reorder([dearer])
    for nats in delays:
        while frontier.pop() is not dearer:
            pass
        frontier.put_off(dearer, nats)
    place = next(k for k, s in enumerate(drained(frontier)) if s is dearer)
    assert place < 4  # by its cost it would be the last one


def test_once_kept_candidates_parse_the_snapshots_own_edits_have_fewer_turns() -> None:
    def of_snapshot(parsed: bool) -> int:
        frontier = Frontier()
        frontier.parsed = parsed
        frontier.push(step(9.0) for _ in range(64))
        frontier.push(step(0.0, KEPT) for _ in range(64))
        return sum(s.parent is ROOT for s in drained(frontier)[:64])

    assert of_snapshot(False) == 16
    assert of_snapshot(True) == 4
