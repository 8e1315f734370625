"""Lines of the repository made fit to be shown: the best line of a hit, bounded, without secrets."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from localagent.code.index.identifiers import terms
from localagent.text.secret_redaction import Sanitizer
from localagent.text.visible_text import shortened

MAX_LINE = 160
_KEY_BEGINS = re.compile(r"-----BEGIN (?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)?-----")
_KEY_ENDS = re.compile(r"-----END (?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)?-----")
_KEY_LINE = "[redacted:private-key]"
_SANITIZER = Sanitizer()


@dataclass(frozen=True, kw_only=True, slots=True)
class Snippet:
    """One line of a file, and the column (from 1) of what was found in it."""

    line: int
    column: int
    text: str


def shown(text: str) -> str:
    """Text of the repository on one line, without secrets, bounded."""
    clean = _SANITIZER.clean_text(text).text.replace("\n", " ").replace("\t", "    ")
    return shortened(clean, MAX_LINE)


def shown_line(rows: Sequence[str], line: int) -> str:
    """A line (from 1) of a file; one within a private key is not shown."""
    return _KEY_LINE if line in _key_lines(rows) else shown(rows[line - 1].strip())


def best_line(data: bytes, first: int, last: int, wanted: frozenset[str]) -> Snippet:
    """The first line within [first, last] that has most of the wanted terms."""
    rows = data.decode("utf-8", "replace").split("\n")
    best, most = first, -1
    for number in range(first, min(last, len(rows)) + 1):
        found = len(wanted.intersection(terms(rows[number - 1][:1000])))
        if found > most:
            best, most = number, found
    if best > len(rows):
        return Snippet(line=first, column=1, text="")
    row = rows[best - 1]
    return Snippet(line=best, column=len(row) - len(row.lstrip()) + 1, text=shown_line(rows, best))


def _key_lines(rows: Sequence[str]) -> frozenset[int]:
    """The lines from the beginning of a private key to its end."""
    inside, found = False, set()
    for number, row in enumerate(rows, 1):
        inside = inside or _KEY_BEGINS.search(row) is not None
        if inside:
            found.add(number)
        inside = inside and _KEY_ENDS.search(row) is None
    return frozenset(found)
