"""Parts of a hostile JSON document, each checked where it is taken. Not promised: that unused parts are sound."""

from collections.abc import Mapping, Sequence
from typing import Any

from localagent.text.visible_text import one_line

MAX_LINE = 10_000_000
MAX_TEXT = 4_096


class Wrong(ValueError):  # noqa: N818 - named for what it says
    """One fault of a log."""


def object_of(value: object, name: str) -> Mapping[str, Any]:
    """An object. Wrong for anything else."""
    if not isinstance(value, dict):
        raise Wrong(f"{name} is no object")
    return value


def list_of(value: object, name: str, most: int) -> list[Any]:
    """An array of at most `most` elements."""
    if not isinstance(value, list):
        raise Wrong(f"{name} is no array")
    if len(value) > most:
        raise Wrong(f"{name} holds more than {most:,}")
    return value


def text_of(value: object, name: str) -> str:
    """A text that is not empty, of at most MAX_TEXT characters."""
    if not isinstance(value, str) or not value:
        raise Wrong(f"{name} is no text")
    if len(value) > MAX_TEXT:
        raise Wrong(f"{name} is longer than {MAX_TEXT:,} characters")
    return value


def number_of(value: object, name: str, *, least: int = 1) -> int:
    """A whole number from `least` to MAX_LINE."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= MAX_LINE:
        raise Wrong(f"{name} is no number from {least} to {MAX_LINE:,}")
    return value


def one_of(value: object, name: str, words: Sequence[str]) -> str:
    """One of some words."""
    if value not in words:
        raise Wrong(f"{name} is {shown(value)}, not one of {', '.join(words)}")
    return str(value)


def shown(value: object) -> str:
    """A value as a message may show it."""
    return one_line(repr(value)[:80])
