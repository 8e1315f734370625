"""What a diff makes of a repository, in memory: the tree is read, never written.

A hunk must find its lines exactly: where it says, or moved to the one other place of the file (after the hunk before
it) where they all stand; the move is told. Entries are opened component by component, never through a link. Between two
reads anybody may change the tree: what is judged is what was read.
"""

import os
import stat
from dataclasses import dataclass, field
from pathlib import Path

from localagent.domain.diff import ChangeKind, Diff, DiffFault, DiffRule, FileDiff, FileMode, Hunk, TreeChange
from localagent.domain.edit import Splice
from localagent.domain.paths import RepoPath
from localagent.fs import openat
from localagent.text.confusable_letters import as_read

MAX_FILE_BYTES = 16 << 20
MAX_TOTAL_BYTES = 64 << 20
_MAX_LISTED = 200_000
_MAX_TRIED = 5_000
_REFRESH = (
    "make the patch anew against the tree as it stands, or, where the tree holds it already, "
    "check out what it was made for"
)


def apply_diff(diff: Diff, repo: Path) -> tuple[TreeChange, ...]:
    """The changes, in order. DiffFault for what does not apply, AnswerIsNo if the tree cannot be entered."""
    with openat.root_directory(Path(os.path.realpath(repo))) as root:
        tree = _Tree(root=root)
        gone = {f.old for f in diff.files if f.kind in (ChangeKind.DELETED, ChangeKind.RENAMED)}
        return tuple(_applied(tree, file, gone) for file in diff.files)


def alias_of(path: RepoPath, repo: Path) -> str:
    """An entry of the tree that reads like a part of the path; "" if there is none. AnswerIsNo without a tree."""
    with openat.root_directory(Path(os.path.realpath(repo))) as root:
        return _Tree(root=root).alias(path, set())


@dataclass(frozen=True, kw_only=True, slots=True)
class _Entry:
    """One entry as it stands. Folders that stand where a submodule may be have no content."""

    mode: FileMode
    data: bytes


@dataclass(frozen=True, kw_only=True, slots=True)
class _Text:
    """A text after its hunks, the splices that make it, and how far each hunk was moved."""

    after: bytes
    splices: tuple[Splice, ...]
    offsets: tuple[int, ...]


@dataclass(kw_only=True, slots=True)
class _Tree:
    """The repository, read with one budget of bytes."""

    root: int
    left: int = MAX_TOTAL_BYTES
    listed: dict[tuple[str, ...], dict[str, str]] = field(default_factory=dict)

    def read(self, path: RepoPath, line: int) -> _Entry | None:
        """The entry, None if nothing stands there."""
        try:
            with openat.parent_directory(self.root, path.parts) as parent:
                return self._entry(path, parent)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _fault(line, path, f"cannot be read: {error.strerror or error}", _remedy_of(error)) from error

    def _entry(self, path: RepoPath, parent: int) -> _Entry:
        seen = os.stat(path.name, dir_fd=parent, follow_symlinks=False)
        if stat.S_ISLNK(seen.st_mode):
            return _Entry(mode=FileMode.SYMLINK, data=os.fsencode(os.readlink(path.name, dir_fd=parent)))
        if stat.S_ISDIR(seen.st_mode):
            return _Entry(mode=FileMode.SUBMODULE, data=b"")
        data, status = openat.read_regular(path.name, parent, min(MAX_FILE_BYTES, self.left))
        self.left -= len(data)
        mode = FileMode.EXECUTABLE if status.st_mode & stat.S_IXUSR else FileMode.REGULAR
        return _Entry(mode=mode, data=data)

    def alias(self, path: RepoPath, gone: set[RepoPath]) -> str:
        """An entry that reads like a part of the path, but for case, form or letters, or that it hides; else ""."""
        hidden = path.hidden_module
        if hidden is not None and hidden not in gone and hidden.name in self._names(hidden.parts[:-1]):
            return hidden
        parts = path.parts
        for depth in range(len(parts)):
            names = self._names(parts[:depth])
            found = names.get(parts[depth]) or names.get(as_read(parts[depth]))
            if found is not None and found != parts[depth]:
                other = "/".join((*parts[:depth], found))
                return "" if other in gone else other
            if found is None:
                return ""
        return ""

    def _names(self, folder: tuple[str, ...]) -> dict[str, str]:
        """A folder's entries by their folded names, and by their own: what stands there as named is no alias."""
        if folder not in self.listed:
            try:
                with openat.parent_directory(self.root, (*folder, "x")) as at, os.scandir(at) as found:
                    names = sorted(entry.name for entry in found)[:_MAX_LISTED]
            except OSError:
                names = []
            self.listed[folder] = {as_read(name): name for name in names} | {name: name for name in names}
        return self.listed[folder]


def _remedy_of(error: OSError) -> str:
    if error.errno in (20, 40):  # not a directory, too many links
        return "a patch may not reach through links; name the real path"
    return "check the rights of that file, and that it is not too large"


def _fault(line: int, path: RepoPath, what: str, remedy: str = _REFRESH) -> DiffFault:
    return DiffFault(DiffRule.MISMATCH, line, f"{path!r} {what}", remedy=remedy, path=path)


