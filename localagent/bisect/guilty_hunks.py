"""Which hunks of the first bad commit matter: the smallest set that makes the tests fail when laid over its parent.

Files are reduced first, then the hunks of those that are left, then, in Python, the tokens and statements of these:
to parts that make a program of the parent and leave one of the commit. A hunk is a stretch of differing lines; a file
that is new, gone, or no text is one hunk. Parts that do not fail in the same way count as passing.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from localagent.code.delta_debugging import minimise
from localagent.code.source_text import parse_or_none
from localagent.domain.bisection import HunkSummary, MinimalHunks, RevertedHunk
from localagent.domain.diff import ChangeKind, FileMode, TreeChange
from localagent.domain.paths import RepoPath
from localagent.repo.diff.write_diff import line_blocks, lines_of
from localagent.verify.evidence.changed_lines import ChangedFile
from localagent.verify.evidence.necessity import PatchPart, changed_parts, without

MOST_RUNS = 120
MOST_SINGLE_PARTS = 12  # of a file, that are taken back one by one
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


@dataclass(frozen=True, kw_only=True, slots=True)
class _SplitFile:
    """A Python file's change by its smallest parts: `parts` stand in `hunks`, which may matter, `others` do not."""

    change: TreeChange
    hunks: tuple[ChangedHunk, ...]
    parts: tuple[PatchPart, ...]
    others: tuple[PatchPart, ...]

    def with_parts(self, some: Sequence[PatchPart]) -> TreeChange:
        """The parent's file with some of the parts."""
        rest = [part for part in (*self.parts, *self.others) if part not in some]
        return replace(self.change, after=without(_as_file(self.change), rest).before)

    def without_parts(self, some: Sequence[PatchPart]) -> bytes:
        """The commit's own file without some of the parts."""
        return without(_as_file(self.change), some).before

    def taken_back(self, some: Sequence[PatchPart]) -> tuple[ChangedHunk, ...]:
        """What some of the parts are to the commit's own file."""
        return hunks_of([replace(self.change, before=self.without_parts(some))])


class _CountedRuns:
    """Asks what fails and counts; nothing at all is known not to fail. `complete`: no run was refused of late."""

    def __init__(self, fails: Callable[[Sequence[TreeChange]], bool]) -> None:
        self._fails = fails
        self.made = 0
        self.complete = True

    def fails(self, changes: Sequence[TreeChange]) -> bool:
        """Whether these changes make the tests fail."""
        if not changes:
            return False
        self.made += 1
        return self._fails(changes)

    def decides(self, part: Sequence[TreeChange], rest: Sequence[TreeChange], most: int) -> bool:
        """Whether a part makes the tests fail and the rest does not: then taking it back mends the commit.

        False, and not complete, where there is no run left to ask about the rest.
        """
        return self.fails(part) and self.below(most) and not self.fails(rest)

    def below(self, most: int) -> bool:
        """Whether one more run is within `most`."""
        self.complete = self.made < most
        return self.complete


