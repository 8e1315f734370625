"""An instruction taken apart: sentences, and what stands in `backticks`.

A sentence ends at `.`, `;`, `!` or `?` before a blank, but not inside of backticks.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

_QUOTED = re.compile(r"`([^`]+)`")
_END = re.compile(r"[.;!?](?=\s)")
LIST = r"`[^`]+`(?:(?:, and |, or |, | and | or )`[^`]+`)*"
"""Several things in backticks, one after another."""


class Quote(NamedTuple):
    """What stands in backticks, its sentence, and the text of the sentence before and after it."""

    text: str
    sentence: str
    before: str
    after: str


def sentences(instruction: str) -> Iterator[str]:
    """Each, without blanks around it."""
    at, masked = 0, _QUOTED.sub(lambda found: "`" * len(found[0]), instruction)
    for end in _END.finditer(masked):
        yield instruction[at : end.end()].strip()
        at = end.end()
    yield instruction[at:].strip()


def quotes(instruction: str) -> Iterator[Quote]:
    """Each thing in backticks, in order."""
    for sentence in sentences(instruction):
        for found in _QUOTED.finditer(sentence):
            yield Quote(found[1], sentence, sentence[: found.start()], sentence[found.end() :])


def quoted(text: str) -> list[str]:
    """What stands in backticks there."""
    return _QUOTED.findall(text)


def unquoted(text: str) -> str:
    """A text without what stands in backticks."""
    return _QUOTED.sub("`", text)
