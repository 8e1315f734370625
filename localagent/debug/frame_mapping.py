"""Frames of a traceback mapped to files of this repository: other prefixes, other versions, nothing invented.

By the longest common end of the path, then the function's name and the text of the line. A frame is of this repository
when the common end holds two parts or the whole of a file's path here; where it holds only the file's name, the text of
the line must stand in a function of that name. Below `site-packages` or a Python's own library the common end must
be all that follows. Not promised: the right line where a version has the same text twice in one function.
"""

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from localagent.code.source_text import parse_or_none
from localagent.code.spans import all_lines_of, functions
from localagent.domain.paths import RepoPath
from localagent.domain.traceback import FrameMatch, MappedFrame, TraceFrame

_PARSED_FILES = 64
_LIBRARIES = ("site-packages", "dist-packages")
_SOURCE_FOLDERS = ("src", "lib", "python")
_NO_LINE = ("", "???")


@dataclass(frozen=True, kw_only=True, slots=True)
class _File:
    lines: tuple[str, ...]
    functions: Mapping[str, tuple[range, ...]]

    def inside(self, line: int, function: str) -> bool:
        """Whether a line lies in a function of that name; names such as `<lambda>` say nothing."""
        if function.startswith("<") or not function:
            return 1 <= line <= len(self.lines)
        return any(line in span for span in self.functions.get(function, ()))


class FrameMapper:
    """Maps frames to `sources`. `root` is the repository's own path."""

    def __init__(self, sources: Mapping[RepoPath, bytes], root: str = "") -> None:
        self._sources = sources
        self._root = tuple(part for part in root.split("/") if part)
        self._by_name: dict[str, list[RepoPath]] = {}
        for path in sources:
            self._by_name.setdefault(path.name, []).append(path)
        self._files: dict[RepoPath, _File] = {}

    def map(self, frames: Iterable[TraceFrame]) -> tuple[MappedFrame, ...]:
        """One answer for each frame, in order."""
        return tuple(self._mapped(frame) for frame in frames)

    def _mapped(self, frame: TraceFrame) -> MappedFrame:
        parts = _parts(frame.file)
        best: MappedFrame | None = None
        for path, certain in self._candidates(parts):
            found = self._at(frame, path)
            if not certain and found.match not in (FrameMatch.EXACT, FrameMatch.MOVED):
                continue
            if not certain and not self._file(path).inside(found.line, frame.function):
                continue
            if best is not None and not certain:
                return MappedFrame(frame=frame, match=FrameMatch.OUTSIDE)  # two files could be meant
            best = found
            if certain:
                break
        return best or MappedFrame(frame=frame, match=FrameMatch.OUTSIDE)

    def _candidates(self, parts: tuple[str, ...]) -> Iterator[tuple[RepoPath, bool]]:
        """Files that a path may mean, and whether the path alone says so; the likeliest first."""
        if not parts:
            return
        if self._root and parts[: len(self._root)] == self._root:
            own = "/".join(parts[len(self._root) :])
            yield from ((path, True) for path in self._by_name.get(parts[-1], ()) if path == own)
            return
        below = _below_library(parts)
        ends = [(self._common(parts, path), path) for path in self._by_name.get(parts[-1], ())]
        ends.sort(key=lambda x: (-x[0], len(x[1].parts), x[1]))
        longest = ends[0][0] if ends else 0
        alike = [path for length, path in ends if length == longest]
        for length, path in ends:
            if below is not None:
                if length >= below and len(_bare(path.parts)) == below:
                    yield path, True
                continue
            whole = length == len(path.parts) or length == len(parts)
            certain = length == longest and len(alike) == 1 and (whole or length >= 2)
            yield path, certain

    @staticmethod
    def _common(parts: tuple[str, ...], path: RepoPath) -> int:
        count = 0
        for one, other in zip(reversed(parts), reversed(path.parts), strict=False):
            if one != other:
                break
            count += 1
        return count

    def _at(self, frame: TraceFrame, path: RepoPath) -> MappedFrame:
        """The line of a frame in a file that is known to be meant."""
        file = self._file(path)
        text = " ".join(frame.source.split())
        there = " ".join(file.lines[frame.line - 1].split()) if 1 <= frame.line <= len(file.lines) else None
        if frame.source in _NO_LINE:
            if there is not None and file.inside(frame.line, frame.function):
                return MappedFrame(frame=frame, match=FrameMatch.BY_NAME, path=path, line=frame.line)
        elif there == text:
            return MappedFrame(frame=frame, match=FrameMatch.EXACT, path=path, line=frame.line)
        elif moved := self._moved(frame, file, text):
            return MappedFrame(frame=frame, match=FrameMatch.MOVED, path=path, line=moved)
        spans = file.functions.get(frame.function, ())
        if len(spans) == 1:
            return MappedFrame(frame=frame, match=FrameMatch.FUNCTION, path=path, line=spans[0].start)
        return MappedFrame(frame=frame, match=FrameMatch.FILE, path=path)

    @staticmethod
    def _moved(frame: TraceFrame, file: _File, text: str) -> int:
        """Where the text of a line stands now: in a function of that name, nearest; else its only place; else 0."""
        at = [number for number, line in enumerate(file.lines, 1) if " ".join(line.split()) == text]
        inside = [number for number in at if file.inside(number, frame.function)]
        if inside:
            return min(inside, key=lambda number: abs(number - frame.line))
        return at[0] if len(at) == 1 and len(text) >= 8 else 0

    def _file(self, path: RepoPath) -> _File:
        if path not in self._files:
            if len(self._files) >= _PARSED_FILES:
                self._files.clear()
            self._files[path] = _read(self._sources[path])
        return self._files[path]


