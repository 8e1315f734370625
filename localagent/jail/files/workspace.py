"""Throw-away copies of a snapshot for jails to see, and their removal whatever a test has left in them.

Files are written by descriptor, component by component, never through a link, as new inodes or into inodes that have
no other name. Nothing is ever read back from a workspace. Not promised: a hard-linked workspace shares inodes with the
store, so the jail must see it read-only.
"""

import os
import re
import secrets
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType

from localagent.domain.paths import RepoPath
from localagent.errors import AnswerIsNo, CannotEnforce
from localagent.fs import openat

PREFIX = "localagent-ws-"
_GONE = ".localagent-gone-"
_NAME = re.compile(r"localagent-ws-(\d+)-(\d+)-[0-9a-f]{16}")
_COPY_PIECE_BYTES = 1 << 20


class DiskFull(AnswerIsNo):
    """A workspace cannot be written: the disk is full, a quota or a limit on files is reached."""


@contextmanager
def _writing(folder: Path) -> Iterator[None]:
    """NoRoom for what the file system refuses."""
    try:
        yield
    except OSError as fault:
        raise DiskFull(
            f"cannot write a workspace below {folder}: {fault.strerror or fault}",
            remedy="make room there, or point TMPDIR to a writable folder with space",
        ) from fault


class Workspace:
    """A folder below `scratch` that belongs to one process and goes away with it. `tree` is what to bind."""

    def __init__(self, scratch: Path, *, uid: int | None = None) -> None:
        self._uid = uid
        self._own_inodes: dict[RepoPath, tuple[int, int]] = {}
        self.folder = scratch / _fresh_name()
        self.tree = self.folder / "tree"
        self._make()

    @classmethod
    def create(
        cls,
        scratch: Path,
        store: Path,
        *,
        changes: Mapping[RepoPath, bytes],
        link: bool = False,
        uid: int | None = None,
    ) -> "Workspace":
        """Copy `store` (hard-linked where `link` and the jail's uid can read it) and write `changes` over it."""
        workspace = cls(scratch, uid=uid)
        try:
            with _writing(scratch):
                workspace._copy(store, link=link)
            for path, content in changes.items():
                workspace.write(path, content)
        except BaseException:
            workspace.remove()
            raise
        return workspace

    def __enter__(self) -> "Workspace":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.remove()

    def write(self, path: RepoPath, content: bytes) -> None:
        """Replace or make one file atomically; keeps the exec bits of a regular file that was there."""
        with _writing(self.folder.parent), self._parent(path, make=True) as (folder, name):
            mode = 0o644
            with suppress(FileNotFoundError):
                old = os.stat(name, dir_fd=folder, follow_symlinks=False)
                if stat.S_ISDIR(old.st_mode):
                    raise CannotEnforce(f"workspace: {path!r} is a folder")
                mode = 0o755 if stat.S_ISREG(old.st_mode) and old.st_mode & 0o111 else 0o644
            fresh = f".localagent-{secrets.token_hex(8)}"
            with openat.closing(openat.open_new(fresh, folder)) as number:
                openat.write_all(number, content)
                self._own(number, mode)
            os.rename(fresh, name, src_dir_fd=folder, dst_dir_fd=folder)

    def rewrite(self, path: RepoPath, content: bytes) -> None:
        """As `write`, but not atomically, and into the same inode from the second time on.

        For files that a jail sees read-only and nobody reads meanwhile: a new inode for each costs more than the bytes.
        """
        with _writing(self.folder.parent), self._parent(path, make=False) as (folder, name):
            if self._again(folder, name, path, content):
                return
        self.write(path, content)
        with _writing(self.folder.parent), self._parent(path, make=False) as (folder, name):
            now = os.stat(name, dir_fd=folder, follow_symlinks=False)
            self._own_inodes[path] = (now.st_dev, now.st_ino)

    def _again(self, folder: int, name: str, path: RepoPath, content: bytes) -> bool:
        """Write into the inode that `rewrite` made there; False where there is another one or none."""
        if path not in self._own_inodes:
            return False
        try:
            number = os.open(name, os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
        except OSError:
            return False
        with os.fdopen(number, "wb", buffering=0) as file:
            now = os.fstat(number)
            if (now.st_dev, now.st_ino) != self._own_inodes[path] or now.st_nlink != 1 or not stat.S_ISREG(now.st_mode):
                return False
            view = memoryview(content)
            while view:
                view = view[file.write(view) :]
            file.truncate()
        return True

    def make_folder(self, path: RepoPath) -> None:
        """Make a folder (a mount point for something the repository does not hold) unless it is there."""
        with _writing(self.folder.parent), self._parent(path, make=True) as (folder, name):
            os.close(self._enter(folder, name, make=True))

    def remove(self) -> None:
        """Remove everything; follows no link, minds no mode and no depth. Call it when no jail sees the tree."""
        remove_tree(self.folder)

    def _make(self) -> None:
        try:
            self.folder.mkdir(mode=0o700)  # the launcher makes `tree` reachable for the jail alone
            self.tree.mkdir()
            number = openat.open_directory(self.tree)
        except OSError as fault:
            raise CannotEnforce(
                f"no workspace below {self.folder.parent}: {fault.strerror}", remedy="point TMPDIR to a writable folder"
            ) from fault
        self._own(number, 0o755)
        os.close(number)

    def _own(self, number: int, mode: int) -> None:
        if self._uid is not None:
            os.fchown(number, self._uid, self._uid)
        os.fchmod(number, mode)

    def _enter(self, folder: int, name: str, *, make: bool) -> int:
        """Open the real folder `name`; a link or file in its place is refused."""
        fresh = False
        if make:
            with suppress(FileExistsError):
                os.mkdir(name, 0o755, dir_fd=folder)
                fresh = True
        try:
            number = openat.open_directory(name, folder)
        except FileNotFoundError:
            raise
        except OSError as fault:
            raise CannotEnforce(f"workspace: {name!r} is not a real folder") from fault
        if fresh:
            self._own(number, 0o755)
        return number

    @contextmanager
    def _parent(self, path: RepoPath, *, make: bool) -> Iterator[tuple[int, str]]:
        *folders, name = path.parts
        number = openat.open_directory(self.tree)
        try:
            for part in folders:
                below = self._enter(number, part, make=make)
                os.close(number)
                number = below
            yield number, name
        finally:
            os.close(number)

    def _copy(self, store: Path, *, link: bool) -> None:
        todo = [(store, self.tree)]
        while todo:
            source, target = todo.pop()
            with os.scandir(source) as entries:
                for entry in entries:
                    to = target / entry.name
                    if entry.is_symlink():
                        to.symlink_to(Path(entry.path).readlink())
                        self._own_link(to)
                    elif entry.is_dir(follow_symlinks=False):
                        to.mkdir()
                        self._own_path(to, 0o755)
                        todo.append((Path(entry.path), to))
                    elif entry.is_file(follow_symlinks=False):
                        self._copy_file(entry, to, link=link)

    def _copy_file(self, entry: os.DirEntry[str], to: Path, *, link: bool) -> None:
        mode = entry.stat(follow_symlinks=False).st_mode
        if link and mode & stat.S_IROTH:
            try:
                os.link(entry.path, to, follow_symlinks=False)
            except OSError:  # another filesystem, or too many links
                pass
            else:
                return
        reading = os.open(entry.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            writing = openat.open_new(to)
            try:
                while os.sendfile(writing, reading, None, _COPY_PIECE_BYTES):
                    pass
                self._own(writing, 0o755 if mode & 0o111 else 0o644)
            finally:
                os.close(writing)
        finally:
            os.close(reading)

    def _own_path(self, path: Path, mode: int) -> None:
        with openat.closing(openat.open_directory(path)) as number:
            self._own(number, mode)

    def _own_link(self, path: Path) -> None:
        if self._uid is not None:
            os.lchown(path, self._uid, self._uid)


def remove_tree(folder: Path) -> None:
    """Remove a tree of any depth and any modes without following links; what is not there is no fault.

    Folders are moved up to the top before they are emptied, so depth costs neither stack nor descriptors.
    """
    try:
        top = openat.open_directory(folder)
    except (FileNotFoundError, NotADirectoryError):
        return
    try:
        os.fchmod(top, 0o700)
        _empty(top, top)
        while names := [name for name in os.listdir(top) if name.startswith(_GONE)]:  # noqa: PTH208 - a descriptor
            for name in names:
                os.chmod(name, 0o700, dir_fd=top)
                with openat.closing(openat.open_directory(name, top)) as number:
                    _empty(number, top)
                os.rmdir(name, dir_fd=top)
    finally:
        os.close(top)
    with suppress(FileNotFoundError):
        folder.rmdir()


def _empty(folder: int, top: int) -> None:
    """Unlink the files of `folder` and move its folders to `top`."""
    for name in os.listdir(folder):
        if folder == top and name.startswith(_GONE):
            continue
        mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
        if stat.S_ISDIR(mode):
            os.chmod(name, 0o700, dir_fd=folder)
            os.rename(name, f"{_GONE}{secrets.token_hex(8)}", src_dir_fd=folder, dst_dir_fd=top)
        else:
            os.unlink(name, dir_fd=folder)


def _start_of(pid: int) -> str:
    """Start time of a process in clock ticks since boot, or "" when there is none."""
    try:
        text = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return ""
    return text.rpartition(b")")[2].split()[19].decode()


def _fresh_name() -> str:
    return f"{PREFIX}{os.getpid()}-{_start_of(os.getpid())}-{secrets.token_hex(8)}"


@contextmanager
def scratch_folder(parent: Path) -> Iterator[Path]:
    """A folder of this process that a jail's uid can pass but not list, removed at the end; sweeps `parent` first."""
    sweep(parent)
    folder = parent / _fresh_name()
    try:
        folder.mkdir(mode=0o700)
        folder.chmod(0o711)
    except OSError as fault:
        raise CannotEnforce(
            f"no scratch folder below {parent}: {fault.strerror}", remedy="point TMPDIR to a writable folder with space"
        ) from fault
    try:
        yield folder
    finally:
        with suppress(OSError):
            remove_tree(folder)


def sweep(scratch: Path) -> tuple[str, ...]:
    """Remove workspaces of ours below `scratch` whose process is gone; returns their names."""
    gone = []
    with suppress(OSError), os.scandir(scratch) as entries:
        for entry in entries:
            match = _NAME.fullmatch(entry.name)
            if match is None or not entry.is_dir(follow_symlinks=False):
                continue
            if entry.stat(follow_symlinks=False).st_uid != os.geteuid() or _start_of(int(match[1])) == match[2]:
                continue
            with suppress(OSError):
                remove_tree(Path(entry.path))
                gone.append(entry.name)
    return tuple(gone)
