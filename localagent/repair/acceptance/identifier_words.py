"""The words of an identifier, and which of them are opposites.

Limitations: English words only, and a fixed list.
"""

import re

_SPLIT = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_PAIRS = (
    "first last", "min max", "minimum maximum", "start end", "start stop", "begin end", "open close", "encode decode",
    "left right", "upper lower", "add remove", "before after", "prev next", "previous next", "push pop", "read write",
    "load dump", "load save", "get set", "insert delete", "show hide", "enable disable", "lock unlock", "top bottom",
    "head tail", "parent child", "source target", "src dst", "old new", "width height", "row column", "rows columns",
    "row col", "rows cols", "key value", "keys values", "lstrip rstrip", "find rfind", "startswith endswith",
    "prefix suffix", "input output", "in out", "any all", "ascending descending", "floor ceil", "increment decrement",
    "append prepend", "request response", "x y", "year month", "hour minute", "minute second", "hours minutes",
    "minutes seconds", "union intersection", "lhs rhs", "serialize deserialize", "compress decompress", "quote unquote",
    "escape unescape", "pack unpack", "horizontal vertical", "from to", "up down", "forward backward", "lower higher",
)  # fmt: skip


def _table() -> dict[str, frozenset[str]]:
    table: dict[str, set[str]] = {}
    for pair in _PAIRS:
        one, other = pair.split()
        table.setdefault(one, set()).add(other)
        table.setdefault(other, set()).add(one)
    return {word: frozenset(others) for word, others in table.items()}


OPPOSITES = _table()


def identifier_parts(identifier: str) -> frozenset[str]:
    """`getLastItem` and `get_last_item` have the words get, last and item."""
    return frozenset(w.lower() for w in _SPLIT.findall(identifier))


def last_name(text: str) -> str:
    """`c` of `a.b.c`; "" for what is no dotted name."""
    return text.rpartition(".")[2] if re.fullmatch(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*", text) else ""


def mentions(text: str, literal: str) -> bool:
    """Whether a text holds a word, number or quoted text by itself."""
    return bool(re.search(rf"(?<![\w.+-]){re.escape(literal)}(?![\w]|\.\w)", text))
