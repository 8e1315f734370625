"""A snapshot as the agent's base tree: regular files that git does not ignore, read from the private store."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path

from localagent.domain.diff import ChangeKind, FileMode, TreeChange
from localagent.domain.edit import FileChange, FileFate, Patch
from localagent.domain.paths import RepoPath
from localagent.domain.task import FileKind, Snapshot
from localagent.errors import InternalFault
from localagent.fs import openat
from localagent.repo.diff.write_diff import line_splices

_MOST_BYTES = 2 << 20


class SnapshotTree:
    """`BaseTree` of a snapshot."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self._kept: dict[RepoPath, bytes] = {}

    @cached_property
    def paths(self) -> Sequence[RepoPath]:
        """Every regular file that may be read, sorted."""
        entries = self.snapshot.entries
        return sorted(p for p, e in entries.items() if e.kind is FileKind.REGULAR and not e.ignored)

    def read(self, path: RepoPath) -> bytes | None:
        """A file's bytes; None for what is no regular file of the tree, or too large."""
        entry = self.snapshot.entries.get(path)
        if entry is None or entry.kind is not FileKind.REGULAR or entry.ignored or entry.size > _MOST_BYTES:
            return None
        if path not in self._kept:
            parts = path.parts
            try:
                with (
                    openat.root_directory(Path(self.snapshot.store)) as root,
                    openat.parent_directory(root, parts) as parent,
                ):
                    self._kept[path], _ = openat.read_regular(parts[-1], parent, _MOST_BYTES)
            except OSError as error:
                raise InternalFault(f"the copy of {path!r} cannot be read: {error.strerror}") from error
        return self._kept[path]

    def why_not(self, path: RepoPath) -> str:
        """Why a path that stands in the tree cannot be read or edited; "" where nothing is known against it."""
        entry = self.snapshot.entries.get(path)
        if entry is None:
            left_out = self.snapshot.left_out.get(path)
            return f"is not part of the copy: {left_out}" if left_out else ""
        if entry.kind is FileKind.SYMLINK:
            return "is a symbolic link, which is neither followed nor changed"
        return "is ignored by git, and not read or changed" if entry.ignored else ""

    def mode(self, path: RepoPath) -> FileMode:
        """The mode of a file that stands there; a new one's else."""
        entry = self.snapshot.entries.get(path)
        return FileMode.EXECUTABLE if entry is not None and entry.mode & 0o111 else FileMode.REGULAR

    def changes(self, writes: Mapping[RepoPath, str | None]) -> tuple[TreeChange, ...]:
        """What some writes make of the tree, sorted by path; what stays as it was is left out."""
        found = []
        folded = {p.casefold(): p for p in self.snapshot.entries}
        for path, text in sorted(writes.items()):
            before = self.read(path)
            after = None if text is None else text.encode("utf-8")
            if before == after:
                continue
            kind = ChangeKind.ADDED if before is None else ChangeKind.DELETED if after is None else ChangeKind.MODIFIED
            other = folded.get(path.casefold(), path)
            hidden = path.hidden_module
            if hidden is not None and hidden in self.snapshot.entries and writes.get(hidden, "") is not None:
                other = hidden
            found.append(
                TreeChange(
                    path=path,
                    source=path,
                    kind=kind,
                    before=before or b"",
                    after=after or b"",
                    before_mode=None if before is None else self.mode(path),
                    after_mode=None if after is None else self.mode(path),
                    splices=() if before is None or after is None else line_splices(before, after),
                    alias="" if other == path else other,
                )
            )
        return tuple(found)

    def patch(self, writes: Mapping[RepoPath, str | None]) -> Patch:
        """The writes as a patch against the tree."""
        fates = {ChangeKind.ADDED: FileFate.CREATED, ChangeKind.DELETED: FileFate.DELETED}
        return Patch(
            changes=tuple(
                FileChange(path=c.path, before=c.before, after=c.after, fate=fates.get(c.kind, FileFate.CHANGED))
                for c in self.changes(writes)
            )
        )
