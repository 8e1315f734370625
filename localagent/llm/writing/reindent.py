"""Blocks of code moved to another indentation: code moves, the inside of strings of several lines does not.

Nothing is parsed. A text whose strings cannot be told (it is no Python) is moved line by line, and refused by those
who parse what becomes of it.
"""

import io
import tokenize

_BLANKS = " \t"
_SEVERAL_LINES = ('"""', "'''", "\\\n")  # without one of these no string has several
_OPENING = frozenset({"FSTRING_START", "TSTRING_START"})  # newer Pythons tell these strings in pieces
_CLOSING = frozenset({"FSTRING_END", "TSTRING_END"})


def dedented(code: str) -> str:
    """A block without the indentation that all its lines of code have; lines of blanks alone become empty."""
    lines = code.split("\n")
    kept = _within_strings(code)
    margin = _margin([line for number, line in enumerate(lines) if number not in kept and line.strip()])
    return "\n".join(
        line if number in kept else line[len(margin) :] if line.strip() else "" for number, line in enumerate(lines)
    )


def indented(code: str, indent: str) -> str:
    """A block with an indentation more, empty lines without it."""
    kept = _within_strings(code)
    return "\n".join(
        line if number in kept or not line else indent + line for number, line in enumerate(code.split("\n"))
    )


def _margin(lines: list[str]) -> str:
    """The blanks that all of some lines begin with."""
    if not lines:
        return ""
    first, last = min(lines), max(lines)  # what these two have in common all between them have
    size = 0
    while size < min(len(first), len(last)) and first[size] == last[size] and first[size] in _BLANKS:
        size += 1
    return first[:size]


def _within_strings(code: str) -> frozenset[int]:
    """The numbers, from 0, of lines that begin inside a string."""
    if not any(mark in code for mark in _SEVERAL_LINES):
        return frozenset()
    inside: set[int] = set()
    opened: list[int] = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(code).readline):
            name = tokenize.tok_name[token.type]
            if name in _OPENING:
                opened.append(token.start[0])
            elif name in _CLOSING:
                inside.update(range(opened.pop(), token.end[0]))
            elif name == "STRING":
                inside.update(range(token.start[0], token.end[0]))
    except (tokenize.TokenError, SyntaxError):
        return frozenset(inside)
    return frozenset(inside)