def minimal_hunks(
    hunks: Sequence[ChangedHunk], fails: Callable[[Sequence[TreeChange]], bool], most: int = MOST_RUNS
) -> MinimalHunks:
    """The hunks that matter, where all of them together fail and none of them do not, in at most so many runs.

    They fail alone, and the commit without them does not; no smaller part of them is so. `fails` is asked about changes
    of the parent's tree.
    """
    runs = _CountedRuns(fails)

    def decide(some: Sequence[ChangedHunk], most: int) -> bool:
        return runs.decides(applied(some), applied([hunk for hunk in hunks if hunk not in some]), most)

    paths = tuple(dict.fromkeys(hunk.path for hunk in hunks))
    files = minimise(
        paths,
        lambda part: decide([hunk for hunk in hunks if hunk.path in part], most // 2),
        lambda: runs.below(most // 2),
    )
    runs.complete = True
    left = [hunk for hunk in hunks if hunk.path in files]
    kept = minimise(left, lambda part: decide(part, most), lambda: runs.below(most))
    split = [s for path in files if (s := _split([hunk for hunk in kept if hunk.path == path])) is not None]
    whole = [hunk for hunk in kept if hunk.path not in {s.change.path for s in split}]
    dropped = [h for h in hunks if h not in kept and h.path not in {s.change.path for s in split}]

    def with_parts(some: Sequence[tuple[_SplitFile, PatchPart]]) -> list[TreeChange]:
        return [s.with_parts(own) for s in split if (own := [part for of, part in some if of is s])]

    def decide_with(some: Sequence[tuple[_SplitFile, PatchPart]]) -> bool:
        made = with_parts(some)
        rest = [replace(s.change, after=s.without_parts([part for of, part in some if of is s])) for s in split]
        programs = all(parse_or_none(change.after) is not None for change in (*made, *rest))
        rest = [change for change in rest if change.after != change.before]
        return programs and runs.decides((*applied(whole), *made), (*applied(dropped), *rest), most)

    needed = minimise([(s, part) for s in split for part in s.parts], decide_with, lambda: runs.below(most))
    by_file = [(s, [part for of, part in needed if of is s]) for s in split]
    parts = [hunk for s, own in by_file if own for hunk in s.taken_back(own)]
    ways = [*(s.taken_back(own) for s, own in by_file), *_together(kept)]
    ways[len(by_file) : len(by_file)] = [s.taken_back([part]) for s, own in by_file for part in own[:MOST_SINGLE_PARTS]]
    back = (tuple(hunk.reverted for hunk in way if not hunk.whole) for way in ways)
    return MinimalHunks(
        hunks=tuple(hunk.summary for hunk in (*whole, *parts)),
        changes=(*applied(whole), *with_parts(needed)),
        reverts=tuple(dict.fromkeys(way for way in back if way)),
        kept=len(whole) + sum(any(_inside(p, hunk) for p in own) for s, own in by_file for hunk in s.hunks),
        total=len(hunks),
        runs=runs.made,
        complete=runs.complete,
    )


def _together(hunks: Sequence[ChangedHunk]) -> Iterator[tuple[ChangedHunk, ...]]:
    """All hunks of each file, then each by itself."""
    for path in dict.fromkeys(hunk.path for hunk in hunks):
        yield tuple(hunk for hunk in hunks if hunk.path == path)
    yield from ((hunk,) for hunk in hunks)


def _split(hunks: Sequence[ChangedHunk]) -> _SplitFile | None:
    """The hunks of one file by their parts; None where they are no changes of a Python text, or do not add up."""
    if not hunks or hunks[0].whole or not hunks[0].path.is_python:
        return None
    change = hunks[0].change
    every = list(changed_parts(_as_file(change)))
    parts = tuple(part for part in every if any(_inside(part, hunk) for hunk in hunks))
    others = tuple(part for part in every if part not in parts)
    split = _SplitFile(change=change, hunks=tuple(hunks), parts=parts, others=others)
    return split if split.with_parts(parts).after == applied(hunks)[0].after else None


def _inside(part: PatchPart, hunk: ChangedHunk) -> bool:
    lines = lines_of(hunk.change.after)
    start = sum(map(len, lines[: hunk.new_start]))
    return start <= part.start and part.end <= start + sum(map(len, hunk.new))


def _as_file(change: TreeChange) -> ChangedFile:
    return ChangedFile(path=change.path, source=change.path, before=change.before, after=change.after)


def _spliced(hunks: Sequence[ChangedHunk]) -> bytes:
    lines = lines_of(hunks[0].change.before)
    for hunk in sorted(hunks, key=lambda h: h.start, reverse=True):
        lines[hunk.start : hunk.end] = hunk.new
    return b"".join(lines)


def _shown(data: bytes) -> str:
    text = data.decode("utf-8", "replace")
    return text if len(text) <= _SHOWN_BYTES else text[:_SHOWN_BYTES] + "..."
