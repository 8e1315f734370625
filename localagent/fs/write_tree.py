"""Writing into a private copy of a tree: component by component, never through a link, each file a new inode.

For stores that nobody else sees. Not promised: that what stood there before is kept when a write fails in the middle.
"""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from localagent.domain.edit import digest_of
from localagent.domain.paths import RepoPath
from localagent.domain.task import FileKind, TreeEntry
from localagent.fs import openat


class StoreWriter:
    """Puts entries below one folder. OSError where a name cannot be made (a file stands where a folder must be)."""

    def __init__(self, store: Path) -> None:
        self._store = store

    def file(self, path: RepoPath, data: bytes, *, executable: bool) -> TreeEntry:
        """A regular file in place of whatever stood there; its entry."""
        mode = 0o755 if executable else 0o644
        with self._parent(path, make=True) as parent:
            with suppress(FileNotFoundError):
                os.unlink(path.name, dir_fd=parent)
            openat.write_new(path.name, data, parent, mode=mode)
        return TreeEntry(path=path, kind=FileKind.REGULAR, mode=mode, size=len(data), digest=digest_of(data))

    def link(self, path: RepoPath, target: str) -> TreeEntry:
        """A symbolic link in place of whatever stood there; its entry."""
        with self._parent(path, make=True) as parent:
            with suppress(FileNotFoundError):
                os.unlink(path.name, dir_fd=parent)
            os.symlink(target, path.name, dir_fd=parent)
        size = len(os.fsencode(target))
        return TreeEntry(path=path, kind=FileKind.SYMLINK, mode=0o777, size=size, target=target)

    def remove(self, path: RepoPath) -> None:
        """A file or link goes, and the folders that it leaves empty; what is not there is no fault."""
        with suppress(FileNotFoundError, NotADirectoryError):
            with self._parent(path, make=False) as parent:
                os.unlink(path.name, dir_fd=parent)
            for depth in range(len(path.parts) - 1, 0, -1):
                if not self._without(RepoPath("/".join(path.parts[:depth]))):
                    return

    def _without(self, folder: RepoPath) -> bool:
        """Whether a folder was empty; it is gone then."""
        with self._parent(folder, make=False) as parent:
            try:
                os.rmdir(folder.name, dir_fd=parent)
            except OSError as error:
                if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
                    return False
                raise
        return True

    @contextmanager
    def _parent(self, path: RepoPath, *, make: bool) -> Iterator[int]:
        make_mode = 0o755 if make else None
        with (
            openat.root_directory(self._store) as root,
            openat.parent_directory(root, path.parts, make_mode=make_mode) as parent,
        ):
            yield parent


def linked_copy(store: Path, copy: Path) -> None:
    """A second store of the same inodes: for trees whose files are replaced and never written in place."""
    todo = [(store, copy)]
    copy.mkdir(mode=0o700)
    while todo:
        source, target = todo.pop()
        with os.scandir(source) as entries:
            for entry in entries:
                to = target / entry.name
                if entry.is_symlink():
                    to.symlink_to(Path(entry.path).readlink())
                elif entry.is_dir(follow_symlinks=False):
                    to.mkdir()
                    to.chmod(stat.S_IMODE(entry.stat(follow_symlinks=False).st_mode))
                    todo.append((Path(entry.path), to))
                else:
                    os.link(entry.path, to, follow_symlinks=False)
