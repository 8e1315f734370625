"""A tester that would take more than its part: what is no new test, what the gates refuse, names that lie."""

from pathlib import Path

import pytest
from support.agent_builder import Asked
from support.git_builder import Repo

from localagent.agent.agent_ports import Answer, JudgeAnswer
from localagent.app.agent.acceptance_tests import AcceptanceJudge, NewTestsReview
from localagent.app.agent.jail_runs import JailRuns
from localagent.app.agent.snapshot_tree import SnapshotTree
from localagent.domain.paths import RepoPath
from localagent.policy.load import load_policy
from localagent.repo.snapshot import take_snapshot
from localagent.repo.top_level_modules import importable_names

FILES = {
    "shop.py": "def total(items):\n    return sum(items)\n",
    "tests/test_shop.py": "from shop import total\n\n\ndef test_total():\n    assert total([1]) == 1\n",
    "tests/conftest.py": "",
    "tests/data.json": "{}\n",
}
GOOD = "from shop import mean\n\n\ndef test_mean():\n    assert mean([1, 3]) == 2\n"


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> SnapshotTree:
    folder = tmp_path_factory.mktemp("roles")
    repo = Repo(folder / "r")
    for name, data in FILES.items():
        repo.stage(name, data)
    repo.commit()
    return SnapshotTree(take_snapshot(repo.folder, folder / "store"))


@pytest.fixture(scope="module")
def review(tree: SnapshotTree) -> NewTestsReview:
    policy = load_policy(Path(__file__).parents[2] / "policies" / "default.toml")
    return NewTestsReview(policy, "add mean to shop.py", tree, importable_names(Path(tree.snapshot.store)))


@pytest.mark.parametrize(
    "path",
    [
        "shop.py", "mean.py", "tests/test_shop.py", "tests/conftest.py", "conftest.py", "tests/data.json",
        "tests/new.json", "tests/helpers.py", "pyproject.toml", "tests/test_x.txt", "sitecustomize.py",
        "tests/__init__.py",
    ],
)  # fmt: skip
def test_a_tester_writes_new_tests_and_nothing_else(review: NewTestsReview, path: str) -> None:
    for text in ("x = 1\n", None):
        said = review.of_change({RepoPath(path): None}, {RepoPath(path): text})
        assert said.answer is Answer.DENY
        assert "write new test files only" in said.reason


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        (f"import os\n\nos._exit(0)\n{GOOD}", "process-state"),
        (f"import subprocess\n\nsubprocess.run(['ls'])\n{GOOD}", "run-process"),
        (f"open('/etc/passwd', 'w').write('x')\n{GOOD}", "outside the repository"),
        (f"{GOOD}\n\ndef test_more():\n    x = mean([1])\n    assert x == x\n", "assert-trivial"),
    ],
)
def test_the_gates_read_its_tests_as_they_read_any(review: NewTestsReview, text: str, rule: str) -> None:
    path = RepoPath("tests/test_mean.py")
    assert review.of_change({path: None}, {path: GOOD}).answer is Answer.ALLOW
    said = review.of_change({path: None}, {path: text})
    assert (said.answer is not Answer.ALLOW, rule in said.reason) == (True, True), said


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("from shop import totl\n\n\ndef test_a():\n    assert totl([1]) == 1\n", "shop has total"),
        ("from shop import mean\nimport wares\n\n\ndef test_a():\n    assert mean([1]) == 1\n", "no module wares"),
        ("def test_\u00e9\u0301():\n    pass\n", "uses nothing"),
        ("def test_" + "a" * 5000 + "():\n    pass\n", "test_aaa"),
    ],
)
def test_names_that_lie_are_told_before_anything_runs(tree: SnapshotTree, text: str, says: str) -> None:
    class NeverRun(JailRuns):
        def __init__(self) -> None:
            """Nothing may be asked of it."""

    judge = AcceptanceJudge(
        instruction="add mean to shop.py",
        tree=tree,
        runs=NeverRun(),
        person=Asked(present=True, yes=True),
        asks=True,
        assume=False,
        own=frozenset({"shop"}),
        installed=frozenset({"pytest"}),
    )
    said = judge.judge({RepoPath("tests/test_a.py"): text}, "")
    assert (said.answer, says in said.reason, len(said.reason) < 2000) == (JudgeAnswer.REFUSED, True, True)
    assert said.agreement is None
