"""A patch as a unified diff that `git apply` takes: names quoted as git quotes them, every byte of the lines kept.

A rendering only: what is applied by us is the patch, never this text. Not promised: the smallest diff.
"""

import difflib
import itertools
from collections.abc import Iterator, Sequence

from localagent.domain.edit import FileChange, FileFate, Patch, Splice

_CONTEXT = 3
_MAX_MATCHED_LINES = 4_000
_ESCAPES = {7: "\\a", 8: "\\b", 9: "\\t", 10: "\\n", 11: "\\v", 12: "\\f", 13: "\\r", 34: '\\"', 92: "\\\\"}

_Block = tuple[str, int, int, int, int]


def unified_diff(patch: Patch) -> bytes:
    """The diff of every change, in the patch's order; empty for a patch that changes nothing."""
    return b"".join(_file_diff(c) for c in patch.changes if c.is_change)


def _file_diff(change: FileChange) -> bytes:
    old, new = quoted_name("a/" + change.path), quoted_name("b/" + change.path)
    tab = b"\t" if " " in change.path else b""  # ends a name with blanks, as git writes it
    out = [b"diff --git " + old + b" " + new + b"\n"]
    if change.fate is FileFate.CREATED:
        out += [b"new file mode 100644\n"]
        old = b"/dev/null"
    elif change.fate is FileFate.DELETED:
        out += [b"deleted file mode 100644\n"]
        new = b"/dev/null"
    if change.before or change.after:
        out += [b"--- " + _named(old, tab), b"+++ " + _named(new, tab)]
    before, after = lines_of(change.before), lines_of(change.after)
    for hunk in _hunks(line_blocks(before, after)):
        out += _hunk_text(hunk, before, after)
    return b"".join(out)


def _named(name: bytes, tab: bytes) -> bytes:
    return name + (tab if name != b"/dev/null" else b"") + b"\n"


def quoted_name(name: str) -> bytes:
    """A name as git writes it: in C style between quotes if any byte is special or not ASCII."""
    data = name.encode("utf-8", "surrogateescape")
    if all(32 <= b < 127 and b not in _ESCAPES for b in data):
        return data
    text = "".join(_ESCAPES.get(b) or (chr(b) if 32 <= b < 127 else f"\\{b:03o}") for b in data)
    return f'"{text}"'.encode()


def lines_of(data: bytes) -> list[bytes]:
    """Lines as diff knows them: ended by LF alone; a CR is content."""
    lines = data.split(b"\n")
    return [x + b"\n" for x in lines[:-1]] + ([lines[-1]] if lines[-1] else [])


def line_blocks(before: Sequence[bytes], after: Sequence[bytes]) -> list[_Block]:
    """Equal and differing blocks: tag, lines [i1, i2) before, lines [j1, j2) after.

    The common head and tail are taken off first, which is nearly all of a repair.
    """
    head = 0
    while head < min(len(before), len(after)) and before[head] == after[head]:
        head += 1
    tail = 0
    while tail < min(len(before), len(after)) - head and before[-1 - tail] == after[-1 - tail]:
        tail += 1
    a_end, b_end = len(before) - tail, len(after) - tail
    middle_a, middle_b = before[head:a_end], after[head:b_end]
    if len(middle_a) + len(middle_b) > _MAX_MATCHED_LINES or not middle_a or not middle_b:
        inner: list[_Block] = [("replace", 0, len(middle_a), 0, len(middle_b))]
    else:
        inner = list(difflib.SequenceMatcher(None, middle_a, middle_b, autojunk=False).get_opcodes())
    moved = [(tag, i1 + head, i2 + head, j1 + head, j2 + head) for tag, i1, i2, j1, j2 in inner]
    ends: list[_Block] = [("equal", 0, head, 0, head), *moved, ("equal", a_end, len(before), b_end, len(after))]
    return [x for x in ends if x[1] < x[2] or x[3] < x[4]]


def line_splices(before: bytes, after: bytes) -> tuple[Splice, ...]:
    """What turns one text into the other: whole lines, one splice for each hunk of the diff."""
    old, new = lines_of(before), lines_of(after)
    starts = [0, *itertools.accumulate(map(len, old))]
    found = []
    for hunk in _hunks(line_blocks(old, new)):
        differing = [block for block in hunk if block[0] != "equal"]
        (_, first, _, put, _), (_, _, last, _, end) = differing[0], differing[-1]
        found.append(Splice(start=starts[first], end=starts[last], text=b"".join(new[put:end])))
    return tuple(found)


def _hunks(blocks: list[_Block]) -> Iterator[list[_Block]]:
    """Blocks in groups with up to three equal lines around each."""
    group: list[_Block] = []
    for n, (tag, i1, i2, j1, j2) in enumerate(blocks):
        if tag != "equal":
            group.append((tag, i1, i2, j1, j2))
            continue
        last = n == len(blocks) - 1
        if group and (last or i2 - i1 > 2 * _CONTEXT):
            keep = min(_CONTEXT, i2 - i1)
            yield [*group, (tag, i1, i1 + keep, j1, j1 + keep)]
            group = []
        if not last:
            keep = min(_CONTEXT, i2 - i1) if not group else i2 - i1
            group.append((tag, i2 - keep, i2, j2 - keep, j2))
    if group:
        yield group


def _hunk_text(hunk: list[_Block], before: Sequence[bytes], after: Sequence[bytes]) -> Iterator[bytes]:
    a = _range(hunk[0][1], hunk[-1][2])
    b = _range(hunk[0][3], hunk[-1][4])
    yield f"@@ -{a} +{b} @@\n".encode()
    for tag, i1, i2, j1, j2 in hunk:
        if tag == "equal":
            yield from (_line(b" ", x) for x in before[i1:i2])
        else:
            yield from (_line(b"-", x) for x in before[i1:i2])
            yield from (_line(b"+", x) for x in after[j1:j2])


def _range(start: int, end: int) -> str:
    size = end - start
    return f"{start if size == 0 else start + 1}" + ("" if size == 1 else f",{size}")


def _line(sign: bytes, line: bytes) -> bytes:
    return sign + line if line.endswith(b"\n") else sign + line + b"\n\\ No newline at end of file\n"
