"""How the edits that a group of lines may have are shared out among its files."""

from collections.abc import Iterator

from localagent.domain.edit import Edit
from localagent.domain.paths import RepoPath
from localagent.repair.search.expansion import EDITS_PER_PATH, LEAST_EDITS, in_time, shared_out

A, B = RepoPath("a.py"), RepoPath("b.py")


def test_a_file_of_suspicious_lines_gets_more_edits() -> None:
    shares = shared_out(6_000, {A: {1: 0.5, 2: 0.4}, B: {1: 0.1}})
    assert shares == {A: 5_400, B: 600}


def test_no_file_gets_but_a_few() -> None:
    assert shared_out(6_000, {A: {1: 1.0}, B: {9: 0.001}})[B] == EDITS_PER_PATH
    assert shared_out(6_000, {A: {}, B: {1: 0.0}}) == {A: EDITS_PER_PATH, B: EDITS_PER_PATH}
    assert shared_out(6_000, {}) == {}


def test_edits_are_enumerated_for_so_long_and_a_few_in_any_case() -> None:
    made = 0

    def edits() -> Iterator[Edit]:
        nonlocal made
        while True:
            made += 1  # a second each
            yield Edit(path=A, splices=(), operator="o", line=1, end_line=1, prior=0.0)

    def taken(most: int, until: float) -> int:
        nonlocal made
        made = 0
        return sum(1 for _ in in_time(edits(), most, until, lambda: float(made)))

    assert taken(6_000, until=250.0) == 249
    assert taken(6_000, until=10.0) == taken(6_000, until=-1.0) == LEAST_EDITS
    assert taken(30, until=10.0) == taken(30, until=1_000.0) == 30
    made = 0
    assert (
        sum(1 for _ in in_time(edits(), 6_000, 10.0, lambda: float(made), 20.0)) == 19
    )  # nothing after the task's end
