"""A patch as two columns, old and new. Reads the text of a unified diff strictly; never the files themselves.

A diff that cannot be read, or that is longer than anybody reads on a page, is told as such and not half shown.
"""

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from localagent.domain.diff import DiffFault, FileDiff, Hunk
from localagent.repo.diff.parse_diff import parse_diff

MOST_BYTES = 256 << 10
_MOST_ROWS = 3_000
_MOST_CHARACTERS = 400  # of a line
_MOST_ALIGNED = 300  # lines of a hunk's middle on both sides together; more are put side by side as they come
Pair = tuple[int | None, int | None]


@dataclass(frozen=True, kw_only=True, slots=True)
class DiffCell:
    """A line of one side. `marked` is what the other side has not, between its head and its tail."""

    line: int
    kind: str
    head: str
    marked: str = ""
    tail: str = ""


Row = str | tuple[DiffCell | None, DiffCell | None]  # a text goes over both columns


@dataclass(frozen=True, kw_only=True, slots=True)
class FileRows:
    """The rows of one file."""

    old: str
    new: str
    kind: str
    rows: Sequence[Row]


@dataclass(frozen=True, kw_only=True, slots=True)
class DiffView:
    """What is shown of a diff. `note` is why nothing is, `cut_after` the number of rows that were too many."""

    note: str = ""
    files: Sequence[FileRows] = ()
    cut_after: int = 0


def side_by_side(text: str) -> DiffView:
    """The diff, file by file."""
    data = text.encode("utf-8", "surrogateescape")
    if len(data) > MOST_BYTES:
        return DiffView(note=f"The patch has {len(data):,} bytes, too many for a page.")
    try:
        files = parse_diff(data).files
    except DiffFault as fault:
        return DiffView(note=f"The patch cannot be shown side by side: {fault}")
    left = _MOST_ROWS
    shown = []
    for file in files:
        rows = list(_rows(file, left))
        left -= len(rows)
        shown.append(FileRows(old=str(file.old), new=str(file.new), kind=file.kind.value, rows=rows))
        if left <= 0:
            return DiffView(files=shown, cut_after=_MOST_ROWS)
    return DiffView(files=shown)


def _rows(file: FileDiff, most: int) -> Iterator[Row]:
    if file.binary:
        yield "binary content"
    made = 0
    for hunk in file.hunks:
        yield f"line {hunk.old_start}"
        for old, new in pairs(hunk):
            if made >= most:
                return
            made += 1
            yield _row(hunk, old, new)


def pairs(hunk: Hunk) -> Iterator[Pair]:
    """Indices into the hunk's old and new lines that stand beside each other; None where one side has nothing.

    Every line of either side comes once and in order.
    """
    for n in range(hunk.head):
        yield n, n
    old_end, new_end = len(hunk.old) - hunk.tail, len(hunk.new) - hunk.tail
    for a, b, c, d in _blocks(hunk.old[hunk.head : old_end], hunk.new[hunk.head : new_end]):
        for n in range(max(b - a, d - c)):
            yield (
                hunk.head + a + n if n < b - a else None,
                hunk.head + c + n if n < d - c else None,
            )
    for n in range(hunk.tail):
        yield old_end + n, new_end + n


def _blocks(old: Sequence[bytes], new: Sequence[bytes]) -> Iterator[tuple[int, int, int, int]]:
    if len(old) + len(new) > _MOST_ALIGNED:
        yield 0, len(old), 0, len(new)
        return
    for _, a, b, c, d in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        yield a, b, c, d


def _row(hunk: Hunk, old: int | None, new: int | None) -> Row:
    before = hunk.old[old] if old is not None else None
    after = hunk.new[new] if new is not None else None
    left, right = ("", "") if before == after else ("cut", "add")
    return _cell(hunk.old_start, old, before, after, left), _cell(hunk.new_start, new, after, before, right)


def _cell(start: int, at: int | None, line: bytes | None, other: bytes | None, kind: str) -> DiffCell | None:
    """The line, with what the other side has not marked: between the common beginning and the common end."""
    if line is None or at is None:
        return None
    whole = DiffCell(line=start + at, kind=kind, head=_text(line))
    if other is None or line == other:
        return whole
    a, b = line.removesuffix(b"\n"), other.removesuffix(b"\n")
    head = 0
    while head < min(len(a), len(b)) and a[head] == b[head]:
        head += 1
    tail = 0
    while tail < min(len(a), len(b)) - head and a[-1 - tail] == b[-1 - tail]:
        tail += 1
    middle, end = a[head : len(a) - tail], len(a) - tail
    if not middle or max(a, default=0) > 126 or b"\t" in a or len(a) > 400 or 2 * len(middle) > len(a) + 8:
        return whole  # never through the middle of a character, and not where nearly all is new
    return DiffCell(line=start + at, kind=kind, head=_text(a[:head]), marked=_text(middle), tail=_text(a[end:]))


def _text(line: bytes) -> str:
    """A line of source without its end; tabs as blanks, so that both sides of a diff stay in line."""
    text = line.decode("utf-8", "surrogateescape").removesuffix("\n")
    return text[:_MOST_CHARACTERS].expandtabs(4) + ("…" if len(text) > _MOST_CHARACTERS else "")
