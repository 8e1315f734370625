"""A second private store: a snapshot with changes of a diff made in it. The user's tree is not looked at.

Changes whose bytes a diff does not tell (binary files, submodules) are refused.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

from localagent.domain.diff import ChangeKind, FileMode, TreeChange
from localagent.domain.task import Snapshot
from localagent.errors import AnswerIsNo
from localagent.fs.write_tree import StoreWriter, linked_copy
from localagent.repo.snapshot import CannotCopy, leads_out, tree_digest


def patched(
    before: Snapshot,
    store: Path,
    changes: Sequence[TreeChange],
    wanted: Callable[[TreeChange], bool] = lambda _change: True,
) -> Snapshot:
    """The snapshot with the wanted changes, in `store`, which must not exist yet.

    AnswerIsNo for a change whose bytes are not known; CannotCopy where the store cannot be written.
    """
    chosen = [change for change in changes if wanted(change)]
    for change in chosen:
        if change.binary or FileMode.SUBMODULE in (change.before_mode, change.after_mode):
            raise AnswerIsNo(
                f"{change.path!r} is no text: the patch does not tell what the tree will hold",
                remedy="leave binary files and submodules out of the patch",
            )
    entries = dict(before.entries)
    try:
        linked_copy(Path(before.store), store)
        writer = StoreWriter(store)
        for change in chosen:
            if change.kind in (ChangeKind.DELETED, ChangeKind.RENAMED):
                writer.remove(change.source)
                entries.pop(change.source, None)
        for change in chosen:
            if change.kind is ChangeKind.DELETED:
                continue
            if change.after_mode is FileMode.SYMLINK:
                target = change.after.decode("utf-8", "surrogateescape")
                if leads_out(change.path, target):
                    raise AnswerIsNo(f"{change.path!r} would link out of the tree", remedy="link inside it")
                entries[change.path] = writer.link(change.path, target)
            else:
                executable = change.after_mode is FileMode.EXECUTABLE
                entries[change.path] = writer.file(change.path, change.after, executable=executable)
    except OSError as error:
        raise CannotCopy(f"the patched tree cannot be written: {error.strerror or error}") from error
    entries = dict(sorted(entries.items()))
    return Snapshot(
        root=before.root, store=str(store), entries=entries, digest=tree_digest(entries), left_out=before.left_out
    )
