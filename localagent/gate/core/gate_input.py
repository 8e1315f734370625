"""What a gate is shown: one candidate, cut down to the regions it changes.

The regions come from the patch's bytes, never from what an edit says about itself, so an edit that lies about its
place is judged by what it does.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from localagent.code.regions import CodeUnit, DoesNotParse, SourceFile, UnitSource
from localagent.domain.diff import TreeChange
from localagent.domain.edit import Candidate, FileChange
from localagent.domain.outcome import Baseline
from localagent.domain.paths import RepoPath
from localagent.text.byte_diff import changed_span

if TYPE_CHECKING:
    from localagent.ports import Sources


class RegionPair(NamedTuple):
    """The same stretch before and after. `before` is None where the file did not parse."""

    before: UnitSource | None
    after: UnitSource


class ChangedRegion:
    """A changed stretch: the statements `near` the change, and the `whole` unit (outermost function) around them.

    What is new in `whole` is new in `near`, so a gate may look near first and at the whole only if it finds something.
    """

    def __init__(
        self,
        path: RepoPath,
        file: SourceFile,
        near: RegionPair,
        before_whole: UnitSource | None,
        whole: Callable[[], RegionPair],
    ) -> None:
        self.path = path
        self.file = file
        self.near = near
        self.before_whole = before_whole
        self._whole = whole

    @cached_property
    def whole(self) -> RegionPair:
        """The unit before and after; parsed when first asked for."""
        return self._whole()


class Touched(NamedTuple):
    """Whole lines that changed: `old` became `new`, which begins in `line` of the file after."""

    old: bytes
    new: bytes
    line: int


class GateInput:
    """One candidate for review. `regions` raises DoesNotParse when the patched text is not Python.

    `entries` are what a patch that anybody wrote makes of the tree; a repair has none, and changes sources alone.
    `own_packages` are the names of what can be imported from the tree, as far as known.
    """

    def __init__(
        self,
        candidate: Candidate,
        baseline: Baseline,
        sources: "Sources",
        files: "Files",
        entries: tuple[TreeChange, ...] = (),
        own_packages: frozenset[str] = frozenset(),
    ) -> None:
        self.candidate = candidate
        self.baseline = baseline
        self.sources = sources
        self.entries = entries
        self._files = files
        self.own_packages = own_packages
        self._left_out: frozenset[RepoPath] = frozenset()
        self._regions: dict[int, tuple[ChangedRegion, ...]] = {}

    @property
    def changes(self) -> tuple[FileChange, ...]:
        """The files the candidate changes."""
        return self.candidate.patch.changes

    @property
    def sources_changed(self) -> tuple[FileChange, ...]:
        """The Python sources that are there afterwards: what regions are cut from."""
        return tuple(c for c in self.changes if c.path.is_python and c.path not in self._left_out)

    @cached_property
    def regions(self) -> tuple[ChangedRegion, ...]:
        """Every changed region, parsed."""
        return tuple(region for change in self.sources_changed for region in self.regions_of(change))

    @cached_property
    def spans(self) -> dict[RepoPath, list["ReplacedBytes"]]:
        """What changed in each file, from the patch's bytes; the splices of a single edit are kept apart."""
        return {change.path: self._spans(change) for change in self.changes}

    @cached_property
    def touched(self) -> dict[RepoPath, list[Touched]]:
        """The changed lines of each file, before and after."""
        return {change.path: _lines_around(change, self.spans[change.path]) for change in self.changes}

    def without(self, unparsed: frozenset[RepoPath]) -> None:
        """From now on `regions` are cut from the other sources only: what does not parse has been refused already."""
        self._left_out = unparsed
        self.__dict__.pop("regions", None)

    def file_of(self, change: FileChange) -> SourceFile:
        """The file before, cut into units."""
        return self._files.get(change)

    def regions_of(self, change: FileChange) -> tuple[ChangedRegion, ...]:
        """The changed regions of one source; DoesNotParse when it is not Python."""
        if id(change) not in self._regions:
            self._regions[id(change)] = self._cut(change)
        return self._regions[id(change)]

    def _cut(self, change: FileChange) -> tuple[ChangedRegion, ...]:
        file = self._files.get(change)
        if file.parses:
            try:
                found, grown = [], 0
                for span in _joined(self.spans[change.path], change, file):
                    found.append(_region(change, file, span, grown))
                    grown += span.text.count(b"\n") - change.before.count(b"\n", span.start, span.end)
                return tuple(found)
            except DoesNotParse:
                pass  # the edit joins neighbouring units, or breaks one: judged over the whole file
        unit = CodeUnit(start=0, end=len(change.before), line=1, class_name=None)
        pair = RegionPair(file.snippet_before(unit) if file.parses else None, file.snippet(change.after, unit))
        return (ChangedRegion(change.path, file, pair, pair.before, lambda: pair),)

    def _spans(self, change: FileChange) -> list["ReplacedBytes"]:
        for entry in self.entries:
            if (
                entry.splices
                and entry.path == change.path
                and entry.before == change.before
                and entry.after == change.after
            ):
                return [ReplacedBytes(x.start, x.end, x.text) for x in entry.splices]
        edits = self.candidate.edits
        if len(edits) == 1 and edits[0].path == change.path and edits[0].apply(change.before) == change.after:
            return [ReplacedBytes(s.start, s.end, s.text) for s in edits[0].splices]
        start, end, new_end = changed_span(change.before, change.after)
        return [ReplacedBytes(start, end, change.after[start:new_end])]


