"""Carries files across the jail's border: inputs into a workspace, produced files out of it. Both sides are hostile.

Folders are entered and files opened one component at a time by descriptor, without following links and without waiting
(O_NOFOLLOW, O_NONBLOCK); only regular files are read; number, depth and bytes are bounded, and what is left out is said
with the reason. A produced file is written as a new inode below a folder of the user's, never over what is there
unless asked for. Safe while something in the jail still writes: what is told of a file is what was read of it.
"""

import hashlib
import os
import secrets
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from localagent.domain.jailspec import LeftOut, Produced
from localagent.domain.paths import RepoPath
from localagent.errors import AnswerIsNo, UsageFault
from localagent.fs import openat
from localagent.jail.files.workspace import Workspace
from localagent.text.escaping import escaped_name

_PIECE_BYTES = 1 << 20
_NAME_BYTES = 255
LEFT_OUT_LIMIT = 1000  # more are not named


@dataclass(frozen=True, kw_only=True, slots=True)
class TransferBounds:
    """How much is carried at most: files, entries looked at, folders within folders, bytes together."""

    files: int = 1000
    entries: int = 20_000
    depth: int = 32
    total_bytes: int = 256 << 20


Mark = tuple[int, int, int]  # inode, size, change time: whatever a program does to a file's content alters it
Marks = Mapping[str, Mark]


@dataclass(kw_only=True, slots=True)
class _Walk:
    """One walk: what may still be carried, what was left out."""

    bounds: TransferBounds
    entries: int = 0
    files: int = 0
    bytes: int = 0
    left_out: list[LeftOut] = field(default_factory=list)

    def leave_out(self, name: str, why: str) -> None:
        if len(self.left_out) < LEFT_OUT_LIMIT:
            self.left_out.append(LeftOut(name=name, why=why))


def marks_of(tree: Path, bounds: TransferBounds) -> dict[str, Mark]:
    """What the regular files below `tree` look like now, to tell later which are new or altered."""
    marks: dict[str, Mark] = {}
    walk = _Walk(bounds=bounds)
    _visit(tree, walk, lambda name, _folder, _leaf, facts: marks.__setitem__(name, _mark(facts)))
    return marks


def put_in(workspace: Workspace, source: Path, bounds: TransferBounds) -> tuple[LeftOut, ...]:
    """Copy a regular file or a folder of the user's into a workspace, under its own name; tells what was left out.

    UsageFault when `source` itself is neither, is a link, or holds more than the bounds allow.
    """
    name = source.name or Path(os.path.realpath(source)).name
    try:
        mode = source.lstat().st_mode
    except OSError as fault:
        raise UsageFault(f"--file {source}: {fault.strerror}") from fault
    if stat.S_ISREG(mode):
        workspace.write(RepoPath(name), read_regular(source, bounds.total_bytes))
        return ()
    if not stat.S_ISDIR(mode):
        what = "a link" if stat.S_ISLNK(mode) else "neither a regular file nor a folder"
        raise UsageFault(f"--file {source}: is {what}", remedy="name the file or folder itself")
    walk = _Walk(bounds=bounds)

    def copy(inside: str, folder: int, leaf: str, facts: os.stat_result) -> None:
        room = walk.bounds.total_bytes - walk.bytes
        try:
            content = _bytes_of(folder, leaf, min(room, facts.st_size + 1))
        except OSError as fault:
            raise UsageFault(f"--file {source}: {inside}: {fault.strerror}") from fault
        walk.files, walk.bytes = walk.files + 1, walk.bytes + len(content)
        if walk.files > bounds.files or len(content) > room or facts.st_size > room:
            raise UsageFault(f"--file {source}: more than {bounds.files} files or {bounds.total_bytes:,} bytes")
        workspace.write(RepoPath(f"{name}/{inside}"), content)

    workspace.make_folder(RepoPath(name))
    _visit(source, walk, copy)
    if walk.entries > bounds.entries:
        raise UsageFault(f"--file {source}: more than {bounds.entries} entries")
    return tuple(walk.left_out)


def read_regular(path: Path, limit_bytes: int) -> bytes:
    """A regular file's bytes, its last component never a link; UsageFault when it is anything else or too large."""
    try:
        return openat.read_regular(path, None, limit_bytes)[0]
    except OSError as fault:
        raise UsageFault(f"{path}: {fault.strerror}") from fault


def take_out(
    tree: Path, before: Marks, out: Path | None, bounds: TransferBounds, *, force: bool = False
) -> tuple[tuple[Produced, ...], tuple[LeftOut, ...]]:
    """The regular files below `tree` that are new or altered since `before`, copied below `out` where one is given.

    AnswerIsNo when `out` cannot be made or is no folder.
    """
    walk = _Walk(bounds=bounds)
    found: list[Produced] = []
    target = None if out is None else _open_out(out)

    def take(name: str, folder: int, leaf: str, facts: os.stat_result) -> None:
        if before.get(name) == _mark(facts):
            return
        shown = "/".join(escaped_name(part) for part in name.split("/"))
        if walk.files >= bounds.files:
            walk.leave_out(shown, f"more than {bounds.files} files")
        elif facts.st_size > bounds.total_bytes - walk.bytes:
            walk.leave_out(shown, f"{facts.st_size:,} bytes: more than {bounds.total_bytes:,} bytes in all")
        else:
            try:
                produced = _take_one(shown, folder, leaf, target, bounds.total_bytes - walk.bytes, force=force)
            except (OSError, _Grown) as fault:
                why = (
                    f"exists in {out}; --force replaces it"
                    if isinstance(fault, FileExistsError)
                    else _error_text(fault)
                )
                walk.leave_out(shown, why)
                return
            walk.files, walk.bytes = walk.files + 1, walk.bytes + produced.bytes
            found.append(produced)

    try:
        _visit(tree, walk, take)
    finally:
        if target is not None:
            os.close(target)
    if walk.entries > bounds.entries:
        walk.left_out.append(LeftOut(name="...", why=f"more than {bounds.entries} entries: the rest was not looked at"))
    return tuple(found), tuple(walk.left_out)


