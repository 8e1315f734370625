"""Reading a TOML table whose keys may be left out, faults told with their lines."""

import math
import re
from collections.abc import Callable
from enum import StrEnum
from typing import TypeVar

from localagent.batch.toml_lines import lines_of
from localagent.policy.table import Faults, Table

_E = TypeVar("_E", bound=StrEnum)


class LineFaults(Faults):
    """Faults with the line of their key, or of the nearest table that stands in the text."""

    def __init__(self, source: str, text: str) -> None:
        super().__init__(source)
        self._name = source
        self._lines = lines_of(text)

    def add(self, path: str, what: str) -> None:
        """Note that `what` is wrong at the dotted `path`."""
        place = path
        while place and place not in self._lines:
            shorter = re.sub(r"(\.[^.\[\]]*|\[\d+\])$", "", place)
            place = shorter if shorter != place else ""
        self.lines.append(f"{self._name}:{self._lines.get(place, 1)}: {path}: {what}")


class Sheet(Table):
    """A table most of whose keys have a default."""

    def __init__(self, values: object, path: str, faults: Faults) -> None:
        super().__init__(values, path, faults)
        self._all = faults

    @classmethod
    def of(cls, table: Table) -> "Sheet":
        """The same table, read so."""
        return cls(table._values, table._path, table._faults)

    def holds(self, key: str) -> bool:
        """Whether the key stands there."""
        return key in self._values

    def below(self, key: str) -> "Sheet":
        """A table below this one, empty where it is left out."""
        return Sheet(self._take(key, {}, required=False), self.at(key), self._all)

    def text(self, key: str, default: str) -> str:
        """A text that is not empty."""
        return self.take_text(key) if self.holds(key) else default

    def texts(self, key: str, default: tuple[str, ...], valid: Callable[[str], str] = lambda _: "") -> tuple[str, ...]:
        """An array of texts. `valid` answers what is wrong with one, "" if nothing is."""
        return self.take_texts(key, required=True, valid=valid) if self.holds(key) else default

    def flag(self, key: str, default: bool) -> bool:
        """True or false."""
        return self.take_flag(key) if self.holds(key) else default

    def choice(self, key: str, choices: type[_E], default: _E) -> _E:
        """One of an enumeration's values."""
        return self.take_choice(key, choices) if self.holds(key) else default

    def count(self, key: str, default: int, *, least: int, most: int) -> int:
        """An integer from `least` to `most`."""
        found = self._take(key, default, required=False)
        if isinstance(found, int) and not isinstance(found, bool) and least <= found <= most:
            return found
        self.fault(key, f"must be an integer from {least:,} to {most:,}, not {found!r:.40}")
        return default

    def seconds(self, key: str, default: float | None, *, most: float) -> float | None:
        """A positive number of seconds."""
        found = self._take(key, default, required=False)
        if found is None:
            return None
        if (
            isinstance(found, int | float)
            and not isinstance(found, bool)
            and math.isfinite(found)
            and 0 < found <= most
        ):
            return float(found)
        self.fault(key, f"must be seconds, more than 0 and at most {most:,.0f}, not {found!r:.40}")
        return default
