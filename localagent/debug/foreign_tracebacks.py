"""Tracebacks that other tools draw, written again as CPython prints them: IPython's, Rich's, Loguru's, Sentry's events.

What each says of files, lines, functions, texts and exceptions is kept; values and lines around are left out. Lines
that belong to none of these stay as they are. Limitations: a path that Rich folded over several lines is not joined.
"""

import re
from collections.abc import Iterable, Iterator, Mapping

_HEADER = "Traceback (most recent call last):"
_RICH_BEGIN = re.compile(r"\s*[╭┌+][─-]{2,} ?Traceback \(most recent call last\) ?[─-]{2,}[╮┐+]\s*$")
_RICH_END = re.compile(r"\s*[╰└+][─-]{2,}[╯┘+]\s*$")
_RICH_FRAME = re.compile(r"(?P<file>\S.{0,400}?):(?P<line>\d{1,9}) in (?P<function>\S.{0,200})$")
_RICH_ARROW = re.compile(r"[❱>] *(?P<line>\d{1,9}) ?(?P<text>.*)$")
_IPYTHON_BEGIN = re.compile(r"(?P<type>[A-Za-z_][\w.]{0,200}) {2,}Traceback \(most recent call last\)\s*$")
_IPYTHON_FRAME = re.compile(r"File (?P<file>\S.{0,400}?):(?P<line>\d{1,9}), in (?P<function>[\w.<>]{1,200})")
_IPYTHON_CELL = re.compile(r"(?:Cell|Input) In ?\[(?P<number>\d{1,9})\](?:, line (?P<line>\d{1,9})|, in .*)$")
_IPYTHON_OLD = re.compile(r"(?P<file>[^\s:]\S{0,400}) in (?P<function>[\w.<>]{1,200})(?:\(.*\))?$")
_IPYTHON_ARROW = re.compile(r"-{2,}> ?(?P<line>\d{1,9}) ?(?P<text>.*)$")
_LOGURU_FRAME = re.compile(r'(?:> )?\s*File ".{1,400}", line \d{1,9}, in ')
_LOGURU_VALUES = re.compile(r"\s*(?:│ *)*└ ")
_BARS = re.compile(r"\s*│[│ ]*$|\s*(?:│ *)+└ |\s*└ ")
_MOST_EVENTS = 200


def as_cpython(lines: Iterable[str]) -> list[str]:
    """The lines with drawn tracebacks written again."""
    given = list(lines)
    if any(map(_LOGURU_VALUES.match, given)) or any(line.startswith('> File "') for line in given):
        given = list(_from_loguru(given))
    return list(_from_boxes(iter(given)))


def _from_loguru(lines: Iterable[str]) -> Iterator[str]:
    """Without blank lines and values between the head of a traceback and its exception."""
    inside = False
    for line in lines:
        if line.rstrip().endswith(_HEADER):
            inside = True
        elif inside:
            if not line.strip() or _BARS.match(line):
                continue
            marked = line.startswith("> ") and _LOGURU_FRAME.match(line) is not None
            yield f"  {line[2:].lstrip()}" if marked else line
            inside = marked or line[:1].isspace()
            continue
        yield line


def _from_boxes(lines: Iterator[str]) -> Iterator[str]:
    for line in lines:
        if _RICH_BEGIN.match(line):
            yield _HEADER
            yield from _from_rich(lines)
        elif begin := _IPYTHON_BEGIN.match(line):
            yield _HEADER
            yield from _from_ipython(lines, begin["type"])
        else:
            yield line


def _from_rich(lines: Iterator[str]) -> Iterator[str]:
    """What stands in one box."""
    open_frame = False
    for line in lines:
        if _RICH_END.match(line):
            return
        text = line.strip().strip("│|").strip()
        if frame := _RICH_FRAME.match(text):
            open_frame = True
            yield _frame(frame["file"], frame["line"], frame["function"])
        elif open_frame and (arrow := _RICH_ARROW.match(text)):
            open_frame = False
            yield f"    {arrow['text'].strip()}"


def _from_ipython(lines: Iterator[str], kind: str) -> Iterator[str]:
    """What follows the head, up to the line that names the exception."""
    file, number, function = "", "", ""
    for line in lines:
        if line.startswith((kind.rsplit(".", 1)[-1], kind)):
            yield line
            return
        if arrow := _IPYTHON_ARROW.match(line):
            if file:
                yield _frame(file, number or arrow["line"], function)
                yield f"    {arrow['text'].strip()}"
            file = ""
        elif frame := _IPYTHON_FRAME.match(line):
            file, number, function = frame["file"], frame["line"], frame["function"].rsplit(".", 1)[-1]
        elif cell := _IPYTHON_CELL.match(line):
            file, number, function = f"<cell {cell['number']}>", cell["line"] or "", "<module>"
        elif not line[:1].isspace() and (old := _IPYTHON_OLD.match(line)):
            file, number, function = old["file"], "", old["function"].rsplit(".", 1)[-1]


def _frame(file: str, line: str, function: str) -> str:
    return f'  File "{file}", line {line}, in {function}'


def event_tracebacks(value: Mapping[str, object]) -> Iterator[str]:
    """The traceback of one exception as Sentry's events keep it: `stacktrace` with its `frames`; else nothing."""
    trace = value.get("stacktrace")
    frames = trace.get("frames") if isinstance(trace, dict) else None
    if not isinstance(frames, list) or not isinstance(value.get("type"), str):
        return
    lines = [_HEADER]
    for frame in frames[:_MOST_EVENTS]:
        if not isinstance(frame, dict):
            continue
        file, line, function = (
            frame.get("abs_path") or frame.get("filename"),
            frame.get("lineno"),
            frame.get("function"),
        )
        if isinstance(file, str) and isinstance(line, int) and "\n" not in file and '"' not in file:
            named = function.split("\n", 1)[0] if isinstance(function, str) and function else "?"
            lines.append(_frame(file, str(line), named))
            if isinstance(text := frame.get("context_line"), str) and text.strip():
                lines.append("    " + text.strip().split("\n", 1)[0])
    message = value.get("value")
    told = f": {message}" if isinstance(message, str) and message else ""
    yield "\n".join([*lines, f"{value['type']}{told}"])
