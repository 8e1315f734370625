"""Typed reading of TOML tables; faults are collected, each with its line and dotted path, never raised one by one."""

import tomllib
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, TypeVar

from localagent.errors import UsageFault
from localagent.policy.toml_key_lines import key_lines

_E = TypeVar("_E", bound=StrEnum)
_MOST_DOTS = 1_000  # the time that TOML's reader takes grows with the square of a key's depth


def parse_toml(data: bytes, source: str, *, most_bytes: int, remedy: str) -> tuple[dict[str, Any], str]:
    """The values of a TOML file and its text. UsageFault if it is none, or larger than `most_bytes`."""
    if len(data) > most_bytes:
        raise UsageFault(f"{source}: larger than {most_bytes:,} bytes", remedy=remedy)
    if any(line.count(b".") > _MOST_DOTS and not line.lstrip().startswith(b"#") for line in data.splitlines()):
        raise UsageFault(f"{source}: a line with more than {_MOST_DOTS} dots", remedy=remedy)
    try:
        text = data.decode("utf-8")
        return tomllib.loads(text), text.replace("\r\n", "\n")
    except (ValueError, RecursionError) as error:
        raise UsageFault(f"{source}: not TOML: {error}", remedy=remedy) from error


class Faults:
    """Everything wrong with one file, in the order found.

    `text` is the file's, for the lines of keys; `prefix` is where in the file the keys to read begin. What stands
    nowhere in the text has the line `default_line`, or none where that is 0.
    """

    def __init__(self, source: str, text: str = "", prefix: str = "", default_line: int = 0) -> None:
        self._source = source
        self._text = text
        self._places: Mapping[str, int] | None = None
        self._prefix = prefix
        self._default_line = default_line
        self.lines: list[str] = []

    def add(self, path: str, what: str) -> None:
        """Note that `what` is wrong at the dotted `path`."""
        whole = f"{self._prefix}{path}".rstrip(".")
        line = self._line(whole)
        self.lines.append(f"{self._source}{f':{line}' if line else ''}: {whole}: {what}")

    def _line(self, path: str) -> int:
        """The line of a path, or of the table that lacks it; the default if neither stands there."""
        if self._places is None:
            self._places = key_lines(self._text)
        while path and path not in self._places:
            path = path.rpartition("[" if path.endswith("]") else ".")[0]
        return self._places.get(path, self._default_line)


