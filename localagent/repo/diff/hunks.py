"""The hunks of one file of a diff: every line counted, every number checked against the others.

Line numbers of both sides must fit together: where they do not, one tool goes by the old ones and another by the new.
"""

import re

from localagent.domain.diff import DiffFault, DiffRule, Hunk
from localagent.repo.diff.lines import AS_GIT_WRITES, SPLIT_IT, LineReader, malformed, shown

MAX_HUNKS = 20_000
_HUNK = re.compile(rb"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@(?: [^\n]*)?\n?")


def take_hunks(lines: LineReader, left: int) -> tuple[Hunk, ...]:
    """The hunks of one file, from one to `left`; DiffFault for what is none, overlaps or does not add up."""
    found: list[Hunk] = []
    grown = 0
    while not lines.ended and lines.peek().startswith(b"@@"):
        if len(found) >= left:
            raise DiffFault(DiffRule.LIMIT, lines.number, f"more than {MAX_HUNKS:,} hunks", remedy=SPLIT_IT)
        hunk = _hunk(lines)
        if found and hunk.old_start < found[-1].old_start + len(found[-1].old):
            raise DiffFault(DiffRule.MALFORMED, hunk.line, "hunks overlap or are out of order", remedy=AS_GIT_WRITES)
        if hunk.new_start - bool(hunk.new) != hunk.old_start - bool(hunk.old) + grown:
            what = "a hunk's old and new line numbers do not fit together: tools would not agree on its place"
            raise DiffFault(
                DiffRule.MALFORMED, hunk.line, what, remedy="make the patch anew, or mend it with `recountdiff`"
            )
        grown += len(hunk.new) - len(hunk.old)
        found.append(hunk)
    if not found:
        raise malformed(lines, f"expected a hunk (`@@ -a,b +c,d @@`), not {shown(lines.peek())}")
    return tuple(found)


def _hunk(lines: LineReader) -> Hunk:
    first = lines.number
    head = _HUNK.fullmatch(lines.peek())
    if head is None:
        if lines.peek().startswith(b"@@@"):
            raise DiffFault(DiffRule.COMBINED, first, "a combined diff has no one before", remedy=AS_GIT_WRITES)
        raise malformed(lines, f"not the head of a hunk: {shown(lines.peek())}")
    lines.take()
    old_left, new_left = int(head[2] or b"1"), int(head[4] or b"1")
    if int(head[1]) == 0 and old_left:
        raise DiffFault(DiffRule.MALFORMED, first, "a hunk that has lines begins in line 0", remedy=AS_GIT_WRITES)
    old: list[bytes] = []
    new: list[bytes] = []
    signs = bytearray()
    while old_left or new_left:
        if lines.ended:
            raise malformed(lines, f"the hunk of line {first} is cut short: {old_left} old, {new_left} new lines miss")
        line = lines.peek()
        sign = b" " if line == b"\n" else line[:1]  # a blank line of context whose blank was taken off
        text = line if line == b"\n" else line[1:]
        if sign not in (b" ", b"-", b"+"):
            raise malformed(lines, f"not a line of the hunk that begins in line {first}: {shown(line)}")
        old_left, new_left = old_left - (sign != b"+"), new_left - (sign != b"-")
        if old_left < 0 or new_left < 0:
            raise malformed(lines, f"more lines than the head of the hunk in line {first} says")
        lines.take()
        if not lines.ended and lines.peek().startswith(b"\\ "):
            lines.take()
            text = text.removesuffix(b"\n")
        elif not text.endswith(b"\n"):
            raise malformed(lines, "the text ends in the middle of a line")
        signs += sign
        if sign != b"+":
            old.append(text)
        if sign != b"-":
            new.append(text)
    _whole(first, old, new)
    head_same = len(signs) - len(signs.lstrip(b" "))
    tail_same = len(signs) - len(signs.rstrip(b" "))
    if head_same == len(signs):
        raise DiffFault(DiffRule.MALFORMED, first, "a hunk that changes nothing", remedy=AS_GIT_WRITES)
    return Hunk(
        line=first, old_start=int(head[1]), new_start=int(head[3]), old=tuple(old), new=tuple(new),
        head=head_same, tail=tail_same,
    )  # fmt: skip


def _whole(line: int, old: list[bytes], new: list[bytes]) -> None:
    for side in (old, new):
        if any(not text.endswith(b"\n") for text in side[:-1]):
            what = "a line without a newline is followed by another"
            raise DiffFault(DiffRule.MALFORMED, line, what, remedy=AS_GIT_WRITES)