def _applied(tree: _Tree, file: FileDiff, gone: set[RepoPath]) -> TreeChange:
    new_entry = file.kind in (ChangeKind.ADDED, ChangeKind.RENAMED, ChangeKind.COPIED)
    if new_entry and tree.read(file.new, file.line) is not None:
        raise _fault(file.line, file.new, f"stands already, and the patch would have it {file.kind}")
    before = _Entry(mode=FileMode.REGULAR, data=b"")
    if file.kind is not ChangeKind.ADDED:
        stood = tree.read(file.old, file.line)
        if stood is None:
            raise _fault(
                file.line, file.old, f"does not stand in the repository, and the patch would have it {file.kind}"
            )
        before = stood
        _same_type(file, before)
    after_mode = _after_mode(file, before)
    opaque = file.binary or FileMode.SUBMODULE in (before.mode, file.old_mode, after_mode)
    change = _Text(after=b"", splices=(), offsets=()) if opaque else _patched(file, before.data)
    data = change.after
    if file.kind is ChangeKind.DELETED and data:
        raise _fault(file.line, file.old, "is to be deleted, but holds more than the patch takes away")
    return TreeChange(
        path=file.new,
        source=file.old,
        kind=file.kind,
        before=before.data,
        after=data,
        before_mode=None if file.kind is ChangeKind.ADDED else before.mode,
        after_mode=after_mode,
        binary=file.binary or b"\0" in data or (b"\0" in before.data and not opaque),
        splices=change.splices,
        alias=tree.alias(file.new, gone),
        offsets=change.offsets,
    )


def _same_type(file: FileDiff, before: _Entry) -> None:
    """The patch and the tree must agree whether it is a file, a link or a submodule; the executable bit may differ."""
    said = file.old_mode
    plain = (None, FileMode.REGULAR, FileMode.EXECUTABLE)
    if said in plain and before.mode is FileMode.SUBMODULE:
        raise _fault(file.line, file.old, "is a folder in the repository")
    if (said not in plain and said is not before.mode) or (
        said is not None and said in plain and before.mode is FileMode.SYMLINK
    ):
        raise _fault(file.line, file.old, f"has mode {before.mode} in the repository, and {said} in the patch")


def _after_mode(file: FileDiff, before: _Entry) -> FileMode | None:
    if file.kind is ChangeKind.DELETED:
        return None
    if file.kind is ChangeKind.ADDED:
        return file.new_mode or FileMode.REGULAR
    changed = file.new_mode is not None and file.new_mode is not file.old_mode
    return file.new_mode if changed else before.mode


def _patched(file: FileDiff, before: bytes) -> _Text:
    """The bytes after, as splices of changed lines only, and how far each hunk was moved."""
    lines = _lines(before)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    at, moved = 0, 0
    splices: list[Splice] = []
    offsets: list[int] = []
    for hunk in file.hunks:
        place = _match_index(file, hunk, lines, at, moved)
        moved = place - _stated_start(hunk)
        offsets.append(moved)
        first, last = place + hunk.head, place + len(hunk.old) - hunk.tail
        text = b"".join(hunk.new[hunk.head : len(hunk.new) - hunk.tail])
        splices.append(Splice(start=starts[first], end=starts[last], text=text))
        at = place + len(hunk.old)
    out: list[bytes] = []
    done = 0
    for splice in splices:
        out += (before[done : splice.start], splice.text)
        done = splice.end
    after = b"".join((*out, before[done:]))
    _no_joined_lines(file, lines, splices, before)
    return _Text(after=after, splices=tuple(splices), offsets=tuple(offsets))


def _no_joined_lines(file: FileDiff, lines: list[bytes], splices: list[Splice], before: bytes) -> None:
    """A line without newline may only end the file."""
    for splice, hunk in zip(splices, file.hunks, strict=True):
        open_end = bool(splice.text) and not splice.text.endswith(b"\n")
        before_open = splice.start == len(before) and bool(lines) and not lines[-1].endswith(b"\n")
        if (open_end and splice.end < len(before)) or (before_open and splice.text):
            raise _fault(hunk.line, file.old, "would have lines joined: a line without newline is not the last")


def _lines(data: bytes) -> list[bytes]:
    lines = data.split(b"\n")
    last = lines.pop()
    return [line + b"\n" for line in lines] + ([last] if last else [])


def _stated_start(hunk: Hunk) -> int:
    """Index of the line where a hunk says that it begins."""
    return hunk.old_start - 1 if hunk.old else hunk.old_start


def _match_index(file: FileDiff, hunk: Hunk, lines: list[bytes], at: int, moved: int) -> int:
    """The index of the line where a hunk's lines stand."""
    old = list(hunk.old)
    if not old:
        if lines:
            what = "has lines, and the hunk would add some without showing any that stand there"
            raise _fault(hunk.line, file.old, what, "make the patch with context: `git diff -U3`")
        return 0
    fits = [p for p in {_stated_start(hunk), _stated_start(hunk) + moved} if p >= at and lines[p : p + len(old)] == old]
    if len(fits) == 1:
        return fits[0]
    found = _everywhere(old, lines, at)
    if len(found) == 1:
        return found[0]
    if found:
        what = f"holds the hunk's lines {len(found)} times, and not in line {hunk.old_start}: the place is not clear"
        raise _fault(hunk.line, file.old, what)
    raise _fault(hunk.line, file.old, f"does not hold the lines that this hunk expects at line {hunk.old_start}")


def _everywhere(old: list[bytes], lines: list[bytes], at: int) -> list[int]:
    """Where all the lines stand, at most two places. The rarest line is looked for, so repetitions cost little."""
    counts: dict[bytes, list[int]] = {line: [] for line in old}
    for n in range(at, len(lines)):
        if lines[n] in counts:
            counts[lines[n]].append(n)
    rarest = min(range(len(old)), key=lambda n: len(counts[old[n]]))
    found: list[int] = []
    tried = 0
    for n in counts[old[rarest]]:
        place = n - rarest
        tried += 1
        if place >= at and lines[place : place + len(old)] == old:
            found.append(place)
        if len(found) > 1 or tried > _MAX_TRIED:
            break
    return found if tried <= _MAX_TRIED else [-1, -1]  # so many likely places are not one clear place
