"""The way to the terminal, but for live displays. Everything shown has its control characters made visible first.

A test says that no module but this one and `safe_console` prints, writes to a standard stream or makes a console.
"""

import contextlib
import json
import os
import sys
from collections.abc import Mapping
from typing import Any, TextIO

from localagent.errors import Interrupted, LocalagentError, UsageFault
from localagent.text.visible_text import visible


class ReaderGone(Interrupted):
    """Nobody reads the output any more, as behind `| head`: the verb ends, quietly."""


class Render:
    """Writes lines to the streams a verb was given. `json` verbs write one JSON value a line to stdout."""

    def __init__(self, *, out: TextIO | None = None, err: TextIO | None = None, quiet: bool = False) -> None:
        self._out = out or sys.stdout
        self._err = err or sys.stderr
        self.quiet = quiet
        self._within_line = False
        self._answered = False

    def line(self, text: str = "") -> None:
        """An answer: to stdout. A line end within it, as names of files may hold, begins no line of its own."""
        self._write(self._out, indented(text))

    def part(self, text: str) -> None:
        """A piece of an answer that is not whole yet: to stdout, without an end of line. The next line begins anew."""
        if text:
            self._print(self._out, visible(text), end="")
            self._within_line = not text.endswith("\n")

    def end_parts(self) -> None:
        """The pieces of an answer are whole: what follows begins on a line of its own."""
        if self._within_line:
            self._within_line = False
            self._print(self._out, "")

    def note(self, text: str) -> None:
        """Progress and remarks: to stderr, nothing when quiet."""
        if not self.quiet:
            self._write(self._err, indented(text))

    def text(self, text: str) -> None:
        """An answer of several lines, laid out by whoever made it: to stdout."""
        self._write(self._out, text)

    def output(self, stdout: str, stderr: str) -> None:
        """What a program wrote, as text, to the same streams; its stderr not when quiet."""
        if stdout:
            self._write(self._out, stdout.removesuffix("\n"))
        if stderr and not self.quiet:
            self._write(self._err, stderr.removesuffix("\n"))

    def error(self, text: str, remedy: str = "") -> None:
        """A refusal or fault: to stderr, always."""
        self._write(self._err, f"localagent: {indented(text)}")
        if remedy:
            self._write(self._err, f"  what to do: {indented(remedy)}")

    def json(self, value: Mapping[str, Any] | list[Any]) -> None:
        """One JSON value on one line, ASCII only."""
        self._answered = not (isinstance(value, Mapping) and "event" in value)
        self._print(self._out, json.dumps(value, ensure_ascii=True, sort_keys=False))

    def json_fault(self, fault: LocalagentError, kind: str) -> None:
        """In the place of a `json` verb's answer, or after its events; nothing where the answer was given."""
        if not self._answered:
            faults = list(fault.faults) if isinstance(fault, UsageFault) else [str(fault)]
            error = {"kind": kind, "faults": faults, "remedy": fault.remedy}
            self.json({"error": error, "exit": fault.exit_code})

    def patch(self, diff: bytes) -> None:
        """A patch, to stdout: its bytes for a file or program, visible text for a terminal."""
        if self._out.isatty():
            self.text(diff.decode("utf-8", "surrogateescape").removesuffix("\n"))
        else:
            self.raw(diff, b"")

    def raw(self, out: bytes, err: bytes) -> None:
        """A program's bytes, unchanged, to stdout and stderr: only where the user asked for just that."""
        for stream, data in ((self._out, out), (self._err, err)):
            stream.flush()
            if data:
                self._print_bytes(stream, data)

    def _print_bytes(self, stream: TextIO, data: bytes) -> None:
        try:
            stream.buffer.write(data)
            stream.buffer.flush()
        except BrokenPipeError as gone:
            raise self._gone(stream) from gone

    def _write(self, stream: TextIO, text: str) -> None:
        self.end_parts()
        self._print(stream, visible(text))

    @staticmethod
    def _print(stream: TextIO, text: str, end: str = "\n") -> None:
        """ReaderGone the first time a pipe's other end is closed; what is written there afterwards goes nowhere."""
        try:
            print(text, file=stream, flush=True, end=end)
        except BrokenPipeError as gone:
            raise Render._gone(stream) from gone

    @staticmethod
    def _gone(stream: TextIO) -> ReaderGone:
        with contextlib.suppress(OSError, ValueError), open(os.devnull, "wb") as nowhere:  # noqa: PTH123
            os.dup2(nowhere.fileno(), stream.fileno())  # or the flush at exit fails once more
        return ReaderGone("standard output was closed")


def indented(text: str) -> str:
    """The text with what follows its line ends moved in, so that a name with line ends forges no line."""
    return text.replace("\n", "\n    ")