class ReplacedBytes(NamedTuple):
    """Bytes [start, end) of the old file became `text`."""

    start: int
    end: int
    text: bytes


def _lines_around(change: FileChange, spans: list[ReplacedBytes]) -> list[Touched]:
    """Spans widened to whole lines; those that share a line become one."""
    found: list[Touched] = []
    before, at, grown = change.before, 0, 0
    ranges: list[tuple[int, int, bytes]] = []
    for span in spans:
        start = before.rfind(b"\n", 0, span.start) + 1
        end = before.find(b"\n", span.end)
        end = len(before) if end < 0 else end + 1
        if ranges and start < ranges[-1][1]:
            first, last, text = ranges.pop()
            kept = text[: len(text) - (last - at)]
            ranges.append((first, end, kept + before[at : span.start] + span.text + before[span.end : end]))
        else:
            ranges.append((start, end, before[start : span.start] + span.text + before[span.end : end]))
        at = span.end
    counted, line = 0, 1
    for start, end, text in ranges:
        line += before.count(b"\n", counted, start)
        found.append(Touched(before[start:end], text, line + grown))
        counted = start
        grown += text.count(b"\n") - before.count(b"\n", start, end)
    return found


def _joined(spans: list[ReplacedBytes], change: FileChange, file: SourceFile) -> list[ReplacedBytes]:
    """Spans in different units; those that share one become one."""
    joined: list[ReplacedBytes] = []
    for span in spans:
        last = span
        while joined and _meet(file.around(*joined[-1][:2]), file.around(*last[:2])):
            first = joined.pop()
            last = ReplacedBytes(first.start, last.end, first.text + change.before[first.end : last.start] + last.text)
        joined.append(last)
    return joined


def _meet(one: CodeUnit | None, two: CodeUnit | None) -> bool:
    return one is None or two is None or (one.start < two.end and two.start < one.end)


def _region(change: FileChange, file: SourceFile, span: ReplacedBytes, grown: int) -> ChangedRegion:
    """The region of a span; `grown` is how many lines the spans before it added to the file."""
    outer = file.around(span.start, span.end)
    if outer is None:
        raise DoesNotParse("not inside one unit")

    def pair(unit: CodeUnit) -> RegionPair:
        data = change.before[unit.start : span.start] + span.text + change.before[span.end : unit.end]
        before, after = file.snippet_before(unit), replace(file.snippet(data, unit), line=unit.line + grown)
        if not before.same_depth(after):
            raise DoesNotParse("leaves the block it stands in")
        return RegionPair(before, after)

    try:
        near = pair(file.inside(outer, span.start, span.end))
    except DoesNotParse:
        near = pair(outer)  # the edit reaches over the statements around it
    return ChangedRegion(change.path, file, near, file.snippet_before(outer), lambda: pair(outer))


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
