"""Hierarchical delta debugging of a failing program: as long as it fails in the same way, parts of it are left out.

Definitions and statements go before decorators, parameters and imported names, those before wrappers, elements and
characters; then the data files. Where the test's own assertion fails, what it expects was written for its data:
only statements that the assertion does not depend on go, and the data stay (see `fixed_lines`).

After Misherghi and Su, "HDD: Hierarchical Delta Debugging" (2006). Not promised:
that the cause is the same because the failure looks the same.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from localagent.code.delta_debugging import minimise
from localagent.code.source_text import parse_or_none
from localagent.code.spans import first_line
from localagent.domain.failure_signature import TEST_CODE, FailureSignature, signature_of
from localagent.domain.outcome import Failure, TestResult
from localagent.domain.paths import RepoPath
from localagent.reproduce.candidate_runs import CandidateRuns, Variant
from localagent.reproduce.data_units import data_groups
from localagent.reproduce.pytest_file import Program, without_comments
from localagent.reproduce.source_units import SourceUnits, UnitGroup, UnitKind
from localagent.reproduce.test_dependencies import find_test, fixed_lines, loose_names, unneeded_lines

Tell = Callable[[int, int], None]  # runs so far, and the size in bytes of the smallest program that fails


@dataclass(frozen=True, kw_only=True, slots=True)
class Target:
    """What is to stay: the signature, of the test named `test` (qualified as in pytest's ids), or of a script.

    `rendered` makes a program's file, which is put at `path`; failures in files of `test_code` are the test's own.
    """

    signature: FailureSignature
    path: RepoPath
    rendered: Callable[[Program], bytes]
    test_code: frozenset[str]
    test: str = ""
    options: tuple[str, ...] = ()

    @property
    def keeps_data(self) -> bool:
        """Whether what the test expects holds for its data alone."""
        return bool(self.test) and self.signature.in_test

    def variant(self, program: Program) -> Variant:
        """What runs."""
        return Variant(files={self.path: self.rendered(program)}, spec=str(self.path), options=self.options)

    def same(self, results: tuple[TestResult, ...]) -> Failure | None:
        """The first failure that is the same one."""
        known = self.test_code | {str(self.path)}
        for result in results:
            failure = None if result.outcome.good else result.failure
            if failure is not None and signature_of(failure, known) == self.signature:
                return failure
        return None


class Reducer:
    """`best` is the smallest program so far that fails in the same way; `until` is a moment of the monotonic clock."""

    def __init__(self, runs: CandidateRuns, target: Target, start: Program, until: float, tell: Tell) -> None:
        self._runs, self._target, self._until, self._tell = runs, target, until, tell
        self._keys: dict[bytes, bool] = {}
        self.best = start
        tree = parse_or_none(start.source)
        self._loose = loose_names(tree) if tree is not None else set[str]()
        self._line = 0

    @property
    def in_time(self) -> bool:
        """Whether there is time for another run."""
        return time.monotonic() < self._until

    def reduce(self) -> Program:
        """The start has to fail; Interrupted where the runs were cancelled, `best` stays."""
        if not self.fails(self.best):
            raise ValueError("the start does not fail in this way")
        self._guess()
        before = None
        while before != self.best.size and self.in_time:
            before = self.best.size
            for kind in UnitKind:
                self._reduce_source(kind)
            if not self._target.keeps_data:
                for name in self.best.inputs:
                    self._reduce_input(name)
        self.fails(replace(self.best, source=without_comments(self.best.source)))
        return self.best

    def fails(self, program: Program) -> bool:
        """Whether a program fails in the same way; if so it is the best from now on, for only parts are left out."""
        tree = parse_or_none(program.source)
        if tree is None or loose_names(tree) - self._loose:
            return False  # where something is left that names what is gone, that goes first
        text = self._target.rendered(program)
        if text not in self._keys:
            failure = self._target.same(self._runs.results(self._target.variant(program)))
            self._keys[text] = failure is not None
            if failure is not None:
                self._line = self._failing_line(failure)
        if self._keys[text]:
            self.best = program
            self._tell(self._runs.runs, program.size)
        return self._keys[text]

    def _failing_line(self, failure: Failure) -> int:
        """Where the test function itself was when it failed."""
        name = self._target.test.split("::")[-1]
        mine = self._target.test_code | {str(self._target.path), TEST_CODE}
        return next((f.line for f in failure.frames if f.function == name and str(f.path) in mine), 0)

    def _guess(self) -> None:
        """At once without what the test, or its failing assertion, does not name; then that again, for what is left."""
        if not self._target.test:
            return
        for assertion_alone in (False, True, False):
            tree = parse_or_none(self.best.source)
            place = find_test(tree, f"::{self._target.test}", self._line) if tree is not None else None
            if tree is None or place is None:
                return
            if not assertion_alone:
                gone = unneeded_lines(tree, place)
            elif self._target.keeps_data:
                fixed = fixed_lines(place)
                gone = {first_line(s) for s in place.function.body} - fixed
            else:
                continue
            self.fails(replace(self.best, source=SourceUnits(self.best.source, tree).without(gone)))

    def _groups(self, kind: UnitKind) -> list[UnitGroup]:
        tree = parse_or_none(self.best.source)
        if tree is None:
            return []
        fixed: set[int] = set()
        if self._target.keeps_data:
            place = find_test(tree, f"::{self._target.test}", self._line)
            fixed = fixed_lines(place) if place is not None else set(range(1, self.best.source.count(b"\n") + 2))
        return SourceUnits(self.best.source, tree).groups(kind, fixed, data=not self._target.keeps_data)

    def _reduce_source(self, kind: UnitKind) -> None:
        """Each group of a kind once; what a group loses takes the groups inside away, which come after it."""
        at = 0
        while self.in_time:
            groups = self._groups(kind)
            if at >= len(groups):
                return
            start, group = self.best, groups[at]
            self._minimise(group, partial(_with_source, start))
            at += 1

    def _reduce_input(self, name: str) -> None:
        at = 0
        while self.in_time:
            start = self.best
            groups = data_groups(name, start.inputs[name])
            if at >= len(groups):
                return
            self._minimise(groups[at], partial(_with_input, start, name))
            at += 1

    def _minimise(self, group: UnitGroup, made: Callable[[bytes], Program]) -> None:
        everything = range(group.count)
        minimise(everything, lambda kept: self.fails(made(group.render(frozenset(kept)))), lambda: self.in_time)


def _with_source(program: Program, source: bytes) -> Program:
    return replace(program, source=source)


def _with_input(program: Program, name: str, data: bytes) -> Program:
    return replace(program, inputs={**program.inputs, name: data})
