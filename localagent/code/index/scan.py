"""Where a regular expression matches in one file's text. Runs in a confined child: an expression may never end."""

import json
import re

MAX_MATCHES = 1_000
MAX_TEXT = 400


def scan(argument: str, raw: bytes) -> list[list[object]]:
    """[line, column, text of the line] of each line's first match; lines and columns from 1.

    `argument` is the expression as a JSON text.
    """
    expression = re.compile(json.loads(argument))
    if b"\0" in raw[:8192]:
        return []
    found: list[list[object]] = []
    for number, line in enumerate(raw.decode("utf-8", "replace").splitlines(), 1):
        match = expression.search(line)
        if match:
            begin = max(0, match.start() - MAX_TEXT // 2)
            found.append([number, match.start() + 1, line if len(line) <= MAX_TEXT else line[begin : begin + MAX_TEXT]])
            if len(found) >= MAX_MATCHES:
                break
    return found
