"""What the model said of edits is carried to the same edits of programs that are almost the same, and to no others."""

from collections.abc import Mapping, Sequence

from hypothesis import given
from hypothesis import strategies as st
from test_repair_task import Laboratory, Oracle, number, repair

from localagent.domain.edit import Edit, Reading, Splice
from localagent.domain.paths import RepoPath
from localagent.domain.task import Budget
from localagent.repair.ordering.scored_edit import Open
from localagent.repair.search.expansion import Heritage, alike, moved
from localagent.repair.search.search_node import Lineage, SearchStep

M, N = RepoPath("m.py"), RepoPath("n.py")
ROOT = Lineage(number=None, edits=(), changed={}, identity=frozenset(), cost=0.0, round=0, failures=(), lines={})
LINES = st.lists(st.sampled_from([b"a = 1", b"b = 22", b"", b"    c"]), max_size=6).map(b"\n".join)
ENDED = st.builds(lambda text, end: text + end, LINES, st.sampled_from([b"", b"\n"]))


def edit(source: bytes, old: bytes, new: bytes, path: RepoPath = M) -> Edit:
    at = source.index(old)
    splices = (Splice(start=at, end=at + len(old), text=new),)
    return Edit(path=path, splices=splices, operator="o", line=1, end_line=1, prior=0.0)


def known(*edits: Edit) -> list[Open]:
    return [
        Open(step=SearchStep(parent=ROOT, edit=e, cost=0.0), crowd=0, suspicion=1.0, gain=0.0, bare_gain=0.0)
        for e in edits
    ]


def test_edits_of_lines_that_stayed_are_known() -> None:
    before = b"a = 1\nb = 2\nc = 3\n"
    after = b"a = 1\nbb = 2\nb = 0\nc = 3\n"
    heritage = Heritage()
    noted = known(*(edit(before, old, b"9") for old in (b"1", b"2", b"3")))
    heritage.note(M, before, noted)
    asked = [edit(after, b"1", b"9"), edit(after, b"2", b"9"), edit(after, b"3", b"9"), edit(after, b"3", b"8")]
    assert heritage.of(M, after, asked) == [noted[0], None, noted[2], None]
    assert heritage.of(N, after, asked) == [None] * 4
    assert heritage.of(M, before, [e.step.edit for e in noted]) == noted


def test_the_likest_program_answers_first_and_others_where_it_cannot() -> None:
    first, second = b"a = 1\nb = 2\nc = 3\n", b"a = 0\nb = 2\nc = 3\n"
    heritage = Heritage()
    of_first, of_second = (known(edit(text, b"2", b"9"), edit(text, b"3", b"9")) for text in (first, second))
    heritage.note(M, first, of_first)
    heritage.note(M, second, of_second[:1])
    third = b"a = 0\nb = 2\nc = 3 \n"
    assert heritage.of(M, third, [edit(third, b"2", b"9")]) == [of_second[0]]
    assert heritage.of(M, second, [each.step.edit for each in of_second]) == [of_second[0], of_first[1]]


@given(ENDED, ENDED)
def test_whole_lines_are_compared(one: bytes, other: bytes) -> None:
    before, behind = alike(one, other)
    assert before + behind <= min(len(one), len(other))
    assert one[:before] == other[:before]
    assert one[len(one) - behind :] == other[len(other) - behind :]
    for text in (one, other):
        if one != other:
            assert text[:before][-1:] in (b"", b"\n")
            assert not behind or text[: len(text) - behind][-1:] in (b"", b"\n")
    assert alike(other, one) == (before, behind)
    assert alike(one, one) == (len(one), 0)


@given(ENDED, ENDED, st.data())
def test_an_edit_that_is_known_replaces_the_same_text(one: bytes, other: bytes, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(other)))
    end = data.draw(st.integers(start, len(other)))
    before, behind = alike(one, other)
    there = moved(
        (Splice(start=start, end=end, text=b"x"),),
        before,
        len(other) - behind if behind else len(other) + 1,
        len(one) - len(other),
    )
    if there is not None:
        (splice,) = there
        assert one[splice.start : splice.end] == other[start:end]
        assert one[: splice.start].rpartition(b"\n")[2] == other[:start].rpartition(b"\n")[2]


class Listening(Oracle):
    """Remembers what it was asked about."""

    asked: list[tuple[bytes, int]]

    def read(
        self, source: bytes, context: str, edits: Sequence[Edit], *, timeout_seconds: float
    ) -> Sequence[Reading | None]:
        self.asked.append((source, len(edits)))
        return super().read(source, context, edits, timeout_seconds=timeout_seconds)


def test_the_model_is_asked_about_what_a_kept_candidate_changed_alone() -> None:
    def both(space: Mapping[str, object]) -> bool:
        return space["a"] == 9 and space["b"] == 9

    source, budget = b"a = 1\nb = 2\n", Budget(max_candidates=500, max_seconds=30, jobs=1)
    scorer = Listening("")
    scorer.asked = []
    result, _ = repair(Laboratory(source, {"a": number("a", 9), "both": both}), scorer=scorer, budget=budget)
    assert result.patch is not None
    assert result.patch.after(M) == b"a = 9\nb = 9\n"
    first, *later = scorer.asked
    assert first == (source, 18)
    assert later
    assert {count for _, count in later} == {9}  # of the line that was changed
