"""Source bytes, the UTF-8 view that the parsers see with an exact way back, and the syntax tree.

Not promised: stateful codecs and sources that do not survive decoding and encoding again are refused (None).
"""

import ast
import codecs
import io
import re
import tokenize
import warnings
from bisect import bisect_right
from dataclasses import dataclass

_STATEFUL = ("utf-7", "utf-16", "utf-32", "iso2022", "hz")  # what bytes mean there depends on those in front
_NEWLINE = re.compile(rb"\r\n|\r|\n")


def parse_or_none(source: str | bytes) -> ast.Module | None:
    """The syntax tree; None for anything Python does not take, or what nests too deeply for its parser."""
    tree = parse_or_reason(source)
    return None if isinstance(tree, str) else tree


def parse_or_reason(source: str | bytes) -> ast.Module | str:
    """The syntax tree, or why there is none, without anything that the source says."""
    try:
        with warnings.catch_warnings(action="ignore"):
            return ast.parse(source)
    except SyntaxError as error:
        return f"syntax error in line {error.lineno}" if error.lineno else "syntax error"
    except ValueError:
        return "null bytes, or bytes that its encoding does not have"
    except (RecursionError, MemoryError):
        return "nested too deeply"


def line_starts(source: bytes) -> tuple[int, ...]:
    """Where each line begins; where a source ends with a line end, so does one that is empty."""
    return (0, *(m.end() for m in _NEWLINE.finditer(source)))


@dataclass(frozen=True, kw_only=True, slots=True)
class SourceText:
    """One file's bytes (`raw`), its UTF-8 form without a byte order mark (`utf8`), and the byte offset of each line."""

    raw: bytes
    utf8: bytes
    encoding: str
    mark_bytes: int
    line_starts: tuple[int, ...]
    newline: str

    def raw_offset(self, offset: int) -> int:
        """Offset in `raw` of an offset in `utf8`."""
        if self.encoding == "utf-8":
            return offset + self.mark_bytes
        return self.mark_bytes + len(self.utf8[:offset].decode("utf-8").encode(self.encoding))

    def raw_text(self, text: str) -> bytes | None:
        """`text` in the file's encoding, or None if that encoding cannot say it."""
        try:
            return text.encode(self.encoding)
        except UnicodeEncodeError:
            return None

    def offset(self, line: int, column: int) -> int:
        """UTF-8 offset of a 1-based line and a 0-based byte column."""
        return self.line_starts[line - 1] + column

    def line_of(self, offset: int) -> int:
        """1-based line that holds a UTF-8 offset."""
        return bisect_right(self.line_starts, offset)


def read_source(raw: bytes) -> SourceText | None:
    """Decode a file the way Python does; None if it cannot be decoded, or not back to the same bytes."""
    try:
        name, _ = tokenize.detect_encoding(io.BytesIO(raw).readline)
        mark = 3 if raw.startswith(codecs.BOM_UTF8) else 0
        encoding = "utf-8" if name == "utf-8-sig" else codecs.lookup(name).name
        if encoding.startswith(_STATEFUL):
            return None
        text = raw[mark:].decode(encoding)
        if text.encode(encoding) != raw[mark:]:
            return None
        utf8 = text.encode("utf-8")
    except (SyntaxError, LookupError, UnicodeError, ValueError):
        return None
    first = _NEWLINE.search(utf8)
    newline = first.group().decode() if first else "\n"
    return SourceText(
        raw=raw, utf8=utf8, encoding=encoding, mark_bytes=mark, line_starts=line_starts(utf8), newline=newline
    )
