"""Typed reading of one parsed TOML table; faults are collected, each with its dotted path, never raised one by one."""

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, TypeVar

_E = TypeVar("_E", bound=StrEnum)


class Faults:
    """Everything wrong with one file, in the order found."""

    def __init__(self, source: str) -> None:
        self._source = source
        self.lines: list[str] = []

    def add(self, path: str, what: str) -> None:
        """Note that `what` is wrong at the dotted `path`."""
        self.lines.append(f"{self._source}: {path}: {what}")


class Table:
    """One table under its dotted path. Every `take_*` answers a usable value even when it notes a fault."""

    def __init__(self, values: object, path: str, faults: Faults) -> None:
        self._path = path
        self._faults = faults
        self._taken: set[str] = set()
        self._values: Mapping[str, Any] = values if isinstance(values, dict) else {}
        if not isinstance(values, dict):
            faults.add(path, f"must be a table, not {_kind(values)}")

    def at(self, key: str) -> str:
        """The dotted path of a key."""
        return f"{self._path}.{key}" if self._path else key

    def fault(self, key: str, what: str) -> None:
        """Note a fault of a key's value."""
        self._faults.add(self.at(key), what)

    def take_table(self, key: str) -> "Table":
        """A table below this one."""
        return Table(self._take(key, {}), self.at(key), self._faults)

    def take_tables(self, key: str) -> list["Table"]:
        """An array of tables, maybe empty."""
        found = self._take(key, [], required=False)
        if not isinstance(found, list):
            self.fault(key, f"must be an array of tables, not {_kind(found)}")
            return []
        return [Table(item, f"{self.at(key)}[{n}]", self._faults) for n, item in enumerate(found)]

    def take_text(self, key: str) -> str:
        """A text that is not empty."""
        found = self._take(key, "missing")
        if isinstance(found, str) and found.strip():
            return found
        self.fault(key, f"must be a text that is not empty, not {_kind(found)}")
        return "missing"

    def take_texts(self, key: str, *, required: bool, valid: Callable[[str], str] = lambda _: "") -> tuple[str, ...]:
        """An array of texts. `valid` answers what is wrong with one, "" if nothing is."""
        found = self._take(key, [], required=required)
        if not isinstance(found, list):
            self.fault(key, f"must be an array of texts, not {_kind(found)}")
            return ()
        for n, item in enumerate(found):
            if not isinstance(item, str) or not item:
                self.fault(f"{key}[{n}]", f"must be a text that is not empty, not {_kind(item)}")
            elif wrong := valid(item):
                self.fault(f"{key}[{n}]", wrong)
        return tuple(item for item in found if isinstance(item, str))

    def take_count(self, key: str, *, most: int) -> int:
        """An integer from 1 to `most`."""
        found = self._take(key, 1)
        if isinstance(found, int) and not isinstance(found, bool) and 1 <= found <= most:
            return found
        self.fault(key, f"must be an integer from 1 to {most}, not {_kind(found)}")
        return 1

    def take_flag(self, key: str) -> bool:
        """True or false, nothing that stands for it."""
        found = self._take(key, True)
        if not isinstance(found, bool):
            self.fault(key, f"must be true or false, not {_kind(found)}")
        return found is True

    def take_choice(self, key: str, choices: type[_E]) -> _E:
        """One of an enumeration's values."""
        first = next(iter(choices))
        found = self._take(key, first.value)
        if isinstance(found, str) and found in {c.value for c in choices}:
            return choices(found)
        self.fault(key, f"must be one of {', '.join(c.value for c in choices)}, not {_kind(found)}")
        return first

    def close(self) -> None:
        """Every key not taken is unknown."""
        for key in self._values:
            if key not in self._taken:
                self.fault(key, "unknown key")

    def _take(self, key: str, instead: object, *, required: bool = True) -> object:
        self._taken.add(key)
        if key in self._values:
            return self._values[key]
        if required:
            self.fault(key, "is missing")
        return instead


def _kind(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= 40 else f"{shown[:37]}..."
