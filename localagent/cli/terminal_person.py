"""Who sits at the terminal, asked on standard error and answering on standard input."""

import sys

from localagent.cli.render import Render

_MOST_LINES = 4_000  # more than a patch that the gates let through has


class TerminalPerson:
    """`Person` at a terminal. The end of the input is a no."""

    def __init__(self, render: Render) -> None:
        self._render = render

    @property
    def present(self) -> bool:
        """Somebody is there."""
        return True

    def approves(self, what: str, detail: str) -> bool:
        """Yes or no; anything but a clear yes is a no."""
        lines = detail.splitlines()
        for line in lines[:_MOST_LINES]:
            self._render.note(f"  {line}")
        if len(lines) > _MOST_LINES:
            self._render.note(f"  [{len(lines) - _MOST_LINES} more lines]")
        self._render.note(f"Allow {what}? [y/N]")
        return sys.stdin.readline().strip().lower() in ("y", "yes")

    def answer(self, question: str) -> str:
        """Their words, one line."""
        self._render.note(f"The model asks: {question}")
        return sys.stdin.readline().strip()[:4000]
