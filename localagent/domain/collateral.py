"""What a program changes besides what failed: the answers to calls that passing tests make, and to calls like these.

Limitations: equal answers on these calls are no proof of equality, and a changed answer is no proof of a fault: a
repair changes some on purpose.
"""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Changes:
    """Calls that were compared with the unpatched program, and how many of them answer otherwise.

    `crashes`: answered (or turned down on purpose) before, and crash or do not end now. `refused`: answered before, and
    are turned down now. `mended`: crashed or did not end before, and answer now.
    """

    calls: int = 0
    changed: int = 0
    crashes: int = 0
    refused: int = 0
    mended: int = 0

    @property
    def altered(self) -> int:
        """Changed, but for what was mended: that a call which crashed answers now is no harm."""
        return self.changed - self.mended

    @property
    def share(self) -> float:
        """Altered among compared, in [0, 1]; 0 where nothing was compared."""
        return self.altered / self.calls if self.calls else 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Collateral:
    """Of one candidate. `tested` are calls just as passing tests make them, `near` variations of these.

    `crashing` are calls, just as the failing tests make them, which crash in the patched program and did not before:
    the tests pass because something breaks.
    """

    tested: Changes = Changes()
    near: Changes = Changes()
    crashing: int = 0


def changes(before: Sequence[str], after: Sequence[str]) -> Changes:
    """What became of the answers of one program; both rows have a digest for each call, as `Behaviours` has them."""
    pairs = [(a, b) for a, b in zip(before, after, strict=True) if not (_kind(a) == _kind(b) == "late")]
    changed = [(a, b) for a, b in pairs if a != b]
    return Changes(
        calls=len(pairs),
        changed=len(changed),
        crashes=sum(_kind(a) in ("ok", "refused") and _kind(b) in ("raised", "late") for a, b in changed),
        refused=sum(_kind(a) == "ok" and _kind(b) == "refused" for a, b in changed),
        mended=sum(_kind(a) in ("raised", "late") and _kind(b) == "ok" for a, b in changed),
    )


def crashing(before: Sequence[str], after: Sequence[str]) -> int:
    """How many calls crash after and did not before."""
    return sum(_kind(b) == "raised" and _kind(a) != "raised" for a, b in zip(before, after, strict=True))


def only(row: Sequence[str], columns: Sequence[bool]) -> tuple[str, ...]:
    """The cells of the columns that are asked for."""
    return tuple(cell for cell, wanted in zip(row, columns, strict=True) if wanted)


def _kind(cell: str) -> str:
    return cell.partition(":")[0]