def ready_out(out: Path | None) -> None:
    """Make the folder that files will be copied to; AnswerIsNo while nothing has run, where that cannot be."""
    if out is not None:
        os.close(_open_out(out))
        if not os.access(out, os.W_OK | os.X_OK):
            raise AnswerIsNo(f"--out {out}: not writable", remedy="name a folder that can be made or written")


class _Grown(Exception):  # noqa: N818 - named for what happened
    """A file grew while it was read, or is no regular file any more."""


def _error_text(fault: Exception) -> str:
    return (fault.strerror or str(fault)) if isinstance(fault, OSError) else str(fault)


def _mark(facts: os.stat_result) -> Mark:
    return facts.st_ino, facts.st_size, facts.st_ctime_ns


def _visit(tree: Path, walk: _Walk, see: Callable[[str, int, str, os.stat_result], None]) -> None:
    """`see(name, folder, leaf, facts)` for each regular file, by name. Others are left out, with the reason."""
    try:
        top = openat.open_directory(tree)
    except OSError as fault:  # what runs inside may close its own folder
        walk.leave_out(".", fault.strerror or str(fault))
        return
    with openat.closing(top):
        _visit_folder(top, "", 0, walk, see)


def _visit_folder(
    folder: int, above: str, depth: int, walk: _Walk, see: Callable[[str, int, str, os.stat_result], None]
) -> None:
    for leaf in _listed(folder, walk):
        name = f"{above}{leaf}"
        shown = "/".join(escaped_name(part) for part in name.split("/"))
        try:
            facts = os.stat(leaf, dir_fd=folder, follow_symlinks=False)
            if stat.S_ISREG(facts.st_mode):
                see(name, folder, leaf, facts)
            elif not stat.S_ISDIR(facts.st_mode):
                walk.leave_out(shown, "a link" if stat.S_ISLNK(facts.st_mode) else "not a regular file")
            elif depth >= walk.bounds.depth:
                walk.leave_out(shown, f"more than {walk.bounds.depth} folders deep")
            else:
                with openat.closing(openat.open_directory(leaf, folder)) as below:
                    _visit_folder(below, f"{name}/", depth + 1, walk, see)
        except OSError as fault:
            walk.leave_out(shown, fault.strerror or str(fault))


def _listed(folder: int, walk: _Walk) -> list[str]:
    """The names in a folder, sorted, no more of them than may still be looked at."""
    names: list[str] = []
    with os.scandir(folder) as entries:
        for entry in entries:
            walk.entries += 1
            if walk.entries > walk.bounds.entries:
                break
            names.append(entry.name)
    return sorted(names)


def _pieces(folder: int, leaf: str, limit_bytes: int) -> Iterator[bytes]:
    with openat.closing(openat.open_regular(leaf, folder)) as number:
        taken = 0
        while piece := os.read(number, _PIECE_BYTES):
            taken += len(piece)
            if taken > limit_bytes:
                raise _Grown("grew while it was read")
            yield piece


def _bytes_of(folder: int, leaf: str, limit_bytes: int) -> bytes:
    try:
        return b"".join(_pieces(folder, leaf, limit_bytes))
    except _Grown as fault:
        raise UsageFault(f"{leaf}: {fault}") from fault


def _open_out(out: Path) -> int:
    try:
        with suppress(FileExistsError):
            out.mkdir(mode=0o700)
        return openat.open_root(out)
    except OSError as fault:
        raise AnswerIsNo(
            f"--out {out}: {fault.strerror}", remedy="name a folder that can be made or written"
        ) from fault


def _take_one(shown: str, folder: int, leaf: str, target: int | None, limit_bytes: int, *, force: bool) -> Produced:
    """Digest a file and, where there is a target, write it there."""
    digest, size = hashlib.sha256(), 0
    if target is None:
        for piece in _pieces(folder, leaf, limit_bytes):
            digest.update(piece)
            size += len(piece)
        return Produced(name=shown, bytes=size, digest=f"sha256:{digest.hexdigest()}")
    *above, name = shown.split("/")
    if any(len(part) > _NAME_BYTES for part in (*above, name)):
        raise _Grown("its escaped name is too long")
    fresh = f".localagent-{secrets.token_hex(8)}"
    with openat.parent_directory(target, (*above, name), make_mode=0o700) as parent:
        try:
            with openat.closing(openat.open_new(fresh, parent)) as number:
                for piece in _pieces(folder, leaf, limit_bytes):
                    digest.update(piece)
                    size += len(piece)
                    openat.write_all(number, piece)
            if force:
                os.rename(fresh, name, src_dir_fd=parent, dst_dir_fd=parent)  # replaces a link, never writes through it
            else:
                os.link(fresh, name, src_dir_fd=parent, dst_dir_fd=parent, follow_symlinks=False)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(fresh, dir_fd=parent)
    return Produced(name=shown, bytes=size, digest=f"sha256:{digest.hexdigest()}", copied=True)
