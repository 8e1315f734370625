"""Laying out an uploaded snapshot in a private folder, as plain files: what comes of it is read like any repository.

Contents are checked against their digests; every file is made anew by descriptor, links last, so that none is followed.
"""

import os
from pathlib import Path

from localagent.daemon.store.blobs import Blobs
from localagent.daemon.store.schema import StoreFull
from localagent.domain.task import FileKind, TreeEntry
from localagent.errors import InternalFault
from localagent.fs import openat
from localagent.protocol.snapshot_manifest import manifest_of


def lay_out(blobs: Blobs, uid: int, snapshot: str, folder: Path) -> int:
    """Make `folder` with the tree of a user's snapshot; how many entries. StoreFull when there is no room."""
    entries = manifest_of(blobs.read(uid, snapshot)).entries
    try:
        folder.mkdir(mode=0o755)
        with openat.root_directory(folder) as root:
            for kind in (FileKind.REGULAR, FileKind.SYMLINK):
                for entry in entries.values():
                    if entry.kind is kind:
                        _make(blobs, uid, entry, root)
    except OSError as fault:
        raise StoreFull(f"the snapshot cannot be laid out: {fault.strerror}", remedy="free space there") from fault
    return len(entries)


def _make(blobs: Blobs, uid: int, entry: TreeEntry, root: int) -> None:
    name = entry.path.name
    with openat.parent_directory(root, entry.path.parts, make_mode=0o755) as parent:
        if entry.kind is FileKind.SYMLINK:
            os.symlink(entry.target, name, dir_fd=parent)
            return
        data = blobs.read(uid, entry.digest)
        if len(data) != entry.size:
            raise InternalFault(f"the content of {entry.path!r} has another size than its snapshot says")
        openat.write_new(name, data, parent, mode=entry.mode)
