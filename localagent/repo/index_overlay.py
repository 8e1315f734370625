"""A snapshot with some files as the index holds them: what would be committed, beside everything else that is there.

Only regular files are put in place or taken away, in our private copy alone. Not promised: that files which are in the
working tree and not in the index are left out; they stay.
"""

import contextlib
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from localagent.domain.edit import digest_of
from localagent.domain.paths import RepoPath
from localagent.domain.task import FileKind, Snapshot, TreeEntry
from localagent.errors import AnswerIsNo
from localagent.fs import openat


def overlaid(snapshot: Snapshot, files: Mapping[RepoPath, bytes | None]) -> Snapshot:
    """The snapshot after some files got other bytes (None: they go). AnswerIsNo where that cannot be done."""
    if not files:
        return snapshot
    entries = dict(snapshot.entries)
    with openat.root_directory(Path(snapshot.store)) as root:
        for path, data in sorted(files.items()):
            try:
                _put(root, path, data)
            except OSError as error:
                raise AnswerIsNo(
                    f"{path!r} cannot be put as it is staged: {error.strerror or error}",
                    remedy="commit, or stage, what stands in the way",
                ) from error
            if data is None:
                entries.pop(path, None)
                continue
            mode = entries[path].mode if path in entries else 0o644
            entries[path] = TreeEntry(
                path=path, kind=FileKind.REGULAR, mode=mode, size=len(data), digest=digest_of(data)
            )
    digest = digest_of(
        "".join(f"{p}\0{digest_of(d or b'')}\0" for p, d in sorted(files.items())).encode("utf-8", "surrogateescape")
        + snapshot.digest.encode()
    )
    return replace(snapshot, entries=dict(sorted(entries.items())), digest=digest)


def _put(root: int, path: RepoPath, data: bytes | None) -> None:
    try:
        with openat.parent_directory(root, path.parts, make_mode=None if data is None else 0o755) as parent:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path.name, dir_fd=parent)  # never written through: it may be a link
            if data is not None:
                openat.write_new(path.name, data, parent, mode=0o644)
    except FileNotFoundError:
        if data is not None:
            raise
