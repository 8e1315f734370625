"""Which commits a search suspects before it has run: those whose lines the failing test runs, on real repositories."""

from pathlib import Path

import pytest
from support.git_builder import Repo

from localagent.bisect.commit_graph import CommitGraph
from localagent.bisect.guilty_prior import ELSEWHERE, FILE_RUN, LINE_RUN, guilty_prior
from localagent.bisect.symptom import TreeRun
from localagent.domain.paths import RepoPath
from localagent.repo.commit_history import read_parents
from localagent.repo.git import Git
from localagent.repo.line_history import commits_of_lines

BEFORE = "def used():\n    return 1\n\n\ndef other():\n    return 1\n"
M, TEST = RepoPath("m.py"), RepoPath("test_m.py")


@pytest.fixture
def history(tmp_path: Path) -> tuple[Repo, dict[str, str]]:
    """Commits by subject; `merge` changes a line that neither of its sides has so."""
    repo = Repo(tmp_path / "r")
    found = {}

    def commit(subject: str, name: str, text: str) -> None:
        repo.stage(f"pkg/{name}", text)
        repo.commit(subject)
        found[subject] = repo.git("rev-parse", "HEAD").decode().strip()

    commit("good", "m.py", BEFORE)
    commit("line", "m.py", BEFORE.replace("used():\n    return 1", "used():\n    return 2"))
    commit("file", "m.py", BEFORE.replace("return 1", "return 2"))
    commit("test", "test_m.py", "import m\n")
    commit("notes", "notes.txt", "x\n")
    repo.git("checkout", "-q", "-b", "side", found["file"])
    commit("side", "more.txt", "x\n")
    repo.git("checkout", "-q", "main")
    repo.git("merge", "-q", "--no-ff", "--no-commit", "side")
    commit("merge", "m.py", "import os\n" + BEFORE.replace("return 1", "return 2"))
    return repo, found


def test_commits_of_lines_that_run_are_suspected_first(history: tuple[Repo, dict[str, str]]) -> None:
    repo, commits = history
    git = Git(repo.folder / "pkg", {})
    bad, good = commits["merge"], commits["good"]
    blamed = commits_of_lines(git, M, bad, [good], first_parent=False)
    assert blamed == {1: commits["merge"], 3: commits["line"], 7: commits["file"]}
    graph = CommitGraph(parents=read_parents(git, bad, [good], first_parent=False))
    traced = TreeRun(ran={M: frozenset({1, 3}), TEST: frozenset({1}), RepoPath("made.py"): frozenset({1})})
    prior = guilty_prior(git, bad, [good], graph, traced, carried=[TEST], first_parent=False)
    assert prior[commits["line"]] == prior[commits["merge"]] == LINE_RUN / 2
    assert prior[commits["file"]] == FILE_RUN
    for other in ("test", "notes", "side"):
        assert prior[commits[other]] == ELSEWHERE / 3
