"""Repair that starts from the first bad commit: ways to take it back as edits, and the lines that matter as suspicious.

A hunk is carried to today's text by matching the commit's own version of the file with it: it is taken back where its
lines stand there unchanged, together. Otherwise only the lines of it that still stand are suspicious. Such an edit is
a candidate like any other: gates, tests and guard judge it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from localagent.code.source_text import parse_or_none
from localagent.domain.bisection import RevertedHunk
from localagent.domain.edit import Edit, Splice
from localagent.domain.outcome import Baseline
from localagent.domain.paths import RepoPath
from localagent.domain.task import Suspicion
from localagent.ports import Localizer, Sources
from localagent.repo.diff.write_diff import line_blocks, lines_of

REVERT = "revert"
_PRIOR = 2.0  # nats above the likeliest edit of the edit space


@dataclass(frozen=True, kw_only=True, slots=True)
class TodaysLines:
    """Where a hunk's lines stand in today's text: lines [start, end), 0-based. `whole`: all of them, together."""

    start: int
    end: int
    whole: bool


def todays_lines(hunk: RevertedHunk, today: bytes) -> TodaysLines | None:
    """None where nothing of the hunk is left."""
    then, now = lines_of(hunk.after), lines_of(today)
    moved = {
        i1 + n: j1 + n for tag, i1, i2, j1, _j2 in line_blocks(then, now) if tag == "equal" for n in range(i2 - i1)
    }
    if hunk.start == hunk.end:  # the commit took lines away: they come back between the same two lines
        before, after = moved.get(hunk.start - 1, -1), moved.get(hunk.start, len(now))
        together = before + 1 == after and (hunk.start == 0 or hunk.start - 1 in moved)
        together = together and (hunk.start == len(then) or hunk.start in moved)
        return TodaysLines(start=before + 1, end=before + 1, whole=True) if together else None
    stand = [moved[n] for n in range(hunk.start, hunk.end) if n in moved]
    if not stand:
        return None
    whole = len(stand) == hunk.end - hunk.start == stand[-1] - stand[0] + 1
    return TodaysLines(start=stand[0], end=stand[-1] + 1, whole=whole)


class HunkLocalizer:
    """Another localizer, with the lines of the first way of each file in front: as suspicious as any."""

    def __init__(
        self, localizer: Localizer, ways: Sequence[Sequence[RevertedHunk]], why: str = "changed by the first bad commit"
    ) -> None:
        self._localizer, self._hunks = localizer, [hunk for way in least_ways(ways) for hunk in way]
        self._why = why

    def localize(self, baseline: Baseline, sources: Sources) -> tuple[Suspicion, ...]:
        """Most suspicious first."""
        ranked = self._localizer.localize(baseline, sources)
        lines = {key for hunk in self._hunks for key in _suspicious(hunk, sources) if key[0] not in baseline.test_files}
        best = ranked[0].score if ranked else 1.0
        raised = [
            replace(x, score=best, why=f"{x.why}; {self._why}")
            for x in ranked
            if any((x.path, n) in lines for n in range(x.line, x.end_line + 1))
        ]
        named = {(x.path, n) for x in ranked for n in range(x.line, x.end_line + 1)}
        added = [
            Suspicion(path=path, line=n, end_line=n, score=best, why=self._why) for path, n in sorted(lines - named)
        ]
        known = {(x.path, x.line, x.end_line) for x in raised}
        return (*raised, *added, *(x for x in ranked if (x.path, x.line, x.end_line) not in known))


def least_ways(ways: Sequence[Sequence[RevertedHunk]]) -> tuple[Sequence[RevertedHunk], ...]:
    """The first way of each file: of what matters there all, and nothing else."""
    return tuple({way[0].path: way for way in reversed(ways) if way}.values())


def reverted_files(ways: Sequence[Sequence[RevertedHunk]], sources: Sources) -> frozenset[tuple[RepoPath, bytes]]:
    """Files with what matters taken back, where all of it still stands."""
    edits = revert_edits([way for way in least_ways(ways) if all(_stands(hunk, sources) for hunk in way)], sources)
    return frozenset((edit.path, edit.apply(sources[edit.path])) for edit in edits)


def _stands(hunk: RevertedHunk, sources: Sources) -> bool:
    at = todays_lines(hunk, sources[hunk.path]) if hunk.path in sources else None
    return at is not None and at.whole


def revert_edits(ways: Sequence[Sequence[RevertedHunk]], sources: Sources, note: str = "") -> Iterator[Edit]:
    """An edit for each way, of those of its hunks that still stand; those alone that leave another file that parses.

    `note` says in their place what they are, where they are not of the first bad commit.
    """
    made: set[tuple[RepoPath, bytes]] = set()
    for way in ways:
        if not way or (path := way[0].path) not in sources:
            continue
        source = sources[path]
        found = [(hunk, at) for hunk in way if (at := todays_lines(hunk, source)) is not None and at.whole]
        edit = _edit(path, source, found, note) if found else None
        if edit is not None and (key := (path, edit.apply(source))) not in made:
            made.add(key)
            yield edit


def _edit(path: RepoPath, source: bytes, part: Sequence[tuple[RevertedHunk, TodaysLines]], note: str) -> Edit | None:
    lines = lines_of(source)
    offsets = [0]
    for line in lines:
        offsets.append(offsets[-1] + len(line))
    ordered = sorted(part, key=lambda pair: pair[1].start)
    splices = tuple(
        Splice(start=offsets[at.start], end=offsets[at.end], text=b"".join(hunk.before)) for hunk, at in ordered
    )
    edit = Edit(
        path=path,
        splices=splices,
        operator=REVERT,
        line=ordered[0][1].start + 1,
        end_line=max(at.start + 1 for _, at in ordered),
        prior=_PRIOR,
        note=note or f"{len(part)} change{'s' * (len(part) > 1)} of the first bad commit taken back",
    )
    after = edit.apply(source)
    return edit if after != source and parse_or_none(after) is not None else None


def _suspicious(hunk: RevertedHunk, sources: Sources) -> Iterator[tuple[RepoPath, int]]:
    """Today's lines of a hunk, 1-based; the ones around where lines were taken away."""
    at = todays_lines(hunk, sources[hunk.path]) if hunk.path in sources else None
    if at is None:
        return
    last = len(lines_of(sources[hunk.path]))
    around = range(max(1, at.start), min(last, at.start + 1) + 1)
    lines = range(at.start + 1, at.end + 1) if at.end > at.start else around
    yield from ((hunk.path, n) for n in lines)
