"""The trajectory of a task: its events in order, without times. Two of them compared; a digest of one.

Left out: progress notes, strength and how much of the guard ran, which go by the clock; how much of an answer a limit
of time cut off, which shows in what the answers say; by which route a check ran, which tells of a warm worker's health
and not of the candidate; and what only earlier versions told.
"""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from localagent.domain.edit import digest_of
from localagent.text.strict_json import canonical, load

_OF_EARLIER_VERSIONS = {"timed", "drained"}
_NOT_COMPARED = {"progress", "strength", "guard", *_OF_EARLIER_VERSIONS}
_FIELDS_NOT_COMPARED = {"route", "late", "fresh", "unread"}
_JUDGED = "confidence"
_ENDS = {"record", "strength"}  # stages after the answer: not part of the work


@dataclass(frozen=True, kw_only=True, slots=True)
class TrajectoryDifference:
    """Where two trajectories first differ; `recorded` or `replayed` is None where that one had ended."""

    event: int
    recorded: Mapping[str, Any] | None
    replayed: Mapping[str, Any] | None


def trajectory(events: Iterable[tuple[str, Mapping[str, Any]]]) -> tuple[dict[str, Any], ...]:
    """Kinds and data as they are compared."""
    found = []
    for kind, data in compared(events):
        kept = {name: value for name, value in data.items() if name not in _FIELDS_NOT_COMPARED}
        found.append(load(canonical({"kind": kind, **kept})))
    return tuple(found)


def compared(events: Iterable[tuple[str, Mapping[str, Any]]]) -> tuple[tuple[str, Mapping[str, Any]], ...]:
    """The events that are compared, one for each of the trajectory, with all of their data.

    They end where the task comes to a confidence: that, and the proposals made of it, follow the strength.
    """
    return tuple(
        (kind, data)
        for kind, data in itertools.takewhile(lambda event: event[0] != _JUDGED, events)
        if kind not in _NOT_COMPARED and not (kind == "stage" and data.get("stage") in _ENDS)
    )


def trajectory_digest(events: Sequence[Mapping[str, Any]]) -> str:
    """The digest over all events."""
    return digest_of(b"".join(canonical(event) for event in events))


def first_departure(
    recorded: Sequence[Mapping[str, Any]], replayed: Sequence[Mapping[str, Any]]
) -> TrajectoryDifference | None:
    """The first event that differs, counted from 0; None if all are the same."""
    for at in range(max(len(recorded), len(replayed))):
        one = recorded[at] if at < len(recorded) else None
        other = replayed[at] if at < len(replayed) else None
        if one != other:
            return TrajectoryDifference(event=at, recorded=one, replayed=other)
    return None