class Table:
    """One table under its dotted path. Every `take_*` answers a usable value even when it notes a fault.

    `instead` is the value of a key that may be left out.
    """

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

    def holds(self, key: str) -> bool:
        """Whether the key stands there."""
        return key in self._values

    def fault(self, key: str, what: str) -> None:
        """Note a fault of a key's value."""
        self._faults.add(self.at(key), what)

    def take_table(self, key: str, *, required: bool = True) -> "Table":
        """A table below this one; an empty one where it may be missing and is."""
        return Table(self._take(key, {}, required=required), self.at(key), self._faults)

    def take_tables(self, key: str) -> list["Table"]:
        """An array of tables, maybe empty."""
        found = self._take(key, [], required=False)
        if not isinstance(found, list):
            self.fault(key, f"must be an array of tables, not {_kind(found)}")
            return []
        return [Table(item, f"{self.at(key)}[{n}]", self._faults) for n, item in enumerate(found)]

    def take_text(self, key: str, *, instead: str | None = None) -> str:
        """A text that is not empty."""
        if instead is not None and not self.holds(key):
            return instead
        found = self._take(key, "missing")
        if isinstance(found, str) and found.strip():
            return found
        self.fault(key, f"must be a text that is not empty, not {_kind(found)}")
        return "missing"

    def take_commands(self, key: str) -> tuple[tuple[str, ...], ...]:
        """An array of texts, or of arrays of texts where there is a choice; a text becomes a choice of one."""
        found = self._take(key, [])
        if not isinstance(found, list) or not found:
            self.fault(key, f"must be an array of words that is not empty, not {_kind(found)}")
            return ()
        words: list[tuple[str, ...]] = []
        for n, item in enumerate(found):
            choice = item if isinstance(item, list) else [item]
            if not choice or not all(isinstance(word, str) and word for word in choice):
                self.fault(f"{key}[{n}]", f"must be a word, or an array of words to choose from, not {_kind(item)}")
            words.append(tuple(word for word in choice if isinstance(word, str)))
        return tuple(words)

    def take_texts(
        self,
        key: str,
        *,
        required: bool,
        valid: Callable[[str], str] = lambda _: "",
        instead: tuple[str, ...] = (),
    ) -> tuple[str, ...]:
        """An array of texts. `valid` answers what is wrong with one, "" if nothing is."""
        if not required and not self.holds(key):
            return instead
        found = self._take(key, [])
        if not isinstance(found, list):
            self.fault(key, f"must be an array of texts, not {_kind(found)}")
            return ()
        for n, item in enumerate(found):
            if not isinstance(item, str) or not item:
                self.fault(f"{key}[{n}]", f"must be a text that is not empty, not {_kind(item)}")
            elif wrong := valid(item):
                self.fault(f"{key}[{n}]", wrong)
        return tuple(item for item in found if isinstance(item, str))

    def take_count(self, key: str, *, most: int, least: int = 1, instead: int | None = None) -> int:
        """An integer from `least` to `most`."""
        default = least if instead is None else instead
        found = self._take(key, default, required=instead is None)
        if isinstance(found, int) and not isinstance(found, bool) and least <= found <= most:
            return found
        self.fault(key, f"must be an integer from {least} to {most}, not {_kind(found)}")
        return default

    def take_seconds(self, key: str, *, most: float, instead: float | None) -> float | None:
        """A positive number of seconds."""
        found = self._take(key, instead, required=False)
        if isinstance(found, int | float) and not isinstance(found, bool) and 0 < found <= most:
            return float(found)  # neither infinite nor no number: those are not at most `most`
        if found is not None:
            self.fault(key, f"must be seconds, more than 0 and at most {most:,.0f}, not {_kind(found)}")
        return instead

    def take_limit(self, key: str, *, built_in: int) -> int | None:
        """An integer from 1 to the built-in limit, None where there is none."""
        found = self._take(key, None, required=False)
        if found is None:
            return None
        if isinstance(found, int) and not isinstance(found, bool) and 1 <= found <= built_in:
            return found
        looser = isinstance(found, int) and not isinstance(found, bool) and found > built_in
        why = f": the built-in limit is {built_in}, and a policy can only tighten it" if looser else ""
        self.fault(key, f"must be an integer from 1 to {built_in}, not {_kind(found)}{why}")
        return built_in

    def take_flag(self, key: str, *, instead: bool | None = None) -> bool:
        """True or false, nothing that stands for it."""
        found = self._take(key, True if instead is None else instead, required=instead is None)
        if not isinstance(found, bool):
            self.fault(key, f"must be true or false, not {_kind(found)}")
        return found is True

    def take_share(self, key: str, *, instead: float) -> float:
        """A number from 0 to 1."""
        found = self._take(key, instead, required=False)
        if isinstance(found, int | float) and not isinstance(found, bool) and 0 <= found <= 1:
            return float(found)
        self.fault(key, f"must be a number from 0 to 1, not {_kind(found)}")
        return instead

    def take_choice(self, key: str, choices: type[_E], *, instead: _E | None = None) -> _E:
        """One of an enumeration's values."""
        if instead is not None and not self.holds(key):
            return instead
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
    if isinstance(value, dict | list):  # may be nested deeper than repr can follow
        return "a table" if isinstance(value, dict) else "an array"
    try:
        shown = repr(value)
    except ValueError:  # a number of more digits than Python writes
        return "so large a number"
    return shown if len(shown) <= 40 else f"{shown[:37]}..."
