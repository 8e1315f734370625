"""Which Python a text needs that ours does not parse: syntax of PEP 695, 696, 701, 750 and 758, written in older words.

The newer parts are taken out of the text and the rest is given to our own parser, so nothing nests deeper than that
allows. Not promised: that what stands inside the newer parts is right in every detail.
"""

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass

from localagent.code.source_text import parse_or_none, read_source

_LONGEST = 2_000_000
_DEEPEST = 20
_MOST_PARSED = 5_000
_OURS = sys.version_info[:2]
_LEXEME = re.compile(r"#[^\r\n]*|(?<!\w)(?:u|br?|r[bft]?|[ft]r?)?(\"\"\"|'''|\"|')", re.IGNORECASE)
_GENERIC = re.compile(
    r"(?P<kept>\b(?:def|class)[ \t]+[^\W\d]\w*)[ \t]*(?=\[)"
    r"|(?:^|(?<=[;:]))(?P<indent>[ \t]*)type[ \t]+(?P<alias>[^\W\d]\w*)[ \t]*(?=[\[=])",
    re.MULTILINE,
)
_PARAMETER = re.compile(r"\s*\*{0,2}\s*[^\W\d]\w*\s*(?::(?P<bound>[^=]+))?(?:=(?P<default>.+))?", re.DOTALL)
_EXCEPT = re.compile(r"(?m)^([ \t]*except\b[ \t]*\*?)([^\n:]*,[^\n:]*):")
_BRACKETS = {"(": ")", "[": "]", "{": "}"}

Version = tuple[int, int]


class _NotPythonError(Exception):
    """What no Python takes, as far as known here."""


def needed_python(text: str) -> Version | None:
    """The least version that takes a text which our own Python does not; None where ours does, or none is known to."""
    if len(text) > _LONGEST or parse_or_none(text) is not None:
        return None
    try:
        older = _Older(since=(3, 0))
        plain = older.grammar(older.strings(text, 0))
    except _NotPythonError:
        return None
    return older.since if older.since > _OURS and parse_or_none(plain) is not None else None


def newer_python(text: str) -> str:
    """What to say of a text that only a newer Python takes: which, and how to get there; "" for any other text."""
    needed = needed_python(text)
    return "" if needed is None else needs_python(needed)


def newer_file(source: bytes) -> str:
    """`newer_python` of a file's bytes; "" also for what is in no encoding."""
    read = read_source(source)
    return "" if read is None else newer_python(read.utf8.decode())


def needs_python(needed: Version) -> str:
    """The sentence, without its subject."""
    want, have = (".".join(map(str, version)) for version in (needed, _OURS))
    return f"needs Python ≥ {want}; localagent runs on {have}: `make setup PYTHON=python{want}`"


@dataclass(kw_only=True, slots=True)
class _Older:
    """A text in the syntax of Python 3.11; `since`: what the parts need that were taken out."""

    since: Version
    parsed: int = 0

    def _taken_out(self, since: Version) -> None:
        self.since = max(self.since, since)

    def strings(self, text: str, depth: int) -> str:
        """The text without comments, each plain string empty, each newer one as a tuple of its expressions."""
        if depth > _DEEPEST:
            raise _NotPythonError
        out, at = [], 0
        while found := _LEXEME.search(text, at):
            out.append(text[at : found.start()])
            if found[0].startswith("#"):
                at = found.end()
                continue
            literal, at = self._string(text, found, depth)
            out.append(literal)
        return "".join((*out, text[at:]))

    def _string(self, text: str, found: re.Match[str], depth: int) -> tuple[str, int]:
        """A literal in older words, and where it ends."""
        quote = found[1]
        prefix = found[0].removesuffix(quote).lower()
        if not {"f", "t"} & set(prefix):
            end = _plain_end(text, found.end(), quote)
            if "\\" in text[found.start() : end]:
                self._parsed(text[found.start() : end])
            return ("b''" if "b" in prefix else "''"), end
        expressions, end = _fields(text, found.end(), quote, depth)
        if "t" in prefix:
            self._taken_out((3, 14))
        elif parse_or_none(f"({text[found.start() : end]})") is not None:
            return "''", end
        else:
            self._taken_out((3, 12))
        for expression in expressions:
            if not expression.strip():
                raise _NotPythonError
            self._parsed(self.grammar(self.strings(f"({expression})", depth + 1)))
        return "''", end

    def _parsed(self, text: str) -> None:
        self.parsed += 1
        if self.parsed > _MOST_PARSED or parse_or_none(text) is None:
            raise _NotPythonError

    def grammar(self, text: str) -> str:
        """A text without strings, its newer statements in older words."""
        out: list[str] = []
        at = 0
        for found in _GENERIC.finditer(text):
            if found.start() < at:
                raise _NotPythonError
            out += (text[at : found.start()], found["kept"] or found["indent"] + found["alias"])
            at = self._parameters(text, found.end()) if text[found.end()] == "[" else found.end()
            self._taken_out((3, 12))
        return _EXCEPT.sub(self._handler, "".join((*out, text[at:])))

    def _parameters(self, text: str, start: int) -> int:
        """Where type parameters end that begin in `start`."""
        end = _closing(text, start)
        parts = _split(text[start + 1 : end - 1])
        for part in parts:
            found = _PARAMETER.fullmatch(part)
            if found is None or any(
                given is not None and parse_or_none(f"_[{given.strip()}]") is None
                for given in (found["bound"], found["default"])
            ):
                raise _NotPythonError
            if found["default"] is not None:
                self._taken_out((3, 13))
        return end

    def _handler(self, found: re.Match[str]) -> str:
        if parse_or_none(f"try: pass\n{found[0].strip()} pass") is not None or re.search(r"\bas\b", found[2]):
            return found[0]
        self._taken_out((3, 14))
        return f"{found[1]} ({found[2].strip()}):"


