"""A source's tokens as the learned order sees them: roughly Python's, of any text, and of what kind they are."""

import keyword
import re

TOKEN = re.compile(
    rb"[A-Za-z_\x80-\xff][\w\x80-\xff]*|\d[\w.]*|\"[^\"\n]*\"|'[^'\n]*'|[<>=!]=|//=?|\*\*=?|[+\-*/%&|^@]=|->|:=|\S"
)
_KEYWORD = frozenset(word.encode() for word in keyword.kwlist)


def named(token: bytes) -> bool:
    """Whether it is a name; keywords are none."""
    return (token[:1].isalpha() or token[:1] == b"_" or token[0] >= 0x80) and token not in _KEYWORD


def kind_of(token: bytes) -> str:
    """What it is: "name" (keywords too), "number", "text", or "" for a sign."""
    lead = token[:1]
    return (
        "name" if lead.isalpha() or lead == b"_" else "number" if lead.isdigit() else "text" if lead in b"'\"" else ""
    )


def shape_of(token: bytes) -> bytes:
    """What it is in the shape of a line: names are all alike, numbers and texts too, keywords and signs are not."""
    if not token:
        return b""
    if named(token):
        return b"a"
    return {"number": b"0", "text": b'""'}.get(kind_of(token), token)
