"""The journal's text form."""

from __future__ import annotations

from datetime import date

from ledger.journal import Entry, Journal
from ledger.money import Money


class JournalSyntaxError(ValueError):
    """A line that is not an entry. All faulty lines of a text are reported together."""

    def __init__(self, faults: list[str]) -> None:
        super().__init__("\n".join(faults))
        self.faults = faults


def parse_entry(line: str) -> Entry:
    """Read `DAY CATEGORY AMOUNT [NOTE]`; ValueError says what is wrong."""
    fields = line.split(maxsplit=3)
    if len(fields) < 3:
        raise ValueError("expected: day, category, amount, and perhaps a note")
    day, category, amount, *note = fields
    return Entry(date.fromisoformat(day), category.lower(), Money.parse(amount), note[0].strip() if note else "")


def parse_journal(text: str) -> Journal:
    """Read a whole book. Blank lines and lines that begin with `#` are remarks."""
    entries, faults = [], []
    for number, line in enumerate(text.splitlines(), start=1):
        stripped = line.strip()
        if not stripped or stripped.startswith("#"):
            continue
        try:
            entries.append(parse_entry(stripped))
        except ValueError as error:
            faults.append(f"line {number}: {error}")
    if faults:
        raise JournalSyntaxError(faults)
    return Journal(entries)
