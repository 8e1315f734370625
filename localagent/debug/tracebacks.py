"""Tracebacks out of whatever people paste: CPython's own, chained, grouped, cut off, prefixed by logs; pytest's forms.

Tolerant and bounded: any bytes give an answer, in time linear in them. What is not understood is left out, and an
exception whose end is missing says so (`complete`). Law, tested: what `traceback` writes is read back frame for frame.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from localagent.debug.pytest_output import PytestReader, is_pytest_line
from localagent.debug.traceback_text import readable
from localagent.domain.traceback import ChainLink, Traceback, TracedException, TraceFrame

MAX_TRACEBACKS = 200
MAX_FRAMES = 1_000
MAX_EXCEPTIONS = 500
MAX_MESSAGE_LINES = 40
MAX_INTERLEAVED = 40

_HEADER = re.compile(
    r"(?:Exception Group )?Traceback \(most recent call last\):|Stack(?: for .{1,400}?)? \(most recent call last\):"
)
_REVERSED = re.compile(r"(?:(?:Current )?[Tt]hread 0x[0-9a-f]+.{0,80}|Stack) \(most recent call first\):")
_FRAME = re.compile(r'File "(?P<file>.+?)"(?:, line (?P<line>\d{1,9}))?(?:,? in (?P<function>.{1,500}))?\s*$')
_NUMBERED = re.compile(r"\s*(\d{1,9})\. (.*)")  # as Django shows a line
_REPEATED = re.compile(r"\[Previous line repeated (\d{1,9}) more times?\]")
_MARKS = re.compile(r"[\s^~]+")
_CONTEXT = "During handling of the above exception, another exception occurred:"
_CAUSE = "The above exception was the direct cause of the following exception:"
_SEPARATOR = re.compile(r"\+(?:-\+)?-{4,} (?:\d{1,6}|\.\.\.) -{4,}")
_EXCEPTION = re.compile(r"(?P<type>[A-Za-z_][\w.]*(?:\.?<locals>\.[\w.<>]+)?)(?::(?: (?P<message>.*))?)?$")
_LIKE_AN_EXCEPTION = re.compile(
    r"(?:\w*[a-z]\w*)?(?:Error|Exception|Warning|Exit|Interrupt|Iteration|Group|Fault|Failure)$"
)
_LEVELS = frozenset({"INFO", "DEBUG", "WARNING", "ERROR", "CRITICAL", "FATAL", "NOTICE", "WARN", "TRACE"})
_DJANGO_TYPE = re.compile(r"Exception Type: ([\w.]+)")
_DJANGO_VALUE = re.compile(r"Exception Value: (.*)")
_RECORD = re.compile(
    r"[\[(]?\d{4}-\d\d-\d\d|\[?\d\d:\d\d:\d\d|(?:INFO|DEBUG|WARNING|ERROR|CRITICAL|FATAL)\b|[-=_+]{5,}|[\"'}\]]"
    r"|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d|\[(?:INFO|DEBUG|WARN|ERROR)|FAILED |PASSED |Process finished|level="
)


def parse_tracebacks(data: bytes) -> tuple[Traceback, ...]:
    """Every traceback of a text, in its order; () where there is none."""
    return _Parser(readable(data).lines).parsed()


class _Parser:
    """One pass over the lines; each method that reads a block returns the line after it."""

    def __init__(self, lines: Sequence[str]) -> None:
        self._lines = lines
        self._found: list[Traceback] = []
        self._pending = ChainLink.FIRST
        self._group_column = 0
        self._pytest = PytestReader(self._add_whole)

    def parsed(self) -> tuple[Traceback, ...]:
        at = 0
        while at < len(self._lines) and len(self._found) < MAX_TRACEBACKS:
            at = self._step(at)
        self._pytest.finish()
        return tuple(self._found) or self._pytest.summaries()

    def _step(self, at: int) -> int:
        line = self._lines[at]
        if header := _HEADER.search(line):
            return self._block(at + 1, line[: header.start()])
        if _REVERSED.search(line):
            return self._block(at + 1, "", innermost_first=True)
        if _CONTEXT in line or _CAUSE in line:
            link = ChainLink.CONTEXT if _CONTEXT in line else ChainLink.CAUSE
            if not self._pytest.chained(link):
                self._pending = link
            return at + 1
        if _SEPARATOR.search(line):
            return self._bare_member(at + 1)
        if self._pytest.feed(line):
            return at + 1
        if _frame(line) is not None:
            return self._block(at, None)
        return at + 1

    def _block(self, at: int, prefix: str | None, *, innermost_first: bool = False) -> int:
        """Frames and the exception below a header; without one (`prefix` None) from a frame on."""
        reader = _Margin.of(self._lines, at, prefix)
        if prefix is None or prefix.endswith("+ "):
            self._group_column = reader.column
        frames: list[TraceFrame] = []
        skipped = 0
        while at < len(self._lines):
            line = self._lines[at]
            text = reader.inside(line)
            if text is None:
                skipped += 1
                if skipped > MAX_INTERLEAVED or _SEPARATOR.search(line) or _HEADER.search(line):
                    break
                at += 1
                continue
            if (found := _frame(text)) is not None:
                frame, at = self._with_source(found, at + 1, reader)
                frames.append(frame)
                if len(frames) > MAX_FRAMES:
                    del frames[MAX_FRAMES // 2]
                continue
            if repeated := _REPEATED.search(text):
                frames[-1:] = [replace(f, repeated=int(repeated[1])) for f in frames[-1:]]
            elif not text.startswith(" ") or not text.strip():
                break
            at += 1
        if innermost_first:
            frames.reverse()
        kind, message, after = self._exception(at, reader)
        if not frames and not kind:
            return after
        self._add(
            TracedException(
                type=kind,
                message=message,
                frames=tuple(frames),
                depth=reader.depth(self._group_column),
                complete=bool(kind) and prefix is not None,
            )
        )
        return after

    def _with_source(self, frame: TraceFrame, at: int, reader: "_Margin") -> tuple[TraceFrame, int]:
        """The frame with the text of its line, and the line after what belongs to it."""
        source = ""
        skipped = 0
        while at < len(self._lines):
            text = reader.inside(self._lines[at])
            if text is None:
                skipped += 1
                if skipped > MAX_INTERLEAVED or _SEPARATOR.search(self._lines[at]) or _HEADER.search(self._lines[at]):
                    break
                at += 1
                continue
            numbered = _NUMBERED.match(text) if not frame.line else None
            if numbered:
                frame, text = replace(frame, line=int(numbered[1])), "    " + numbered[2].strip()
            if not text.startswith("   ") or not text.strip() or _frame(text) is not None:
                break
            if not source and not _MARKS.fullmatch(text):
                source = text.strip()
            at += 1
        return replace(frame, source=source[:1_000]), at

    def _exception(self, at: int, reader: "_Margin") -> tuple[str, str, int]:
        """Type and message of the exception at a line, and the line after them; "" for the type where none is there."""
        text = reader.inside(self._lines[at]) if at < len(self._lines) else None
        if text is None:
            return "", "", at
        if not text.strip():
            return self._django(at)
        split = exception_line(text)
        if split is None:
            return "", "", at
        kind, message = split
        parts = [message]
        at += 1
        while at < len(self._lines) and len(parts) < MAX_MESSAGE_LINES:
            line = self._lines[at]
            more = reader.inside(line)
            if more is None or not more.strip() or _ends_message(more) or _ends_message(line):
                break
            parts.append(more)
            at += 1
        return kind, "\n".join(parts).rstrip()[:4_000], at

    def _django(self, at: int) -> tuple[str, str, int]:
        """`Exception Type:` and `Exception Value:` some lines on, as Django's debug page has them."""
        for ahead in range(at, min(at + 4, len(self._lines))):
            if found := _DJANGO_TYPE.search(self._lines[ahead]):
                value = _DJANGO_VALUE.search(self._lines[ahead + 1]) if ahead + 1 < len(self._lines) else None
                return found[1], value[1] if value else "", ahead + (2 if value else 1)
        return "", "", at

    def _bare_member(self, at: int) -> int:
        """A member of a group that has no frames of its own: only its line."""
        if at < len(self._lines):
            margin, bar, text = self._lines[at].rpartition("| ") if "| " in self._lines[at][:200] else ("", "", "")
            split = exception_line(text) if bar and not _HEADER.search(self._lines[at]) else None
            if split is not None:
                depth = max(1, (len(margin) - self._group_column) // 2)
                self._add(TracedException(type=split[0], message=split[1], depth=depth))
                return at + 1
        return at

    def _add(self, found: TracedException) -> None:
        """To the chain before it where it hangs together with it, else as a traceback of its own."""
        link, self._pending = self._pending, ChainLink.FIRST
        if found.depth and link is ChainLink.FIRST:
            link = ChainLink.MEMBER
        if link is ChainLink.FIRST or not self._found or len(self._found[-1].exceptions) >= MAX_EXCEPTIONS:
            self._found.append(Traceback(exceptions=(found,), title=self._pytest.title))
        else:
            last = self._found[-1]
            self._found[-1] = replace(last, exceptions=(*last.exceptions, replace(found, link=link)))

    def _add_whole(self, found: Traceback) -> None:
        if len(self._found) < MAX_TRACEBACKS:
            self._found.append(found)


def _frame(text: str) -> TraceFrame | None:
    found = _FRAME.search(text)
    if found is None or (found["line"] is None and found["function"] is None):
        return None
    return TraceFrame(
        file=found["file"][:2_000], line=int(found["line"] or 0), function=(found["function"] or "").strip()
    )


def exception_line(text: str) -> tuple[str, str] | None:
    """Type and message of a line such as `KeyError: 'name'`; None for any other."""
    found = _EXCEPTION.match(text.rstrip())
    if found is None or found["type"] in _LEVELS:
        return None
    kind = found["type"]
    bare = kind.rsplit(".", 1)[-1]
    if found["message"] is None and ":" not in text and not _LIKE_AN_EXCEPTION.search(bare) and "." not in kind:
        return None
    if not bare[:1].isupper() and not _LIKE_AN_EXCEPTION.search(bare) and "." not in kind:
        return None
    return kind, found["message"] or ""


def _ends_message(text: str) -> bool:
    """Whether a line cannot belong to the message above it."""
    return bool(
        _HEADER.search(text)
        or _SEPARATOR.search(text)
        or _RECORD.match(text)
        or text.lstrip().startswith('File "')
        or _CONTEXT in text
        or _CAUSE in text
        or is_pytest_line(text)
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class _Margin:
    """What stands in front of every line of a block: spaces, the bars of a group, or the prefix of a log."""

    inside: Callable[[str], str | None]
    text: str
    grouped: bool

    @classmethod
    def of(cls, lines: Sequence[str], at: int, prefix: str | None) -> "_Margin":
        """From the first frame below a header; from the header itself where there is none."""
        text = prefix or ""
        for line in lines[at : at + 4]:
            found = _FRAME.search(line)
            if found is not None:
                before = line[: found.start()]
                text = before[:-2] if before.endswith("  ") else before
                break
        grouped = text.rstrip().endswith("|")
        if not text.strip():
            return cls(inside=_indented(len(text)), text=text, grouped=False)
        return cls(inside=_prefixed(text), text=text, grouped=grouped)

    def depth(self, group_column: int) -> int:
        """How many exception groups are around a block with this margin."""
        if not self.grouped:
            return 0
        return max(0, (self.column - group_column) // 2)

    @property
    def column(self) -> int:
        """Where the bar of a group stands."""
        return self.text.rstrip().rfind("|")


def _indented(columns: int) -> Callable[[str], str | None]:
    def inside(line: str) -> str | None:
        return line[columns:] if not line[:columns].strip() else line.lstrip()

    return inside


def _prefixed(margin: str) -> Callable[[str], str | None]:
    """Margins are alike whose digits differ, but for those of a process (`app[123]:`)."""
    pattern = r"\d+".join(re.escape(part) for part in _between_digits(margin[:400]))
    alike = re.compile(pattern)
    bare = re.compile(pattern.rstrip("\\ ") + r"\s*$")  # an empty line of a log keeps no blanks

    def inside(line: str) -> str | None:
        found = alike.match(line)
        if found is not None:
            return line[found.end() :]
        return "" if bare.match(line) else None

    return inside


def _between_digits(margin: str) -> list[str]:
    """The pieces of a margin between runs of digits that may differ."""
    out = [""]
    at = 0
    for found in re.finditer(r"\[\d+\]:|\d+", margin):
        out[-1] += margin[at : found.start()]
        if found[0].startswith("["):
            out[-1] += found[0]
        else:
            out.append("")
        at = found.end()
    out[-1] += margin[at:]
    return out
