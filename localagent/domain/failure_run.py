"""One failing run as it was traced: events in order, values that were written, frames with their locals."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from localagent.domain.paths import RepoPath

RETURN_NAME = "return"  # no name can be: what a statement returned


class TraceKind(IntEnum):
    """What an event is."""

    LINE = 0
    CALL = 1
    RETURN = 2


@dataclass(frozen=True, slots=True)
class TraceEvent:
    """A line that ran, or the beginning or end of a frame; frames are numbered from 1 in order of their calls."""

    path: RepoPath
    line: int
    frame: int
    kind: TraceKind


@dataclass(frozen=True, kw_only=True, slots=True)
class WrittenValue:
    """What a statement left in a name, or returned (`RETURN_NAME`), as a bounded text."""

    path: RepoPath
    line: int
    name: str
    value: str


@dataclass(frozen=True, kw_only=True, slots=True)
class FrameValues:
    """A frame of the failure with its locals as bounded texts."""

    path: RepoPath
    line: int
    function: str
    values: tuple[tuple[str, str], ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class EndedThread:
    """A thread that the test started and an exception ended; frames are outermost first."""

    name: str
    exception: str
    message: str
    frames: tuple[FrameValues, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class FailureRun:
    """Frames are outermost first, () where the test passed. `cut`: earlier events were left out."""

    events: Sequence[TraceEvent] = ()
    values: tuple[WrittenValue, ...] = ()
    frames: tuple[FrameValues, ...] = ()
    threads: tuple[EndedThread, ...] = ()
    cut: bool = False
