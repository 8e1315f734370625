"""Lines that a person types at the terminal, edited and remembered by readline. The file is theirs alone (0600)."""

import readline
from pathlib import Path

from localagent.fs.atomic_files import read_bounded, write_private
from localagent.text.visible_text import one_line

_MOST_LINES = 1000
_MOST_BYTES = 4 << 20
_MOST_LINE = 2000


class LineHistory:
    """Reads instructions of one or several lines; each physical line is remembered."""

    def __init__(self, path: Path) -> None:
        self._path = path
        readline.set_auto_history(False)
        readline.clear_history()
        try:
            lines = read_bounded(path, _MOST_BYTES).decode("utf-8", "replace").splitlines()
        except FileNotFoundError:
            lines = []
        for line in lines[-_MOST_LINES:]:
            readline.add_history(one_line(line, _MOST_LINE))

    def read(self, prompt: str) -> str | None:
        """What is typed, joined over lines that end in a backslash; None at the end of the input."""
        try:
            lines = [input(prompt)]
            while lines[-1].endswith("\\"):
                lines[-1] = lines[-1][:-1]
                lines.append(input("... "))
        except EOFError:
            return None
        self._remember([part for line in lines for part in line.splitlines() if part.strip()])
        return "\n".join(lines)

    def _remember(self, lines: list[str]) -> None:
        if not lines:
            return
        for line in lines:
            readline.add_history(one_line(line, _MOST_LINE))
        last = readline.get_current_history_length()
        kept = [readline.get_history_item(n) for n in range(max(1, last - _MOST_LINES + 1), last + 1)]
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_private(self._path, "".join(f"{line}\n" for line in kept).encode("utf-8", "replace"))
