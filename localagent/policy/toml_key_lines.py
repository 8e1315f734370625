"""The line on which each key of a TOML file stands. For messages only: the file was parsed by `tomllib` before.

What it cannot follow it leaves out, so a line may be missing; it never fails and never decides anything.
"""

import re

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
