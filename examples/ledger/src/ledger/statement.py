"""Bank-style statements of a period."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta

from ledger.journal import Entry, Journal
from ledger.money import Money


@dataclass(frozen=True)
class Statement:
    """Opening balance, the entries of a period, closing balance."""

    first: date
    last: date
    opening: Money
    entries: tuple[Entry, ...]

    @property
    def closing(self) -> Money:
        """Opening balance plus everything entered in the period."""
        total = self.opening
        for entry in self.entries:
            total += entry.amount
        return total

    def render(self) -> str:
        """The statement as text, amounts right-aligned."""
        lines = [f"Statement {self.first} to {self.last}", f"{'opening balance':<40}{self.opening!s:>12}"]
        for entry in self.entries:
            label = f"{entry.day}  {entry.category}" + (f" ({entry.note})" if entry.note else "")
            lines.append(f"{label:<40.40}{entry.amount!s:>12}")
        lines.append(f"{'closing balance':<40}{self.closing!s:>12}")
        return "\n".join(lines)


def statement(journal: Journal, first: date, last: date) -> Statement:
    """The statement of the days from `first` to `last`."""
    return Statement(first, last, journal.before(first).balance(), tuple(journal.between(first, last)))


def monthly(journal: Journal, year: int, month: int) -> Statement:
    """The statement of one calendar month."""
    first = date(year, month, 1)
    following = date(year + month // 12, month % 12 + 1, 1)
    return statement(journal, first, following - timedelta(days=1))
