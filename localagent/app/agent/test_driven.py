"""Tests as the specification: a skeleton of what they import and nothing has, then bodies, by the search or the model.

Skeleton and search are changes of the session that no model called for; they are proven like any other. The search is
asked for one name at a time, with the tests that use it and nothing else that is open.
"""

import ast
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass

from localagent.agent.agent_ports import JudgeAnswer
from localagent.agent.events import FILLED, SKELETON, AgentEvent, Answered, Ended, EndKind, FileWrite, ResultKind
from localagent.agent.tools.working_copy import WorkingCopy
from localagent.app.agent.jail_runs import JailRuns
from localagent.app.agent.patch_judge import VerifyJudge
from localagent.app.code.skeleton_patch import files_named
from localagent.code.skeleton import open_functions, skeletons
from localagent.code.source_text import parse_or_none
from localagent.code.spans import outermost_functions
from localagent.code.test_usage import missing_names
from localagent.domain.edit import Patch
from localagent.domain.paths import RepoPath
from localagent.reproduce.test_dependencies import names_used
from localagent.text.visible_text import one_line
from localagent.verify.worker.worker_client import WorkerLost

INSTRUCTION = "make these tests pass"
NOTE = "What the tests import and nothing has was given a skeleton; fill the bodies that raise NotImplementedError."
_SHOWN = 12
_ROUNDS = 2
_MOST_TOLD = 600


@dataclass(frozen=True, kw_only=True, slots=True)
class OpenName:
    """A function or class at the top of a module whose body, or a method's, is left open."""

    path: RepoPath
    name: str
    functions: tuple[tuple[str, int], ...]
    """Qualified name and line of each."""

    def __str__(self) -> str:
        return ", ".join(f"{name} ({self.path}:{line})" for name, line in self.functions)


