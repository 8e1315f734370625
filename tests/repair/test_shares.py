"""How the edits that a group of lines may have are shared out among its files."""

from localagent.domain.paths import RepoPath
from localagent.repair.search.expansion import EDITS_PER_PATH, shared_out

A, B = RepoPath("a.py"), RepoPath("b.py")


def test_a_file_of_suspicious_lines_gets_more_edits() -> None:
    shares = shared_out(6_000, {A: {1: 0.5, 2: 0.4}, B: {1: 0.1}})
    assert shares == {A: 5_400, B: 600}


def test_no_file_gets_but_a_few() -> None:
    assert shared_out(6_000, {A: {1: 1.0}, B: {9: 0.001}})[B] == EDITS_PER_PATH
    assert shared_out(6_000, {A: {}, B: {1: 0.0}}) == {A: EDITS_PER_PATH, B: EDITS_PER_PATH}
    assert shared_out(6_000, {}) == {}
