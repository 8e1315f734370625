"""Acceptance tests that a model wrote from the instruction, before anything is changed: whether they may be the goal.

Each must be able to show something (`weak_tests`) and have no fault of its own. At least one must fail on the tree as
it is, and also where what they import is there with empty bodies; others may hold already, and guard what is to stay.
Then a person agrees, or nobody is to be asked. What they do not show: that they say what was meant. They share the
misunderstanding of whoever wrote them.
"""

import builtins
import difflib
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

import pathspec

from localagent.agent.agent_ports import Answer, JudgeAnswer, Judgement, Person, Review
from localagent.agent.events import AgreedBy, Agreement
from localagent.app.agent.change_review import GateReview
from localagent.app.agent.jail_runs import JailRuns, Results
from localagent.app.agent.snapshot_tree import SnapshotTree
from localagent.code.skeleton import empty_bodies, skeletons
from localagent.code.test_usage import MissingModule, bound_in, missing_names
from localagent.domain.outcome import Failure, Outcome, TestResult
from localagent.domain.paths import RepoPath
from localagent.domain.policy import Policy
from localagent.errors import AnswerIsNo
from localagent.gate.tests.weak_tests import weak_tests
from localagent.text.visible_text import one_line
from localagent.verify.baseline.test_discovery import NoTests
from localagent.verify.worker.worker_client import WorkerLost

_SHOWN = 5
_LIKE = 0.8
_WORD = re.compile(r"\w+")
_OWN_FAULTS = frozenset({"NameError", "UnboundLocalError", "SyntaxError", "IndentationError", "TabError"})
_NOT_THERE = frozenset({"ImportError", "ModuleNotFoundError", "AttributeError"})
_NO_ATTRIBUTE = re.compile(r"'(\w+)' object has no attribute '(\w+)'")


class NewTestsReview(GateReview):
    """`ChangeReview` of a role that writes new test files, and nothing else."""

    def __init__(self, policy: Policy, instruction: str, tree: SnapshotTree, own_packages: frozenset[str]) -> None:
        super().__init__(policy, instruction, tree, own_packages)
        self._stands = tree.snapshot.entries
        self._tests = pathspec.GitIgnoreSpec.from_lines([p.lower() for p in policy.paths.tests])

    def of_change(self, before: Mapping[RepoPath, str | None], after: Mapping[RepoPath, str | None]) -> Review:
        """DENY for what is no new test file; else as the gates say."""
        for path in after:
            if not self.is_new_test(path):
                reason = f"{path} is not to be changed now: write new test files only, as tests/test_x.py"
                return Review(answer=Answer.DENY, reason=reason)
        return super().of_change(before, after)

    def is_new_test(self, path: RepoPath) -> bool:
        """Whether a file is new, pytest collects one of that name, and the policy calls it one of tests."""
        named = path.name.startswith("test_") or path.name.endswith("_test.py")
        return path not in self._stands and path.is_python and named and self._tests.match_file(path.lower())


