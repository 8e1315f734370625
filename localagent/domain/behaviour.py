"""What programs do on inputs near those of the tests: evidence for the choice, never a verdict."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from localagent.domain.outcome import Failure

Row = tuple[str, ...]

_KEPT_LEAST = 8


@dataclass(frozen=True, kw_only=True, slots=True)
class Crash:
    """A call that crashed a program, as text, and how. Both are sanitized and bounded."""

    call: str
    failure: Failure


@dataclass(frozen=True, kw_only=True, slots=True)
class Behaviours:
    """A row of digests per candidate number (0: the unpatched program), all of one length, a column per call.

    A digest begins with `ok:`, `late:`, `refused:` (raised on purpose) or `raised:`. `kept` are columns whose inputs
    keep the relations of a test's own; `seen` those the tests themselves ask for; `crashes` a few for each candidate.
    """

    rows: Mapping[int, Row] = field(default_factory=dict)
    kept: tuple[bool, ...] = ()
    seen: tuple[bool, ...] = ()
    crashes: Mapping[int, tuple[Crash, ...]] = field(default_factory=dict)

    def crashed(self, number: int) -> frozenset[int]:
        """The kept columns in which a program crashed, but for crashes that the tests themselves ask for."""
        row = self.rows.get(number, ())
        wanted = {cell for cell, seen in zip(row, self.seen, strict=True) if seen} if row else set()
        kept = self.kept if row else ()
        return frozenset(
            n
            for n, (cell, keeps) in enumerate(zip(row, kept, strict=True))
            if keeps and cell.startswith("raised:") and cell not in wanted
        )

    def telling(self) -> dict[int, Row]:
        """The rows without the columns of careless inputs, where enough others are left."""
        if sum(self.kept) < _KEPT_LEAST:
            return dict(self.rows)
        use = [kept or seen for kept, seen in zip(self.kept, self.seen, strict=True)]
        return {n: tuple(c for c, used in zip(row, use, strict=True) if used) for n, row in self.rows.items()}
