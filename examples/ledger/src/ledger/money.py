"""Amounts in whole cents: floats never touch a balance."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import total_ordering

_AMOUNT = re.compile(r"(?P<sign>[+-]?)(?P<whole>\d{1,3}(?:,\d{3})*|\d+)(?:\.(?P<cents>\d{2}))?")


@total_ordering
@dataclass(frozen=True)
class Money:
    """An amount of one currency, in cents."""

    cents: int = 0

    @classmethod
    def parse(cls, text: str) -> Money:
        """Read `-1,234.50`, `12` or `+0.99`; ValueError for anything else."""
        match = _AMOUNT.fullmatch(text.strip())
        if match is None:
            raise ValueError(f"not an amount: {text!r}")
        whole = int(match["whole"].replace(",", ""))
        cents = whole * 100 + int(match["cents"] or 0)
        return cls(-cents if match["sign"] == "-" else cents)

    def __add__(self, other: Money) -> Money:
        return Money(self.cents + other.cents)

    def __sub__(self, other: Money) -> Money:
        return Money(self.cents - other.cents)

    def __neg__(self) -> Money:
        return Money(-self.cents)

    def __lt__(self, other: Money) -> bool:
        return self.cents < other.cents

    def __bool__(self) -> bool:
        return self.cents != 0

    def split(self, parts: int) -> list[Money]:
        """Cut into `parts` shares that differ by one cent at most and add up to the whole."""
        if parts < 1:
            raise ValueError("cannot split into fewer than one part")
        share, rest = divmod(self.cents, parts)
        return [Money(share + 1) if i < rest else Money(share) for i in range(parts)]

    def __str__(self) -> str:
        sign = "-" if self.cents < 0 else ""
        return f"{sign}{abs(self.cents) // 100:,}.{abs(self.cents) % 100:02d}"