@dataclass(frozen=True, kw_only=True, slots=True)
class _Found:
    """What a run shows: what is wrong, tests that fail and may have to, tests that pass, each with how."""

    faults: tuple[str, ...] = ()
    failing: tuple[str, ...] = ()
    passing: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class AcceptanceJudge:
    """`PatchJudge` of new tests. `asks`: whoever is there has to agree; `assume`: nobody has to.

    `own`, `installed`: top-level modules of the repository, and of the project's Python.
    """

    instruction: str
    tree: SnapshotTree
    runs: JailRuns
    person: Person
    asks: bool
    assume: bool
    own: frozenset[str]
    installed: frozenset[str]

    def judge(self, writes: Mapping[RepoPath, str | None], summary: str) -> Judgement:
        """AGREED, with the files; REFUSED with what is wrong, for the model to mend. Never raises for the tests."""
        del summary
        files = {path: text for path, text in sorted(writes.items()) if text is not None}
        faults = [*self._weak(files)] or [*self._misnamed(files)]
        found = _Found() if faults else self._run(files)
        faults = faults or [*found.faults]
        if not faults and not found.failing:
            faults = [f"{why}, so that it does not show what is asked for" for why in found.passing.values()]
            faults = faults or ["none of them fails now"]
        if faults:
            more = f"; and {len(faults) - _SHOWN} more" if len(faults) > _SHOWN else ""
            told = "; ".join(one_line(fault, 300) for fault in faults[:_SHOWN])
            return Judgement(answer=JudgeAnswer.REFUSED, reason=f"these tests cannot be the goal: {told}{more}")
        by = AgreedBy.ASSUMED if self.assume else AgreedBy.NOBODY
        if self.asks and self.person.present:
            if not self.person.approves(
                "these acceptance tests", "\n".join(f"{path}:\n{text}" for path, text in files.items())
            ):
                reason = "the user does not agree to these tests; ask what is wanted, or write others"
                return Judgement(answer=JudgeAnswer.REFUSED, reason=reason)
            by = AgreedBy.PERSON
        reason = f"{', '.join(files)}: {len(found.failing)} fail now, as they should"
        if found.passing:
            reason += f"; {len(found.passing)} hold already: {'; '.join([*found.passing.values()][:_SHOWN])}"
        return Judgement(answer=JudgeAnswer.AGREED, reason=reason, agreement=Agreement(by=by, files=tuple(files)))

    def _weak(self, files: Mapping[RepoPath, str]) -> Iterator[str]:
        for path, text in files.items():
            yield from (f"{path} {weak}" for weak in weak_tests(text.encode(), self.own))

    def _missing(self, files: Mapping[RepoPath, str]) -> tuple[MissingModule, ...]:
        tests = {path: text.encode() for path, text in files.items()}
        return missing_names(tests, self._sources(), installed=self.installed)

    def _sources(self) -> dict[RepoPath, bytes]:
        found = ((path, self.tree.read(path)) for path in self.tree.paths if path.is_python)
        return {path: data for path, data in found if data is not None}

    def _misnamed(self, files: Mapping[RepoPath, str]) -> Iterator[str]:
        """Names that are there under another spelling, and modules that are nobody's, though nobody asked for them."""
        asked, sources = {*_WORD.findall(self.instruction)}, self._sources()
        for module in self._missing(files):
            top, _, last = module.name.rpartition(".")
            if module.path is None and not {(top or last).partition(".")[0], last} & {*self.own, *asked}:
                yield f"there is no module {module.name}, and the instruction names none"
            known = bound_in(sources[module.path]) if module.path is not None else set()
            for name in sorted({*module.names} - asked):
                if near := difflib.get_close_matches(name, known, 1, _LIKE):
                    yield f"{module.name} has {near[0]}; the instruction names no {name}"

    def _run(self, files: Mapping[RepoPath, str]) -> "_Found":
        """How they end on the tree as it is, and where what they import is there with empty bodies."""
        missing = self._missing(files)
        sources = self._sources()
        try:
            now = self._ends(self.runs.results(files, tuple(files)), files, missing)
            if not missing or now.faults:
                return now
            empty = {path: empty_bodies(text).decode() for path, text in skeletons(missing, sources).items()}
            bare = self._ends(self.runs.results({**empty, **files}, tuple(files)), files, ())
        except NoTests:
            return _Found(faults=("pytest finds no test in them",))
        except (AnswerIsNo, WorkerLost) as no:
            return _Found(faults=(f"they cannot be run: {no}",))
        passing = {name: f"{why}, once its names are there with empty bodies" for name, why in bare.passing.items()}
        failing = tuple(name for name in bare.failing if name not in now.passing)
        return _Found(faults=bare.faults, failing=failing, passing={**passing, **now.passing})

    def _ends(self, ran: Results, files: Mapping[RepoPath, str], missing: tuple[MissingModule, ...]) -> "_Found":
        """How tests ended, each with all its cases."""
        faults: list[str] = []
        for path, failure in ran.errors.items():
            if not (failure.exception in _NOT_THERE and _names_missing(failure.message, missing)):
                faults.append(f"{path} cannot be collected: {failure.exception}: {failure.message}")
        if ran.missed:
            faults.append(f"{ran.missed} of them are not run in the time there is")
        by_function: dict[str, list[TestResult]] = {}
        for name, result in ran.tests.items():
            by_function.setdefault(name.partition("[")[0], []).append(result)
        failing: list[str] = []
        passing: dict[str, str] = {}
        for name, results in by_function.items():
            outcomes = {result.outcome for result in results}
            failures = [result.failure for result in results if result.failure is not None]
            if Outcome.SKIPPED in outcomes:
                faults.append(f"{name} is skipped, or passes where it is expected to fail")
            elif outcomes == {Outcome.PASSED}:
                passing[name] = f"{name} passes already"
            elif why := next((why for failure in failures if (why := self._own_fault(failure, files))), ""):
                faults.append(f"{name} {why}")
            else:
                failing.append(name)
        return _Found(faults=tuple(faults), failing=tuple(failing), passing=passing)

    def _own_fault(self, failure: Failure, files: Collection[RepoPath]) -> str:
        """Why a failure is the test's own fault, and not that something is missing; "" where it may be that."""
        said = f"{failure.exception}: {failure.message}"
        asked = {*_WORD.findall(self.instruction)}
        if failure.exception == "FixtureLookupError":
            return f"takes a fixture that is not there: {failure.message}"
        in_test = bool(failure.frames) and failure.frames[-1].path in files
        if failure.exception in _OWN_FAULTS and in_test:
            return f"fails by its own fault: {said}"
        if failure.exception == "ModuleNotFoundError" and in_test:
            words = {*_WORD.findall(failure.message)}
            if not words & {*self.own, *asked}:
                return f"fails by its own fault: {said}"
        found = _NO_ATTRIBUTE.search(failure.message)
        if found is not None and in_test and found[2] not in asked:
            known = dir(getattr(builtins, found[1], None)) if found[1] != "NoneType" else []
            if near := difflib.get_close_matches(found[2], known, 1, _LIKE):
                return f"asks a {found[1]} for {found[2]!r}, which has {near[0]!r}"
        return ""


def _names_missing(message: str, missing: tuple[MissingModule, ...]) -> bool:
    """Whether a message of the interpreter is about a name that is missing as was read from the tests."""
    words = {*_WORD.findall(message)}
    parts = {part for module in missing for part in (module.name.rpartition(".")[2], *module.names)}
    tops = {module.name.partition(".")[0] for module in missing if module.path is None}
    return bool(words & (parts | tops))
