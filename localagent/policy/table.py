"""Typed reading of TOML tables; faults are collected, each with its line and dotted path, never raised one by one."""

import re
import tomllib
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, TypeVar

from localagent.errors import UsageFault
from localagent.text.visible_text import shortened

# The line on which each key of a TOML file stands. For messages only: the file was parsed by `tomllib` before.
#
# What it cannot follow it leaves out, so a line may be missing; it never fails and never decides anything.

_STRING = re.compile(r'"""(?:[^\\]|\\.)*?"{3,5}|\'\'\'.*?\'{3,5}|"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'', re.DOTALL)
_COMMENT = re.compile(r"#[^\n]*")
_PART = re.compile(r"[ \t]*(?:([A-Za-z0-9_-]+)|\"([^\"\\\n]*)\"|'([^'\n]*)')[ \t]*")
_MOST = 20_000


def key_lines(text: str) -> dict[str, int]:
    """The line, from 1, of each dotted path: keys, tables, and elements as `key[0]`."""
    return _Reader(text).read()


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._line = 1
        self._counts: dict[str, int] = {}
        self.found: dict[str, int] = {}

    def read(self) -> dict[str, int]:
        table = ""
        while self._at < len(self._text) and len(self.found) < _MOST:
            self._blank()
            if self._at >= len(self._text):
                break
            if self._text[self._at] == "[":
                table = self._header()
            elif (key := self._key()) and self._text.startswith("=", self._at):
                path = f"{table}.{key}" if table else key
                self.found.setdefault(path, self._line)
                self._move(1)
                self._value(path)
            self._to_line_end()
        return self.found

    def _header(self) -> str:
        many = self._text.startswith("[[", self._at)
        self._move(2 if many else 1)
        key = self._key()
        outer = ""
        for part in key.split("."):  # a table below an array of tables is one of its last element's
            outer = f"{outer}.{part}" if outer else part
            if outer in self._counts and not (many and outer == key):
                outer = f"{outer}[{self._counts[outer]}]"
        if many:
            number = self._counts[outer] = self._counts.get(outer, -1) + 1
            self.found.setdefault(outer, self._line)
            outer = f"{outer}[{number}]"
        self.found.setdefault(outer, self._line)
        return outer

    def _key(self) -> str:
        parts = []
        while match := _PART.match(self._text, self._at):
            parts.append(next(p for p in match.groups() if p is not None))
            self._move(match.end() - self._at)
            if not self._text.startswith(".", self._at):
                break
            self._move(1)
        return ".".join(parts)

    def _value(self, path: str) -> None:
        """Past a value; the elements of an array of plain values are noted."""
        depth, element = 0, 0
        fresh = True
        while self._at < len(self._text):
            char = self._text[self._at]
            if char == "#":
                self._move(_COMMENT.match(self._text, self._at).end() - self._at)  # type: ignore[union-attr]
                continue
            if char == "\n" and depth == 0:
                return
            if char in " \t\r\n":
                self._move(1)
                continue
            if char in "]}":
                depth -= 1
            elif depth == 1 and char == ",":
                element, fresh = element + 1, True
                self._move(1)
                continue
            elif depth == 1 and fresh:
                self.found.setdefault(f"{path}[{element}]", self._line)
                fresh = False
            if char in "[{":
                depth += 1
            text = _STRING.match(self._text, self._at) if char in "\"'" else None
            self._move(text.end() - self._at if text else 1)

    def _blank(self) -> None:
        while self._at < len(self._text) and self._text[self._at] in " \t\r\n#":
            comment = _COMMENT.match(self._text, self._at)
            self._move(comment.end() - self._at if comment else 1)

    def _to_line_end(self) -> None:
        end = self._text.find("\n", self._at)
        self._move((len(self._text) if end < 0 else end + 1) - self._at)

    def _move(self, count: int) -> None:
        self._line += self._text.count("\n", self._at, self._at + count)
        self._at += count


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
    return shortened(shown, 40)
