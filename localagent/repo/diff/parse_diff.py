"""A unified diff as git or `diff -u` writes it becomes a `Diff`, or a DiffFault that says what, where and why.

Strict on purpose: where two tools could read a text differently it is refused, for a gate must judge what the next tool
applies. Text is taken only before the first file, and only if no tool could take it for a diff. Not promised: that all
that `patch` would guess its way through is read: context, normal and ed diffs are refused, binary content is
recognised but not decoded.
"""

import re
from collections.abc import Iterator

from localagent.domain.diff import ChangeKind, Diff, DiffFault, DiffRule, FileDiff, FileMode, Hunk
from localagent.repo.diff.diff_paths import git_names, plain_name, same_name
from localagent.repo.diff.lines import AS_GIT_WRITES, SPLIT_IT, LineReader, malformed, shown

# The hunks of one file of a diff: every line counted, every number checked against the others.
#
# Line numbers of both sides must fit together: where they do not, one tool goes by the old ones and another by the
# new.

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


MAX_PATCH_BYTES = 8 << 20
MAX_FILES = 2_000
_MOST_BEFORE = 10_000
_INDEX = re.compile(rb"index [0-9a-f]{4,64}\.\.[0-9a-f]{4,64}(?: (\d{6}))?\n")
_PERCENT = re.compile(rb"(?:dis)?similarity index \d{1,3}%\n")
_BASE85 = re.compile(rb"[A-Za-z][0-9A-Za-z!#$%&()*+;<=>?@^_`{|}~-]{1,70}\n")
_BINARY = re.compile(rb"(?:literal|delta) \d{1,12}\n")
_ENCODED = re.compile(
    rb"(?i)content-transfer-encoding:(?!\s*(?:7bit|8bit|binary)\s*$)|content-type:.*multipart|.*format=\"?flowed"
)
_NORMAL = re.compile(rb"\d+(?:,\d+)?[acd](?:\d+(?:,\d+)?)?\s*$")
_TELLING = (b"--- ", b"+++ ", b"*** ", b"@@", b"Index:", b"Prereq:", b"GIT binary patch")
_INDENTED = (b"diff --git ", b"--- ", b"+++ ", b"*** ", b"@@ -")
_DEV_NULL = b"/dev/null"


def parse_diff(data: bytes) -> Diff:
    """The diff in some bytes. DiffFault for everything that is not exactly one."""
    if len(data) > MAX_PATCH_BYTES:
        raise DiffFault(DiffRule.LIMIT, 0, f"the patch is larger than {MAX_PATCH_BYTES >> 20} MiB", remedy=SPLIT_IT)
    lines = LineReader(data)
    _preamble(lines)
    files: list[FileDiff] = []
    hunks = 0
    while not lines.ended:
        if len(files) >= MAX_FILES:
            raise DiffFault(DiffRule.LIMIT, lines.number, f"more than {MAX_FILES:,} files", remedy=SPLIT_IT)
        files.append(_file(lines, MAX_HUNKS - hunks))
        hunks += len(files[-1].hunks)
        if _trailer(lines):
            break
    if not files:
        what = "there is no diff in it" if data else "the patch is empty"
        raise DiffFault(DiffRule.EMPTY, 0, f"{what}: nothing can be judged", remedy=AS_GIT_WRITES)
    _once(files)
    return Diff(files=tuple(files))


def _preamble(lines: LineReader) -> None:
    """Goes to the first file; what stands before it (a mail, a commit message) must not look like a diff to anybody."""
    while not lines.ended:
        line = lines.peek()
        if line.startswith(b"diff -") or (line.startswith(b"--- ") and lines.peek(1).startswith(b"+++ ")):
            return
        bare = line.lstrip(b" \t>X")
        if line.startswith(_TELLING) or bare.startswith(_INDENTED) or _NORMAL.match(bare):
            raise malformed(lines, f"some tools would take this for a part of a diff: {shown(line)}")
        if lines.number > _MOST_BEFORE:
            raise DiffFault(DiffRule.LIMIT, lines.number, "no diff among so many lines", remedy="give the diff itself")
        if _ENCODED.match(line):
            what = f"an encoded mail, which some tools decode before they read the diff: {shown(line)}"
            raise malformed(lines, what, "give the diff itself, decoded")
        lines.take()


