"""The first line at which a failing run goes another way than a passing one. Pure."""

from collections.abc import Collection
from dataclasses import dataclass

from localagent.domain.failure_run import FailureRun, TraceKind
from localagent.domain.paths import RepoPath


@dataclass(frozen=True, kw_only=True, slots=True)
class Departure:
    """`line` is the first that only the failing run comes to, `after` the place that both ran before it.

    `passing_line` is where `test`, which passes, went instead.
    """

    test: str
    after: tuple[RepoPath, int]
    line: tuple[RepoPath, int]
    passing_line: tuple[RepoPath, int]


def departure_of(
    failing: FailureRun, test: str, passing: FailureRun, left_out: Collection[RepoPath]
) -> Departure | None:
    """Where two runs part. Lines of `left_out` files, the tests' own, do not count.

    None where they begin otherwise or never part before one of them ends, and where events of either were dropped.
    """
    if failing.cut or passing.cut:
        return None
    ran = [
        [(e.path, e.line) for e in run.events if e.kind is TraceKind.LINE and e.path not in left_out]
        for run in (failing, passing)
    ]
    before: tuple[RepoPath, int] | None = None
    for line, other in zip(*ran, strict=False):
        if line != other:
            return None if before is None else Departure(test=test, after=before, line=line, passing_line=other)
        before = line
    return None
