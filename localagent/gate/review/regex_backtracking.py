"""Regular expressions that take exponential or high polynomial time: repeats inside repeats, and rows of repeats.

A reader of the syntax alone: what a part may hold is compared character by character over ASCII. Slow is what can split
one text in many ways; a separator that the repeated part does not match makes it unambiguous. Not seen: references.
"""

import re
from typing import NamedTuple

_MOST_TEXT = 2_000
_MANY = 12
_ROW = 3
_ALL = (1 << 129) - 1
_TOKEN = re.compile(
    r"(?P<group>\((?:\?(?:P<\w+>|[:>=!]|<[=!]|[aiLmsux-]+:|P=\w+\)|#[^)]*\)|[aiLmsux]+\)))?)"
    r"|(?P<close>\))|(?P<bar>\|)"
    r"|(?P<set>\[\^?\]?(?:\\.|[^\]\\])*\])|(?P<escape>\\.)"
    r"|(?P<many>(?:[*+?]|\{\d*,\d*\}|\{\d+\})[?+]?)|(?P<char>[\s\S])"
)
_LOOKS = ("(?>", "(?=", "(?!", "(?<=", "(?<!")


def _mask(letters: str) -> int:
    return sum(1 << min(ord(letter), 128) for letter in set(letters))


_DIGITS = _mask("0123456789")
_WORD = _DIGITS | _mask("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_") | 1 << 128
_BLANK = _mask(" \t\n\r\f\v")
_KINDS = {
    "d": _DIGITS, "w": _WORD, "s": _BLANK, "D": _ALL ^ _DIGITS, "W": _ALL ^ _WORD, "S": _ALL ^ _BLANK,
    "n": _mask("\n"), "t": _mask("\t"), "r": _mask("\r"), "b": 0, "B": 0, "A": 0, "Z": 0,
}  # fmt: skip


class _Part(NamedTuple):
    """A piece of an expression: what characters it may hold, whether it may be empty, whether it repeats at will."""

    holds: int
    empty: bool = False
    endless: bool = False


class _Group:
    """A group that is being read: alternatives, each a row of parts. `whole`: it is never entered a second time."""

    def __init__(self, *, whole: bool = False) -> None:
        self.rows: list[list[_Part]] = [[]]
        self.whole = whole


def slow_time(pattern: str) -> str:
    """`exponential` or `polynomial` if a pattern plainly lets one text be matched in so many ways, else ""."""
    if len(pattern) > _MOST_TEXT:
        return ""
    found = ""
    groups = [_Group()]
    closed: _Group | None = None
    for hit in _TOKEN.finditer(pattern):
        kind, text = hit.lastgroup or "", hit[0]
        inside, closed = closed, None
        row = groups[-1].rows[-1]
        if kind == "group":
            if not text.endswith(")"):
                groups.append(_Group(whole=text in _LOOKS))
        elif kind == "close":
            if len(groups) == 1:
                return found
            closed = groups.pop()
            groups[-1].rows[-1].append(_joined(closed))
        elif kind == "bar":
            groups[-1].rows.append([])
        elif kind == "many":
            if row and _repeated(row, text, inside):
                return "exponential"
        else:
            held = _matched_characters(kind, text)
            row.append(_Part(held, empty=not held))
        if _is_row_of_repeats(groups[-1].rows[-1]):
            found = "polynomial"
    return found


def _repeated(row: list[_Part], text: str, inside: _Group | None) -> bool:
    """Gives the last part of a row its repeat; true if what is repeated can be split in many ways."""
    part = row.pop()
    bounds = text.rstrip("?+") if text[0] == "{" else text[0]
    last = bounds[1:-1].rpartition(",")[2] if bounds[0] == "{" else ""
    endless = bounds in "*+" or (bounds[0] == "{" and (not last or int(last) > _MANY))
    endless = endless and not (len(text) > 1 and text[-1] == "+")
    empty = part.empty or bounds in "*?" or bounds.startswith(("{,", "{0"))
    row.append(_Part(part.holds, empty, endless or part.endless))
    return endless and inside is not None and not inside.whole and _is_ambiguous(inside)


def _is_ambiguous(group: _Group) -> bool:
    """Whether a repeat of a group can take one text in more than one way."""
    for row in group.rows:
        for at, part in enumerate(row):
            others = [other for index, other in enumerate(row) if index != at and not other.empty]
            if part.endless and all(other.holds & part.holds for other in others):
                return True
    rows = [row for row in group.rows if row]
    return any(
        all(part.holds & row[0].holds for part in other)
        for at, row in enumerate(rows)
        for index, other in enumerate(rows)
        if len(row) == 1 and index != at
    )


def _is_row_of_repeats(row: list[_Part]) -> bool:
    """Several repeats at will of the same characters, with nothing between them that must stand there."""
    count, held = 0, _ALL
    for part in row[-2 * _ROW :]:
        if part.endless:
            count, held = (count + 1, held & part.holds) if held & part.holds else (1, part.holds)
        elif not part.empty:
            count, held = 0, _ALL
    return count >= _ROW


def _joined(group: _Group) -> _Part:
    """A group as one part of what is around it."""
    if group.whole:
        return _Part(0, empty=True)
    holds = 0
    for row in group.rows:
        for part in row:
            holds |= part.holds
    return _Part(holds, any(all(part.empty for part in row) for row in group.rows), _is_ambiguous(group))


def _matched_characters(kind: str, text: str) -> int:
    """The characters that one character, escape or class of a pattern may match."""
    if kind == "char":
        return _ALL if text == "." else 0 if text in "^$" else _mask(text)
    if kind == "escape":
        return _KINDS.get(text[1], _mask(text[1]))
    inner = text[1:-1]
    turned = inner.startswith("^")
    found = 0
    for hit in re.finditer(r"(?P<escape>\\.)|(?P<low>.)-(?P<high>[^\\])|(?P<char>.)", inner[turned:], re.DOTALL):
        if hit["low"]:
            first, last = min(ord(hit["low"]), 128), min(ord(hit["high"]), 128)
            found |= sum(1 << code for code in range(first, last + 1))
        else:
            found |= _KINDS.get(hit[0][1], _mask(hit[0][1])) if hit["escape"] else _mask(hit[0])
    return _ALL ^ found if turned else found
