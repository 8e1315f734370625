"""A patch as two columns, old and new, in HTML. Reads the text of a unified diff strictly; never the files themselves.

A diff that cannot be read, or that is longer than anybody reads on a page, is told as such and not half shown.
"""

import difflib
from collections.abc import Iterator, Sequence

from localagent.daemon.ui.html import code, said
from localagent.domain.diff import DiffFault, FileDiff, Hunk
from localagent.repo.diff.parse_diff import parse_diff

MOST_BYTES = 256 << 10
_MOST_ROWS = 3_000
_MOST_ALIGNED = 300  # lines of a hunk's middle on both sides together; more are put side by side as they come
_COLUMNS = '<colgroup><col class="k"><col><col class="k"><col></colgroup>'
Pair = tuple[int | None, int | None]


def side_by_side(text: str) -> Iterator[str]:
    """The diff, file by file."""
    data = text.encode("utf-8", "surrogateescape")
    if len(data) > MOST_BYTES:
        yield f'<p class="soft">The patch has {len(data):,} bytes, too many for a page.</p>'
        return
    try:
        files = parse_diff(data).files
    except DiffFault as fault:
        yield f'<p class="soft">The patch cannot be shown side by side: {said(fault)}</p>'
        return
    left = _MOST_ROWS
    for file in files:
        rows = list(_rows(file, left))
        left -= len(rows)
        moved = f" (was {said(file.old)})" if file.old != file.new else ""
        yield f'<h3>{said(file.new)}{moved} <span class="soft">{said(file.kind.value)}</span></h3>'
        yield f'<div class="card"><table class="diff">{_COLUMNS}' + "\n".join(rows) + "</table></div>"
        if left <= 0:
            yield f'<p class="soft">Cut here, after {_MOST_ROWS:,} lines.</p>'
            return


def _rows(file: FileDiff, most: int) -> Iterator[str]:
    if file.binary:
        yield '<tr class="gap"><td colspan="4">binary content</td></tr>'
    made = 0
    for hunk in file.hunks:
        yield f'<tr class="gap"><td colspan="4">line {hunk.old_start}</td></tr>'
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


def _row(hunk: Hunk, old: int | None, new: int | None) -> str:
    before = hunk.old[old] if old is not None else None
    after = hunk.new[new] if new is not None else None
    same = before == after
    left, right = ("", "") if same else ("cut", "add")
    cells = _cells(hunk.old_start, old, before, left, _inner(before, after, "del"))
    return "<tr>" + cells + _cells(hunk.new_start, new, after, right, _inner(after, before, "ins")) + "</tr>"


def _cells(start: int, at: int | None, line: bytes | None, kind: str, text: str) -> str:
    if line is None or at is None:
        return '<td class="k none"></td><td class="none"></td>'
    return f'<td class="k">{start + at}</td><td class="{kind}">{text}</td>'


def _inner(line: bytes | None, other: bytes | None, tag: str) -> str:
    """The line, with what the other side has not marked: between the common beginning and the common end."""
    if line is None:
        return ""
    if other is None or line == other:
        return code(line)
    a, b = line.removesuffix(b"\n"), other.removesuffix(b"\n")
    head = 0
    while head < min(len(a), len(b)) and a[head] == b[head]:
        head += 1
    tail = 0
    while tail < min(len(a), len(b)) - head and a[-1 - tail] == b[-1 - tail]:
        tail += 1
    middle = a[head : len(a) - tail]
    if not middle or max(a, default=0) > 126 or b"\t" in a or len(a) > 400 or 2 * len(middle) > len(a) + 8:
        return code(line)  # never through the middle of a character, and not where nearly all is new
    return f"{code(a[:head])}<{tag}>{code(middle)}</{tag}>{code(a[len(a) - tail :]) if tail else ''}"
