"""What became of answers: counted by kind, and never more changed than compared."""

from hypothesis import given
from hypothesis import strategies as st

from localagent.domain.collateral import Changes, changes, crashing, only

CELLS = st.sampled_from(["ok:1", "ok:2", "ok:3", "refused:a", "raised:a", "raised:b", "late:"])
ROWS = st.lists(st.tuples(CELLS, CELLS)).map(lambda pairs: (tuple(a for a, _ in pairs), tuple(b for _, b in pairs)))


@given(ROWS)
def test_no_kind_counts_more_than_there_is(rows: tuple[tuple[str, ...], tuple[str, ...]]) -> None:
    before, after = rows
    found = changes(before, after)
    assert 0 <= found.crashes + found.refused + found.mended <= found.changed <= found.calls <= len(before)
    assert 0.0 <= found.share <= 1.0
    assert changes(before, before).changed == 0


def test_each_kind_is_told_apart() -> None:
    before = ("ok:1", "ok:2", "refused:x", "raised:x", "late:", "late:", "ok:3")
    after = ("ok:1", "raised:y", "late:", "ok:4", "late:", "ok:5", "refused:z")
    found = changes(before, after)
    assert found == Changes(calls=6, changed=5, crashes=2, refused=1, mended=2)
    assert (found.altered, found.share) == (3, 0.5)


def test_what_crashes_only_now_is_crashing() -> None:
    assert crashing(("ok:1", "raised:x", "refused:y"), ("raised:z", "raised:z", "ok:1")) == 1
    assert only(("a", "b", "c"), (True, False, True)) == ("a", "c")
