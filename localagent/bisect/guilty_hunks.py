"""Which hunks of the first bad commit matter: the smallest set that makes the tests fail when laid over its parent.

Files are reduced first, then the hunks of those that are left. A hunk is a stretch of differing lines; a file that is
new, gone, or no text is one hunk. Parts that do not fail in the same way count as passing.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from localagent.code.delta_debugging import minimise
from localagent.domain.bisection import HunkSummary, MinimalHunks, RevertedHunk
from localagent.domain.diff import ChangeKind, FileMode, TreeChange
from localagent.domain.paths import RepoPath
from localagent.repo.diff.write_diff import line_blocks, lines_of

MOST_RUNS = 120
_SHOWN_BYTES = 4000


@dataclass(frozen=True, kw_only=True, slots=True)
class ChangedHunk:
    """Lines [start, end) of the parent's file (0-based) become `new`, lines from `new_start` of the commit's own.

    `whole`: the file as a whole is changed.
    """

    change: TreeChange
    start: int = 0
    end: int = 0
    new_start: int = 0
    new: tuple[bytes, ...] = ()
    whole: bool = False

    @property
    def path(self) -> RepoPath:
        """The file."""
        return self.change.path

    @property
    def old(self) -> tuple[bytes, ...]:
        """The parent's lines."""
        return () if self.whole else tuple(lines_of(self.change.before)[self.start : self.end])

    @property
    def reverted(self) -> RevertedHunk:
        """How it is taken back."""
        start, end = self.new_start, self.new_start + len(self.new)
        return RevertedHunk(path=self.path, after=self.change.after, start=start, end=end, before=self.old)

    @property
    def summary(self) -> HunkSummary:
        """For people."""
        if self.whole and (b"\0" in self.change.before or b"\0" in self.change.after):
            return HunkSummary(path=self.path, line=1, before="", after="")
        before, after = (
            (self.change.before, self.change.after) if self.whole else (b"".join(self.old), b"".join(self.new))
        )
        return HunkSummary(path=self.path, line=self.new_start + 1, before=_shown(before), after=_shown(after))


def hunks_of(changes: Sequence[TreeChange]) -> tuple[ChangedHunk, ...]:
    """The hunks of a commit's changes, in order."""
    found: list[ChangedHunk] = []
    for change in changes:
        text = change.kind is ChangeKind.MODIFIED and change.before_mode is change.after_mode
        text = text and change.after_mode in (FileMode.REGULAR, FileMode.EXECUTABLE)
        if not text or b"\0" in change.before or b"\0" in change.after:
            found.append(ChangedHunk(change=change, whole=True))
            continue
        after = lines_of(change.after)
        found += [
            ChangedHunk(change=change, start=i1, end=i2, new_start=j1, new=tuple(after[j1:j2]))
            for tag, i1, i2, j1, j2 in line_blocks(lines_of(change.before), after)
            if tag != "equal"
        ]
    return tuple(found)


def applied(hunks: Sequence[ChangedHunk]) -> tuple[TreeChange, ...]:
    """What some hunks of a commit make of its parent's tree."""
    by_path: dict[RepoPath, list[ChangedHunk]] = {}
    for hunk in hunks:
        by_path.setdefault(hunk.path, []).append(hunk)
    return tuple(
        own[0].change if own[0].whole else replace(own[0].change, after=_spliced(own)) for own in by_path.values()
    )


class _CountedRuns:
    """Asks what fails and counts; nothing at all is known not to fail. `complete`: no run was refused of late."""

    def __init__(self, fails: Callable[[Sequence[ChangedHunk]], bool]) -> None:
        self._fails = fails
        self.made = 0
        self.complete = True

    def fails(self, part: Sequence[ChangedHunk]) -> bool:
        """Whether these hunks make the tests fail."""
        if not part:
            return False
        self.made += 1
        return self._fails(part)

    def below(self, most: int) -> bool:
        """Whether one more run is within `most`."""
        self.complete = self.made < most
        return self.complete


def minimal_hunks(
    hunks: Sequence[ChangedHunk], fails: Callable[[Sequence[ChangedHunk]], bool], most: int = MOST_RUNS
) -> MinimalHunks:
    """The hunks that matter, where all of them together fail and none of them do not, in at most so many runs."""
    runs = _CountedRuns(fails)
    paths = tuple(dict.fromkeys(hunk.path for hunk in hunks))
    files = minimise(
        paths,
        lambda part: runs.fails([hunk for hunk in hunks if hunk.path in part]),
        lambda: runs.below(most // 2),
    )
    runs.complete = True
    left = [hunk for hunk in hunks if hunk.path in files]
    kept = minimise(left, runs.fails, lambda: runs.below(most))
    return MinimalHunks(
        hunks=tuple(hunk.summary for hunk in kept),
        reverts=tuple(hunk.reverted for hunk in kept if not hunk.whole),
        total=len(hunks),
        runs=runs.made,
        complete=runs.complete,
    )


def _spliced(hunks: Sequence[ChangedHunk]) -> bytes:
    lines = lines_of(hunks[0].change.before)
    for hunk in sorted(hunks, key=lambda h: h.start, reverse=True):
        lines[hunk.start : hunk.end] = hunk.new
    return b"".join(lines)


def _shown(data: bytes) -> str:
    text = data.decode("utf-8", "replace")
    return text if len(text) <= _SHOWN_BYTES else text[:_SHOWN_BYTES] + "..."
