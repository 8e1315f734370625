"""Entries in order of their day, and what can be asked of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date

from ledger.money import Money


@dataclass(frozen=True)
class Entry:
    """One line of the book. Money coming in is positive."""

    day: date
    category: str
    amount: Money
    note: str = ""


class Journal:
    """All entries, oldest first; entries of one day keep the order in which they were written."""

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        self._entries = sorted(entries, key=lambda entry: entry.day)

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries)

    def before(self, day: date) -> Journal:
        """What was entered on days earlier than `day`."""
        return Journal(entry for entry in self._entries if entry.day < day)

    def between(self, first: date, last: date) -> Journal:
        """What was entered in a period; its first and its last day belong to it."""
        if last < first:
            raise ValueError(f"the period ends ({last}) before it begins ({first})")
        return Journal(entry for entry in self._entries if first <= entry.day < last)

    def balance(self) -> Money:
        """The sum of everything."""
        total = Money()
        for entry in self._entries:
            total += entry.amount
        return total

    def by_category(self) -> dict[str, Money]:
        """The sum of each category, largest spending first."""
        sums: defaultdict[str, Money] = defaultdict(Money)
        for entry in self._entries:
            sums[entry.category] += entry.amount
        return dict(sorted(sums.items(), key=lambda item: (item[1], item[0])))
