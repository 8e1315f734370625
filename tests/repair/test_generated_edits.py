"""Written steps beside enumerated ones: their share of the turns."""

from localagent.domain.edit import SPAN, Edit, Splice
from localagent.domain.paths import RepoPath
from localagent.repair.search.frontier import Frontier
from localagent.repair.search.search_node import Lineage, SearchStep

M = RepoPath("m.py")
ROOT = Lineage(number=None, edits=(), changed={}, identity=frozenset(), cost=0.0, round=0, failures=(), lines={})


def span(start: int, end: int, text: bytes, note: str = "written") -> Edit:
    splice = Splice(start=start, end=end, text=text)
    return Edit(path=M, splices=(splice,), operator=SPAN, line=1, end_line=1, prior=-2.5, note=note)


def step(cost: float, note: str = "") -> SearchStep:
    return SearchStep(parent=ROOT, edit=span(0, 1, b"x", note), cost=cost)


def turns(frontier: Frontier, count: int) -> str:
    out = ""
    for _ in range(count):
        found = frontier.pop()
        assert isinstance(found, SearchStep)
        out += found.edit.note
    return out


def test_cheaper_written_steps_get_a_fifth_of_the_turns() -> None:
    frontier = Frontier()
    frontier.push([step(5.0, "e") for _ in range(100)])
    for _ in range(50):
        frontier.push_written(step(1.0, "w"))
    seen = turns(frontier, 100)
    assert seen.count("w") == 20
    assert seen.startswith("eeeew")
    assert frontier.written == 30


def test_dearer_written_steps_wait_for_the_likeliest_enumerated_ones() -> None:
    frontier = Frontier()
    frontier.push([step(1.0, "e") for _ in range(300)])
    for _ in range(50):
        frontier.push_written(step(9.0, "w"))
    seen = turns(frontier, 200)
    assert seen[:60] == "e" * 60
    assert 14 <= seen[60:].count("w") <= 20


def test_without_others_written_steps_have_all_turns_unless_none_may_come() -> None:
    frontier = Frontier()
    for k in range(3):
        frontier.push_written(step(float(-k), str(k)))
    assert frontier.pop(written=False) is None
    assert turns(frontier, 3) == "210"
    assert frontier.pop() is None