def _trailer(lines: LineReader) -> bool:
    """Whether the diff is over: blank lines, or what `git format-patch` signs with, and nothing after them."""
    signed = lines.peek() == b"-- \n"
    if signed:
        lines.take()
        if re.fullmatch(rb"\d[\w. ()-]{0,60}\n", lines.peek()):
            lines.take()
    elif lines.peek().strip():
        return False
    while not lines.ended and not lines.peek().strip():
        lines.take()
    if not lines.ended:
        raise malformed(
            lines, "something follows the end of the diff", "give one patch at a time, and nothing after it"
        )
    return True


def _file(lines: LineReader, hunks_left: int) -> FileDiff:
    line = lines.peek()
    if line.startswith((b"diff --cc ", b"diff --combined ")):
        remedy = "give the diff against one parent: `git diff PARENT MERGE`"
        raise DiffFault(DiffRule.COMBINED, lines.number, "a combined diff of a merge has no one before", remedy=remedy)
    if line.startswith(b"diff --git "):
        return _git_file(lines, hunks_left)
    if line.startswith(b"diff "):
        lines.take()  # `diff -ru a b` writes its command line; names are read from the lines that follow
        line = lines.peek()
    if line.startswith(b"--- ") and lines.peek(1).startswith(b"+++ "):
        return _plain_file(lines, hunks_left)
    if line.startswith(b"@@@"):
        raise DiffFault(DiffRule.COMBINED, lines.number, "a combined diff has no one before", remedy=AS_GIT_WRITES)
    raise malformed(lines, f"expected the head of a file (`diff --git`, or `---` and `+++`), not {shown(line)}")


class _Head:
    """What the extended header lines of one git part say."""

    def __init__(self) -> None:
        self.modes: dict[str, FileMode] = {}
        self.names: dict[str, bytes] = {}

    def kind(self) -> ChangeKind:
        """What becomes of the file."""
        if "new file mode " in self.modes:
            return ChangeKind.ADDED
        if "deleted file mode " in self.modes:
            return ChangeKind.DELETED
        if self.moved("rename"):
            return ChangeKind.RENAMED
        return ChangeKind.COPIED if self.moved("copy") else ChangeKind.MODIFIED

    def moved(self, how: str) -> bool:
        """Whether both names of a rename or copy stand there."""
        return f"{how} from " in self.names and f"{how} to " in self.names

    def fault(self) -> str:
        """What contradicts itself, "" if nothing."""
        whole = [k for k in ("new file mode ", "deleted file mode ", "old mode ") if k in self.modes]
        if len(whole) > 1 or ("old mode " in self.modes) != ("new mode " in self.modes):
            return "the modes contradict each other"
        for how in ("rename", "copy"):
            if (f"{how} from " in self.names) != (f"{how} to " in self.names):
                return f"one of `{how} from` and `{how} to` is missing"
        if len(self.names) > 2 or (self.names and whole and whole != ["old mode "]):
            return "a file is added, deleted, renamed or copied, not two of these"
        return ""


_MODE_LINES = ("old mode ", "new mode ", "new file mode ", "deleted file mode ")
_NAME_LINES = ("rename from ", "rename to ", "copy from ", "copy to ")


def _git_file(lines: LineReader, hunks_left: int) -> FileDiff:
    first, said = lines.number, lines.take()
    head = _Head()
    while not lines.ended and _extended(lines, head):
        pass
    if fault := head.fault():
        raise malformed(lines, fault)
    kind = head.kind()
    hunks: tuple[Hunk, ...] = ()
    binary, marked = False, None
    if lines.peek().startswith((b"GIT binary patch\n", b"Binary files ")):
        binary = True
        _skip_binary(lines)
    elif lines.peek().startswith(b"--- "):
        marked = _marks(lines, first)
        hunks = take_hunks(lines, hunks_left)
    names = git_names(said, first, kind, head.names, marked)
    old_mode, new_mode = _modes(lines, head, kind)
    nothing = not (hunks or binary or head.names or head.modes)
    if nothing:
        raise malformed(lines, f"the part of {names.new!r} changes nothing")
    return FileDiff(
        line=first, kind=kind, old=names.old, new=names.new, old_mode=old_mode, new_mode=new_mode, hunks=hunks,
        binary=binary,
    )  # fmt: skip


