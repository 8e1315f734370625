"""The lines of a diff, one after the other. Lines end in LF alone; a CR is content."""


class Lines:
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
