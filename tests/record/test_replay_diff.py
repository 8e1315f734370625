"""Why a replay departs: each difference in words, with what may have made it; laws over whatever a journal holds."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localagent.record.replay_diff import Told, explained
from localagent.record.trajectory import compared, first_departure, trajectory

CHECKED: list[Told] = [
    ("checked", {"number": n, "edit": [f"a.py:{n} compare-swap < -> <="], "plausible": True, "late": 0}) for n in (6, 9)
]
RANKED: dict[str, Any] = {
    "order": [[6, 0.62], [9, 0.81]],
    "behaviours": {"0": ["ok:1", "ok:2"], "6": ["ok:1", "ok:3"], "9": ["ok:4", "ok:3"]},
    "crashes": {"6": 0, "9": 1},
    "sturdier": None,
}


def ranked(**changed: Any) -> tuple[str, str]:
    """What is told of a choice that differs so."""
    found = explained([*CHECKED, ("ranked", RANKED)], [*CHECKED, ("ranked", {**RANKED, **changed})], 2)
    return "\n".join(found.differs), "\n".join(found.causes)


def test_costs_and_order_are_told_by_candidate_with_its_edit() -> None:
    differs, causes = ranked(order=[[9, 0.6], [6, 0.62]])
    assert differs.splitlines() == [
        "candidate 9 (a.py:9 compare-swap < -> <=): cost 0.81, now 0.60",
        "the order: 6 9; now 9 6",
    ]
    assert "inputs that it leaves out" in causes
    assert "the first is the same" not in differs


def test_a_candidate_that_one_run_alone_had_is_named() -> None:
    differs, _ = ranked(order=[[6, 0.62]])
    assert "candidate 9 (a.py:9 compare-swap < -> <=) was among those to choose from then and not now" in differs
    assert "the first is the same: candidate 6" in differs


@pytest.mark.parametrize(
    ("rows", "differs", "cause"),
    [
        ({}, "was compared then, and not now", "40 s at most"),
        ({**RANKED["behaviours"], "6": None}, "candidate 6 (a.py:6", "2 s"),
        ({n: row[:1] for n, row in RANKED["behaviours"].items()}, "was asked 2 calls, now 1", "were cut off"),
        ({**RANKED["behaviours"], "9": ["late:", "ok:3"]}, "1 of 2 calls otherwise, 1 of them too late", "0.05 s"),
        ({**RANKED["behaviours"], "9": ["ok:7", "ok:3"]}, "1 of 2 calls otherwise", "time, chance, memory"),
        ({**RANKED["behaviours"], "0": ["ok:7", "ok:3"]}, "the program without a patch answers 2 of 2", "time, chance"),
    ],
)
def test_answers_that_differ_name_the_limit_or_the_program(rows: dict[str, Any], differs: str, cause: str) -> None:
    told, causes = ranked(behaviours=rows)
    assert differs in told
    assert cause in causes
    assert "the first is the same: candidate 6" in told


def test_what_ends_crashes_and_how_many_there_are() -> None:
    differs, _ = ranked(crashes={"6": 3, "9": 1}, sturdier=9)
    assert "candidate 6 (a.py:6 compare-swap < -> <=) crashed on 0 of those inputs, now on 3" in differs
    assert "the edit that ends its crashes: none, now candidate 9" in differs


@pytest.mark.parametrize(
    ("then", "now", "differs", "cause"),
    [
        (
            ("checked", {"number": 6, "turned": 1}),
            ("checked", {"number": 9, "turned": 1}),
            "of candidate 6, now",
            "order",
        ),
        (
            ("checked", {"number": 6, "turned": 1, "late": 0}),
            ("checked", {"number": 6, "turned": 0, "late": 2}),
            "turned: 1, now 0",
            "0 then, 2 now",
        ),
        (
            ("checked", {"number": 6, "turned": 1, "late": 0}),
            ("checked", {"number": 6, "turned": 0, "late": 0}),
            "turned: 1, now 0",
            "chance",
        ),
        (("checked", {"number": 6, "cost": 1}), ("checked", {"number": 6, "cost": 2}), "cost: 1, now 2", "threads"),
        (
            ("baseline", {"failing": ["t::a"], "flaky": [], "passing": 3}),
            ("baseline", {"failing": [], "flaky": ["t::a"], "passing": 3}),
            "t::a was failing then and is not now",
            "nothing was patched yet",
        ),
        (
            ("ordered", {"edits": 9, "scored": 9}),
            ("ordered", {"edits": 9, "scored": 4}),
            "scored: 9, now 4",
            "time was up",
        ),
        (("localized", {"top": ["a:1"]}), ("localized", {"top": ["a:2"]}), "top:", "other ways through the code"),
        (("started", {"number": 9}), ("drained", {}), "then came: started of candidate 9", "in time"),
        (("odd", {"x": 1}), ("odd", {"x": 2}), "x: 1, now 2", ""),
        (("ranked", {}), ("ranked", {"order": None}), "order: not told, now", ""),
    ],
)
def test_other_events_say_what_differs_and_why_it_may(then: Told, now: Told, differs: str, cause: str) -> None:
    found = explained([*CHECKED, then], [*CHECKED, now], 2)
    assert differs in "\n".join(found.differs)
    assert cause in "\n".join(found.causes)


def test_an_end_before_the_other_is_told() -> None:
    found = explained([*CHECKED, ("stage", {"stage": "choose"})], CHECKED, 2)
    assert found.differs == ("the replay ends here; the record goes on with: stage: stage choose",)
    assert explained(CHECKED, [*CHECKED, ("drained", {})], 2).differs[0].startswith("the record ends here; the replay")


def test_what_a_repository_wrote_stays_on_its_line() -> None:
    nasty = ("checked", {"number": 1, "edit": ["a.py:1 x\x1b[31m\nSAME\u202e"], "turned": 1})
    found = explained([nasty], [("checked", {**nasty[1], "turned": 2, "edit": ["\x07\n"]})], 0)
    assert not set("\x1b\n\x07\u202e") & set("".join((*found.differs, *found.causes)))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 99) | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
KINDS = st.sampled_from(["ranked", "checked", "baseline", "ordered", "written", "stage", "odd"])
FIELDS = st.sampled_from(["order", "behaviours", "crashes", "sturdier", "number", "edit", "late", "failing", "flaky"])
EVENTS = st.lists(st.tuples(KINDS, st.dictionaries(FIELDS, JSON, max_size=4)), max_size=4)


@pytest.mark.long
@given(EVENTS, EVENTS)
def test_law_every_departure_is_told_whatever_the_events_hold(one: list[Told], other: list[Told]) -> None:
    then, now = compared(one), compared(other)
    departure = first_departure(trajectory(then), trajectory(now))
    if departure is not None:
        assert explained(then, now, departure.event).differs
