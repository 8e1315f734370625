"""Tracebacks as values: frames, exceptions in the order in which they were raised, and where a frame lies here."""

from dataclasses import dataclass
from enum import StrEnum

from localagent.domain.paths import RepoPath


class ChainLink(StrEnum):
    """How an exception hangs together with the one before it in the text."""

    FIRST = "first"
    CONTEXT = "context"  # raised while the one before was being handled
    CAUSE = "cause"  # raised from the one before
    MEMBER = "member"  # one of an exception group


@dataclass(frozen=True, kw_only=True, slots=True)
class TraceFrame:
    """One frame as the text gives it. `line` counts from 1; `function` is "" for the place of a syntax error.

    `source` is the line's text, stripped, "" where the text has none; `repeated`: how often it stood there once more.
    """

    file: str
    line: int
    function: str = ""
    source: str = ""
    repeated: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class TracedException:
    """One exception. `type` is written as in the text (`KeyError`, `shop.errors.OutOfStock`), "" where it is cut off.

    Frames are outermost first. `depth`: how many exception groups are around it.
    """

    type: str
    message: str = ""
    frames: tuple[TraceFrame, ...] = ()
    link: ChainLink = ChainLink.FIRST
    depth: int = 0
    complete: bool = True

    @property
    def name(self) -> str:
        """The bare name of the type."""
        return self.type.rsplit(".", 1)[-1]


@dataclass(frozen=True, kw_only=True, slots=True)
class Traceback:
    """One traceback: a chain of exceptions in the order of the text. `title`: the test it is headed with, or ""."""

    exceptions: tuple[TracedException, ...]
    title: str = ""

    @property
    def surfaced(self) -> TracedException:
        """The exception that was not caught: the last one that is not a member of a group."""
        outer = [e for e in self.exceptions if e.depth == 0]
        return outer[-1] if outer else self.exceptions[-1]

    @property
    def origin(self) -> TracedException:
        """The exception to look at first: the beginning of the chain, in a group its first member that has frames."""
        members = [e for e in self.exceptions if e.depth and e.frames]
        chain = [e for e in self.exceptions if e.depth == 0]
        return members[0] if members else chain[0] if chain else self.exceptions[0]


class FrameMatch(StrEnum):
    """How sure it is that a frame lies at a line of this repository."""

    EXACT = "exact"  # path and text of the line agree
    BY_NAME = "by-name"  # path and function agree; the trace shows no text
    MOVED = "moved"  # the text stands at another line now
    FUNCTION = "function"  # the function is there, its line reads differently now
    FILE = "file"  # only the file is there
    OUTSIDE = "outside"  # not of this repository


@dataclass(frozen=True, kw_only=True, slots=True)
class MappedFrame:
    """A frame and where it lies here. `line` is 0 where no line can be named, `path` None for OUTSIDE."""

    frame: TraceFrame
    match: FrameMatch
    path: RepoPath | None = None
    line: int = 0
