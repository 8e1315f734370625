"""A parsed unified diff, what it makes of a tree, and the one fault of reading either.

Values only. `localagent.repo.diff.parse_diff` parses; `localagent.repo.diff.apply_in_memory` applies to the bytes of a
repository.
"""

from dataclasses import dataclass
from enum import StrEnum

from localagent.domain.edit import Splice
from localagent.domain.paths import RepoPath
from localagent.errors import AnswerIsNo


class FileMode(StrEnum):
    """The modes that git keeps."""

    REGULAR = "100644"
    EXECUTABLE = "100755"
    SYMLINK = "120000"
    SUBMODULE = "160000"


class ChangeKind(StrEnum):
    """What becomes of a file."""

    MODIFIED = "modified"
    ADDED = "added"
    DELETED = "deleted"
    RENAMED = "renamed"
    COPIED = "copied"


class DiffRule(StrEnum):
    """Why a patch is refused before any gate can look at it."""

    MALFORMED = "patch-malformed"
    EMPTY = "patch-empty"
    COMBINED = "patch-combined"
    PATH = "patch-path"
    LIMIT = "patch-limit"
    MISMATCH = "patch-does-not-apply"


class DiffFault(AnswerIsNo):
    """A patch that cannot be understood or does not apply: refused. `line` counts in the patch from 1; 0 is none."""

    def __init__(self, rule: DiffRule, line: int, what: str, *, remedy: str, path: RepoPath | None = None) -> None:
        super().__init__(f"line {line} of the patch: {what}" if line else what, remedy=remedy)
        self.rule = rule
        self.line = line
        self.what = what
        self.path = path


@dataclass(frozen=True, kw_only=True, slots=True)
class Hunk:
    """Lines that stood from line `old_start` (1-based; 0 in an empty file) and what stands there afterwards.

    `old` and `new` hold whole lines with their LF, the last maybe without; `head` and `tail` are how many lines are
    the same in both at either end. `line` is the hunk's own line in the patch.
    """

    line: int
    old_start: int
    new_start: int
    old: tuple[bytes, ...]
    new: tuple[bytes, ...]
    head: int
    tail: int


@dataclass(frozen=True, kw_only=True, slots=True)
class FileDiff:
    """One file's part of a diff. `old` and `new` are the same path but for renames and copies.

    Modes are None where the diff does not say. `binary`: the content is not text, and was not decoded.
    """

    line: int
    kind: ChangeKind
    old: RepoPath
    new: RepoPath
    old_mode: FileMode | None = None
    new_mode: FileMode | None = None
    hunks: tuple[Hunk, ...] = ()
    binary: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Diff:
    """A whole diff, in its order; no path stands in two parts."""

    files: tuple[FileDiff, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class TreeChange:
    """What a diff makes of one entry of the tree: whole-file bytes and modes.

    `source` is the path before (another one for renames and copies). `before` is empty for added files, `after` for
    deleted, binary ones and submodules; a link's content is its target. `splices` turn `before` into `after`.
    `alias` is an entry of the tree that differs from `path` only in case or Unicode form, or that it hides; else "".
    `offsets` are how many lines each hunk was moved by, in their order.
    """

    path: RepoPath
    source: RepoPath
    kind: ChangeKind
    before: bytes
    after: bytes
    before_mode: FileMode | None
    after_mode: FileMode | None
    binary: bool = False
    splices: tuple[Splice, ...] = ()
    alias: str = ""
    offsets: tuple[int, ...] = ()
