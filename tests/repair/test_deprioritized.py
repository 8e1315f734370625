"""The same edit on programs that fail alike."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from localagent.domain.edit import Edit, Splice
from localagent.domain.outcome import Failure
from localagent.domain.paths import RepoPath
from localagent.repair.search.later_steps import EXPLAINED, REPEATED, Rivals
from localagent.repair.search.search_node import Lineage, SearchStep

M = RepoPath("m.py")
BASE = {M: b"a = 1\nb = (2\nc = 3\nc = 3\n"}
NAME_ERROR = Failure(exception="NameError", message="c")


def kept(number: int, after: bytes, *failures: Failure) -> Lineage:
    done = Edit(path=M, splices=(Splice(start=0, end=0, text=b""),), operator="o", line=2, end_line=2, prior=0)
    return Lineage(
        number=number,
        edits=(done,),
        changed={M: after},
        identity=frozenset(),
        cost=0,
        round=1,
        failures=failures,
        lines={},
    )


def on(parent: Lineage, *, line: bytes, at: int, text: bytes, joins: bool = False) -> SearchStep:
    """A step that puts `text` in the place of one byte of the first such line."""
    source = parent.sources(BASE)[M]
    start = source.index(line) + at
    edit = Edit(
        path=M, splices=(Splice(start=start, end=start + 1, text=text),), operator="o", line=3, end_line=3, prior=0
    )
    return SearchStep(parent=parent, edit=edit, cost=0.0, joins=joins)


ONE = kept(1, b"a = 1\nb = (2)\nc = 3\n", NAME_ERROR)
OTHER = kept(2, b"a = 1\nb = 2\nc = 3\n", NAME_ERROR)
ROOT = Lineage(
    number=None, edits=(), changed={}, identity=frozenset(), cost=0, round=0, failures=(NAME_ERROR,), lines={}
)


def test_what_ran_on_one_comes_later_on_another_and_only_once() -> None:
    rivals = Rivals()
    first, again = (on(parent, line=b"c = 3", at=4, text=b"4") for parent in (ONE, OTHER))
    assert rivals.later(first, BASE) == 0.0
    rivals.runs(first, BASE)
    assert rivals.later(again, BASE) == REPEATED
    assert rivals.later(again, BASE) == 0.0  # when its turn comes again it runs


def test_another_place_of_the_same_program_where_the_same_stands_does_not_wait() -> None:
    rivals = Rivals()
    twice = kept(5, b"a = 1\nb = 2\nc = 3\nc = 3\n", NAME_ERROR)
    first = on(twice, line=b"c = 3", at=4, text=b"4")
    second = on(twice, line=b"c = 3\nc = 3", at=10, text=b"4")
    rivals.runs(first, BASE)
    assert rivals.later(second, BASE) == 0.0
    assert rivals.later(on(OTHER, line=b"c = 3", at=4, text=b"4"), BASE) == REPEATED


def test_another_edit_or_place_or_program_that_fails_otherwise_does_not_wait() -> None:
    rivals = Rivals()
    rivals.runs(on(ONE, line=b"c = 3", at=4, text=b"4"), BASE)
    moved_on = kept(3, b"a = 1\nb = 2\nc = 3\n", Failure(exception="NameError", message="d"))
    twice = kept(4, b"a = 1\nb = 2\nc = 3\n", NAME_ERROR, NAME_ERROR)
    for step in (
        on(OTHER, line=b"c = 3", at=4, text=b"5"),
        on(OTHER, line=b"c = 3", at=0, text=b"4"),
        on(OTHER, line=b"b = 2", at=4, text=b"4"),
        on(moved_on, line=b"c = 3", at=4, text=b"4"),
        on(twice, line=b"c = 3", at=4, text=b"4"),
        on(OTHER, line=b"c = 3", at=4, text=b"4", joins=True),
        on(ROOT, line=b"c = 3", at=4, text=b"4"),
    ):
        assert rivals.later(step, BASE) == 0.0


def test_what_ran_on_the_snapshot_says_nothing_of_kept_candidates() -> None:
    rivals = Rivals()
    rivals.runs(on(ROOT, line=b"c = 3", at=4, text=b"4"), BASE)
    assert rivals.later(on(ONE, line=b"c = 3", at=4, text=b"4"), BASE) == 0.0


@given(st.permutations([Failure(exception="E", message=str(k)) for k in range(3)]))
def test_the_order_of_failures_means_nothing(failures: list[Failure]) -> None:
    rivals = Rivals()
    rivals.runs(
        on(kept(1, ONE.changed[M], *sorted(failures, key=lambda f: f.message)), line=b"c", at=0, text=b"d"), BASE
    )
    assert rivals.later(on(kept(2, OTHER.changed[M], *failures), line=b"c", at=0, text=b"d"), BASE) == REPEATED


def test_other_edits_of_the_line_that_a_kept_one_mended_come_later_once() -> None:
    rivals = Rivals()
    taken, rival = (on(ONE, line=b"c = 3", at=4, text=text) for text in (b"4", b"5"))
    elsewhere = SearchStep(parent=ONE, edit=replace(rival.edit, line=1, end_line=1), cost=0.0)
    on_another = on(OTHER, line=b"c = 3", at=4, text=b"6")
    rivals.remember(taken)
    assert rivals.later(rival, BASE) == EXPLAINED
    assert rivals.later(rival, BASE) == 0.0
    assert rivals.later(elsewhere, BASE) == 0.0
    assert rivals.later(on_another, BASE) == 0.0


def test_both_reasons_add_up() -> None:
    rivals = Rivals()
    rivals.runs(on(ONE, line=b"c = 3", at=4, text=b"4"), BASE)
    rivals.remember(on(OTHER, line=b"c = 3", at=4, text=b"7"))
    assert rivals.later(on(OTHER, line=b"c = 3", at=4, text=b"4"), BASE) == REPEATED + EXPLAINED


def test_a_second_reason_adds_to_the_first() -> None:
    rivals = Rivals()
    step = on(OTHER, line=b"c = 3", at=4, text=b"4")
    rivals.remember(on(OTHER, line=b"c = 3", at=4, text=b"7"))
    assert rivals.later(step, BASE) == EXPLAINED
    rivals.runs(on(ONE, line=b"c = 3", at=4, text=b"4"), BASE)
    assert rivals.later(step, BASE) == REPEATED + EXPLAINED
    assert rivals.later(step, BASE) == 0.0
