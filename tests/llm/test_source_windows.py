"""Windows hold every place that fits, once, within their bounds, in the order asked."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localagent.llm.scoring.source_windows import BODY_BYTES, LEAD_BYTES, TAIL_BYTES, EditSpan, plan_windows

LINES = [
    b"    value = compute(other, 1)\n",
    b"\n",
    b"def f(x):\n",
    b"x\n",
    b"    " + b"long + " * 60 + b"1\n",
    b"# caf\xc3\xa9\n",
]
sources = st.lists(st.sampled_from(LINES), min_size=1, max_size=400).map(b"".join)


@st.composite
def asked(draw: st.DrawFn) -> tuple[bytes, list[EditSpan]]:
    source = draw(sources)
    places = []
    for _ in range(draw(st.integers(1, 30))):
        at = draw(st.integers(0, len(source)))
        end = min(len(source), at + draw(st.integers(0, 60)))
        before, after = draw(st.integers(0, 6000)), draw(st.integers(0, 6000))
        places.append(
            EditSpan(start=at, end=end, scope_start=max(0, at - before), scope_end=min(len(source), end + after))
        )
    return source, places


@pytest.mark.long
@settings(max_examples=200, deadline=None)
@given(asked())
def test_every_place_is_held_once_within_bounds(given_: tuple[bytes, list[EditSpan]]) -> None:
    source, places = given_
    windows = plan_windows(source, places)
    held = sorted(member for window in windows for member in window.members)
    assert held == list(range(len(places)))
    for window in windows:
        assert 0 <= window.lead <= window.start <= window.end <= len(source)
        assert window.start - window.lead <= LEAD_BYTES
        assert window.end - window.start <= BODY_BYTES + TAIL_BYTES + 1000
        assert window.lead == 0 or source[window.lead - 1 : window.lead] == b"\n" or window.lead == window.start
        for member in window.members:
            assert window.start <= places[member].start
            assert places[member].end <= window.end
    firsts = [window.members[0] for window in windows]
    assert firsts == sorted(firsts)


def test_small_functions_near_each_other_share_a_window() -> None:
    source = b"def f(x):\n    return x\n" * 20
    places = [EditSpan(start=at, end=at + 1, scope_start=at, scope_end=at + 22) for at in range(0, len(source), 23)]
    [window] = plan_windows(source, places)
    assert (window.lead, window.end) == (0, len(source))


def test_a_long_function_is_cut_around_its_places() -> None:
    source = b"def f(x):\n" + b"    x = x + 1\n" * 2000
    places = [EditSpan(start=at, end=at + 1, scope_start=0, scope_end=len(source)) for at in (20_000, 40, 20_050)]
    first, second = plan_windows(source, places)
    assert (first.members, second.members) == ((0, 2), (1,))
    assert second.start == 0
    assert 20_000 - first.start > 1000


def test_a_place_larger_than_a_window_is_still_held() -> None:
    source = b"x = 1\n" * 3000
    [window] = plan_windows(source, [EditSpan(start=0, end=9000, scope_start=0, scope_end=18000)])
    assert window.end >= 9000


def test_one_wide_place_does_not_widen_the_windows_of_others() -> None:
    source = b"def f(x):\n" + b"    x = x + 1\n" * 400
    small = [EditSpan(start=at, end=at + 1, scope_start=0, scope_end=len(source)) for at in (40, 2300, 3700)]
    wide = EditSpan(start=20, end=5000, scope_start=0, scope_end=len(source))
    alone = {w.members: (w.start, w.end) for w in plan_windows(source, small)}
    beside = plan_windows(source, [*small, wide])
    assert {w.members: (w.start, w.end) for w in beside if w.members != (3,)} == alone
    assert [w.members for w in beside if 3 in w.members] == [(3,)]


def test_a_place_whose_own_window_is_a_line_too_long_is_not_read_in_a_wide_one() -> None:
    source = b"def f(x):\n" + b"    x = x + 1\n" * 600
    wide = EditSpan(start=20, end=6_500, scope_start=0, scope_end=len(source))
    for at in range(2_400, 6_400):
        small = EditSpan(start=at, end=at + 1, scope_start=0, scope_end=len(source))
        first, second = plan_windows(source, [wide, small])
        assert (first.members, second.members) == ((0,), (1,))


def test_a_place_in_two_stretches_is_read_with_the_more_text_in_front() -> None:
    source = b"def f(x):\n" + b"    x = x + 1\n" * 400
    places = [EditSpan(start=at, end=at + 1, scope_start=0, scope_end=len(source)) for at in (2300, 3700)]
    windows = plan_windows(source, [*places, EditSpan(start=2390, end=2391, scope_start=0, scope_end=len(source))])
    holding = {member: window for window in windows for member in window.members}
    for member, place in ((0, 2300), (1, 3700), (2, 2390)):
        assert place - holding[member].start >= min(place, BODY_BYTES // 2 - 100)
