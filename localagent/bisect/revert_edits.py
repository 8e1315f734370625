"""Repair that starts from the first bad commit: its minimal hunks taken back as edits, and their lines as suspicious.

A hunk is carried to today's text by matching the commit's own version of the file with it: it is taken back where its
lines stand there unchanged, together. Otherwise only the lines of it that still stand are suspicious. Such an edit is
a candidate like any other: gates, tests and guard judge it.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from localagent.code.source_text import parse_or_none
from localagent.domain.bisection import RevertedHunk
from localagent.domain.edit import Edit, Splice, Written
from localagent.domain.outcome import Baseline, Failure
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
    """Another localizer, with the lines of the hunks in front: as suspicious as the most suspicious one."""

    def __init__(self, localizer: Localizer, hunks: Sequence[RevertedHunk]) -> None:
        self._localizer, self._hunks = localizer, hunks

    def localize(self, baseline: Baseline, sources: Sources) -> tuple[Suspicion, ...]:
        """Most suspicious first."""
        ranked = self._localizer.localize(baseline, sources)
        lines = {key for hunk in self._hunks for key in _suspicious(hunk, sources) if key[0] not in baseline.test_files}
        best = ranked[0].score if ranked else 1.0
        raised = [
            replace(x, score=best, why=f"{x.why}; changed by the first bad commit")
            for x in ranked
            if any((x.path, n) in lines for n in range(x.line, x.end_line + 1))
        ]
        named = {(x.path, n) for x in ranked for n in range(x.line, x.end_line + 1)}
        added = [
            Suspicion(path=path, line=n, end_line=n, score=best, why="changed by the first bad commit")
            for path, n in sorted(lines - named)
        ]
        known = {(x.path, x.line, x.end_line) for x in raised}
        return (*raised, *added, *(x for x in ranked if (x.path, x.line, x.end_line) not in known))


class RevertWriter:
    """An `EditWriter` that writes once: all hunks of a file taken back together, and each by itself."""

    def __init__(self, hunks: Sequence[RevertedHunk]) -> None:
        self._hunks = hunks
        self._edits: list[Edit] | None = None
        self.tokens_used = 0

    @property
    def next_cost(self) -> float:
        """Less than any other edit's; infinite once all are written."""
        return math.inf if self._edits is not None and not self._edits else -_PRIOR

    def begin(
        self,
        sources: Sources,
        places: Sequence[Suspicion],  # noqa: ARG002 - the port's
        baseline: Baseline,
    ) -> None:
        """Make them."""
        self._edits = list(revert_edits([h for h in self._hunks if h.path not in baseline.test_files], sources))

    def heard(self, edit: Edit, failures: Sequence[Failure]) -> None:
        """Nothing is learned from it."""

    def more(self, *, timeout_seconds: float) -> Sequence[Written]:  # noqa: ARG002 - the port's
        """All of them, the first time."""
        edits, self._edits = self._edits or [], []
        return [Written(edit=edit, score=0.0) for edit in edits]


def revert_edits(hunks: Sequence[RevertedHunk], sources: Sources) -> Iterator[Edit]:
    """The hunks of each file together, then one by one; those alone that leave the file parsing."""
    by_path: dict[RepoPath, list[RevertedHunk]] = {}
    for hunk in hunks:
        if hunk.path in sources:
            by_path.setdefault(hunk.path, []).append(hunk)
    for path, own in by_path.items():
        source = sources[path]
        found = [(hunk, at) for hunk in own if (at := todays_lines(hunk, source)) is not None and at.whole]
        for part in (found, *([pair] for pair in found)) if len(found) > 1 else [found]:
            if part and (edit := _edit(path, source, part)) is not None:
                yield edit


def _edit(path: RepoPath, source: bytes, part: Sequence[tuple[RevertedHunk, TodaysLines]]) -> Edit | None:
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
        note=f"{len(part)} of the first bad commit's hunks taken back",
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
