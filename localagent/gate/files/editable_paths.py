"""Gate: where a repair may reach. Only files of the snapshot that the policy makes editable; never tests.

Judges names, and doctests, which are tests in a source.
That nothing outside the repository can be reached through links is the tree's promise, not this.
"""

from collections.abc import Collection
from typing import TYPE_CHECKING

import pathspec

from localagent.code.doctests import altered
from localagent.domain.edit import FileChange
from localagent.domain.gate import Decision, Finding, Severity
from localagent.domain.outcome import Baseline
from localagent.domain.paths import RepoPath
from localagent.domain.policy import Policy
from localagent.gate.core.gate_input import GateInput
from localagent.gate.core.rule import Rule, RuleExample, decide

if TYPE_CHECKING:
    from localagent.ports import Sources

_SOME = {"before": "x = 1\n", "after": "x = 2\n"}

NOT_PYTHON = Rule(
    id="path-not-python",
    severity=Severity.HIGH,
    why="only Python sources are repaired",
    remedy="change Python sources only, or have a person make the change",
    match=(RuleExample(path="data/table.csv", **_SOME), RuleExample(path="pkg/mod.py.txt", **_SOME)),
    not_match=(RuleExample(**_SOME), RuleExample(path="pkg/mod.pyi", before="x: int\n", after="x: str\n")),
)
NOT_IN_TREE = Rule(
    id="path-not-in-tree",
    severity=Severity.HIGH,
    why="a repair changes files that were there, as they were; it adds and removes none",
    remedy="make the patch anew against the tree as it stands",
    match=(RuleExample(path="pkg/new.py", before="", after="x = 1\n", test="absent"),),
    not_match=(RuleExample(**_SOME),),
)
IS_TEST = Rule(
    id="path-test",
    severity=Severity.HIGH,
    why="a repair may not change what judges it",
    remedy="leave the tests as they are, or have a person change them",
    match=tuple(
        RuleExample(path=path, **_SOME)
        for path in (
            "tests/a.py", "pkg/tests/deep/a.py", "test_a.py", "pkg/a_test.py", "pkg/judge.py", "Tests/a.py",
            "two\nlines/tests/a.py",
        )
    ),
    not_match=(RuleExample(path="pkg/testing.py", **_SOME), RuleExample(path="pkg/contest.py", **_SOME)),
)  # fmt: skip
DENIED = Rule(
    id="path-denied",
    severity=Severity.HIGH,
    why="configuration, continuous integration, dependencies and foreign code are not repaired",
    remedy="leave the file as it is, or have a person change it",
    match=tuple(
        RuleExample(path=path, **_SOME)
        for path in (".git/hooks/a.py", ".github/a.py", "conftest.py", "pkg/conftest.py", "setup.py", "noxfile.py",
                     "pkg/_vendor/a.py", "venv/lib/a.py", "lib/site-packages/a.py", "SETUP.py", "sitecustomize.py")
    ),
    not_match=(RuleExample(path="pkg/setup_db.py", **_SOME), RuleExample(path="src/build/mod.py", **_SOME)),
)  # fmt: skip
NOT_EDITABLE = Rule(
    id="path-not-editable",
    severity=Severity.HIGH,
    why="the policy's allow-list does not name the file",
    remedy="leave the file as it is, or name it in the policy",
    match=(RuleExample(path="Makefile", **_SOME), RuleExample(path="data/table.bin", **_SOME)),
    not_match=(RuleExample(**_SOME), RuleExample(path="two\nlines/mod.py", **_SOME)),
)
RULES = (NOT_PYTHON, NOT_IN_TREE, IS_TEST, DENIED, NOT_EDITABLE)


class Paths:
    """Refuses by the name of what is changed. Denials hold without regard to case, for file systems that have none."""

    name = "paths"

    def __init__(self, policy: Policy, test_files: Collection[RepoPath]) -> None:
        lists = (policy.paths.editable, *policy.paths.narrowed)
        self._editable = tuple(pathspec.GitIgnoreSpec.from_lines(patterns) for patterns in lists)
        self._denied = pathspec.GitIgnoreSpec.from_lines([p.lower() for p in policy.paths.denied])
        self._tests = pathspec.GitIgnoreSpec.from_lines([p.lower() for p in policy.paths.tests])
        self._test_files = frozenset(test_files)
        self._answers: dict[RepoPath, Finding | None] = {}

    def review(self, change: GateInput) -> Decision:
        """Deny if any changed file may not be."""
        found = [self._finding(c.path) or self._in_tree(c, change) for c in change.changes]
        judged = change.baseline.test_files
        found += [
            IS_TEST.finding(c.path, 0, f"{c.path} holds collected tests") for c in change.changes if c.path in judged
        ]
        texts = {c.path: (c.before, c.after) for c in change.changes if b">>>" in c.before}
        ids = [t.id for t in change.baseline.tests] if texts else []
        found += [
            IS_TEST.finding(RepoPath(name.partition("::")[0]), 0, f"it alters what the doctest {name} expects")
            for name in altered(texts, ids)
        ]
        return decide(self.name, [finding for finding in found if finding is not None])

    def protection(self, path: RepoPath, line: int, baseline: Baseline, sources: "Sources") -> Finding | None:
        """Why no repair may touch a file, by its name; lines do not matter here."""
        del line
        if path not in sources:
            return NOT_IN_TREE.finding(path, 0, f"{path} does not stand in the snapshot")
        if path in baseline.test_files:
            return IS_TEST.finding(path, 0, f"{path} holds collected tests")
        return self._finding(path)

    def _finding(self, path: RepoPath) -> Finding | None:
        if path not in self._answers:
            self._answers[path] = self._by_name(path)
        return self._answers[path]

    def _by_name(self, path: RepoPath) -> Finding | None:
        if not path.is_python:
            return NOT_PYTHON.finding(path, 0, f"{path} is not a Python source")
        name = path.replace("\n", " ")  # the patterns become regular expressions whose dot knows no line feed
        if path in self._test_files or self._tests.match_file(name.lower()):
            return IS_TEST.finding(path, 0, f"{path} is a test")
        if self._denied.match_file(name.lower()):
            return DENIED.finding(path, 0, f"{path} is denied by the policy")
        if not all(spec.match_file(name) for spec in self._editable):
            return NOT_EDITABLE.finding(path, 0, f"{path} matches no pattern of paths.editable")
        return None

    def _in_tree(self, file: FileChange, change: GateInput) -> Finding | None:
        stood = change.sources.get(file.path)
        if stood is None or (stood is not file.before and stood != file.before):
            return NOT_IN_TREE.finding(file.path, 0, f"{file.path} did not stand so in the snapshot")
        return None
