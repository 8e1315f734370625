"""Judging code that is still being written: may it go on to a statement, and do its names exist?

`may_continue` says no only where no continuation it can think of parses; a yes promises nothing. Texts inside string
literals are free, f-strings' expressions with them.
"""

import re
from dataclasses import dataclass

from localagent.code.known_names import KnownIdentifiers
from localagent.code.source_text import parse_or_none

_WORD = re.compile(r"[^\W\d]\w*")
_STRING = re.compile(r"(?i:\b[rbuf]{1,2})?(\"\"\"|'''|\"|')")
_CLOSERS = {"(": ")", "[": "]", "{": "}"}
_OPERATORS = ("and", "or", "is", "in", "if", "not", "else", "for", "as", "from", "import", "lambda", "await", "async")
_ENDS = ("", "_", " _", ":_", "=_", " in _", " else _", "_ else _", "_ in _", " import _", ": _", "_:_", " for _ in _")
_TAILS = ("", ": pass", " _: pass", "_: pass", "(): pass", ": pass\nexcept _: pass", " in _: pass", "_ in _: pass")
_DECORATED = "\n{0}def _(): pass"
_BEFORE = {
    "elif": "if 1: pass",
    "else": "if 1: pass",
    "except": "try: pass",
    "finally": "try: pass",
    "case": "match _:",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Identifier:
    """An identifier outside strings, `after` and `before` being the nearest characters around it that are no blanks."""

    text: str
    start: int
    end: int
    after: str
    before: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Scan:
    """The words of a text, the quote of a string still open ("" if none), the open brackets; `sound` if paired.

    `comment` is where the last comment begins, -1 without one; `inside` where the open string's text does.
    """

    words: tuple[Identifier, ...]
    quote: str
    open: str
    sound: bool
    comment: int = -1
    inside: int = -1


def scan(text: str) -> Scan:
    """Reads a piece of code forward, without parsing it."""
    words: list[Identifier] = []
    brackets: list[str] = []
    at, quote, sound, comment, inside = 0, "", True, -1, -1
    while at < len(text):
        started = _STRING.match(text, at)
        if started:
            quote, inside = started.group(1), started.end()
            at = _string_end(text, started.end(), quote)
            if at < 0 or (at > 0 and "\n" in text[started.end() : at] and len(quote) == 1):
                sound = "\n" not in text[started.end() :] or len(quote) == 3
                break
            quote, inside = "", -1
            continue
        word = _WORD.match(text, at)
        if word:
            after = text[: word.start()].rstrip(" ")[-1:]
            following = text[word.end() :].lstrip(" ")
            before = following[:2] if following.startswith("==") else following[:1]
            words.append(Identifier(text=word.group(), start=at, end=word.end(), after=after, before=before))
            at = word.end()
            continue
        character = text[at]
        if character == "#":
            comment = at
            at = text.find("\n", at)
            if at < 0:
                break
        elif character in _CLOSERS:
            brackets.append(character)
        elif character in ")]}" and (not brackets or _CLOSERS[brackets.pop()] != character):
            return Scan(words=tuple(words), quote="", open="", sound=False)
        at += 1
    opened = "".join(brackets)
    return Scan(words=tuple(words), quote=quote, open=opened, sound=sound, comment=comment, inside=inside)


def _string_end(text: str, at: int, quote: str) -> int:
    while at < len(text):
        if text[at] == "\\":
            at += 2
        elif text.startswith(quote, at):
            return at + len(quote)
        elif text[at] == "\n" and len(quote) == 1:
            return -1
        else:
            at += 1
    return -1


def exists(words: tuple[Identifier, ...], first: int, known: KnownIdentifiers, *, unfinished_at: int = -1) -> str:
    """The first word ending after `first` that no name, attribute or keyword is, or "".

    A word that ends at `unfinished_at` need only begin like one.
    """
    for word in words:
        if word.end <= first:
            continue
        if word.after == ".":
            kinds = [known.attributes]
        elif word.before == "=" and word.after in ("(", ","):
            kinds = [known.keywords, known.names]
        else:
            kinds = [known.names]
        if word.end == unfinished_at:
            kinds += [known.keywords] if word.after in ("(", ",") else []
            good = any(kind.begins(word.text) for kind in kinds)
        else:
            good = any(word.text in kind for kind in kinds)
        if not good:
            return word.text
    return ""


def may_continue(text: str, indent: str = "") -> bool:
    """Whether text that begins a statement (at `indent`, which its further lines have) may go on to one that parses."""
    found = scan(text)
    if not found.sound:
        return False
    opener = _BEFORE.get(next((w.text for w in found.words if w.start == 0), ""), "")
    lines = [*(["if 1:"] if indent else []), *([indent + opener] if opener else [])]
    head = "".join(line + "\n" for line in lines) + indent
    if opener == "match _:":
        head = "match _:\n "
    closers = "".join(_CLOSERS[b] for b in reversed(found.open))
    # a condition may stand open around any of the brackets
    closings = [closers, *(f"{closers[:k]} else _{closers[k:]}" for k in range(1, len(closers) + 1))]
    if found.quote:
        closed = head + text[: found.inside] + found.quote
        ends = ("", " else _", ":_") if "{" in found.open else ("", " else _")
        ways = ((end, closing, t) for end in ends for closing in closings for t in _TAILS)
        return any(parse_or_none(closed + end + closing + t) for end, closing, t in ways)
    shorter = text
    if found.words and found.words[-1].end == len(text) and found.words[-1].after != ".":
        last = found.words[-1].text
        if any(o.startswith(last) for o in _OPERATORS):
            shorter = text[: found.words[-1].start]
    # one or two points of an ellipsis
    dots = tuple("." * k for k in (1, 2)) if text.endswith(".") else ()
    for form in dict.fromkeys((text, shorter)):
        for end in (*_ENDS, *dots):
            for tail in (*_TAILS, _DECORATED.format(indent)) if not found.open else ("", ": pass"):
                if any(parse_or_none(head + form + end + closing + tail) is not None for closing in closings):
                    return True
    return False
