"""The lines of a diff, one after the other, and how a fault of one is told. Lines end in LF alone; a CR is content."""

from localagent.domain.diff import DiffFault, DiffRule

AS_GIT_WRITES = "give the output of `git diff` or `diff -u`, unchanged"
SPLIT_IT = "split it into smaller patches"


class LineReader:
    """Where a parser stands in a text. Past the end every line is empty."""

    def __init__(self, data: bytes) -> None:
        self._lines = data.split(b"\n")
        last = self._lines.pop()
        self._lines = [line + b"\n" for line in self._lines] + ([last] if last else [])
        self._at = 0

    @property
    def ended(self) -> bool:
        """Whether no line is left."""
        return self._at >= len(self._lines)

    @property
    def number(self) -> int:
        """The next line's number, from 1."""
        return self._at + 1

    def peek(self, ahead: int = 0) -> bytes:
        """The next line, or one after it, with its LF; empty past the end."""
        at = self._at + ahead
        return self._lines[at] if at < len(self._lines) else b""

    def take(self) -> bytes:
        """The next line, and go past it."""
        line = self.peek()
        self._at += 1
        return line


def malformed(lines: LineReader, what: str, remedy: str = AS_GIT_WRITES) -> DiffFault:
    """The fault that the next line is not what it must be."""
    return DiffFault(DiffRule.MALFORMED, lines.number, what, remedy=remedy)


def shown(line: bytes) -> str:
    """The beginning of a line, for a message."""
    text = line[:60].rstrip(b"\n").decode("utf-8", "backslashreplace")
    return repr(text) if len(line) <= 61 else repr(text) + "..."
