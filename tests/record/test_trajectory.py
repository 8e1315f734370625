"""Trajectories: what is compared, and where two first differ."""

from typing import Any

from localagent.record.trajectory import first_departure, trajectory, trajectory_digest

EVENTS: list[tuple[str, dict[str, Any]]] = [
    ("stage", {"stage": "search"}),
    ("checked", {"number": 1, "route": "swap", "plausible": False}),
    ("progress", {"verified": 1}),
    ("stage", {"stage": "record"}),
]


def test_times_routes_and_progress_are_not_compared() -> None:
    cold = [(kind, {**data, "route": "cold"} if "route" in data else data) for kind, data in EVENTS]
    one, other = trajectory(EVENTS), trajectory([e for e in cold if e[0] != "progress"])
    assert first_departure(one, other) is None
    assert trajectory_digest(one) == trajectory_digest(other)
    assert len(one) == 2


def test_the_first_difference_is_named() -> None:
    one = trajectory(EVENTS)
    other = trajectory([EVENTS[0], ("checked", {"number": 1, "plausible": True})])
    found = first_departure(one, other)
    assert found is not None
    assert (found.event, found.recorded, found.replayed) == (1, one[1], other[1])
    assert trajectory_digest(one) != trajectory_digest(other)


def test_an_end_too_early_is_a_departure() -> None:
    one = trajectory(EVENTS)
    found = first_departure(one, one[:1])
    assert found is not None
    assert (found.event, found.replayed) == (1, None)


def test_what_only_earlier_versions_told_is_not_compared() -> None:
    now: list[tuple[str, dict[str, Any]]] = [("baseline", {"failing": ["a"]}), ("written", {"edits": 2})]
    then: list[tuple[str, dict[str, Any]]] = [
        now[0],
        ("timed", {"tests": [3], "checks": []}),
        ("drained", {"left": True}),
        ("written", {"edits": 2, "late": 1, "fresh": [2]}),
    ]
    assert first_departure(trajectory(then), trajectory(now)) is None
