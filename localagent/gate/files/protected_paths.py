"""Gate: what judges a repair and is not called a test: programs of a `--check`, project tools, helpers of tests.

Tests by name are the gate `paths`' to refuse. Limitations: as `check_programs` and `helper_scan` have them; `testing/`
inside a package, which others may import, is not refused (`domain/test_support_names.py`: a person has to look).
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pathspec

from localagent.domain.gate import Decision, Finding, Severity
from localagent.domain.outcome import Baseline
from localagent.domain.paths import RepoPath
from localagent.domain.policy import Policy
from localagent.gate.core.gate_input import GateInput
from localagent.gate.core.rule import Rule, RuleExample, decide
from localagent.gate.files.check_programs import check_programs
from localagent.gate.files.test_helpers import HelperScan

if TYPE_CHECKING:
    from localagent.ports import Sources

PROJECT_TOOLS = frozenset({
    "manage.py", "noxfile.py", "toxfile.py", "duties.py", "dodo.py", "fabfile.py", "setup.py", "conftest.py",
    "runtests.py", "runtest.py", "run_tests.py", "run_test.py", "runalltests.py", "run_all_tests.py", "testrunner.py",
    "testall.py", "run_unittests.py", "runner_tests.py",
})  # fmt: skip
_ALWAYS = frozenset({"conftest.py"})  # also where it is a module of a package
_INVOKE = re.compile(rb"^\s*(?:from|import)\s+invoke\b", re.MULTILINE)
_SOME = {"before": "def f(x):\n    return x\n", "after": "def f(x):\n    return x + 1\n"}
_RAISES = "def raises(err, do):\n    try:\n        do()\n        return {}\n    except err:\n        return True\n"
_TASKS = {name: f"import invoke\n\n\n{text}" for name, text in _SOME.items()}
_USES = "from pkg import rates\nfrom pkg.{} import {}\n\n\ndef test_f():\n    assert rates.f(1) == 2\n"

CHECK_PROGRAM = Rule(
    id="check-program",
    severity=Severity.HIGH,
    why="a repair may not change the program that says whether it is good",
    remedy="repair what the program checks; where the fault is its own, put the check into a file apart",
    match=(
        RuleExample(path="manage.py", check="python manage.py test", **_SOME),
        RuleExample(path="pkg/selftest.py", check="python -X dev -m pkg.selftest --all", **_SOME),
        RuleExample(path="pkg/selftest.py", check="python -m unittest -v pkg.selftest.Case.test_a", **_SOME),
        RuleExample(path="src/pkg/check/__main__.py", check="timeout 60 python3 -m pkg.check", **_SOME),
        RuleExample(path="tools/check.py", check="./tools/check.py pkg/mod.py", **_SOME),
        RuleExample(path="check.py", check="coverage run check.py", **_SOME),
    ),
    not_match=(
        RuleExample(check="python tools/check.py pkg/mod.py", **_SOME),
        RuleExample(check="python -m unittest discover", **_SOME),
        RuleExample(check="python -m doctest pkg/mod.py", **_SOME),
        RuleExample(check="mypy pkg/mod.py", **_SOME),
    ),
)
PROJECT_TOOL = Rule(
    id="project-tool",
    severity=Severity.HIGH,
    why="runners of tests and tools of the project decide what is run, and are not what is repaired",
    remedy="leave the file as it is, or have a person change it",
    match=(
        *(
            RuleExample(path=path, **_SOME)
            for path in ("manage.py", "backend/manage.py", "runtests.py", "tools/runtests.py")
        ),
        RuleExample(path="tasks.py", **_TASKS),
    ),
    not_match=(
        RuleExample(path="tasks.py", **_SOME),
        RuleExample(path="pkg/tasks.py", **_SOME),
        RuleExample(path="pkg/manager.py", **_SOME),
    ),
)  # fmt: skip
TEST_HELPER = Rule(
    id="test-helper",
    severity=Severity.HIGH,
    why="a helper that only tests call judges like a test: changed, it may let everything pass",
    remedy="repair what the tests are about; where the helper is wrong, have a person change it",
    match=(
        RuleExample(
            path="pkg/testutil.py",
            test=_USES.format("testutil", "made"),
            beside="def f(x):\n    return x + 1\n",
            before="def made(x):\n    return x\n",
            after="def made(x):\n    return x + 1\n",
        ),
        RuleExample(
            path="pkg/tools.py",
            test=_USES.format("tools", "raises"),
            beside="from pkg.tools import NONE\n\n\ndef f(x):\n    return x or NONE\n",
            before="NONE = 0\n\n\n" + _RAISES.format(False),
            after="NONE = 0\n\n\n" + _RAISES.format(True),
        ),
    ),
    not_match=(
        RuleExample(
            path="pkg/testutil.py",
            test=_USES.format("testutil", "made"),
            beside="from pkg.testutil import made\n\n\ndef f(x):\n    return made(x)\n",
            before="def made(x):\n    return x\n",
            after="def made(x):\n    return x + 1\n",
        ),
        RuleExample(
            test="from pkg.mod import f\n\n\ndef test_f():\n    assert f(1) == 2\n",
            **_SOME,
        ),
    ),
)
RULES = (CHECK_PROGRAM, PROJECT_TOOL, TEST_HELPER)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Tree:
    """A tree, and what was learned of it. `programs`: the command of each program that a check starts."""

    baseline: Baseline
    sources: "Sources"
    programs: Mapping[RepoPath, str]
    scan: HelperScan


class Protected:
    """Refuses files, and functions of files, that judge a repair. Keeps what it learned of the tree it saw last."""

    name = "protected"

    def __init__(self, policy: Policy, test_files: Collection[RepoPath]) -> None:
        self._patterns = pathspec.GitIgnoreSpec.from_lines([p.lower() for p in policy.paths.tests])
        self._given = frozenset(test_files)
        self._seen: _Tree | None = None

    def review(self, change: GateInput) -> Decision:
        """Deny if a changed file, or the function around a change, judges."""
        found: list[Finding] = []
        for file in change.changes:
            lines = [1 + file.before.count(b"\n", 0, span.start) for span in change.spans[file.path]]
            for line in lines or [1]:
                finding = self.protection(file.path, line, change.baseline, change.sources)
                if finding is not None:
                    found.append(finding)
                    break
        return decide(self.name, found)

    def protection(self, path: RepoPath, line: int, baseline: Baseline, sources: "Sources") -> Finding | None:
        """Why a repair may not touch a line of a file; None where it may."""
        seen = self._look_at(baseline, sources)
        if path in seen.programs:
            return CHECK_PROGRAM.finding(path, line, f"{path} is the program of --check {seen.programs[path]!r}")
        if _is_tool(path, sources):
            return PROJECT_TOOL.finding(path, line, f"{path} is a tool of the project")
        if seen.scan.only_tests_import(path):
            return TEST_HELPER.finding(path, line, f"{path} helps tests, and no other code imports it")
        if name := seen.scan.asserting_function(path, line):
            return TEST_HELPER.finding(path, line, f"only tests use {name} of {path}")
        return None

    def _look_at(self, baseline: Baseline, sources: "Sources") -> "_Tree":
        """What is known of this tree; what was learned of another is forgotten."""
        seen = self._seen
        if seen is not None and seen.baseline is baseline and seen.sources is sources:
            return seen
        tests = self._given | baseline.test_files
        started = [(path, c.command) for c in baseline.checks for path in check_programs(c.command, sources)]
        scan = HelperScan(sources, lambda path: path in tests or self._is_test(path))
        self._seen = _Tree(baseline=baseline, sources=sources, programs=dict(started), scan=scan)
        return self._seen

    def _is_test(self, path: RepoPath) -> bool:
        return path.name == "conftest.py" or self._patterns.match_file(path.replace("\n", " ").lower())


def _is_tool(path: RepoPath, sources: "Sources") -> bool:
    name = path.name.lower()
    if name == "tasks.py" and "/" not in path:
        return _INVOKE.search(sources[path]) is not None if path in sources else False
    if name not in PROJECT_TOOLS:
        return False
    folder = path.rpartition("/")[0]
    return name in _ALWAYS or not folder or RepoPath(f"{folder}/__init__.py") not in sources
