"""What a gate is shown: one candidate, cut down to the regions it changes.

The regions come from the patch's bytes, never from what an edit says about itself, so an edit that lies about its
place is judged by what it does.
"""

from functools import cached_property
from typing import NamedTuple

from localagent.domain.edit import Candidate, FileChange
from localagent.domain.outcome import Baseline
from localagent.domain.paths import RepoPath
from localagent.gate.source import DoesNotParse, Snippet, SourceFile, Unit
from localagent.ports import Sources


class Region(NamedTuple):
    """A changed stretch before and after. `before` is None where the file did not parse."""

    path: RepoPath
    file: SourceFile
    before: Snippet | None
    after: Snippet

    @property
    def line(self) -> int:
        """Where the region starts in the file."""
        return self.after.line


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
        """Every changed region, parsed and compiled."""
        return tuple(region for change in self.changes for region in self._of(change))

    def file(self, change: FileChange) -> SourceFile:
        """The file before the change, cut into units."""
        return self._files.get(change)

    def _of(self, change: FileChange) -> tuple[Region, ...]:
        file = self._files.get(change)
        if file.parses:
            try:
                return tuple(self._narrow(change, file, span) for span in self._spans(change, file))
            except DoesNotParse:
                pass  # the edit joins neighbouring units, or breaks one: judged over the whole file
        whole = Unit(start=0, end=len(change.before), line=1, class_name=None)
        before = file.snippet_before(whole) if file.parses else None
        return (Region(change.path, file, before, file.snippet(change.after, whole, compiled=True)),)

    def _spans(self, change: FileChange, file: SourceFile) -> list["_Span"]:
        """What changed; splices of one edit that lie in different units are kept apart."""
        edits = self.candidate.edits
        if len(edits) != 1 or edits[0].path != change.path or edits[0].apply(change.before) != change.after:
            start, end, new_end = changed_span(change.before, change.after)
            return [_Span(start, end, change.after[start:new_end])]
        spans: list[_Span] = []
        for splice in edits[0].splices:
            span = _Span(splice.start, splice.end, splice.text)
            while spans and _meet(file.around(*spans[-1][:2]), file.around(*span[:2])):
                last = spans.pop()
                span = _Span(last.start, span.end, last.text + change.before[last.end : span.start] + span.text)
            spans.append(span)
        return spans

    def _narrow(self, change: FileChange, file: SourceFile, span: "_Span") -> Region:
        unit = file.around(span.start, span.end)
        if unit is None:
            raise DoesNotParse("not inside one unit")
        data = change.before[unit.start : span.start] + span.text + change.before[span.end : unit.end]
        return Region(change.path, file, file.snippet_before(unit), file.snippet(data, unit, compiled=True))


class _Span(NamedTuple):
    start: int
    end: int
    text: bytes


def _meet(one: Unit | None, two: Unit | None) -> bool:
    return one is None or two is None or (one.start < two.end and two.start < one.end)


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
