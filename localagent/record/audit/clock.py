"""Times of entries against their order: the chain shows the order, and a clock that was set back shows against it.

Not promised: that times which rise are right; they are what the machine's clock said.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime

from localagent.record.audit.entry import Entry


@dataclass(frozen=True, kw_only=True, slots=True)
class SetBack:
    """An entry that says an earlier time than one before it; by how much."""

    seq: int
    at: str
    seconds: float


def set_back(entries: Sequence[Entry]) -> tuple[SetBack, ...]:
    """Every place where the clock went back, the entry behind it named; entries are in their order."""
    found: list[SetBack] = []
    for before, entry in itertools.pairwise(entries):
        if entry.at < before.at:
            found.append(SetBack(seq=entry.seq, at=entry.at, seconds=_between(entry.at, before.at)))
    return tuple(found)


def since(entries: Sequence[Entry], day: date) -> list[Entry]:
    """The entries from the first one of a day or a later one on: what follows it came later, whatever its time says."""
    start = f"{day:%Y-%m-%d}T"
    first = next((n for n, entry in enumerate(entries) if entry.at >= start), len(entries))
    return list(entries[first:])


def _between(earlier: str, later: str) -> float:
    """Seconds; 0 where a time is none of the calendar's."""
    try:
        return round((datetime.fromisoformat(later) - datetime.fromisoformat(earlier)).total_seconds(), 6)
    except ValueError:
        return 0.0