@dataclass(frozen=True, kw_only=True, slots=True)
class TestDriven:
    """One session's work from tests. `specs` are pytest arguments, `installed` modules of the project's Python."""

    copy: WorkingCopy
    runs: JailRuns
    specs: tuple[str, ...]
    installed: frozenset[str]
    append: Callable[[AgentEvent], None]

    def lay_skeleton(self) -> None:
        """Give the tests what they import and nothing has."""
        python = self._python()
        named = files_named(self.specs, python)
        sources = {path: data for path, data in python.items() if path not in named}
        missing = missing_names({path: python[path] for path in sorted(named)}, sources, installed=self.installed)
        if not missing:
            return
        names = (f"{m.name}{': ' if m.names else ''}{', '.join(sorted(m.names))}" for m in missing)
        files = {path: data.decode() for path, data in skeletons(missing, sources).items()}
        self._change(SKELETON, f"skeleton of {_some(names)}", files)

    def fill(self, search: Callable[[Sequence[str]], Patch | None]) -> None:
        """Bodies that the search finds: for each open name by its own tests, then by those that use several."""
        own = {one.path for one in self.open_names()} | set(self.copy.writes)

        def made(tests: Sequence[str]) -> bool:
            """Whether tests pass, as the copy stands or with what the search finds."""
            if self._pass(tests, self.copy.writes):
                return True
            found = search(tests)
            if found is None or not {c.path for c in found.changes} <= own:
                return False  # what stood elsewhere is not the search's to change here
            files = {c.path: c.after.decode() for c in found.changes}
            if not self._pass(tests, {**self.copy.writes, **files}):
                return False
            self._change(FILLED, f"bodies that make pass: {_some(t.rpartition('::')[2] for t in tests)}", files)
            return True

        for _ in range(_ROUNDS):
            before, waiting = self.copy.writes, self.open_names()
            for one in waiting:
                self._fill_name(one, made)
            tests = self._uses({one.name for one in self.open_names()})
            if shared := [test for test, used in tests.items() if len(used) > 1]:
                made(shared)
            if self.copy.writes == before:
                return

    def _fill_name(self, one: OpenName, made: Callable[[Sequence[str]], bool]) -> None:
        """By its tests one after the other, as it would be written by hand: a body first, what it refuses later."""
        tests = self._uses({other.name for other in self.open_names()})
        own = [test for test, used in tests.items() if used == {one.name}]
        good: list[str] = []
        for test in own:
            good += [test] if made([*good, test]) else []
        if own and good != own:
            made(own)

    def open_names(self) -> list[OpenName]:
        """What the tests use and is left open, as the copy stands."""
        python = self._python()
        named = files_named(self.specs, python)
        used = {name for path in named for names in _tests(path, python[path], self.specs).values() for name in names}
        found: dict[tuple[RepoPath, str], list[tuple[str, int]]] = {}
        for path, data in python.items():
            for function in open_functions(data) if path not in named else ():
                top = function.qualname.partition(".")[0]
                if top in used:
                    found.setdefault((path, top), []).append((function.qualname, function.node.lineno))
        return [OpenName(path=path, name=top, functions=tuple(each)) for (path, top), each in found.items()]

    def proven(self, judge: VerifyJudge) -> Ended:
        """How a session without a model ends: proven where the named tests pass, else with what is still open."""
        writes = self.copy.writes
        if self._pass(self.specs, writes):
            if not writes:
                return Ended(
                    kind=EndKind.GAVE_UP,
                    reason="the named tests pass already: nothing is to be done",
                    remedy="name tests that fail now, or write one for what is missing",
                )
            said = judge.judge(writes, "")
            kinds = {JudgeAnswer.ACCEPTED: EndKind.FINISHED, JudgeAnswer.NEEDS_PERSON: EndKind.NEEDS_PERSON}
            return Ended(kind=kinds.get(said.answer, EndKind.GAVE_UP), reason=said.reason)
        open_ = self.open_names()
        still = f"still to be written: {_some(map(str, open_))}" if open_ else "no body is open that the tests use"
        lines = self.runs.run_tests(writes, self.specs).text.splitlines()
        told = one_line("; ".join(line.strip() for line in lines), _MOST_TOLD)
        reason = f"the search did not make the named tests pass; {still}; the tests say: {told}"
        return Ended(kind=EndKind.GAVE_UP, reason=reason)

    def _pass(self, tests: Sequence[str], writes: Mapping[RepoPath, str | None]) -> bool:
        """Whether they all pass; a process that they end is no pass. AnswerIsNo where there are none."""
        try:
            return self.runs.passes(writes, tests)
        except WorkerLost:
            return False

    def _uses(self, names: Set[str]) -> dict[str, set[str]]:
        """The tests of the specification, each with the names, of those given, that it uses."""
        python = self._python()
        return {
            test: used & names
            for path in sorted(files_named(self.specs, python))
            for test, used in _tests(path, python[path], self.specs).items()
        }

    def _python(self) -> dict[RepoPath, bytes]:
        texts = ((path, self.copy.get(path)) for path in self.copy.paths() if path.is_python)
        return {path: text.encode() for path, text in texts if text is not None}

    def _change(self, tool: str, text: str, files: Mapping[RepoPath, str]) -> None:
        writes = tuple(FileWrite(path=path, text=after) for path, after in files.items())
        told = f"{text} ({', '.join(map(str, files))})"
        self.append(Answered(call_id=tool, tool=tool, kind=ResultKind.DONE, text=told, writes=writes))


def _some(names: Iterable[str]) -> str:
    found = list(names)
    return ", ".join(found[:_SHOWN]) + (f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else "")


def _tests(path: RepoPath, data: bytes, specs: Sequence[str]) -> dict[str, set[str]]:
    """The tests of a file that some pytest arguments name, each with the names it uses, itself or by its fixtures."""
    tree = parse_or_none(data)
    if tree is None:
        return {}
    spans = list(outermost_functions(tree))
    by_name = {span.node.name: span.node for span in spans}
    found = {}
    for span in spans:
        test = f"{path}::{span.qualname.replace('.', '::')}"
        if span.node.name.startswith("test") and any(_names(spec, test) for spec in specs):
            found[test] = _with_helpers(span.node, by_name)
    return found


def _names(spec: str, test: str) -> bool:
    """Whether a pytest argument names a test: its file or folder, its class, or itself, parameters left out."""
    wanted = spec.removeprefix("./").partition("[")[0].rstrip("/")
    return wanted in ("", ".") or test == wanted or test.startswith((f"{wanted}::", f"{wanted}/"))


def _with_helpers(test: ast.AST, by_name: Mapping[str, ast.AST]) -> set[str]:
    """Names that a test uses, and what the functions of its file that it names use."""
    used, waiting, seen = set[str](), [test], set[str]()
    while waiting:
        names = names_used(waiting.pop())
        used |= names
        waiting += [by_name[name] for name in names - seen if name in by_name]
        seen |= names
    return used
