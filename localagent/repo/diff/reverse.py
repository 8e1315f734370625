"""A diff read backwards: what takes away what it brings. Used to see whether a tree holds a patch already."""

from dataclasses import replace

from localagent.domain.diff import ChangeKind, Diff, FileDiff, Hunk

_BACK = {
    ChangeKind.ADDED: ChangeKind.DELETED,
    ChangeKind.DELETED: ChangeKind.ADDED,
    ChangeKind.COPIED: ChangeKind.DELETED,
}


def reversed_diff(diff: Diff) -> Diff:
    """The diff that leads back."""
    return Diff(files=tuple(_file(file) for file in diff.files))


def _file(file: FileDiff) -> FileDiff:
    kind = _BACK.get(file.kind, file.kind)
    old, new = (file.new, file.old) if kind is ChangeKind.RENAMED else (file.new, file.new)
    hunks = tuple(_hunk(hunk) for hunk in file.hunks)
    return replace(file, kind=kind, old=old, new=new, old_mode=file.new_mode, new_mode=file.old_mode, hunks=hunks)


def _hunk(hunk: Hunk) -> Hunk:
    return replace(hunk, old=hunk.new, new=hunk.old, old_start=hunk.new_start, new_start=hunk.old_start)
