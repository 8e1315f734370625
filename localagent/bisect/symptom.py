"""What one run of the tests showed of a tree, what fails at the bad commit, and whether another tree fails that way.

A failure is the same where the same test raises the same type of exception; where a file cannot be imported, with the
same message as well. Everything else that fails says nothing of the fault looked for: the commit is skipped.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from localagent.domain.bisection import CommitVerdict
from localagent.domain.outcome import Failure, Outcome
from localagent.domain.paths import RepoPath

COLLECT_PREFIX = "collect:"
CHECK_PREFIX = "check:"
_SKIP_STATUS = {125: "asks to be skipped (exit status 125)", 126: "cannot be run", 127: "is not there"}


@dataclass(frozen=True, kw_only=True, slots=True)
class SymptomObservation:
    """One test, check or file. `kind` is how it failed: an exception's type, and its message for a file; "" if good.

    `place`: the innermost file of the repository where it failed, if known.
    """

    outcome: Outcome
    kind: str = ""
    place: RepoPath | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class TreeRun:
    """What one run showed, by id. `problem`: why nothing could be run, "" where something was.

    `lost`: that was the jail's or the machine's fault, and may be otherwise another time. Of a traced run,
    `ran` are the lines (from 1) that failing tests executed, by file, `imported` other files that were loaded for them.
    """

    seen: Mapping[str, SymptomObservation] = field(default_factory=dict)
    problem: str = ""
    lost: bool = False
    ran: Mapping[RepoPath, frozenset[int]] = field(default_factory=dict)
    imported: tuple[RepoPath, ...] = ()

    @property
    def uncollected(self) -> tuple[RepoPath | None, ...]:
        """Where each file failed that cannot be collected."""
        return tuple(
            seen.place for name, seen in self.seen.items() if name.startswith(COLLECT_PREFIX) and not seen.outcome.good
        )

    @property
    def bad(self) -> dict[str, str]:
        """How the bad ones failed."""
        return {name: seen.kind for name, seen in self.seen.items() if not seen.outcome.good}


def observed(name: str, outcome: Outcome, failure: Failure | None) -> SymptomObservation:
    """An outcome as bisection compares it."""
    if outcome.good or failure is None:
        return SymptomObservation(outcome=outcome, kind="" if outcome.good else outcome.value)
    message = f": {failure.steady}" if name.startswith(COLLECT_PREFIX) else ""
    place = next((frame.path for frame in reversed(failure.frames) if frame.path is not None), None)
    return SymptomObservation(outcome=outcome, kind=f"{failure.exception or outcome.value}{message}", place=place)


def refused_status(status: int) -> str:
    """Why a check's exit status says nothing of the commit, as `git bisect run` takes it; "" where it does."""
    return _SKIP_STATUS.get(status, "")


@dataclass(frozen=True, kw_only=True, slots=True)
class Symptom:
    """What is looked for: how tests fail at the bad commit, by id. `any_failure`: every failure of theirs counts."""

    kinds: Mapping[str, str]
    any_failure: bool = False

    def shown(self, run: TreeRun) -> tuple[str, ...]:
        """The tests that fail there as they do at the bad commit."""
        bad = run.bad
        return tuple(n for n, kind in self.kinds.items() if n in bad and (self.any_failure or bad[n] == kind))

    def verdict(self, run: TreeRun) -> tuple[CommitVerdict, str]:
        """Whether a tree shows it, and why so."""
        if run.problem:
            return CommitVerdict.SKIP, run.problem
        bad = run.bad
        if same := self.shown(run):
            return CommitVerdict.BAD, f"{same[0]}: {bad[same[0]]}"
        other = next((name for name in bad if name in self.kinds), None)
        other = other or next((name for name in bad if name.startswith(COLLECT_PREFIX)), None)
        if other is not None:
            return CommitVerdict.SKIP, f"fails in another way: {other}: {bad[other]}"
        missing = [name for name in self.kinds if not self._passes(name, run)]
        if missing:
            seen = run.seen.get(missing[0])
            return CommitVerdict.SKIP, f"{missing[0]} {'is skipped' if seen is not None else 'is not there'}"
        return CommitVerdict.GOOD, "passes"

    def _passes(self, name: str, run: TreeRun) -> bool:
        if name.startswith(COLLECT_PREFIX):  # collected: its tests are there now
            path = name.removeprefix(COLLECT_PREFIX)
            return any(test == path or test.startswith(f"{path}::") for test in run.seen) or path.endswith(
                "conftest.py"
            )
        return name in run.seen and run.seen[name].outcome is Outcome.PASSED


def symptom_of(runs: Sequence[TreeRun], *, any_failure: bool) -> Symptom:
    """How the tests fail at the bad commit: those that failed alike in every run, else all that failed in any."""
    always = dict(runs[0].bad)
    for run in runs[1:]:
        always = {name: kind for name, kind in always.items() if run.bad.get(name) == kind}
    if not always:
        for run in reversed(runs):
            always.update(run.bad)
    return Symptom(kinds=always, any_failure=any_failure)
