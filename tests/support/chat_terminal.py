"""`localagent chat` at a pseudo-terminal, talked to from a program."""

import os
import pty
import select
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

SECONDS = 120  # without a word of it


class Terminal:
    """`localagent chat` at a pseudo-terminal."""

    def __init__(self, *words: str, environ: Mapping[str, str] | None = None) -> None:
        self.ours, theirs = pty.openpty()
        self.seen, self._from = "", 0
        self.process = subprocess.Popen(
            [sys.executable, "-m", "localagent", "chat", *words],
            stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
            env={**(os.environ if environ is None else environ), "TERM": "dumb"},
        )  # fmt: skip
        os.close(theirs)

    def until(self, text: str) -> str:
        """What was shown until a text was."""
        while text not in self.seen[self._from :]:
            ready, _, _ = select.select([self.ours], [], [], SECONDS)
            try:
                data = os.read(self.ours, 65536) if ready else b""
            except OSError:
                data = b""
            assert data, f"{text!r} was not shown: {self.seen[self._from :]!r}"
            self.seen += data.decode("utf-8", "replace")
        at = self.seen.index(text, self._from) + len(text)
        found, self._from = self.seen[self._from : at], at
        return found

    def type(self, line: str, answer: str) -> str:
        """A line, and what is shown until a text is."""
        os.write(self.ours, line.encode() + b"\n")
        return self.until(answer)

    def interrupt(self) -> None:
        self.process.send_signal(signal.SIGINT)

    def interrupt_until_end(self) -> int:
        """The exit code. Python's `input` misses a signal that comes just before it waits, so it is sent again."""
        for _ in range(SECONDS):
            self.interrupt()
            try:
                return self.process.wait(1)
            except subprocess.TimeoutExpired:
                continue
        raise AssertionError(f"{SECONDS} interrupts did not end it")


@contextmanager
def chat(*words: str, environ: Mapping[str, str] | None = None) -> Iterator[Terminal]:
    terminal = Terminal(*words, environ=environ)
    try:
        yield terminal
    finally:
        terminal.process.kill()
        terminal.process.wait()
        os.close(terminal.ours)
