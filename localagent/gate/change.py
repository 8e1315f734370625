"""What a gate is shown: one candidate, cut down to the regions it changes.

The regions come from the patch's bytes, never from what an edit says about itself, so an edit that lies about its
place is judged by what it does.
"""

from collections.abc import Callable
from functools import cached_property
from typing import NamedTuple

from localagent.domain.edit import Candidate, FileChange
from localagent.domain.outcome import Baseline
from localagent.domain.paths import RepoPath
from localagent.gate.source import DoesNotParse, Snippet, SourceFile, Unit
from localagent.ports import Sources


class Pair(NamedTuple):
    """The same stretch before and after. `before` is None where the file did not parse."""

    before: Snippet | None
    after: Snippet


class Region:
    """A changed stretch: the statements `near` the change, and the `whole` unit (outermost function) around them.

    What is new in `whole` is new in `near`, so a gate may look near first and at the whole only if it finds something.
    """

    def __init__(
        self, path: RepoPath, file: SourceFile, near: Pair, before_whole: Snippet | None, whole: Callable[[], Pair]
    ) -> None:
        self.path = path
        self.file = file
        self.near = near
        self.before_whole = before_whole
        self._whole = whole

    @cached_property
    def whole(self) -> Pair:
        """The unit before and after; parsed when first asked for."""
        return self._whole()


def changed_span(before: bytes, after: bytes) -> tuple[int, int, int]:
    """(start, end, new end): before[start:end] became after[start:new end], as small as bytes allow."""
    start = _common(before, after)
    room = min(len(before), len(after)) - start
    tail = _common(before[len(before) - room :][::-1], after[len(after) - room :][::-1]) if room else 0
    return start, len(before) - tail, len(after) - tail


def _common(one: bytes, two: bytes) -> int:
    """Length of the common prefix, by bisection (comparing slices is quick, stepping through bytes is not)."""
    low, high = 0, min(len(one), len(two))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == two[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


class GateInput:
    """One candidate for review. `regions` raises DoesNotParse when the patched text is not Python."""

    def __init__(self, candidate: Candidate, baseline: Baseline, sources: Sources, files: "Files") -> None:
        self.candidate = candidate
        self.baseline = baseline
        self.sources = sources
        self._files = files

    @property
    def changes(self) -> tuple[FileChange, ...]:
        """The files the candidate changes."""
        return self.candidate.patch.changes

    @cached_property
    def regions(self) -> tuple[Region, ...]:
        """Every changed region, parsed."""
        return tuple(region for change in self.changes for region in self._of(change))

    @cached_property
    def spans(self) -> dict[RepoPath, list["Span"]]:
        """What changed in each file, from the patch's bytes; the splices of a single edit are kept apart."""
        return {change.path: self._spans(change) for change in self.changes}

    def _of(self, change: FileChange) -> tuple[Region, ...]:
        file = self._files.get(change)
        if file.parses:
            try:
                return tuple(_region(change, file, span) for span in _joined(self.spans[change.path], change, file))
            except DoesNotParse:
                pass  # the edit joins neighbouring units, or breaks one: judged over the whole file
        unit = Unit(start=0, end=len(change.before), line=1, class_name=None)
        pair = Pair(file.snippet_before(unit) if file.parses else None, file.snippet(change.after, unit))
        return (Region(change.path, file, pair, pair.before, lambda: pair),)

    def _spans(self, change: FileChange) -> list["Span"]:
        edits = self.candidate.edits
        if len(edits) == 1 and edits[0].path == change.path and edits[0].apply(change.before) == change.after:
            return [Span(s.start, s.end, s.text) for s in edits[0].splices]
        start, end, new_end = changed_span(change.before, change.after)
        return [Span(start, end, change.after[start:new_end])]


class Span(NamedTuple):
    """Bytes [start, end) of the old file became `text`."""

    start: int
    end: int
    text: bytes


def _joined(spans: list[Span], change: FileChange, file: SourceFile) -> list[Span]:
    """Spans in different units; those that share one become one."""
    joined: list[Span] = []
    for span in spans:
        last = span
        while joined and _meet(file.around(*joined[-1][:2]), file.around(*last[:2])):
            first = joined.pop()
            last = Span(first.start, last.end, first.text + change.before[first.end : last.start] + last.text)
        joined.append(last)
    return joined


def _meet(one: Unit | None, two: Unit | None) -> bool:
    return one is None or two is None or (one.start < two.end and two.start < one.end)


def _region(change: FileChange, file: SourceFile, span: Span) -> Region:
    outer = file.around(span.start, span.end)
    if outer is None:
        raise DoesNotParse("not inside one unit")

    def pair(unit: Unit) -> Pair:
        data = change.before[unit.start : span.start] + span.text + change.before[span.end : unit.end]
        before, after = file.snippet_before(unit), file.snippet(data, unit)
        if not before.same_depth(after):
            raise DoesNotParse("leaves the block it stands in")
        return Pair(before, after)

    try:
        near = pair(file.inside(outer, span.start, span.end))
    except DoesNotParse:
        near = pair(outer)  # the edit reaches over the statements around it
    return Region(change.path, file, near, file.snippet_before(outer), lambda: pair(outer))


class Files:
    """The files seen so far, cut into units once; the oldest go when there are many."""

    def __init__(self, most: int = 64) -> None:
        self._most = most
        self._kept: dict[RepoPath, SourceFile] = {}

    def get(self, change: FileChange) -> SourceFile:
        """The file before `change`."""
        kept = self._kept.get(change.path)
        if kept is not None and (kept.source is change.before or kept.source == change.before):
            return kept
        if len(self._kept) >= self._most:
            self._kept.pop(next(iter(self._kept)))
        made = SourceFile(change.before)
        self._kept[change.path] = made
        return made
