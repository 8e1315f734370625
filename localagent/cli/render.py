"""The only module that prints. Everything shown has its control characters made visible first."""

import json
import sys
from collections.abc import Mapping
from typing import Any, TextIO

_KEEP = {"\n", "\t"}


def visible(text: str) -> str:
    """Text with control characters and lone surrogates escaped, so that hostile names cannot drive a terminal."""
    return "".join(
        c if c in _KEEP or (c.isprintable() and not "\ud800" <= c <= "\udfff") else repr(c)[1:-1] for c in text
    )


class Render:
    """Writes lines to the streams a verb was given. `json` verbs write one JSON value a line to stdout."""

    def __init__(self, *, out: TextIO | None = None, err: TextIO | None = None, quiet: bool = False) -> None:
        self._out = out or sys.stdout
        self._err = err or sys.stderr
        self.quiet = quiet

    def line(self, text: str = "") -> None:
        """An answer: to stdout."""
        self._write(self._out, text)

    def note(self, text: str) -> None:
        """Progress and remarks: to stderr, nothing when quiet."""
        if not self.quiet:
            self._write(self._err, text)

    def error(self, text: str, remedy: str = "") -> None:
        """A refusal or fault: to stderr, always."""
        self._write(self._err, f"localagent: {text}")
        if remedy:
            self._write(self._err, f"  what to do: {remedy}")

    def json(self, value: Mapping[str, Any] | list[Any]) -> None:
        """One JSON value on one line, ASCII only."""
        print(json.dumps(value, ensure_ascii=True, sort_keys=False), file=self._out, flush=True)

    @staticmethod
    def _write(stream: TextIO, text: str) -> None:
        print(visible(text), file=stream, flush=True)
