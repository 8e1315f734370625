"""On which line of a TOML text a key stands. For texts that `tomllib` took: this reads headers and keys alone.

Not promised: lines of keys inside inline tables; they have the line of the table.
"""

import re
from collections import Counter

_HEADER = re.compile(r"^\s*(\[\[?)\s*([^\[\]#]+?)\s*\]")
_KEY = re.compile(r"^\s*([A-Za-z0-9_.\- \"']+?)\s*=")
_TOKEN = re.compile(r'"""|\'\'\'|"(?:\\.|[^"\\\n])*"|\'[^\'\n]*\'|#[^\n]*|[\[\]{}]')
_MULTILINE_END = {'"""': re.compile(r'(?:\\.|[^\\])*?"{3,5}', re.DOTALL), "'''": re.compile(r"'{3,5}")}


def lines_of(text: str) -> dict[str, int]:
    """Dotted path (`each.max_seconds`, `repository[2].path`) to line, from 1."""
    found: dict[str, int] = {}
    tables: Counter[str] = Counter()
    prefix = ""
    for number, line in _logical_lines(text):
        if header := _HEADER.match(line):
            name = _plain(header[2])
            prefix = f"{name}[{tables[name]}]" if header[1] == "[[" else name
            tables[name] += header[1] == "[["
            found.setdefault(prefix, number)
        elif key := _KEY.match(line):
            name = _plain(key[1])
            found.setdefault(f"{prefix}.{name}" if prefix else name, number)
    return found


def _plain(name: str) -> str:
    return ".".join(part.strip().strip("\"'") for part in name.split("."))


def _logical_lines(text: str) -> list[tuple[int, str]]:
    """The lines on which a statement begins: not those inside an array, an inline table or a long text."""
    begins = []
    at, depth, number = 0, 0, 1
    while at < len(text):
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        if depth == 0:
            begins.append((number, text[at:end]))
        header = depth == 0 and _HEADER.match(text[at:end])
        upto = end
        position = at
        while not header and (token := _TOKEN.search(text, position, max(upto, position))):
            position = token.end()
            if token[0] in _MULTILINE_END:
                closed = _MULTILINE_END[token[0]].search(text, position)
                position = len(text) if closed is None else closed.end()
                end = text.find("\n", position)
                upto = end = len(text) if end < 0 else end
            else:
                depth = max(0, depth + (token[0] in "[{") - (token[0] in "]}"))
        number += text.count("\n", at, end + 1)
        at = end + 1
    return begins