def _read(source: bytes) -> _File:
    tree = parse_or_none(source)
    spans: dict[str, tuple[range, ...]] = {}
    for name, lines in _spans(tree) if tree is not None else ():
        spans[name] = (*spans.get(name, ()), lines)
    text = source.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n")
    return _File(lines=tuple(text.split("\n")), functions=spans)


def _spans(tree: ast.Module) -> Iterator[tuple[str, range]]:
    for function in functions(tree):
        yield function.node.name, all_lines_of(function.node)
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            yield node.name, all_lines_of(node)  # a class body runs as a frame of its name


def _parts(file: str) -> tuple[str, ...]:
    """The parts of a path in whichever notation; () for what is no file."""
    if file.startswith("<"):
        return ()
    found = [part for part in file.replace("\\", "/").split("/") if part not in ("", ".", "~")]
    return tuple(found)


def _below_library(parts: Sequence[str]) -> int | None:
    """How many parts follow the folder of a library of packages, None where there is none."""
    for at in range(len(parts) - 2, -1, -1):
        if parts[at] in _LIBRARIES:
            return len(parts) - at - 1
        if parts[at].startswith("python") and at and parts[at - 1] in ("lib", "lib64"):
            return len(parts) - at - 1
        if parts[at].lower() == "lib" and at and parts[at - 1].lower().startswith("python"):
            return len(parts) - at - 1  # as on Windows
    return None


def _bare(parts: tuple[str, ...]) -> tuple[str, ...]:
    """A path as it is installed: without the folder that holds the sources."""
    return parts[1:] if len(parts) > 2 and parts[0] in _SOURCE_FOLDERS else parts


def frame_lines(frame: MappedFrame, sources: Mapping[RepoPath, bytes], around: int = 2) -> tuple[tuple[int, str], ...]:
    """Numbered lines around a mapped frame, () where no line is known."""
    if frame.path is None or not frame.line:
        return ()
    lines = sources[frame.path].decode("utf-8", "replace").splitlines()
    first = max(1, frame.line - around)
    return tuple((n, lines[n - 1][:300]) for n in range(first, min(len(lines), frame.line + around) + 1))
