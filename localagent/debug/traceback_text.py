"""From bytes that hold tracebacks to lines that can be read: decoded, bounded, without terminal codes and JSON escapes.

Prefixes of logs are taken off where most lines have one; others are left to the parser, which sees the frames.
"""

import codecs
import html
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from localagent.debug.foreign_tracebacks import as_cpython, event_tracebacks

MAX_BYTES = 8 << 20
HEAD_BYTES = 1 << 20
MAX_LINE = 4_000
_MAX_ESCAPED = 1 << 20
_ANSI = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[@-Z\\-_]")
_NEWLINE = re.compile(r"\r\n|\n|\r")
_ESCAPED_TRACE = re.compile(r'\(most recent call last\):\\+n|\\+n\s{0,40}File \\*"')
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|[\"'\\/ntr])")
_PLAIN = {"n": "\n", "t": "\t", "r": "\n"}
_PREFIXES = tuple(
    re.compile(pattern)
    for pattern in (
        r"[\w.-]{1,60}\s{1,20}\| ",  # docker compose
        r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)? (?:std(?:out|err) [FP] )?",  # CI, containers
        r"[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d [\w.-]{1,80} (?=[\w./@-]{1,80}(?:\[\d+\])?: )",  # the system's journal
        r"\[?\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:[.,]\d+)?\]? ",
        r"\[\d\d:\d\d:\d\d(?:\.\d+)?\] ",
        r"> ",
    )
)
_MOST_SHARE = 0.6


@dataclass(frozen=True, kw_only=True, slots=True)
class TraceText:
    """Lines fit to be parsed. `cut`: the text was longer than what is read."""

    lines: tuple[str, ...]
    cut: bool = False


def readable(data: bytes) -> TraceText:
    """Lines of at most `MAX_LINE` characters; of a longer text its first MiB and its last seven."""
    cut = len(data) > MAX_BYTES
    if cut:
        data = data[:HEAD_BYTES] + b"\n...\n" + data[HEAD_BYTES - MAX_BYTES :]
    text = _ANSI.sub("", _decoded(data))
    if "File &quot;" in text:
        text = html.unescape(text)
    if text.lstrip()[:1] in ("{", "[") and '"stacktrace"' in text and len(text) <= _MAX_ESCAPED:
        text = "\n".join(_json_texts(text)) or text  # an event over several lines
    lines = [line[:MAX_LINE] for raw in _NEWLINE.split(text) for line in _unescaped(raw)]
    return TraceText(lines=tuple(as_cpython(_without_prefixes(lines))), cut=cut)


def _decoded(data: bytes) -> str:
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return data.decode("utf-16", "replace")
    return data.decode("utf-8-sig", "replace").replace("\0", "")


def _unescaped(line: str) -> list[str]:
    """The lines that one line of a log holds where newlines are written as escapes, else the line."""
    if len(line) > _MAX_ESCAPED or not (_ESCAPED_TRACE.search(line) or '"stacktrace"' in line):
        return [line]
    record = line[line.find("{") :] if "{" in line[:200] else ""
    if record and (texts := list(_json_texts(record))):
        return [part for text in texts for part in _NEWLINE.split(text)]
    for _ in range(4):  # a record in a record in a record
        if not _ESCAPED_TRACE.search(line):
            break
        line = _ESCAPE.sub(lambda m: _character(m[1]), line)
    return _NEWLINE.split(line)


def _character(escape: str) -> str:
    return chr(int(escape[1:], 16)) if len(escape) == 5 else _PLAIN.get(escape, escape)


def _json_texts(record: str) -> Iterator[str]:
    """Strings of a JSON record that look like tracebacks; nothing where it is none."""
    try:
        waiting = [json.loads(record)]
    except (ValueError, RecursionError):
        return
    seen = 0
    while waiting and seen < 10_000:
        seen += 1
        value = waiting.pop(0)
        if isinstance(value, dict):
            yield from event_tracebacks(value)
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value
        elif isinstance(value, str) and ("(most recent call last)" in value or 'File "' in value):
            if _ESCAPED_TRACE.search(value):
                yield from _unescaped(value)
            else:
                yield value


def _without_prefixes(lines: list[str]) -> list[str]:
    """Lines without what most of them begin with, up to three kinds of it, one after the other."""
    for _ in range(3):
        filled = sum(1 for line in lines if line.strip())
        best = max(_PREFIXES, key=lambda p: sum(1 for line in lines if p.match(line)))
        having = sum(1 for line in lines if best.match(line))
        if having < 2 or having < _MOST_SHARE * filled:
            break
        lines = [line[m.end() :] if (m := best.match(line)) else line for line in lines]
    return lines
