"""Landing a patch in the user's tree, and taking it back: whole or not at all.

Order: every file is compared with what the patch was made for; both sides of each are kept outside the repository with
a record that says "landing"; new bytes are written and synced beside each file; then they are renamed over, one by one,
and the record says "landed". A fault on the way is rolled back at once; after a kill or a power cut the record tells
the next run, which rolls back. Between the kill and that next run a patch of several files may stand half; each file is
whole at any time. Not promised: extended attributes and hard links of a replaced file (it is a new inode), and files
that another program writes in the very moment between comparison and rename.
"""

import contextlib
import errno
import fcntl
import os
import secrets
import stat
import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from localagent.domain.edit import FileChange, FileFate, Patch, digest_of
from localagent.domain.paths import RepoPath
from localagent.errors import AnswerIsNo
from localagent.fs import openat
from localagent.fs.openat import root_directory
from localagent.repo.apply_record import (
    ABSENT,
    ApplyRecord,
    FileRecord,
    LandState,
    commit_landing,
    load_blob,
    load_landing,
    prepare_landing,
    save_blobs,
    save_landing,
)

# One writer a repository: an advisory lock on the repository's own directory, so that no file is left in it.
#
# Kept by every localagent of every user of this machine; other programs, and machines that share the directory over a
# network file system without locks, know nothing of it.

_POLL_SECONDS = 0.05