def _extended(lines: LineReader, head: _Head) -> bool:
    """Takes one extended header line; False if there is none."""
    line = lines.peek()
    for key in _MODE_LINES:
        if line.startswith(key.encode()):
            _note(lines, head.modes, key, _mode(lines, line[len(key) :].rstrip(b"\n")))
            return True
    for key in _NAME_LINES:
        if line.startswith(key.encode()):
            _note(lines, head.names, key, line[len(key) :].removesuffix(b"\n"))
            return True
    if found := _INDEX.fullmatch(line):
        _note(lines, head.modes, "index", _mode(lines, found[1]) if found[1] else None)
        return True
    if _PERCENT.fullmatch(line):
        lines.take()
        return True
    return False


def _note(lines: LineReader, where: dict[str, FileMode] | dict[str, bytes], key: str, value: object) -> None:
    if key in where:
        raise malformed(lines, f"`{key.strip()}` stands twice")
    if value is not None:
        where[key] = value  # type: ignore[assignment]
    lines.take()


def _mode(lines: LineReader, text: bytes) -> FileMode:
    try:
        return FileMode(text.decode("ascii", "replace"))
    except ValueError:
        known = ", ".join(FileMode)
        raise malformed(lines, f"mode {shown(text)} is none that git keeps ({known})") from None


def _modes(lines: LineReader, head: _Head, kind: ChangeKind) -> tuple[FileMode | None, FileMode | None]:
    modes = head.modes
    if kind is ChangeKind.ADDED:
        return None, modes["new file mode "]
    if kind is ChangeKind.DELETED:
        return modes["deleted file mode "], None
    if "index" in modes:
        if "old mode " in modes:
            raise malformed(lines, "`index` names a mode beside `old mode` and `new mode`")
        return modes["index"], modes["index"]
    return modes.get("old mode "), modes.get("new mode ")


def _marks(lines: LineReader, first: int) -> tuple[bytes, bytes]:
    """What stands after `---` and `+++`."""
    old = lines.take()[4:]
    if not lines.peek().startswith(b"+++ "):
        raise malformed(lines, f"`---` without `+++` in the part that begins in line {first}")
    new = lines.take()[4:]
    for mark in (old, new):
        if not mark.endswith(b"\n"):
            raise malformed(lines, "the text ends in the middle of a head")
        if mark.endswith(b"\r\n"):
            raise malformed(lines, "the patch's own lines end in CR LF, so that names end in CR",
                             "turn the patch's own lines into LF (`git diff` writes them so)")  # fmt: skip
    return old[:-1], new[:-1]


def _plain_file(lines: LineReader, hunks_left: int) -> FileDiff:
    first = lines.number
    old, new = _marks(lines, first)
    a, b = plain_name(old, first), plain_name(new, first)
    if a == _DEV_NULL and b == _DEV_NULL:
        raise malformed(lines, "both names are /dev/null")
    names = same_name(a, b, first)
    kind = ChangeKind.ADDED if a == _DEV_NULL else ChangeKind.DELETED if b == _DEV_NULL else ChangeKind.MODIFIED
    hunks = take_hunks(lines, hunks_left)
    return FileDiff(
        line=first,
        kind=kind,
        old=names.old,
        new=names.new,
        old_mode=None,
        new_mode=None,
        hunks=hunks,
    )


def _skip_binary(lines: LineReader) -> None:
    """Over the content of a binary part, which must be shaped as git writes it."""
    line = lines.take()
    if line.startswith(b"Binary files "):
        if not line.endswith(b" differ\n"):
            raise malformed(lines, f"not as git says that binary files differ: {shown(line)}")
        return
    for block in range(2):
        if lines.ended or not _BINARY.fullmatch(lines.peek()):
            if block:
                return
            raise malformed(lines, "a binary patch without content", "make it with `git diff --binary`")
        lines.take()
        while not lines.ended and _BASE85.fullmatch(lines.peek()):
            lines.take()
        if lines.ended or lines.peek() != b"\n":
            raise malformed(lines, f"not a line of a binary patch: {shown(lines.peek())}")
        lines.take()


def _once(files: list[FileDiff]) -> None:
    """No path in two parts: which is judged would depend on the order. The source of copies may be named again."""
    seen: dict[str, int] = {}
    for file in files:
        for path in _touched(file):
            if path in seen:
                what = f"{path!r} stands in two parts, the other begins in line {seen[path]}"
                raise DiffFault(
                    DiffRule.MALFORMED, file.line, what, path=file.new, remedy="join the two, or give two patches"
                )
            seen[path] = file.line


def _touched(file: FileDiff) -> Iterator[str]:
    yield file.new
    if file.old != file.new and file.kind is not ChangeKind.COPIED:
        yield file.old
