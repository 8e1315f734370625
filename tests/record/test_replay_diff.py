"""Why a replay departs: each difference in words, with what may have made it; laws over whatever a journal holds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localagent.record.replay_diff import Told, explained
from localagent.record.trajectory import compared, first_departure, trajectory

CHECKED: list[Told] = [
    ("checked", {"number": n, "edit": [f"a.py:{n} compare-swap < -> <="], "plausible": True, "late": 0}) for n in (6, 9)
]


@pytest.mark.parametrize(
    ("then", "now", "differs", "cause"),
    [
        (("ranked", {"order": [[6, 0.6]]}), ("ranked", {"order": [[6, 0.8]]}), ("order[0][1]: 0.6, now 0.8",), "40 s"),
        (
            ("ranked", {"behaviours": {"6": ["ok:1"]}}),
            ("ranked", {"behaviours": {"6": ["ok:1", "late:"], "9": []}}),
            ("behaviours.6[1]: nothing, now late:", "behaviours.9: nothing, now []"),
            "40 s",
        ),
        (
            ("baseline", {"failing": ["a"]}),
            ("baseline", {"failing": []}),
            ("failing[0]: a, now nothing",),
            "on its own",
        ),
        (("ordered", {"scored": 9}), ("ordered", {"scored": 4}), ("scored: 9, now 4",), "come when they come"),
        (("odd", {"x": None}), ("odd", {}), ("x: None, now nothing",), "come when they come"),
        (
            ("started", {"number": 9}),
            ("ordered", {"edits": 3}),
            ("then came: started of candidate 9 (a.py:9 compare-swap < -> <=)", "now came: ordered: edits 3"),
            "more than one job",
        ),
    ],
)
def test_what_differs_is_told_down_to_the_element(then: Told, now: Told, differs: tuple[str, ...], cause: str) -> None:
    found = explained([*CHECKED, then], [*CHECKED, now], 2)
    assert found.differs == differs
    assert cause in found.causes[0]


def test_only_so_many_differences_are_shown() -> None:
    then, now = ({str(k): n for k in range(9)} for n in (1, 2))
    found = explained([("odd", then)], [("odd", now)], 0)
    assert len(found.differs) == 6
    assert found.differs[-1] == "and 4 more differences"


def test_an_end_before_the_other_is_told() -> None:
    found = explained([*CHECKED, ("stage", {"stage": "choose"})], CHECKED, 2)
    assert found.differs == ("then came: stage: stage choose", "now came: nothing more")


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