def _plain_end(text: str, at: int, quote: str) -> int:
    while at < len(text):
        if text[at] == "\\":
            at += 2
        elif text.startswith(quote, at):
            return at + len(quote)
        elif text[at] in "\r\n" and len(quote) == 1:
            raise _NotPythonError
        else:
            at += 1
    raise _NotPythonError


def _fields(text: str, at: int, quote: str, depth: int) -> tuple[list[str], int]:
    """The expressions of a formatted string whose text begins in `at`, and where it ends."""
    expressions: list[str] = []
    while at < len(text):
        if text.startswith(quote, at):
            return expressions, at + len(quote)
        if text.startswith(("{{", "}}"), at) or text[at] == "\\":
            at += 2
        elif text[at] == "{":
            at = _field(text, at + 1, quote, expressions, depth + 1)
        elif text[at] == "}" or (text[at] in "\r\n" and len(quote) == 1):
            raise _NotPythonError
        else:
            at += 1
    raise _NotPythonError


def _field(text: str, start: int, quote: str, expressions: list[str], depth: int) -> int:
    """Behind the brace that closes a field; its expression, and those of its format, are added."""
    if depth > _DEEPEST:
        raise _NotPythonError
    at = _expression_end(text, start, depth)
    expressions.append(_without_equals(text[start:at]))
    if text[at] == "!":
        conversion = re.compile(r"![rsa]\s*(?=[:}])").match(text, at)
        if conversion is None:
            raise _NotPythonError
        at = conversion.end()
    if text[at] == "}":
        return at + 1
    at += 1
    while at < len(text):
        if text[at] == "}":
            return at + 1
        if text[at] == "{":
            at = _field(text, at + 1, quote, expressions, depth + 1)
        elif text.startswith(quote, at) or (text[at] in "\r\n" and len(quote) == 1):
            raise _NotPythonError
        else:
            at += 1
    raise _NotPythonError


def _without_equals(expression: str) -> str:
    """The expression of `{x=}`."""
    plain = expression.rstrip()
    return plain[:-1] if re.search(r"[^=!<>]=$", plain) else expression


def _expression_end(text: str, at: int, depth: int) -> int:
    """Where an expression meets the `!`, `:` or `}` that ends it."""
    for place, char, level in _outside_strings(text, at, depth):
        if level == 0 and (char in ":}" or (char == "!" and not text.startswith("!=", place))):
            return place
    raise _NotPythonError


def _outside_strings(text: str, at: int, depth: int) -> Iterator[tuple[int, str, int]]:
    """(offset, character, open brackets in front) of what is no string or comment; closing ones count as closed."""
    level = 0
    while at < len(text):
        found = _LEXEME.match(text, at) if at == 0 or not text[at - 1].isalnum() else None
        if found is not None:
            at = _literal_end(text, found, depth + 1)
            continue
        char = text[at]
        if char in ")]}" and level:
            level -= 1
        else:
            yield at, char, level
            level += char in _BRACKETS
        at += 1


def _literal_end(text: str, found: re.Match[str], depth: int) -> int:
    """Where a comment or a literal ends."""
    if depth > _DEEPEST:
        raise _NotPythonError
    if found[0].startswith("#"):
        return found.end()
    prefix = found[0].removesuffix(found[1]).lower()
    if {"f", "t"} & set(prefix):
        return _fields(text, found.end(), found[1], depth)[1]
    return _plain_end(text, found.end(), found[1])


def _closing(text: str, start: int) -> int:
    """Behind the bracket that closes the one in `start`; the text holds no strings."""
    level = 0
    for at in range(start, len(text)):
        level += (text[at] in "([{") - (text[at] in ")]}")
        if level == 0:
            return at + 1
    raise _NotPythonError


def _split(text: str) -> list[str]:
    """The parts between commas outside brackets; a last empty one is left out."""
    parts, level, last = [], 0, 0
    for at, char in enumerate(text):
        level += (char in "([{") - (char in ")]}")
        if char == "," and level == 0:
            parts.append(text[last:at])
            last = at + 1
    parts.append(text[last:])
    if not parts[-1].strip():
        parts.pop()
    if not parts:
        raise _NotPythonError
    return parts