@contextlib.contextmanager
def repository_lock(repo: Path, *, wait_seconds: float = 30.0) -> Iterator[int]:
    """Holds the lock and yields the root's descriptor; AnswerIsNo if another run keeps it longer than the wait."""
    with root_directory(repo) as root:
        ends = time.monotonic() + wait_seconds
        while True:
            try:
                fcntl.flock(root, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError as error:
                if error.errno not in (errno.EWOULDBLOCK, errno.EAGAIN, errno.EINTR):
                    raise AnswerIsNo(
                        f"cannot lock {repo}: {error.strerror}",
                        remedy="use a file system with locks, or take the diff and `git apply` it",
                    ) from error
                if time.monotonic() >= ends:
                    raise AnswerIsNo(
                        f"another localagent is writing into {repo}", remedy="wait until it has ended, then try again"
                    ) from error
            time.sleep(_POLL_SECONDS)
        yield root  # closing the descriptor gives the lock back


_MAX_BYTES = 256 << 20


class TreeDiffers(AnswerIsNo):
    """A file is not what the patch was made for; nothing was changed."""


class CannotLand(AnswerIsNo):
    """A file could not be written; everything is as it was."""


def landing_state(undo_dir: Path) -> LandState:
    """How far the landing kept in a directory is."""
    landing = load_landing(undo_dir)
    return LandState.NONE if landing is None else landing.state


def land(patch: Patch, repo: Path, undo_dir: Path, *, made: Collection[RepoPath] = ()) -> None:
    """Writes the patch into the tree. TreeDiffers or CannotLand with the reason; then nothing is changed.

    `made`: files of it that must not stand there yet, in folders that do. A patch that somebody took back by other
    means, such as `git checkout`, can be landed again.
    """
    root_path = Path(os.path.realpath(repo))
    with repository_lock(root_path) as root:
        _recover(root, undo_dir)
        kept = load_landing(undo_dir)
        if kept is not None and kept.state is LandState.LANDED and not _taken_back(root, root_path, undo_dir, kept):
            raise AnswerIsNo("this patch is already applied", remedy="`localagent undo` takes it back")
        made = {*made, *(c.path for c in patch.changes if c.fate is FileFate.CREATED)}
        _make_folders(root, [c.path for c in patch.changes if c.fate is FileFate.CREATED])
        files = tuple(_inspected(root, c, made=c.path in made) for c in patch.changes if c.is_change)
        blobs = {digest_of(data): data for c in patch.changes for data in (c.before, c.after)}
        landing = ApplyRecord(repo=str(root_path), state=LandState.LANDING, files=files)
        with _reported(f"cannot keep what undo needs in {undo_dir}"):
            save_blobs(undo_dir, blobs)
        _carry_out(root, undo_dir, landing, LandState.LANDED)


def undo(repo: Path, undo_dir: Path) -> tuple[RepoPath, ...]:
    """Puts back what stood before, with mode and time; the files restored. TreeDiffers if one was changed since.

    None are restored where all of them stand as before already, put back by other means; then that is kept.
    """
    root_path = Path(os.path.realpath(repo))
    with repository_lock(root_path) as root:
        _recover(root, undo_dir)
        landing = load_landing(undo_dir)
        if landing is None or landing.state is not LandState.LANDED:
            raise AnswerIsNo("nothing of this task is applied", remedy="`localagent history` lists the tasks")
        if landing.repo != str(root_path):
            raise AnswerIsNo(f"this patch was applied to {landing.repo}, not to {root_path}")
        if _taken_back(root, root_path, undo_dir, landing):
            with _reported(f"cannot write {undo_dir}"):
                save_landing(undo_dir, replace(landing, state=LandState.UNDONE))
            return ()
        for x in landing.files:
            _compare(
                root, x.path, _side_bytes(undo_dir, x.after), "was changed since the patch was applied", _TAKE_BACK
            )
        landing = replace(landing, state=LandState.UNDOING)
        _carry_out(root, undo_dir, landing, LandState.UNDONE)
        return tuple(x.path for x in landing.files)


def recover(repo: Path, undo_dir: Path) -> bool:
    """Rolls back what a killed run left half done; whether there was anything."""
    with repository_lock(Path(os.path.realpath(repo))) as root:
        return _recover(root, undo_dir)


@dataclass(frozen=True, slots=True)
class _Way:
    """Which side a file comes from and which it goes to."""

    source: str
    goal: str
    restore_time: bool


def _way(x: FileRecord, state: LandState) -> _Way:
    if state is LandState.LANDING:
        return _Way(x.before, x.after, restore_time=False)
    return _Way(x.after, x.before, restore_time=True)


def _carry_out(root: int, undo_dir: Path, landing: ApplyRecord, done: LandState) -> None:
    """Stage all, rename all, say so; on any fault, interruptions included, roll back and say why."""
    try:
        with _reported("cannot write the patch; the repository is as it was"):
            save_landing(undo_dir, landing)
            for x in landing.files:
                way = _way(x, landing.state)
                _stage(root, x, _side_bytes(undo_dir, way.goal), restore_time=way.restore_time)
            prepare_landing(undo_dir, replace(landing, state=done))  # from here on nothing needs space
            for x in landing.files:
                way = _way(x, landing.state)
                _compare(root, x.path, _side_bytes(undo_dir, way.source), "was changed just now")
                _put(root, x, way.goal)
            commit_landing(undo_dir)
    except BaseException:
        _recover(root, undo_dir)
        raise


@contextlib.contextmanager
def _reported(what: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise CannotLand(
            f"{what}: {error.strerror or error}", remedy="free space, or check the rights there"
        ) from error


def _make_folders(root: int, paths: Collection[RepoPath]) -> None:
    """The folders of new files. They stay when the files go again."""
    with _reported("cannot make the folder of a new file"):
        for path in paths:
            with openat.parent_directory(root, path.parts, make_mode=0o777):
                pass


def _inspected(root: int, change: FileChange, *, made: bool) -> FileRecord:
    before = None if made else change.before
    seen = _compare(root, change.path, before, "is not what the patch was made for")
    inherits = not made or seen.st_mode & stat.S_ISGID
    return FileRecord(
        path=change.path,
        temporary=f".localagent-{secrets.token_hex(8)}.tmp",
        before=ABSENT if before is None else digest_of(before),
        after=ABSENT if change.fate is FileFate.DELETED else digest_of(change.after),
        mode=stat.S_IMODE(seen.st_mode) & (0o666 if made else 0o7777),
        uid=os.geteuid() if made else seen.st_uid,
        gid=seen.st_gid if inherits else os.getegid(),
        mtime_ns=seen.st_mtime_ns,
    )


def _side_bytes(undo_dir: Path, digest: str) -> bytes | None:
    """One side of a file, None where none stands."""
    return None if digest == ABSENT else load_blob(undo_dir, digest)


_AGAIN = "take that change back, or have the patch made again on the tree as it is"
_TAKE_BACK = "take that change back first; or keep the files as they are, and take the patch out of them by hand"


def _taken_back(root: int, root_path: Path, undo_dir: Path, landing: ApplyRecord) -> bool:
    """Whether every file of a landing in this repository has the bytes of before it, put back by other means."""
    if landing.repo != str(root_path):
        return False
    try:
        for x in landing.files:
            if x.before != ABSENT or _has_folder(root, x.path):
                _compare(root, x.path, _side_bytes(undo_dir, x.before), "")
    except TreeDiffers:
        return False
    return True


def _compare(root: int, path: RepoPath, wanted: bytes | None, complaint: str, remedy: str = _AGAIN) -> os.stat_result:
    """The status of a file, or of the folder where none is to stand. TreeDiffers if it is not what is wanted."""
    try:
        if wanted is None:
            return _folder_without(root, path)
        data, seen = _read(root, path, len(wanted))
    except OSError as error:
        why = "" if error.errno == errno.EFBIG else f": {error.strerror or error}"  # another length is another text
        raise TreeDiffers(f"{path!r} {complaint}{why}", remedy=remedy) from error
    if data != wanted:
        raise TreeDiffers(f"{path!r} {complaint}", remedy=remedy)
    return seen


def _folder_without(root: int, path: RepoPath) -> os.stat_result:
    with openat.parent_directory(root, path.parts) as parent:
        try:
            os.stat(path.name, dir_fd=parent, follow_symlinks=False)
        except FileNotFoundError:
            return os.fstat(parent)
    raise FileExistsError(errno.EEXIST, "something stands there")


def _read(root: int, path: RepoPath, limit_bytes: int = _MAX_BYTES) -> tuple[bytes, os.stat_result]:
    with openat.parent_directory(root, path.parts) as parent:
        return openat.read_regular(path.name, parent, limit_bytes)


def _stage(root: int, x: FileRecord, data: bytes | None, *, restore_time: bool) -> None:
    """Write bytes beside a file, with its mode and owner, synced; nothing where none is to stand."""
    if data is None:
        return
    with (
        openat.parent_directory(root, x.path.parts) as parent,
        openat.closing(openat.open_new(x.temporary, parent)) as descriptor,
    ):
        openat.write_all(descriptor, data)
        mine = os.fstat(descriptor)
        if (mine.st_uid, mine.st_gid) != (x.uid, x.gid):
            os.fchown(descriptor, x.uid, x.gid)
        os.fchmod(descriptor, x.mode)
        if restore_time:
            os.utime(descriptor, ns=(x.mtime_ns, x.mtime_ns))
        os.fsync(descriptor)


def _put(root: int, x: FileRecord, goal: str) -> None:
    """What was staged comes into its place, or the file goes."""
    if goal != ABSENT:
        _rename(root, x)
        return
    with openat.parent_directory(root, x.path.parts) as parent:
        os.unlink(x.path.name, dir_fd=parent)
        os.fsync(parent)


def _rename(root: int, x: FileRecord) -> None:
    with openat.parent_directory(root, x.path.parts) as parent:
        os.rename(x.temporary, x.path.name, src_dir_fd=parent, dst_dir_fd=parent)
        os.fsync(parent)


def _has_folder(root: int, path: RepoPath) -> bool:
    try:
        with openat.parent_directory(root, path.parts):
            return True
    except FileNotFoundError:
        return False


def _recover(root: int, undo_dir: Path) -> bool:
    """Bring every file of an interrupted landing (or undoing) back to where it came from.

    One that was made, and removed before its folder was, stays away: of it nothing is left to undo.
    """
    landing = load_landing(undo_dir)
    if landing is None or landing.state not in (LandState.LANDING, LandState.UNDOING):
        return False
    strange, done = [], []
    for x in landing.files:
        with contextlib.suppress(OSError), openat.parent_directory(root, x.path.parts) as parent:
            os.unlink(x.temporary, dir_fd=parent)
        way = _way(x, landing.state)
        try:
            present = digest_of(_read(root, x.path)[0])
        except FileNotFoundError:
            present = ABSENT
        except OSError:
            present = "no file of ours"
        if present == way.goal == ABSENT and not _has_folder(root, x.path):
            done.append(x)  # what was made is gone, and so is the place to put it back to
        elif present == way.goal and present != way.source:
            with _reported(f"cannot put {x.path!r} back"):
                _stage(root, x, _side_bytes(undo_dir, way.source), restore_time=landing.state is LandState.LANDING)
                _put(root, x, way.source)
        elif present != way.source:
            strange.append(x.path)
    back = LandState.NONE if landing.state is LandState.LANDING else LandState.LANDED
    with _reported(f"cannot write {undo_dir}"):
        save_landing(undo_dir, replace(landing, state=back, files=tuple(x for x in landing.files if x not in done)))
    if strange:
        raise TreeDiffers(f"changed by somebody else while a patch was being written: {', '.join(map(repr, strange))}")
    return True
