"""Which changed statements the tests that count ran on the patched tree. Pure: reads results, runs nothing."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from localagent.domain.outcome import Outcome, TestResult
from localagent.domain.paths import RepoPath
from localagent.domain.strength import Share
from localagent.verify.evidence.changed_lines import ChangedFile

_MISSING = 10


@dataclass(frozen=True, kw_only=True, slots=True)
class Covered:
    """Changed statements that tests which count ran, by file; the share; those tests, quickest first."""

    lines: Mapping[RepoPath, frozenset[int]]
    share: Share
    tests: tuple[str, ...] = ()


def nothing_covered(files: Sequence[ChangedFile], why: str) -> Covered:
    """Where no test ran, and why."""
    whole = sum(len(f.executable()) for f in files)
    return Covered(lines={}, share=Share(part=0, whole=whole, note=why))


def covered(
    files: Sequence[ChangedFile], counting: Iterable[TestResult], import_lines: Mapping[RepoPath, frozenset[int]]
) -> Covered:
    """What the traced tests of `counting` that passed ran. Lines run while importing count where one is there."""
    wanted = {f.path: f.executable() for f in files}
    ran: dict[RepoPath, set[int]] = {path: set() for path in wanted}
    entered: set[RepoPath] = set()
    tests: list[tuple[float, str]] = []
    for test in counting:
        if test.lines is None:
            continue
        entered |= {path for path in wanted if test.lines.get(path)}
        if test.outcome is not Outcome.PASSED:
            continue
        hits = {path: test.lines.get(path, frozenset()) & lines for path, lines in wanted.items()}
        for path, lines in hits.items():
            ran[path] |= lines
        if any(hits.values()):
            tests.append((test.seconds, test.id))
    for path in entered:
        ran[path] |= import_lines.get(path, frozenset()) & wanted[path]
    missing = [f"{path}:{n}" for path in sorted(wanted) for n in sorted(wanted[path] - ran[path])]
    whole = sum(len(lines) for lines in wanted.values())
    return Covered(
        lines={path: frozenset(lines) for path, lines in ran.items() if lines},
        share=Share(part=whole - len(missing), whole=whole, missing=tuple(missing[:_MISSING])),
        tests=tuple(i for _, i in sorted(tests)),
    )
